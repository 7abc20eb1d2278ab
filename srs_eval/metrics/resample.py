"""Bootstrap over clusters: what is drawn, and intervals of means."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from srs_eval.nouns import FloatArray

LEVEL = 0.99
USER_RESAMPLES = 9_999
RESAMPLES = 200
FEWEST_CLUSTERS = 5
# Draws held at once: 10,000 users are resampled 100 times in a block.
BLOCK = 1_000_000


def resampled_means(
    values: FloatArray, *, resamples: int = USER_RESAMPLES, seed: int = 0
) -> FloatArray:
    """Mean of each column over clusters drawn with replacement.

    Every column is resampled with the same draws, and so is every table of equally many
    clusters with the same seed: differences between columns or tables keep their pairing.

    Parameters
    ----------
    values : float [clusters, columns]
        NaN where a column is not defined for a cluster, which is then left out of it.

    Returns
    -------
    float64 [resamples, columns]
        NaN where a resample has no cluster with a value.
    """
    present = ~np.isnan(values)
    patterns, pattern = np.unique(present, axis=1, return_inverse=True)
    # Columns are centred so that rounding does not depend on how far they are from 0.
    centre = np.array([_middle(column) for column in values.T])
    centred = np.where(present, values - centre, 0.0)
    weights = np.concatenate([centred, patterns.astype(np.float64)], axis=1)
    means = np.empty((resamples, values.shape[1]))
    begin = 0
    for counts in cluster_counts(len(values), resamples, seed):
        sums = counts @ weights
        held = sums[:, values.shape[1] :][:, pattern.ravel()]
        block = means[begin : begin + len(counts)]
        np.divide(sums[:, : values.shape[1]], held, out=block, where=held > 0)
        block[held == 0] = np.nan
        block += centre
        begin += len(counts)
    return means


def bca_interval(
    values: FloatArray, means: FloatArray, *, level: float = LEVEL, expanded: bool = True
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of a mean, from its resampled means.

    Parameters
    ----------
    values : float [clusters]
        NaN values are left out.
    means : float [resamples]
        Their mean in each resample: see `resampled_means`.
    level : float
        Share of intervals that should hold the true mean.
    expanded : bool
        Allow for the narrowness of resamples of few clusters, by Student's t; makes no
        difference with thousands. With a handful the tails lie beyond what can be drawn,
        and the bounds are the most extreme resamples.

    Returns
    -------
    lo, hi : float
        Both the mean where all values are equal; NaN where there are fewer than five.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, doi:10.2307/2289144. Hesterberg
    (2015), What teachers should know about the bootstrap, doi:10.1080/00031305.2015.1089789.
    """
    defined = values[~np.isnan(values)]
    drawn = means[~np.isnan(means)]
    count = len(defined)
    if count < FEWEST_CLUSTERS or not len(drawn):
        return math.nan, math.nan
    if np.ptp(defined) == 0:
        return float(defined[0]), float(defined[0])
    mean = float(defined.mean())
    deviation = defined - mean
    acceleration = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
    below = (np.count_nonzero(drawn < mean) + np.count_nonzero(drawn <= mean)) / (2 * len(drawn))
    bias = float(ndtri(below))
    if not math.isfinite(bias):
        bias = 0.0
    tail = float(ndtri((1 + level) / 2))
    if expanded:
        tail = math.sqrt(count / (count - 1)) * float(stdtrit(count - 1, (1 + level) / 2))
    tails = bias + np.array([-tail, tail])
    # Far out the correction for skewness turns back on itself: the tail itself is meant then.
    bend = 1 - acceleration * tails
    straight = np.where(bend > 0, tails / np.where(bend > 0, bend, 1), np.sign(tails) * 9)
    shares = ndtr(bias + straight)
    lo, hi = np.quantile(drawn, shares)
    return float(lo), float(hi)


def cluster_counts(clusters: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks [b, clusters] of how often each cluster is drawn, always the same."""
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK // clusters)
    for begin in range(0, resamples, size):
        rows = min(size, resamples - begin)
        draws = rng.integers(0, clusters, (rows, clusters))
        draws += np.arange(rows)[:, None] * clusters
        counts = np.bincount(draws.ravel(), minlength=rows * clusters)
        yield counts.reshape(rows, clusters).astype(np.float64)


def _middle(column: FloatArray) -> float:
    """Mean of what is defined, or 0."""
    defined = column[~np.isnan(column)]
    return float(defined.mean()) if len(defined) else 0.0
