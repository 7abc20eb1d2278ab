"""The CORP reliability diagram."""

import numpy as np
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure

from srs_eval.metrics.corp import CorpParts
from srs_eval.plots.corp_plot import parts_text, plot_corp


def drawn(p, recalled, **options):
    axes = Figure().add_subplot()
    return axes, plot_corp(axes, p, recalled, **options)


def beta(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(9, 1.2, n)
    return p, rng.uniform(size=n) < p


def curve_of(axes):
    return next(line for line in axes.lines if line.get_label() == "isotonic regression")


def test_the_curve_goes_through_the_isotonic_fit_and_never_falls():
    p, recalled = beta(2000)
    axes, found = drawn(p, recalled)
    at, height = curve_of(axes).get_data()
    assert (np.diff(at) >= 0).all()
    assert (np.diff(height) >= 0).all()
    middle = (found.p > 0.6) & (found.p < 0.99)
    np.testing.assert_allclose(
        np.interp(found.p, at, height)[middle], found.recalibrated[middle], atol=0.03
    )


def test_the_parts_written_are_those_of_both_scores():
    axes, found = drawn(*beta(500))
    words = axes.get_legend().get_title().get_text()
    assert parts_text("Brier", found.brier) in words
    assert parts_text("log", found.log) in words
    assert "n = 500 reviews" in words


def test_small_parts_keep_two_digits():
    assert parts_text("log", CorpParts(0.2, 0.000012, 0.0, 0.2)) == (
        "log: MCB 0.000012, DSC 0.0000, UNC 0.2000"
    )


def test_calibrated_predictions_lie_in_the_band():
    axes, found = drawn(*beta(5000))
    band = next(c for c in axes.collections if isinstance(c, FillBetweenPolyCollection))
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() >= 0
    assert corners[:, 1].max() <= 1
    at = found.p[len(found.p) // 2]
    edges = corners[np.abs(corners[:, 0] - at) < 0.005, 1]
    assert edges.min() <= at <= edges.max()


def test_a_model_of_few_predictions_gets_one_dot_for_each():
    p = np.repeat([0.6, 0.8, 0.9], [10, 20, 30])
    recalled = np.concatenate([np.arange(k) < 0.5 * k for k in (10, 20, 30)])
    axes, _ = drawn(p, recalled)
    (dots,) = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    np.testing.assert_allclose(dots.get_xydata(), [(0.6, 0.5), (0.8, 0.5), (0.9, 0.5)])
