"""Pictures of a comparison draw what the frame, and the calibration curves of its models, say."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from saved import load_predictions

from srs_eval.comparison import pictures
from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.tally import Tally
from srs_eval.plots.calibration_plot import of_twenty
from srs_eval.plots.style import BLUE


@pytest.fixture
def axes(monkeypatch):
    """Axes that the next picture is drawn on."""
    axes = Figure().add_subplot()
    monkeypatch.setattr(pictures, "svg", lambda draw, *_: draw(axes) or axes)
    return axes


def test_each_difference_is_at_its_place_with_its_interval_or_beyond_the_end(compared, axes):
    standings = compared("a | b blur=0.2 | c blur=0.3 | far blur=9 | o sees_truth=true")
    rows, (zero, *lines) = standings.rows, pictures.differences(standings).lines
    ends = rows[["to_best_lo", "to_best_hi", "to_best"]].fillna(0).to_numpy()
    reach = np.abs(ends).max(axis=1)
    limit = 4 * np.median(reach[reach > 0])
    assert (rows.run.iloc[-1], limit < ends[-1, 2], *zero.get_xdata()) == ("far", True, 0, 0)
    for place, (lo, hi, middle) in enumerate(np.clip(ends, -limit, limit)):
        if not np.isnan(rows.to_best.iloc[place]):
            assert lines.pop(0).get_xydata().tolist() == [[lo, -place], [hi, -place]]
        marker = lines.pop(0)
        assert marker.get_xydata().tolist() == [[middle, -place]]
        assert (marker.get_marker() == ">") == (middle == limit)
    names = [f"{name}{standings.runs[name].marks}" for name in rows.run]
    gaps, means = rows.to_best.map("{:+.4f}".format), rows["mean"].map("{:.4f}".format)
    shown = [[label.get_text() for label in side.get_yticklabels()] for side in axes.figure.axes]
    assert shown == [names, gaps.where(rows.to_best.notna(), means).tolist()]
    format_of = axes.xaxis.get_major_formatter()
    assert [format_of(value) for value in (-0.05, 0, 0.1)] == ["-0.05", "0", "+0.1"]


def test_calibration_is_that_of_the_leader_and_the_baseline(compared, axes):
    standings, names = compared("a blur=1 | b | c blur=2"), "ab"
    diagonal, retention, *lines = pictures.calibration(standings).lines
    tallies = [Tally.of(load_predictions(standings.runs[name].place)) for name in names]
    low = min(np.repeat(each.p, each.count.astype(int))[int(0.02 * each.n)] for each in tallies)
    low = np.clip(np.floor(low / 0.05) * 0.05 - 0.05, 0, 0.8)
    assert (*axes.get_xlim(), *axes.get_ylim()) == pytest.approx((low, 1, low, 1))
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert (retention.get_xdata()[0], [line.get_label() for line in lines]) == (0.9, [*names])
    assert [line.get_color() == BLUE for line in lines] == [False, True]
    for line, bars, whole in zip(lines, axes.patches, tallies, strict=True):
        curve = reliability_of(whole, points=401)
        seen = of_twenty(curve) & (curve.hi - curve.lo < 0.15)
        assert line.get_xdata() == pytest.approx(curve.p_grid[seen])
        assert line.get_ydata() == pytest.approx(curve.observed[seen], abs=1e-3)
        heights, edges, base = bars.get_data()
        share = np.histogram(whole.p, np.linspace(low, 1, 41), weights=whole.count)[0]
        assert edges == pytest.approx(np.linspace(low, 1, 41))
        assert (heights - base) == pytest.approx(0.13 * (1 - low) * share / share.max(), abs=1e-2)
