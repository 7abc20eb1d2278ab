"""Estimates from lots, and whether days were drawn: known effects, sizes, exact permutations."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from srs_eval.draws.estimate import effect, permutation_z, regression, strength, within
from srs_eval.draws.lots import Lots
from srs_eval.draws.randomness import LEAST_P, doubts, load_z, place_p_value
from srs_eval.draws.trials import Assignments


def simulated(rng, n=400, value=0.7, cards=100):
    """A confounded exposure: what makes it long also makes the outcome good."""
    z, hidden = rng.uniform(-1, 1, n), rng.normal(size=n)
    x = 0.5 * z + hidden
    return z, x, value * x - 2 * hidden + rng.normal(size=n), rng.integers(0, cards, n)


def test_effect_is_recovered_from_a_confounded_exposure_unless_the_instrument_is_weak():
    rng = np.random.default_rng(2)
    z, x, y, card = simulated(rng, 40_000, cards=9000)
    found = effect(z, y, x, card)
    assert found.value == pytest.approx(0.7, abs=4 * found.se)
    assert x @ y / (x @ x) < -1  # what a regression would say
    assert strength(z, x, card) > 1000
    z, x, y, card = simulated(np.random.default_rng(5), 40)
    assert effect(z, y, x - 0.5 * z, card).interval() == (-np.inf, np.inf)
    assert np.isnan(effect(z * 0, y, x, card).value)


def test_intervals_cover_and_tests_have_their_size():
    rng = np.random.default_rng(3)
    found = [effect(z, y, x, card) for z, x, y, card in (simulated(rng) for _ in range(600))]
    rejected = np.mean([one.p_value(0.7) < 0.1 for one in found])
    assert rejected == pytest.approx(0.1, abs=0.04)
    covered = np.mean([low <= 0.7 <= high for low, high in (one.interval(0.9) for one in found)])
    assert covered == pytest.approx(1 - rejected)


def test_clusters_count_once_and_intervals_end_where_tests_reject():
    z, x, y, card = simulated(np.random.default_rng(6))
    once = effect(z, y, x, card)
    assert [once.p_value(end) for end in once.interval(0.9)] == pytest.approx([0.1, 0.1])
    twice = effect(*(np.tile(each, 2) for each in (z, y, x, card)))
    assert twice.se == pytest.approx(once.se)


def test_regression_is_the_slope():
    z = np.array([-1.0, 0, 1, -2, 2])
    assert regression(z, 3 * z + 1, np.arange(5)).value == pytest.approx(3)


def test_permutations_are_those_of_every_order():
    z, y = np.array([1.0, 2, 4, 5, 7, 0]), np.array([0.0, 1, 1, 0, 1, 1])
    cell = np.array([0, 0, 0, 1, 1, 2])
    every = [
        sum(a @ b for a, b in ((np.array(first), y[:3]), (np.array(second), y[3:5]))) + z[5] * y[5]
        for first in itertools.permutations(z[:3])
        for second in itertools.permutations(z[3:5])
    ]
    expected = (z @ y - np.mean(every)) / np.std(every)
    assert permutation_z(z, y, cell) == pytest.approx(expected)
    assert np.isnan(permutation_z(z, y, np.arange(6)))
    # of which means are removed
    assert within(np.array([1.0, 3, 7]), np.array([5, 5, 2])).tolist() == [-1, 1, 0]


def assigned(rng, n=3000, choose=None):
    """Answers on 300 days; days are drawn, or chosen by the load that they have already."""
    day = np.sort(rng.integers(0, 300, n))
    low = rng.choice([4, 8, 15, 25], n)
    high = low + low // 3 + 1
    load, drawn = np.zeros(500), np.empty(n, np.int64)
    for k in range(n):
        days = np.arange(low[k], high[k] + 1)
        drawn[k] = choose(days, load[day[k] + days]) if choose else rng.choice(days)
        load[day[k] + drawn[k]] += 1
    return day, Assignments(np.arange(n), drawn, Lots.uniform(low, high))


def test_random_draws_pass():
    found = [assigned(np.random.default_rng(seed), 800) for seed in range(40)]
    p = [place_p_value(draws, np.random.default_rng(0)) for _, draws in found]
    z = [load_z(*each) for each in found]
    assert min(p) > LEAST_P
    assert np.mean(p) == pytest.approx(0.5, abs=0.15)
    assert np.std(z) == pytest.approx(1, abs=0.35)
    assert abs(np.mean(z)) < 3 / np.sqrt(40)


def test_days_that_were_chosen_are_doubted(monkeypatch):
    rng = np.random.default_rng(1)

    def told(choose=None):
        day, draws = assigned(rng, choose=choose)
        return doubts(SimpleNamespace(row=draws.row, day=day), draws)

    assert told() == ""
    assert "not uniform" in told(lambda days, load: max(rng.choice(days, 2)))
    monkeypatch.setattr("srs_eval.draws.randomness.place_p_value", lambda *_: 1.0)
    assert "few cards" in told(lambda days, load: rng.choice(days[load == load.min()]))


def test_nothing_to_choose_from_is_no_sign():
    lots = Lots.uniform(np.array([3, 3]), np.array([3, 3]))
    assert load_z(np.array([0, 1]), Assignments(np.arange(2), np.array([3, 3]), lots)) == 0
