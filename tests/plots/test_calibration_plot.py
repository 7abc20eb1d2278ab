"""The smooth reliability diagram."""

import numpy as np
import pytest
from cases import rest_slow
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from srs_eval.errors import ScoreError
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


@pytest.mark.slow
def test_the_number_written_is_the_metric():
    p, recalled = beta(3000)
    axes, curve = drawn(p, recalled)
    written = key_of(axes).splitlines()[0].split()
    assert written[0] == "smECE"
    metric = reliability_of(tally(p, recalled))
    assert float(written[1]) == pytest.approx(metric.smece, abs=6e-4)
    assert float(written[3]) == pytest.approx(metric.half_width, abs=6e-4)
    assert curve.smece == metric.smece


@pytest.mark.parametrize(
    ("smece", "half_width", "expected"),
    rest_slow(
        [
            (0.0304, 0.0061, "smECE 0.030 ± 0.006 (95 %)"),
            (0.0042, 0.0018, "smECE 0.0042 ± 0.0018 (95 %)"),
            (0.00123, 0.00004, "smECE 0.00123 ± 0.00004 (95 %)"),
            (0.25, 0.2, "smECE 0.250 ± 0.200 (95 %)"),
            (0.25, 0.0, "smECE 0.250 ± 0.000 (95 %)"),
            (0.25, float("nan"), "smECE 0.250"),
        ],
        2,
    ),
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


@pytest.mark.slow
def test_a_range_can_be_asked_for():
    axes, _ = drawn(*beta(500), limits=(0.0, 1.0))
    assert axes.get_xlim() == pytest.approx((-0.012, 1.012))


def test_an_overconfident_curve_is_drawn_below_the_diagonal():
    p, recalled = beta(50_000)
    sure = 1 / (1 + (1 / p - 1) ** 1.6)
    axes, _ = drawn(sure, recalled)
    curve = next(c for c in axes.collections if isinstance(c, LineCollection))
    points = np.concatenate(curve.get_segments())
    crowded = points[(points[:, 0] > 0.8) & (points[:, 0] < 0.98)]
    assert (crowded[:, 1] < crowded[:, 0]).all()


@pytest.mark.slow
def test_the_curve_is_thickest_where_predictions_crowd():
    axes, _ = drawn(*beta(5_000))
    curve = next(c for c in axes.collections if isinstance(c, LineCollection))
    thickest = curve.get_segments()[int(np.argmax(curve.get_linewidths()))]
    assert 0.9 < thickest[0, 0] < 1


def test_a_model_of_few_predictions_gets_one_dot_for_each():
    p = np.repeat([0.6, 0.8, 0.9], [10, 20, 30])
    recalled = np.concatenate([np.arange(k) < 0.5 * k for k in (10, 20, 30)])
    axes, _ = drawn(p, recalled)
    dots = next(c for c in axes.collections if isinstance(c, PathCollection))
    np.testing.assert_allclose(dots.get_offsets(), [(0.6, 0.5), (0.8, 0.5), (0.9, 0.5)])
    assert not [c for c in axes.collections if type(c).__name__ == "PolyCollection"]


@pytest.mark.slow
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


def test_predictions_that_cannot_be_scored_are_refused():
    with pytest.raises(ScoreError, match="outside"):
        drawn([0.5, 1.5], [True, False])


@pytest.mark.slow
def test_the_level_by_chance_stands_beside_the_number():
    p, recalled = beta(3000)
    axes, curve = drawn(p, recalled)
    word, number = key_of(axes).splitlines()[1].rsplit(" ", 1)
    assert word == "by chance if calibrated:"
    assert float(number) == pytest.approx(curve.smece_floor, abs=6e-4)
