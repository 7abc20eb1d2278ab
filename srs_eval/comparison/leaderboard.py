"""Leaderboards: means with intervals, and differences to leaders and to a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from srs_eval.comparison.standing import Standing
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.metrics.means import (
    Estimate,
    Weighting,
    effective_users,
    mean_of_users,
    paired_signs,
    user_weights,
)
from srs_eval.metrics.significance import Adjusted, SignTest, behind_leader, holm
from srs_eval.metrics.summary import clipped

WEIGHTINGS: tuple[Weighting, ...] = ("users", "reviews", "log_reviews")


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by which models are compared."""

    eligible: tuple[bool, ...]  # Which models may be called the best
    # Position in time of each model's predictions; a leader is named for each. By default all
    # predict at the same time
    times: tuple[int, ...] = ()
    sign: float = 1.0  # 1 if lower is better, -1 if higher is
    baseline: int = 0  # Number of the baseline
    bounds: tuple[float, float] = (-math.inf, math.inf)  # Range of the metric


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """One metric of several models over the same users, compared two by two."""

    weighting: Weighting  # Weights of users: see `srs_eval.metrics.means.user_weights`
    effective: float  # Effective number of users: see `srs_eval.metrics.means.effective_users`
    # [models]: Weighted mean with its 99 % interval
    mean: FloatArray
    lo: FloatArray
    hi: FloatArray
    # Mean paired difference of each model less each of a lower number
    below: Sequence[Sequence[Estimate]]
    values: FloatArray  # [users, models]: Scores of the users for whom every model has one
    rules: Rules

    @property
    def n_users(self) -> int:
        """Users for whom every model has a score; others are left out."""
        return len(self.values)

    @property
    def sign(self) -> float:
        """1 if lower is better, -1 if higher is."""
        return self.rules.sign

    @cached_property
    def pairs(self) -> tuple[tuple[Estimate, ...], ...]:
        """Mean paired differences, the row's model less the column's.

        Intervals and p-values are not adjusted for the number of pairs.
        """
        models = range(len(self.mean))
        return tuple(tuple(self._pair(a, b) for b in models) for a in models)

    def _pair(self, a: int, b: int) -> Estimate:
        """Return the difference between two models, of which only one order was computed."""
        if a == b:
            is_known = not math.isnan(self.mean[a])
            return Estimate(0.0, 0.0, 0.0, math.inf) if is_known else Estimate(math.nan)
        return self.below[a][b] if b < a else self.below[b][a].mirrored()

    @property
    def _times(self) -> tuple[int, ...]:
        return self.rules.times or (0,) * len(self.mean)

    @cached_property
    def _eligible(self) -> BoolArray:
        """Which models may lead: where none is eligible for best, all that have a score."""
        known = ~np.isnan(self.mean)
        eligible = known & np.array(self.rules.eligible, np.bool_)
        return eligible if eligible.any() else known

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Models by the time of their predictions, then the best first; without a score last."""
        return tuple(np.lexsort((self.sign * self.mean, np.array(self._times))).tolist())

    @cached_property
    def leaders(self) -> tuple[int, ...]:
        """The model that each is compared with, -1 if none.

        It is the best eligible model that predicts at the same time. Where none is eligible, it is
        that of the time before.
        """
        found, leader = dict[int, int](), -1
        for _, same_time in groupby(self.order, self._times.__getitem__):
            group = [*same_time]
            leader = next((model for model in group if self._eligible[model]), leader)
            found |= dict.fromkeys(group, leader)
        return tuple(found[model] for model in range(len(self.mean)))

    @cached_property
    def groups(self) -> dict[int, list[int]]:
        """Models compared with each leader, itself among them, in the order of the table."""
        found: dict[int, list[int]] = {}
        for model in self.order:
            found.setdefault(self.leaders[model], []).append(model)
        return found

    @cached_property
    def to_best(self) -> tuple[Standing, ...]:
        """Each model against its leader, which was selected on the same scores.

        Eligible models are adjusted by their place among those with the same leader: see
        `behind_leader`. The others are adjusted by Holm's method.
        """
        found: dict[int, Standing] = {}
        for leader, group in self.groups.items():
            found |= self._behind(leader, group)
        return tuple(found[model] for model in range(len(self.mean)))

    @cached_property
    def to_baseline(self) -> tuple[Standing, ...]:
        """Each model against the baseline."""
        return self.against(self.rules.baseline)

    def against(self, baseline: int) -> tuple[Standing, ...]:
        """Compare every model with a baseline that was chosen beforehand, by Holm's method.

        The baseline and its leader are compared only once, in the comparison with the leader.
        """
        models, leader = range(len(self.mean)), self.leaders[baseline]
        found = self._compared([model for model in models if model != baseline], baseline)
        if leader == baseline:
            found |= {model: self.to_best[model] for model in self.groups[leader]}
        elif leader >= 0:
            found[leader] = self.to_best[baseline].mirrored()
        return tuple(found.get(model, Standing.alone("identical")) for model in models)

    def _behind(self, leader: int, group: Sequence[int]) -> dict[int, Standing]:
        """Compare the models that share a leader with it."""
        if leader < 0:
            return dict.fromkeys(group, Standing.alone("unknown"))
        table = [model for model in group if self._eligible[model] and model != leader]
        ranked = [model for model in table if not self.pairs[model][leader].is_zero]
        twins = [self._twin(ranked, place) for place in range(len(ranked))]
        counts = self._counts(ranked, leader)
        average = behind_leader(
            [self.pairs[model][leader].p_value for model in ranked], twins, [True] * len(ranked)
        )
        users = behind_leader(
            [each.p_value for each in counts], twins, [each.worse > each.better for each in counts]
        )
        found = {
            **self._standings(ranked, leader, counts, average, users),
            **self._compared([n for n in group if not self._eligible[n] and n != leader], leader),
            **self._compared([model for model in table if model not in ranked], leader),
        }
        rivals = [found[model].average.verdict for model in table]
        is_best = self.rules.eligible[leader] and {*rivals} == {"worse"}
        return {**found, leader: Standing.alone("best" if is_best else "leads")}

    def _compared(self, models: Sequence[int], other: int) -> dict[int, Standing]:
        """Compare some models with the same other model, adjusted by Holm's method."""
        counts = self._counts(models, other)
        average = holm([self.pairs[model][other].p_value for model in models])
        users = holm([each.p_value for each in counts])
        return self._standings(models, other, counts, average, users)

    def _standings(
        self,
        models: Sequence[int],
        other: int,
        counts: Sequence[SignTest],
        average: Adjusted,
        users: Adjusted,
    ) -> dict[int, Standing]:
        return {
            model: Standing.of(
                self.pairs[model][other], counts[n], _at(average, n), _at(users, n), self.sign
            )
            for n, model in enumerate(models)
        }

    def _counts(self, models: Sequence[int], other: int) -> list[SignTest]:
        theirs = self.sign * self.values[:, other]
        return [paired_signs(self.sign * self.values[:, model], theirs) for model in models]

    def _twin(self, ranked: Sequence[int], place: int) -> int | None:
        """Return the place of an earlier model with the same scores."""
        earlier = (k for k in range(place) if self.pairs[ranked[place]][ranked[k]].is_zero)
        return next(earlier, None)


def _at(adjusted: Adjusted, place: int) -> tuple[float, int]:
    return float(adjusted.p_value[place]), int(adjusted.factor[place])


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
        lo, hi = np.array(intervals).reshape(-1, 2).T
        below = [
            [
                mean_of_users(
                    values[:, a] - values[:, b], weights, size=max(largest[a], largest[b])
                )
                for b in range(a)
            ]
            for a in range(len(means))
        ]
        mean = np.array([mean.mean for mean in means])
        effective = effective_users(weights)
        found.append(Leaderboard(weighting, effective, mean, lo, hi, below, values, rules))
    return found
