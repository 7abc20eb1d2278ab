"""Means of reviews that are alike in clusters: of a card, of a day."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from srs_eval.nouns import FloatArray, IntArray

LEVEL = 0.99


def clustered_difference(
    values: FloatArray, *clusters: IntArray, level: float = LEVEL
) -> tuple[float, float, float]:
    """Mean of per-review numbers, with an interval that allows for likeness within clusters.

    Parameters
    ----------
    values : float [n]
        One number per review, such as the difference of two models' scores.
    clusters : int [n]
        Cluster of each review. Of several clusterings the one with the widest interval counts.
    level : float
        Share of intervals that should hold the true mean.

    Returns
    -------
    mean, lo, hi : float
        Bounds are NaN where a clustering has fewer than two clusters.

    References
    ----------
    Cameron and Miller (2015), A practitioner's guide to cluster-robust inference,
    doi:10.3368/jhr.50.2.317.
    """
    if not len(values):
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    widths = [_half_width(values - mean, cluster, level) for cluster in clusters]
    half = math.nan if any(math.isnan(width) for width in widths) else max(widths)
    return mean, mean - half, mean + half


def _half_width(residuals: FloatArray, cluster: IntArray, level: float) -> float:
    _, code = np.unique(cluster, return_inverse=True)
    sums = np.bincount(code, residuals)
    count = len(sums)
    if count < 2:
        return math.nan
    error = math.sqrt(count / (count - 1) * float(sums @ sums)) / len(residuals)
    return float(stdtrit(count - 1, (1 + level) / 2)) * error
