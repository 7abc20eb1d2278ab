"""The table of coverage: what it counts, and a small version of it."""

from __future__ import annotations

import numpy as np
import pytest
from interval_coverage import Quantity, missed
from interval_coverage import simulated as simulated_quantities

from srs_eval.stats.paired import paired_mean


@pytest.fixture(scope="module")
def simulated():
    return simulated_quantities(users=3_000)


def test_misses_are_counted_on_the_side_of_the_interval():
    first = np.random.default_rng(0).normal(0, 1, 400)
    equal, none = np.ones(400), np.zeros(400)
    quantity = Quantity("normal", first, none, equal)
    above, below = missed(quantity, 20, 600)
    rng, truth = np.random.default_rng([0, 20]), first.mean()
    drawn = [rng.integers(0, 400, 20) for _ in range(600)]
    found = [paired_mean(first[users], none[users]).interval() for users in drawn]
    assert above == np.mean([lo > truth for lo, _ in found])
    assert below == np.mean([hi < truth for _, hi in found])
    assert above + below < 0.025


def test_intervals_hold_the_mean_as_often_as_they_say(simulated):
    headline = [quantity for quantity in simulated if quantity.is_headline]
    held = [1 - sum(missed(quantity, users, 250)) for quantity in headline for users in (10, 40)]
    assert 0.975 < np.mean(held) <= 1
