"""Models user by user: shares of users, ranks, groups that rank alike, and extreme users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from srs_eval.metrics.paired import paired_signs, superiority
from srs_eval.metrics.significance import ALPHA, holm
from srs_eval.nouns import FloatArray, User

FLIPS = 5


@dataclass(frozen=True, slots=True)
class Ranks:
    """How models rank over users.

    Attributes
    ----------
    mean : float64 [models]
        Mean over users of the rank, 1 for the best; models that score alike share theirs.
    p_value : float64 [models, models]
        Sign test of each pair, adjusted over all pairs by Holm; NaN without users.
    groups : tuple of tuples of int
        Largest sets of models, neighbours in rank, of which no pair differs significantly.
    """

    mean: FloatArray
    p_value: FloatArray
    groups: tuple[tuple[int, ...], ...]


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


def ranks(scores: FloatArray, *, sign: float = 1.0) -> Ranks:
    """Rank models within each user, and test every pair of them.

    Groups are drawn by the sign test of each pair with Holm's adjustment, not by Nemenyi's
    test of mean ranks, whose answer about two models depends on which others are in the table
    (Benavoli, Corani and Mangili 2016, JMLR 17(5)).

    Parameters
    ----------
    scores : float [users, models]
        Users with any NaN are left out.
    """
    whole = scores[~np.isnan(scores).any(axis=1)]
    models = scores.shape[1]
    losses = sign * whole
    mean = rankdata(losses, axis=1).mean(axis=0) if len(whole) else np.full(models, math.nan)
    first, second = np.tril_indices(models, -1)
    tests = [paired_signs(losses[:, a], losses[:, b]) for a, b in zip(first, second, strict=True)]
    p_value = np.where(np.eye(models, dtype=bool), 1.0, math.nan)
    p_value[first, second] = p_value[second, first] = holm([t.p_value for t in tests]).p_value
    return Ranks(mean, p_value, _groups(mean, p_value))


def _groups(mean: FloatArray, p_value: FloatArray) -> tuple[tuple[int, ...], ...]:
    """Find the longest stretches of the ranking without a pair that differs significantly."""
    order = np.argsort(mean, kind="stable")
    alike = np.nan_to_num(p_value, nan=0.0) >= ALPHA
    groups: list[tuple[int, ...]] = []
    reached = 0
    for begin in range(len(order)):
        end = begin + 1
        while end < len(order) and alike[order[end], order[begin : end + 1]].all():
            end += 1
        if end - begin > 1 and end > reached:
            groups.append(tuple(int(model) for model in order[begin:end]))
            reached = end
    return tuple(groups)


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
