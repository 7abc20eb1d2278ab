"""The bins of RMSE(bins) as a heat map."""

from dataclasses import replace

import numpy as np
import pytest
from metric_functions import rmse_bins
from pairs import predicted

from srs_eval.metrics.bins import FSRS_OPTIMIZER, WIKI_2024, FactSums
from srs_eval.metrics.sums import add_up
from srs_eval.nouns import Predictions
from srs_eval.plots.bins_plot import bin_gaps, bins_figure


def reviews(n=3000, seed=0) -> Predictions:
    rng = np.random.default_rng(seed)
    p = rng.beta(9, 1.2, n)
    return predicted(
        p,
        rng.uniform(size=n) < p - 0.1 * (rng.uniform(size=n) < 0.5),
        elapsed_days=np.round(np.exp(rng.normal(2, 1.5, n))),
        nth_review=rng.integers(1, 30, n),
        lapses=rng.poisson(0.6, n),
    )


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_bins_that_differ_in_lapses_are_added_up():
    some = reviews()
    gaps = bin_gaps(some)
    assert gaps.n.sum() == len(some)
    column, row = gaps.intervals.index("4-13"), gaps.reviews.index("7-12")
    inside = (some.elapsed_days >= 4) & (some.elapsed_days <= 13)
    inside &= (some.nth_review >= 7) & (some.nth_review <= 12)
    assert gaps.n[row, column] == inside.sum()
    assert gaps.gap[row, column] == pytest.approx((some.p - some.recalled)[inside].mean())


@pytest.mark.parametrize("scales", [FSRS_OPTIMIZER, WIKI_2024])
def test_the_number_above_is_the_metric_lapses_included(scales):
    some = reviews()
    columns = (some.p, some.recalled, some.elapsed_days, some.nth_review, some.lapses)
    assert bin_gaps(some, scales=scales).rmse == pytest.approx(rmse_bins(*columns, scales=scales))


def test_ranges_are_those_of_the_scale():
    gaps = bin_gaps(reviews())
    assert gaps.intervals[:4] == ("< 1", "1-3", "4-13", "14-47")
    assert gaps.reviews[:4] == ("1", "2-3", "4-6", "7-12")


def test_sums_make_the_figure_that_predictions_make():
    some = reviews()
    (totals,) = add_up([FactSums(FSRS_OPTIMIZER)], some, np.arange(3000) // 1000, 3)
    whole, parts = bin_gaps(some), bin_gaps(totals)
    np.testing.assert_allclose(parts.gap, whole.gap, equal_nan=True)
    assert parts.rmse == pytest.approx(whole.rmse)
    assert (parts.beyond_chance == whole.beyond_chance).all()


def test_chance_is_told_from_miscalibration():
    some = reviews(30_000)
    rng = np.random.default_rng(1)
    by_chance = bin_gaps(replace(some, recalled=rng.uniform(size=30_000) < some.p))
    assert by_chance.beyond_chance[by_chance.n > 0].mean() < 0.15
    off = bin_gaps(replace(some, recalled=rng.uniform(size=30_000) < some.p - 0.1))
    assert off.beyond_chance[off.n > 300].all()


@pytest.mark.parametrize("lost", ["elapsed_days", "nth_review", "lapses"])
def test_missing_facts_leave_nothing_to_draw(lost):
    figure = bins_figure(replace(reviews(5), **{lost: None}))
    assert "no reviews whose days" in words(figure.axes[0])[0]
