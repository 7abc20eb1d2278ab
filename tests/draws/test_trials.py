"""Outcomes of intervals drawn by lot, and what models predict of them."""

import numpy as np
import pytest
from toy_lottery import Knows, recall, toy

from srs_eval.algorithms.baselines import Average
from srs_eval.data.schema import reviews_from_columns
from srs_eval.draws.estimate import effect, regression
from srs_eval.draws.lots import Lots
from srs_eval.draws.trials import (
    Assignments,
    in_time,
    outcomes,
    pooled,
    predicted,
    ratio,
    trials_of,
)
from srs_eval.errors import ConfigError


@pytest.fixture(scope="module")
def log_and_lots():
    return toy(3000, seed=0)


def test_outcomes_are_the_next_reviews_on_later_days():
    log = reviews_from_columns(
        user=1,
        source="small",
        card=[7, 8, 7, 7, 7, 8, 7],
        day=[0, 0, 2, 2, 5, 5, 9],
        rating=[3, 3, 3, 1, 1, 3, 3],
    )
    found = outcomes(log, np.array([0, 2, 4, 5]))
    assert found.row.tolist() == [2, 4, 6, -1]
    assert found.seen.tolist() == [True, True, True, False]
    assert found.elapsed[:3].tolist() == [2, 3, 4]
    assert found.recalled[:3].tolist() == [True, False, True]
    assert found.later_row.tolist() == [4, 6, -1, -1]
    assert found.later_recalled[:2].tolist() == [False, True]


def test_rows_of_cards_that_were_not_kept_have_no_outcome():
    columns = {"card": [7, 7, 7], "day": [0, 2, 4], "rating": [3, 3, 3]}
    log = reviews_from_columns(user=1, source="small", **columns)
    found = outcomes(log.take([0, 2]), np.array([1, 0]))
    assert found.row.tolist() == [-1, 2]


def test_intervals_must_end_before_the_last_day():
    lots = Lots.uniform(np.array([9, 9, 90]), np.array([10, 10, 100]))
    assigned = Assignments(np.arange(3), np.array([9, 9, 95]), lots)
    days = np.array([0, 1, 0])
    assert in_time(assigned, days, np.array([17, 17, 129])).tolist() == [True, False, False]


@pytest.mark.parametrize(("power", "low", "high"), [(1.0, 0.9, 1.1), (2.0, 0.3, 0.75)])
def test_truth_has_the_ratio_one_and_a_steeper_curve_less(log_and_lots, power, low, high):
    log, lots = log_and_lots
    found = outcomes(log, lots.row)
    trials = trials_of(log, lots, found)
    model = predicted(log, lots, found, Knows(power), np.random.default_rng(0))
    of_outcomes = ratio(trials, model, trials.recalled, trials.card)
    truth = recall(log.card[found.row[found.seen]], trials.elapsed)
    of_truth = ratio(trials, model, truth, trials.card)
    assert low < of_truth.value < high
    assert of_outcomes.value == pytest.approx(of_truth.value, abs=4 * of_outcomes.se)
    assert np.isfinite(model.later[~np.isnan(trials.later_recalled)]).all()


def test_predictions_at_every_lot_have_a_mean_that_draws_do_not_move(log_and_lots):
    log, lots = log_and_lots
    found = outcomes(log, lots.row)
    trials = trials_of(log, lots, found)
    model = predicted(log, lots, found, Knows(), np.random.default_rng(0))
    card = log.card[np.searchsorted(log.row, lots.row[found.seen])]
    chosen = np.arange(0, len(trials), 997)
    for one in chosen:
        own = trials.lots.take([one])
        assert model.mean[one] == pytest.approx(recall(card[[one]], own.days) @ own.probability)
    drift = regression(np.ones(len(trials)), model.instrument, trials.card)
    assert abs(drift.value) < 4 * drift.se


def test_users_are_pooled_with_cards_of_their_own():
    parts = []
    for seed in (1, 2):
        log, lots = toy(40, seed)
        parts.append(trials_of(log, lots, outcomes(log, lots.row)))
    both = pooled(parts)
    assert len(both) == sum(map(len, parts))
    assert both.log_drawn.tolist() == [*parts[0].log_drawn, *parts[1].log_drawn]
    assert (np.exp(both.log_elapsed - both.log_drawn) * both.drawn).tolist() == pytest.approx(
        both.elapsed
    )
    assert not set(both.card[both.user == 0]) & set(both.card[both.user == 1])
    assert not set(both.cell[both.user == 0]) & set(both.cell[both.user == 1])
    assert effect(both.log_drawn, both.log_elapsed, both.log_drawn, both.card).value > 0.5


def test_models_without_a_curve_are_refused(log_and_lots):
    log, lots = log_and_lots
    found = outcomes(log, lots.row)

    class Flat(Average):
        def fit(self, reviews, rows, rng):
            class NoCurve:
                parameters = ()

                def predict(self, reviews, rows):
                    return np.full(len(rows), 0.5)

            return NoCurve()

    with pytest.raises(ConfigError):
        predicted(log, lots, found, Flat(), np.random.default_rng(0))
