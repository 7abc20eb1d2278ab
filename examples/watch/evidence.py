"""Tests that may be looked at every day for years: e-values, one factor for each day.

An e-process begins at 1, and its mean is at most 1 as long as the null hypothesis holds, whenever
one stops. By Ville's inequality it ever reaches 1/level with a probability of at most `level`.

A day enters by one number x, a mean over its reviews, so nothing is assumed of how reviews of one
day depend on each other. Assumed is, given all earlier days, that the mean of x is at most 0 under
the null hypothesis, and its variance at most `noise`. Then E exp(b x - b**2 (x**2 / 6 + noise / 3))
<= 1 for b >= 0 (Delyon 2009, doi:10.1214/EJP.v14-637). The size b is averaged over a half-normal
distribution (Robbins 1970), and the day on which a difference begins over weeks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

Vector = NDArray[np.float64]

LEARNED = 14  # first days, which only measure the noise
SCALE = 0.5  # of the mixture over b, in units of 1 / sqrt(noise)
WEEK = 7  # between starts of a difference that are averaged over
MARGIN = 1.25  # by which the noise may grow unannounced
RECENT = 28


def log_evidence(x: Vector, independent: Vector) -> Vector:
    """Compute the logarithm of the e-process after each day.

    Parameters
    ----------
    x : float [days]
        Mean over the reviews of each day, at most 0 on average under the null hypothesis.
    independent : float [days]
        Variance of `x` if reviews were independent, known before the answers.

    Returns
    -------
    float [days]
        0 for the first `LEARNED` days.
    """
    days = max(len(x) - LEARNED, 0)
    result = np.zeros(len(x))
    if days == 0:
        return result
    z = x[LEARNED:] / np.sqrt(noise(x, independent)[LEARNED:])
    total = np.r_[0.0, np.cumsum(z)]
    spread = np.r_[0.0, np.cumsum(z**2 / 3 + 2 / 3)]
    starts = np.arange(0, days, WEEK)
    weeks = np.arange(1.0, len(starts) + 1)
    weight = 1 / (weeks * (weeks + 1))  # of all weeks to come, together 1
    # [starts, days]: evidence of a difference since each start
    since = mixture(total[None, 1:] - total[starts, None], spread[None, 1:] - spread[starts, None])
    since = np.where(starts[:, None] > np.arange(days), 0.0, since) + np.log(weight)[:, None]
    later = np.full((1, days), -np.log(len(starts) + 1))
    result[LEARNED:] = logsumexp(np.concatenate([since, later]), axis=0)
    return result


def noise(x: Vector, independent: Vector) -> Vector:
    """Bound the variance of each day from the days before; NaN before the third day.

    A quarter more than the variance of independent reviews, times by how much differences of
    successive days exceeded it, over all earlier days or the last four weeks. Differences, because
    a lasting change is no noise.
    """
    excess = np.r_[np.nan, np.diff(x) ** 2 / (independent[1:] + independent[:-1])]
    whole, recent = (_mean_before(excess, length) for length in (len(x), RECENT))
    return MARGIN * independent * np.maximum(1.0, np.maximum(whole, recent))


def _mean_before(values: Vector, length: int) -> Vector:
    """Average the last `length` values before each; NaN where there is none."""
    known = ~np.isnan(values)
    sums = np.r_[0.0, np.cumsum(np.where(known, values, 0))]
    counts = np.r_[0.0, np.cumsum(known)]
    end = np.arange(len(values))
    begin = np.maximum(end - length, 0)
    with np.errstate(invalid="ignore"):
        return (sums[end] - sums[begin]) / (counts[end] - counts[begin])


def mixture(total: Vector, spread: Vector) -> Vector:
    """Average exp(b total - b**2 spread / 2) over a half-normal b; return the logarithm."""
    variance = SCALE**2 / (1 + SCALE**2 * np.maximum(spread, 0))
    at = total * np.sqrt(variance)
    return np.log(2) + np.log(variance / SCALE**2) / 2 + at**2 / 2 + log_ndtr(at)


def either(one: Vector, other: Vector) -> Vector:
    """Average two e-processes, given by logarithms: evidence against both null hypotheses."""
    return np.logaddexp(one, other) - np.log(2)


def first_alarm(log_e: Vector, level: float) -> int | None:
    """Return the first day at which an e-process, given by its logarithm, reaches 1/level."""
    above = np.flatnonzero(log_e >= -np.log(level))
    return int(above[0]) if len(above) else None
