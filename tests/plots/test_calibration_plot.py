"""The smooth reliability diagram."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.tally import tally
from srs_eval.plots.calibration_plot import plot_calibration, smece_text


def drawn(p, recalled, **options):
    axes = Figure().add_subplot()
    return axes, plot_calibration(axes, p, recalled, **options)


def beta(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(9, 1.2, n)
    return p, rng.uniform(size=n) < p


def key_of(axes) -> str:
    return axes.get_legend().get_title().get_text()


def test_the_number_written_is_the_metric():
    p, recalled = beta(3000)
    axes, curve = drawn(p, recalled)
    written, chance = (line.split() for line in key_of(axes).splitlines()[:2])
    metric = reliability_of(tally(p, recalled))
    assert float(written[1]) == pytest.approx(metric.smece, abs=6e-4)
    assert float(written[3]) == pytest.approx(metric.half_width, abs=6e-4)
    assert float(chance[-1]) == pytest.approx(metric.smece_floor, abs=6e-4)
    assert curve.smece == metric.smece


@pytest.mark.parametrize(
    ("smece", "half_width", "expected"),
    [
        (0.0304, 0.0061, "smECE 0.030 ± 0.006 (95 %)"),
        (0.0042, 0.0018, "smECE 0.0042 ± 0.0018 (95 %)"),
        (0.25, float("nan"), "smECE 0.250"),
    ],
)
def test_the_number_has_as_many_digits_as_its_interval_supports(smece, half_width, expected):
    p, recalled = beta(20)
    curve = reliability_of(tally(p, recalled))
    fields = {name: getattr(curve, name) for name in curve.__slots__}
    assert (
        smece_text(type(curve)(**{**fields, "smece": smece, "half_width": half_width})) == expected
    )


def test_both_axes_share_a_range_that_holds_nearly_all_predictions_and_the_curve():
    p, recalled = beta(5_000)
    axes, _ = drawn(p, recalled)
    low, high = axes.get_xlim()
    assert axes.get_ylim() == (low, high)
    assert ((p >= low) & (p <= high)).mean() >= 0.998
    curve = next(c for c in axes.collections if isinstance(c, LineCollection))
    points = np.concatenate(curve.get_segments())
    heavy = points[np.repeat(np.asarray(curve.get_linewidths()) > 2, 2)]
    assert heavy[:, 1].min() >= low
    assert heavy[:, 1].max() <= high


def test_predictions_outside_the_range_are_counted():
    p = np.concatenate([np.full(3, 0.1), np.linspace(0.85, 0.99, 5000)])
    axes, _ = drawn(p, np.ones(len(p)))
    assert axes.get_xlim()[0] > 0.5
    assert "3 predicted below" in key_of(axes)


def test_a_model_of_few_predictions_gets_one_dot_for_each():
    p = np.repeat([0.6, 0.8, 0.9], [10, 20, 30])
    recalled = np.concatenate([np.arange(k) < 0.5 * k for k in (10, 20, 30)])
    axes, _ = drawn(p, recalled)
    dots = next(c for c in axes.collections if isinstance(c, PathCollection))
    np.testing.assert_allclose(dots.get_offsets(), [(0.6, 0.5), (0.8, 0.5), (0.9, 0.5)])
    assert not [c for c in axes.collections if type(c).__name__ == "PolyCollection"]


def test_the_strip_gives_both_outcomes_the_same_area_and_counts_them():
    axes, _ = drawn(*beta(1000))
    (strip,) = axes.child_axes
    up, down = (patch.get_data().values for patch in strip.patches)
    assert up.sum() == pytest.approx(1)
    assert down.sum() == pytest.approx(-1)
    counts = [int(t.get_text().split()[-1].replace(",", "")) for t in strip.texts]
    assert sum(counts) == 1000
    axes, _ = drawn(*beta(1000), outcomes=False)
    assert not axes.child_axes
