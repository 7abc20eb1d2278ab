"""Draws are told from days that were chosen."""

import numpy as np
import pytest

from srs_eval.draws.lots import Lots
from srs_eval.draws.randomness import LEAST_P, load_z, place_p_value
from srs_eval.draws.trials import Assignments


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


def test_the_emptiest_day_is_no_lot():
    rng = np.random.default_rng(1)

    def emptiest(days, load):
        return rng.choice(days[load == load.min()])

    assert load_z(*assigned(rng, choose=emptiest)) < -10


def test_days_at_one_end_are_no_lot():
    rng = np.random.default_rng(2)
    _, draws = assigned(rng, choose=lambda days, _: max(rng.choice(days, 2)))
    assert place_p_value(draws, rng) < 1e-9


def test_nothing_to_choose_from_is_no_sign():
    lots = Lots.uniform(np.array([3, 3]), np.array([3, 3]))
    assert load_z(np.array([0, 1]), Assignments(np.arange(2), np.array([3, 3]), lots)) == 0
