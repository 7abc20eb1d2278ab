"""Differences user by user: tests, shares of users, ranks, and groups that rank alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from srs_eval.comparison.board import ALPHA
from srs_eval.metrics.paired import superiority
from srs_eval.metrics.significance import Wilcoxon, holm, wilcoxon, wilson_interval
from srs_eval.nouns import FloatArray, User

FEWEST_FOR_TEST = 6  # below, no signed-rank test can reach 0.05
FLIPS = 5


@dataclass(frozen=True, slots=True)
class Ranks:
    """How models rank over users.

    Attributes
    ----------
    mean : float64 [models]
        Mean over users of the rank, 1 for the best; models that score alike share theirs.
    p_value : float64 [models, models]
        Wilcoxon's signed-rank test of each pair, adjusted over all pairs by Holm; 1 for a
        pair that never differs, NaN where there are too few users.
    groups : tuple of tuples of int
        Largest sets of models, neighbours in rank, of which no pair is told apart.
    """

    mean: FloatArray
    p_value: FloatArray
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """How the users of one model differ from those of the baseline.

    Attributes
    ----------
    share, share_lo, share_hi : float
        Users for whom the model is better than the baseline, ties counting half, with its
        Wilson interval.
    n_tied : int
        Users for whom both score the same.
    test : Wilcoxon
        Signed-rank test of the differences.
    p_holm : float
        Its p-value, adjusted over the models compared with the baseline.
    gains, losses : tuple of (user, float)
        Users with the largest difference for and against the model, largest first.
    """

    share: float
    share_lo: float
    share_hi: float
    n_tied: int
    test: Wilcoxon
    p_holm: float
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


def against_baseline(
    scores: FloatArray, users: Sequence[User], baseline: int, *, sign: float = 1.0
) -> list[AgainstBaseline]:
    """Compare every model with the baseline, user by user; the baseline with itself as well.

    Parameters
    ----------
    scores : float [users, models]
        Users with NaN in either model are left out.
    """
    gaps = scores - scores[:, [baseline]]
    tests = [wilcoxon(gap) for gap in gaps.T]
    enough = [test.n_nonzero >= FEWEST_FOR_TEST for test in tests]
    p_values = [t.p_value if ok else math.nan for t, ok in zip(tests, enough, strict=True)]
    adjusted = holm(p_values)
    found = []
    for model, gap in enumerate(gaps.T):
        n = int(np.count_nonzero(~np.isnan(gap)))
        share = superiority(sign * scores[:, model], sign * scores[:, baseline])
        lo, hi = wilson_interval(share * n, n)
        tied = int(np.count_nonzero(gap == 0))
        gains, losses = _extremes(sign * gap, gap, users)
        found.append(
            AgainstBaseline(
                share, lo, hi, tied, tests[model], float(adjusted[model]), gains, losses
            )
        )
    return found


def ranks(scores: FloatArray, *, sign: float = 1.0) -> Ranks:
    """Rank models within each user, and test every pair of them.

    Groups are drawn by Wilcoxon's test of each pair with Holm's adjustment, not by Nemenyi's
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
    pairs = [(a, b) for a in range(models) for b in range(a)]
    tests = [wilcoxon(losses[:, a] - losses[:, b]) for a, b in pairs]
    adjusted = holm([math.nan if not test.n_nonzero else test.p_value for test in tests])
    p_value = np.where(np.eye(models, dtype=bool), 1.0, math.nan)
    for (a, b), test, p in zip(pairs, tests, adjusted, strict=True):
        never_differ = len(whole) and not test.n_nonzero
        known = 1.0 if never_differ else float(p) if len(whole) >= FEWEST_FOR_TEST else math.nan
        p_value[a, b] = p_value[b, a] = known
    return Ranks(mean, p_value, _groups(mean, p_value))


def _groups(mean: FloatArray, p_value: FloatArray) -> tuple[tuple[int, ...], ...]:
    """Longest stretches of the ranking without a pair that is told apart."""
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


def _extremes(
    loss: FloatArray, gap: FloatArray, users: Sequence[User]
) -> tuple[tuple[tuple[User, float], ...], tuple[tuple[User, float], ...]]:
    """Users the model is better for, and worse for, with the largest differences first."""
    order = [int(n) for n in np.argsort(loss, kind="stable") if not math.isnan(loss[n])]
    gains = [(users[n], float(gap[n])) for n in order[:FLIPS] if loss[n] < 0]
    losses = [(users[n], float(gap[n])) for n in order[::-1][:FLIPS] if loss[n] > 0]
    return tuple(gains), tuple(losses)
