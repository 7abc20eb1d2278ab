"""Models user by user: shares of users, mean ranks, and extreme users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from srs_eval.nouns import FloatArray, User
from srs_eval.stats.paired import superiority

FLIPS = 5


class Extremes(NamedTuple):
    """Users with the largest difference for and against a model, largest first."""

    gains: tuple[tuple[User, float], ...]
    losses: tuple[tuple[User, float], ...]


def superiority_matrix(scores: FloatArray, *, sign: float = 1.0) -> FloatArray:
    """Share of users for whom the row's model is better than the column's, ties half.

    Returns
    -------
    float64 [models, models], in [0, 1]
        With its transpose it adds up to 1; 0.5 on the diagonal.
    """
    models = scores.shape[1]
    losses = sign * scores
    shares = [
        [superiority(losses[:, a], losses[:, b]) for b in range(models)] for a in range(models)
    ]
    return np.array(shares, np.float64).reshape(models, models)


def mean_ranks(scores: FloatArray, *, sign: float = 1.0) -> FloatArray:
    """Average over users the rank of each model: 1 is best, and ties share theirs.

    Parameters
    ----------
    scores : float [users, models]
        Users with any NaN are left out.

    Returns
    -------
    float64 [models]
        NaN without users.
    """
    from scipy.stats import rankdata  # a second to import: not for a run

    whole = scores[~np.isnan(scores).any(axis=1)]
    if not len(whole):
        return np.full(scores.shape[1], math.nan)
    found: FloatArray = rankdata(sign * whole, axis=1).mean(axis=0)
    return found


def extremes(
    scores: FloatArray, users: Sequence[User], baseline: int, *, sign: float = 1.0
) -> list[Extremes]:
    """List the users for whom each model differs most from the baseline, both ways."""
    found = []
    for gap in (scores - scores[:, [baseline]]).T:
        loss = sign * gap
        order = [int(n) for n in np.argsort(loss, kind="stable") if not math.isnan(loss[n])]
        gains = [(users[n], float(gap[n])) for n in order[:FLIPS] if loss[n] < 0]
        losses = [(users[n], float(gap[n])) for n in order[::-1][:FLIPS] if loss[n] > 0]
        found.append(Extremes(tuple(gains), tuple(losses)))
    return found
