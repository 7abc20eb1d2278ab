"""Models user by user: shares of users, mean ranks, and extreme users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from srs_eval.data.reviews import FloatArray, User

_FLIPS = 5


class Extremes(NamedTuple):
    """Users with the largest differences for and against a model, largest first."""

    gains: tuple[tuple[User, float], ...]
    losses: tuple[tuple[User, float], ...]


def superiority_matrix(scores: FloatArray, *, sign: float = 1.0) -> FloatArray:
    """Compute the share of users for whom the row's model is better than the column's.

    Ties count half. Users without a score of either model are left out of that pair; a pair without
    users is NaN.

    >>> superiority_matrix(np.array([[0.3, 0.35], [0.4, 0.4], [0.5, 0.6]])).tolist()[0]
    [0.5, 0.8333333333333334]
    """
    shares = np.full((scores.shape[1], scores.shape[1]), math.nan)
    for model, column in enumerate(scores.T):
        gain = sign * (scores[:, model:] - column[:, None])
        users = np.count_nonzero(~np.isnan(gain), axis=0)
        wins = np.count_nonzero(gain > 0, axis=0) + 0.5 * np.count_nonzero(gain == 0, axis=0)
        np.divide(wins, users, out=shares[model, model:], where=users > 0)
        np.divide(users - wins, users, out=shares[model:, model], where=users > 0)
    return shares


def mean_ranks(scores: FloatArray, *, sign: float = 1.0) -> FloatArray:
    """Compute the mean rank of each model over users: 1 is best, and ties share theirs.

    Users [users, models] with any NaN are left out; without users, ranks are NaN.
    """
    from scipy.stats import rankdata  # a second to import: not for a run

    whole = scores[~np.isnan(scores).any(axis=1)]
    if not len(whole):
        return np.full(scores.shape[1], math.nan)
    found: FloatArray = rankdata(sign * whole, axis=1).mean(axis=0)
    return found


def extremes_of(gap: FloatArray, users: Sequence[User], *, sign: float = 1.0) -> Extremes:
    """List the users with the largest differences in each direction."""
    loss = sign * gap
    known = np.flatnonzero(~np.isnan(loss))
    if len(known) > 2 * _FLIPS:  # sorts only those at the ends, and what ties with them
        values = loss[known]
        ends = np.partition(values, (_FLIPS - 1, -_FLIPS))
        known = known[(values <= ends[_FLIPS - 1]) | (values >= ends[-_FLIPS])]
    order = known[np.argsort(loss[known], kind="stable")]
    first, last = order[:_FLIPS].tolist(), order[::-1][:_FLIPS].tolist()
    return Extremes(
        tuple((users[n], float(gap[n])) for n in first if loss[n] < 0),
        tuple((users[n], float(gap[n])) for n in last if loss[n] > 0),
    )
