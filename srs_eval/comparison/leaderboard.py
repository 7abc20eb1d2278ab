"""Leaderboards: means with intervals, and differences to leaders and to a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.comparison.standing import Field, Rules, Standing
from srs_eval.metrics.summary import clipped
from srs_eval.nouns import FloatArray, IntArray
from srs_eval.stats.estimate import Estimate, mean_of_users
from srs_eval.stats.paired import Weighting, effective_users, user_weights

WEIGHTINGS: tuple[Weighting, ...] = ("users", "reviews", "log_reviews")


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """One metric of several models over the same users."""

    weighting: Weighting  # Weights of users: see `srs_eval.stats.paired.user_weights`
    n_users: int  # Users for whom every model has a score; others are left out
    effective: float  # Effective number of users: see `srs_eval.stats.paired.effective_users`
    # [models]: Weighted mean with its 99 % interval
    mean: FloatArray
    lo: FloatArray
    hi: FloatArray
    # Mean paired difference, the row's model less the column's. Intervals and p-values are not
    # adjusted for the number of pairs
    pairs: tuple[tuple[Estimate, ...], ...]
    # Models by the time of their predictions, then from the best to the worst mean; those without a
    # score last
    order: tuple[int, ...]
    # The model that each is compared with, -1 if none: the best eligible model that predicts at the
    # same time. Where none is eligible, that of the time before
    leaders: tuple[int, ...]
    # Each model against its leader, and against the baseline, adjusted for the number of
    # comparisons: see `srs_eval.comparison.standing`
    to_best: tuple[Standing, ...]
    to_baseline: tuple[Standing, ...]
    sign: float  # 1 if lower is better, -1 if higher is

    @property
    def groups(self) -> dict[int, list[int]]:
        """Models compared with each leader, itself among them, in the order of the table."""
        return {
            leader: [model for model in self.order if self.leaders[model] == leader]
            for leader in dict.fromkeys(self.leaders[model] for model in self.order)
        }


def leaderboards(scores: FloatArray, reviews: IntArray, rules: Rules) -> list[Leaderboard]:
    """Compute the leaderboard of a metric for each weighting of users.

    Users without a score [users, models] of a model are left out for all models; a model without
    any score is left out itself.
    """
    has_any = ~np.isnan(scores).all(axis=0)
    whole = ~np.isnan(scores[:, has_any]).any(axis=1) & has_any.any()
    # Differences are taken column by column.
    values, counts = np.asfortranarray(scores[whole]), reviews[whole]
    largest = np.abs(values).max(axis=0, initial=0.0).tolist()
    found = []
    for weighting in WEIGHTINGS:
        weights = user_weights(counts, weighting)
        means = [mean_of_users(column, weights) for column in values.T]
        intervals = [clipped(mean.interval(), rules.bounds) for mean in means]
        pairs = [
            [
                mean_of_users(
                    values[:, a] - values[:, b], weights, size=max(largest[a], largest[b])
                )
                for b in range(a)
            ]
            for a in range(len(means))
        ]
        found.append(
            leaderboard_of_pairs(
                weighting,
                effective_users(weights),
                np.array([mean.mean for mean in means]),
                np.array(intervals).reshape(-1, 2),
                pairs,
                rules,
                values,
            )
        )
    return found


def leaderboard_of_pairs(
    weighting: Weighting,
    effective: float,
    mean: FloatArray,
    intervals: FloatArray,
    below: Sequence[Sequence[Estimate]],
    rules: Rules,
    values: FloatArray,
) -> Leaderboard:
    """Rank models by their means, and compare them by the differences of every pair.

    `intervals` are those of the means [models, 2], `values` the scores of the users of the
    leaderboard [users, models]; `below` has the difference of each model to each model of a lower
    number.
    """
    models = range(len(mean))
    pairs = tuple(
        tuple(_pair(below, a, b, known=not math.isnan(mean[a])) for b in models) for a in models
    )
    eligible = [rules.eligible[model] and not math.isnan(mean[model]) for model in models]
    any_best = any(eligible)
    if not any_best:
        eligible = [not math.isnan(each) for each in mean]
    times = rules.times or (0,) * len(mean)
    order = sorted(models, key=lambda n: (times[n], math.isnan(mean[n]), rules.sign * mean[n]))
    leaders = _leaders(order, eligible, times)
    field = Field(eligible, pairs, values, rules.sign)
    to_best = field.behind(leaders, order, any_best=any_best)
    return Leaderboard(
        weighting=weighting,
        n_users=len(values),
        effective=effective,
        mean=mean,
        lo=intervals[:, 0],
        hi=intervals[:, 1],
        pairs=pairs,
        order=tuple(order),
        leaders=leaders,
        to_best=to_best,
        to_baseline=field.against(rules.baseline, leaders, to_best),
        sign=rules.sign,
    )


def _pair(below: Sequence[Sequence[Estimate]], a: int, b: int, *, known: bool) -> Estimate:
    """Return the difference between two models, of which only one order was computed."""
    if a == b:
        return Estimate(0.0, 0.0, 0.0, math.inf) if known else Estimate(math.nan)
    return below[a][b] if b < a else below[b][a].mirrored()


def _leaders(
    order: Sequence[int], eligible: Sequence[bool], times: Sequence[int]
) -> tuple[int, ...]:
    """Return the leader that each model is compared with."""
    found, leader = {}, -1
    for time in sorted(set(times)):
        group = [model for model in order if times[model] == time]
        leader = next((model for model in group if eligible[model]), leader)
        found.update(dict.fromkeys(group, leader))
    return tuple(found[model] for model in range(len(order)))
