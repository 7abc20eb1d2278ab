"""Ratios of sums over users drawn with replacement, for many columns and weightings at once."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, stdtrit

from srs_eval.metrics.resample import LEVEL, USER_RESAMPLES, cluster_counts
from srs_eval.nouns import FloatArray


def resampled_ratios(
    above: FloatArray, below: FloatArray, *, resamples: int = USER_RESAMPLES, seed: int = 0
) -> FloatArray:
    """Sum of one column over the sum of another, over users drawn with replacement.

    The draws are those of `srs_eval.metrics.resample`: equally many users and the same seed
    mean the same draws, so that differences between columns keep their pairing.

    Parameters
    ----------
    above : float [users, groups, columns]
        Numerators.
    below : float [users, groups]
        Denominators, shared by the columns of a group.

    Returns
    -------
    float64 [resamples, groups, columns]
        NaN where a denominator is 0.
    """
    users, groups, columns = above.shape
    total = below.sum(axis=0)
    # Ratios are centred so that rounding does not depend on how far they are from 0.
    centre = np.divide(
        above.sum(axis=0), total[:, None], out=np.zeros((groups, columns)), where=total[:, None] > 0
    )
    sums = np.concatenate([(above - centre * below[:, :, None]).reshape(users, -1), below], axis=1)
    ratios = np.full((resamples, groups, columns), math.nan)
    begin = 0
    for counts in cluster_counts(users, resamples, seed) if users else ():
        drawn = counts @ sums
        held = drawn[:, groups * columns :, None]
        block = ratios[begin : begin + len(counts)]
        np.divide(
            drawn[:, : groups * columns].reshape(block.shape), held, out=block, where=held > 0
        )
        block += centre
        begin += len(counts)
    return ratios


def widening(users: int, *, level: float = LEVEL) -> float:
    """How much farther than resamples of few users a mean strays.

    Returns
    -------
    float
        At least 1: Student's t instead of the normal distribution, and the variance with
        n - 1, as intervals have it (Hesterberg 2015, doi:10.1080/00031305.2015.1089789).
        NaN below two users.
    """
    if users < 2:
        return math.nan
    tail = (1 + level) / 2
    return math.sqrt(users / (users - 1)) * float(stdtrit(users - 1, tail) / ndtri(tail))
