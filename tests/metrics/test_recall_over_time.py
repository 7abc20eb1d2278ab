"""Recall over elapsed days, from sums that add up."""

import numpy as np
import pytest
from pairs import predicted

from srs_eval.metrics.recall_over_time import ELAPSED, recall_of
from srs_eval.metrics.sums import add_up


def reviews(days, p=None, recalled=None):
    n = len(days)
    return predicted(
        np.full(n, 0.9) if p is None else p,
        np.ones(n) if recalled is None else recalled,
        elapsed_days=None if days[:1] == [None] else np.asarray(days, np.float64),
    )


def elapsed_totals(predictions):
    return add_up([ELAPSED], predictions)[0].values[0]


def recall_over_time(p, recalled, days):
    return recall_of(elapsed_totals(reviews(days, p, recalled)))


def test_short_whole_days_have_cells_of_their_own_and_long_ones_share():
    cell = ELAPSED.cell(reviews([*range(1, 24), 1000, 1010]))
    assert (np.diff(cell[:23]) > 0).all()
    assert cell[-1] == cell[-2]


def test_cells_of_any_interval_exist():
    cell = ELAPSED.cell(reviews([0, -1, 1e-9, 1e-5, 0.5, 36_500, 1e12]))
    assert cell.min() == 0
    assert (cell[:2] == 0).all()
    assert (cell[2:] > 0).all()
    assert cell.max() == ELAPSED.cells - 1


def test_bins_say_what_a_plain_loop_says():
    rng = np.random.default_rng(0)
    days = rng.choice([1, 2, 5, 9], 400).astype(float)
    p, recalled = rng.uniform(size=400), rng.uniform(size=400) < 0.8
    found = recall_over_time(p, recalled, days)
    np.testing.assert_allclose(found.days, [1, 2, 5, 9])
    for place, day in enumerate((1, 2, 5, 9)):
        assert found.n[place] == (days == day).sum()
        assert found.observed[place] == pytest.approx(recalled[days == day].mean())
        assert found.predicted[place] == pytest.approx(p[days == day].mean())


def test_bins_are_about_equally_large():
    days = np.exp(np.random.default_rng(1).normal(3, 1, 10_000))
    found = recall_over_time(np.full(10_000, 0.9), np.ones(10_000), days)
    assert len(found.n) == 14
    assert found.n.max() < 1.4 * found.n.min()


def test_same_day_reviews_are_in_no_bin():
    found = recall_over_time([0.9] * 4, [1, 1, 0, 0], [0, 0, 3, 3])
    assert found.same_day == 2
    assert found.n.tolist() == [2]
    assert found.observed.tolist() == [0]


def test_unknown_intervals_are_in_no_bin_either():
    found = recall_of(elapsed_totals(reviews([None, None])))
    assert (len(found.n), found.same_day) == (0, 2)
