"""Tests that may be looked at every day for years: e-values, one factor for each day.

An e-process is a number that begins at 1 and whose mean is at most 1 as long as the null hypothesis
holds, whenever one stops. By Ville's inequality it ever reaches 1/level with a probability of at
most `level`: however often it is looked at, an alarm at 1/level is false that rarely.

The unit is the day. A day enters by one number x, a mean over its reviews, so nothing is assumed of
how reviews of one day depend on each other. Assumed is, given all earlier days,

- of the null hypothesis: the mean of x is at most 0;
- of the noise: the variance of x is at most `noise`, which is said before the answers are known.

Then E exp(b x - b**2 (x**2 / 6 + noise / 3)) <= 1 for b >= 0, because exp(z - z**2 / 6) <= 1 + z +
z**2 / 3 (Delyon 2009, doi:10.1214/EJP.v14-637): exactly where b times the mean is not below -3, and
where it is, the evidence shrinks anyway. Bets on bounded values would need no variance, but a mean
of a thousand reviews moves by 0.01 and is bounded by 1 only: they find a difference many times
later.

The size b is averaged over a half-normal distribution, in closed form (Robbins 1970), and the day
on which a difference begins over weeks, so that a drift after two years is found nearly as fast as
one on the first day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from srs_eval.nouns import Vector

# Scale of the mixture over b, in units of 1 / sqrt(noise): differences of half that noise a day.
_SCALE = 0.5
# Starts of a difference that are averaged over, in days.
_WEEK = 7
# Days that only measure the noise, and by how much it may grow unannounced.
LEARNED = 14
_MARGIN = 1.25
_RECENT = 28


@dataclass(frozen=True, slots=True)
class Days:
    """What one test sees: one entry for each day, in order of time."""

    x: Vector  # [days]: mean over the reviews of the day, at most 0 on average under the null
    # [days]: variance of x if reviews were independent, from what was predicted before the answers
    independent: Vector


def log_evidence(days: Days) -> Vector:
    """Compute the logarithm of the e-process after each day, [days].

    The first `LEARNED` days only measure the noise and leave it at 0.

    >>> days = Days(np.full(60, 0.02), np.full(60, 1e-4))
    >>> bool(log_evidence(days)[-1] > np.log(100))
    True
    """
    n = max(len(days.x) - LEARNED, 0)
    result = np.zeros(len(days.x))
    if n == 0:
        return result
    z = days.x[LEARNED:] / np.sqrt(noise(days)[LEARNED:])
    total = np.r_[0.0, np.cumsum(z)]
    spread = np.r_[0.0, np.cumsum(z**2 / 3 + 2 / 3)]
    starts = np.arange(0, n, _WEEK)
    weeks = np.arange(1.0, len(starts) + 1)
    weight = 1 / (weeks * (weeks + 1))  # of all weeks to come, together 1
    # [starts, days]: evidence of a difference since each start
    since = _mixture(total[None, 1:] - total[starts, None], spread[None, 1:] - spread[starts, None])
    not_begun = starts[:, None] > np.arange(n)
    since = np.where(not_begun, 0.0, since) + np.log(weight)[:, None]
    later = np.full((1, n), -np.log(len(starts) + 1))
    result[LEARNED:] = logsumexp(np.concatenate([since, later]), axis=0)
    return result


def noise(days: Days) -> Vector:
    """Bound the variance of each day from the days before, [days].

    The bound is a quarter more than the variance of independent reviews, times by how much
    differences of successive days exceeded it: over all earlier days or over recent ones, whichever
    is more. Differences, because a lasting change is no noise. NaN before the third day.
    """
    expected = days.independent[1:] + days.independent[:-1]
    excess = np.r_[np.nan, np.diff(days.x) ** 2 / expected]
    whole, recent = (_mean_before(excess, length) for length in (len(excess), _RECENT))
    result: Vector = _MARGIN * days.independent * np.maximum(1.0, np.maximum(whole, recent))
    return result


def _mean_before(values: Vector, length: int) -> Vector:
    """Average as many values before each, or as there are; NaN where there is none."""
    known = ~np.isnan(values)
    sums, counts = (
        np.r_[0.0, np.cumsum(each)] for each in (np.where(known, values, 0), known.astype(float))
    )
    end = np.arange(len(values))
    begin = np.maximum(end - length, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Vector = (sums[end] - sums[begin]) / (counts[end] - counts[begin])
    return result


def either(one: Vector, other: Vector) -> Vector:
    """Average two e-processes, given by logarithms: evidence against both null hypotheses."""
    result: Vector = np.logaddexp(one, other) - np.log(2)
    return result


def first_alarm(evidence: Vector, level: float) -> int | None:
    """Return the first day at which the logarithm of an e-process reaches 1/level, if any."""
    above = np.flatnonzero(evidence >= -np.log(level))
    return int(above[0]) if len(above) else None


def _mixture(total: Vector, spread: Vector) -> Vector:
    """Average exp(b total - b**2 spread / 2) over a half-normal b; return the logarithm."""
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = _SCALE**2 / (1 + _SCALE**2 * np.maximum(spread, 0))
        at = total * np.sqrt(variance)
        result: Vector = np.log(2) + np.log(variance / _SCALE**2) / 2 + at**2 / 2 + log_ndtr(at)
    return result
