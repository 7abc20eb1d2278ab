"""The table of promised and achieved power: a small version of it."""

from __future__ import annotations

import numpy as np
from verdict_power import achieved, needed

from srs_eval.stats.power import power_of


def test_the_power_that_is_reached_is_that_of_the_population() -> None:
    drawn = np.random.default_rng(0).normal(0, 1, 400)
    users, power = achieved((drawn - drawn.mean()) / drawn.std() - 0.5)
    expected = [power_of(0.5, 1, int(each)) for each in users[users > 30]]
    np.testing.assert_allclose(power[users > 30], expected, atol=0.06)
    assert power[-1] > 0.98


def test_the_upper_end_needs_more_users_than_the_deviation_of_the_pilot() -> None:
    pilot = np.random.default_rng(1).exponential(1, 40)
    formula, own, upper = needed(pilot, 0.4)
    assert formula > 5
    assert upper > own > 5
