"""The CORP reliability diagram."""

import numpy as np
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure

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


def test_calibrated_predictions_lie_in_the_band():
    axes, found = drawn(*beta(5000))
    band = next(c for c in axes.collections if isinstance(c, FillBetweenPolyCollection))
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() >= 0
    assert corners[:, 1].max() <= 1
    at = found.p[len(found.p) // 2]
    edges = corners[np.abs(corners[:, 0] - at) < 0.005, 1]
    assert edges.min() <= at <= edges.max()
