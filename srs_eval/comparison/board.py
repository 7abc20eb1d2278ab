"""A leaderboard: means with intervals, every pair of models compared, and who is best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from srs_eval.comparison.resampling import resampled_ratios, widening
from srs_eval.metrics.paired import Weighting, effective_users, user_weights, weighted_interval
from srs_eval.metrics.resample import FEWEST_CLUSTERS, LEVEL, USER_RESAMPLES
from srs_eval.metrics.significance import max_t
from srs_eval.nouns import BoolArray, FloatArray, IntArray

WEIGHTINGS: tuple[Weighting, ...] = ("users", "reviews", "log_reviews")
ALPHA = 1 - LEVEL

Standing = Literal["best", "not told apart", "worse", "better", "unknown"]


@dataclass(frozen=True, slots=True)
class Board:
    """One metric of several models over the same users.

    Attributes
    ----------
    weighting : str
        How users count: see `srs_eval.metrics.paired.user_weights`.
    n_users : int
        Users for whom every model has a number; no other counts.
    effective : float
        Users of equal weight that would tell as much.
    mean, lo, hi : float64 [models]
        Weighted mean with its 99 % interval from drawing users; bounds NaN below five users.
    gap, gap_lo, gap_hi : float64 [models, models]
        Mean of the row's model less the column's, user by user, with its interval.
    p_value : float64 [models, models]
        Two-sided, adjusted over all pairs of the table, so that it does not matter that the
        best was chosen by looking. NaN where nothing can be said.
    best : int
        The model that leads, among those it is fair to compare; -1 if none has a number.
    sign : float
        1 if lower is better, -1 if higher is.
    """

    weighting: Weighting
    n_users: int
    effective: float
    mean: FloatArray
    lo: FloatArray
    hi: FloatArray
    gap: FloatArray
    gap_lo: FloatArray
    gap_hi: FloatArray
    p_value: FloatArray
    best: int
    sign: float

    @property
    def order(self) -> list[int]:
        """Models from the best to the worst mean; those without a number last."""
        means = self.sign * self.mean
        return sorted(range(len(means)), key=lambda n: (math.isnan(means[n]), means[n]))

    def standing(self, model: int) -> Standing:
        """Where a model stands against the best: at the level of the intervals."""
        if model == self.best:
            return "best"
        p_value = self.p_value[model, self.best] if self.best >= 0 else math.nan
        if math.isnan(p_value):
            return "unknown"
        if p_value >= ALPHA:
            return "not told apart"
        # Only a model that is out of competition can be ahead of the best.
        return "worse" if self.sign * self.gap[model, self.best] > 0 else "better"


def boards(
    scores: FloatArray,
    reviews: IntArray,
    *,
    sign: float = 1.0,
    eligible: Sequence[bool] | None = None,
    resamples: int = USER_RESAMPLES,
    seed: int = 0,
) -> list[Board]:
    """Make the leaderboard of a metric for each weighting of users, from shared draws.

    Parameters
    ----------
    scores : float [users, models]
        NaN where a model has no number; such users are left out for all models. A model
        without any is left out itself.
    reviews : int [users]
        Scored reviews.
    sign : float
        1 if lower is better, -1 if higher is.
    eligible : sequence of bool, optional
        Which models may be called the best.
    """
    has_any = ~np.isnan(scores).all(axis=0)
    whole = ~np.isnan(scores[:, has_any]).any(axis=1) & has_any.any()
    values, counts = scores[whole], reviews[whole]
    weights = np.stack([user_weights(counts, weighting) for weighting in WEIGHTINGS], axis=1)
    filled = np.where(has_any, values, 0.0)
    above = filled[:, None, :] * weights[:, :, None]
    drawn = resampled_ratios(above, weights, resamples=resamples, seed=seed)
    drawn[:, :, ~has_any] = math.nan
    may_win = np.array([True] * scores.shape[1] if eligible is None else eligible, np.bool_)
    return [
        _board(weighting, values, weights[:, number], drawn[:, number], sign, may_win)
        for number, weighting in enumerate(WEIGHTINGS)
    ]


def best_of(means: FloatArray, may_win: BoolArray, sign: float) -> int:
    """Find the best of those that may win; of all if none of them has a number."""
    defined = ~np.isnan(means)
    candidates = np.flatnonzero(defined & may_win)
    if not len(candidates):
        candidates = np.flatnonzero(defined)
    return int(candidates[np.argmin(sign * means[candidates])]) if len(candidates) else -1


def _board(
    weighting: Weighting,
    values: FloatArray,
    weights: FloatArray,
    drawn: FloatArray,
    sign: float,
    may_win: BoolArray,
) -> Board:
    models = values.shape[1]
    total = float(weights.sum())
    mean = weights @ values / total if total > 0 else np.full(models, math.nan)
    intervals = [
        weighted_interval(values[:, model], weights, drawn[:, model]) for model in range(models)
    ]
    lo, hi = np.array(intervals).reshape(models, 2).T
    gap = mean[:, None] - mean[None, :]
    gap_lo, gap_hi = np.where(np.isnan(gap), math.nan, 0.0), np.where(np.isnan(gap), math.nan, 0.0)
    pairs = [(a, b) for a in range(models) for b in range(a)]
    for a, b in pairs:
        between = values[:, a] - values[:, b], weights, drawn[:, a] - drawn[:, b]
        gap_lo[a, b], gap_hi[a, b] = weighted_interval(*between)
        gap_lo[b, a], gap_hi[b, a] = -gap_hi[a, b], -gap_lo[a, b]
    return Board(
        weighting=weighting,
        n_users=len(values),
        effective=effective_users(weights),
        mean=mean,
        lo=lo,
        hi=hi,
        gap=gap,
        gap_lo=gap_lo,
        gap_hi=gap_hi,
        p_value=_p_values(gap, drawn, pairs, int(np.count_nonzero(weights))),
        best=best_of(mean, may_win, sign),
        sign=sign,
    )


def _p_values(
    gap: FloatArray, drawn: FloatArray, pairs: Sequence[tuple[int, int]], users: int
) -> FloatArray:
    """Adjust over all pairs by how they go up and down together (Romano and Wolf 2005)."""
    p_value = np.where(np.eye(len(gap), dtype=bool), 1.0, math.nan)
    if users < FEWEST_CLUSTERS or not pairs:
        return p_value
    first, second = np.array(pairs).T
    found = gap[first, second]
    # A pair without a number must not make every resample one without.
    strayed = (drawn[:, first] - drawn[:, second] - found) * widening(users)
    adjusted = max_t(found, found + strayed)
    p_value[first, second] = adjusted
    p_value[second, first] = adjusted
    return p_value
