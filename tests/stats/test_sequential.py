"""Tests that are looked at daily: false alarms, drifts, and the formulas by quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import halfnorm

from srs_eval.stats.sequential import (
    LEARNED,
    Days,
    _mixture,
    either,
    first_alarm,
    log_evidence,
    noise,
)

LEVEL = 0.01


def histories(rng, n, days=365, *, users=40, shift=0.0, since=0, common=0.05):
    """Simulate residuals by day: users have good and bad days, cards stay harder than they seem.

    A whole day is easier or harder for everyone (`common`), for a user, and for their cards of that
    day, and counts of reviews differ by weekday; from day `since` on, recall is `shift` higher.
    """
    found = []
    for _ in range(n):
        size = (days, users)
        reviews = rng.poisson(np.where(np.arange(days) % 7 < 5, 10, 3)[:, None], size) + 1
        effect = rng.normal(0, common, days)[:, None] + rng.normal(0, 0.1, size)
        p = rng.uniform(0.85, 0.95, size)
        true = np.clip(p + np.clip(effect, -0.05, 0.05), 0, 1)
        true = np.clip(true + np.where(np.arange(days) >= since, shift, 0)[:, None], 0, 1)
        residual = (rng.binomial(reviews, true) - reviews * p).sum(axis=1)
        count = reviews.sum(axis=1)
        variance = (reviews * p * (1 - p)).sum(axis=1) / count**2
        found.append(Days(residual / count, variance))
    return found


def test_the_closed_forms_are_those_of_the_definition():
    for total, spread in ((0.0, 1.0), (5.0, 3.0), (-4.0, 20.0), (30.0, 40.0)):
        direct = quad(
            lambda b, s=total, v=spread: np.exp(b * s - b * b * v / 2) * halfnorm.pdf(b, scale=0.5),
            0,
            np.inf,
        )[0]
        assert _mixture(np.array(total), np.array(spread)) == pytest.approx(np.log(direct))
    z = np.linspace(-60, 60, 100_001)
    assert (np.exp(z - z**2 / 6) <= 1 + z + z**2 / 3 + 1e-12).all()


def test_the_noise_of_a_day_is_bounded_by_earlier_days_only():
    days = Days(np.array([1.0, 0.0, 3.0, 5.0, 5.0]), np.array([1.0, 2.0, 1.0, 1.0, 2.0]))
    bound = noise(days)
    assert np.isnan(bound[:2]).all()
    # differences 1, 9 and 4, expected 3, 3 and 2: at least as much as independent reviews
    np.testing.assert_allclose(bound[2:], np.array([1.0, 5 / 3, 2 * 16 / 9]) * 1.25)
    changed = Days(np.array([1.0, 0.0, 3.0, 5.0, 99.0]), days.independent)
    np.testing.assert_array_equal(noise(changed), bound)
    # of all earlier days or of the last four weeks, whichever had more
    for scale in (np.where(np.arange(70) < 20, 5.0, 2.0), np.linspace(1, 5, 70)):
        x = np.random.default_rng(0).normal(0, scale)
        excess = np.diff(x, prepend=np.nan) ** 2 / 2
        means = [(excess[1:d].mean(), excess[max(1, d - 28) : d].mean()) for d in range(2, 70)]
        expected = [1.25 * max(1, *mean) for mean in means]
        np.testing.assert_allclose(noise(Days(x, np.ones(70)))[2:], expected)


def test_evidence_grows_from_day_to_day_and_is_the_same_whenever_it_is_looked_at():
    (days,) = histories(np.random.default_rng(5), 1, 60, shift=0.03)
    assert _mixture(np.array(0.0), np.array(0.0)) == pytest.approx(0)
    whole = log_evidence(days)
    assert not whole[:LEARNED].any()
    for until in (0, 3, LEARNED, LEARNED + 1, 30, 59):
        part = log_evidence(Days(days.x[:until], days.independent[:until]))
        # what may begin later is weighed as what has not begun: looking later changes nothing
        np.testing.assert_allclose(part, whole[:until], atol=1e-12)


def test_alarms_without_a_difference_are_as_rare_as_promised():
    rng = np.random.default_rng(11)
    alarms, inside = [], []
    for days in histories(rng, 200, users=15):
        opposite = Days(-days.x, days.independent)
        evidence = either(log_evidence(days), log_evidence(opposite))
        alarms.append(first_alarm(evidence, LEVEL) is not None)
        # means that swing below 0, and fall at once
        below = 0.03 * (np.sin(np.arange(365) / 15) - 1) - 0.1 * (np.arange(365) > 200)
        swung = log_evidence(Days(days.x + below, days.independent))
        inside.append(first_alarm(swung, LEVEL) is not None)
    assert np.mean(alarms) <= LEVEL
    assert not any(inside)


@pytest.mark.parametrize(("since", "within"), [(0, 45), (180, 60)])
def test_a_drift_is_found_soon_whenever_it_begins(since, within):
    rng = np.random.default_rng(3)
    found = [
        first_alarm(log_evidence(days), LEVEL)
        for days in histories(rng, 20, 300, users=60, shift=0.04, since=since)
    ]
    assert all(day is not None and since < day <= since + within for day in found), found


def test_a_shock_that_hits_everybody_on_one_day_is_no_alarm():
    rng = np.random.default_rng(4)
    (days,) = histories(rng, 1, 120, common=0.01)
    x = days.x.copy()
    x[60] = -0.8
    assert first_alarm(log_evidence(Days(-x, days.independent)), LEVEL) is None
