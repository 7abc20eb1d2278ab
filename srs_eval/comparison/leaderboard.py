"""Means of models over the same users, and the tests of the differences between them.

A model is compared with its leader and with the baseline, on average and for most users. The
interval of a mean difference excludes 0 exactly if the difference is significant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.means import Estimate, Weighting, paired_signs
from srs_eval.metrics.significance import ALPHA, Adjusted, SignTest, behind_leader, holm

NOISE = "can be noise"  # The verdict where a difference is not significant
_OPPOSITE = {"better": "worse", "worse": "better"}


class Standing(NamedTuple):
    """One model against another; the verdict is ``best`` or ``leads`` for the leader itself."""

    verdict: str
    difference: float = math.nan  # Mean of the model's scores less the other's
    lo: float = math.nan  # Its interval, adjusted as the p-value is, at this level
    hi: float = math.nan
    level: float = 1 - ALPHA
    p: float = math.nan
    # Users for whom the model is better, worse and the same, and the adjusted sign test
    users_better: int = 0
    users_worse: int = 0
    users_alike: int = 0
    users_p: float = math.nan

    def columns(self, to: str) -> dict[str, float | int | str]:
        """Return the values as columns of the frame: ``to_best``, ``to_best_lo`` and so on."""
        values = self._asdict()
        return {f"to_{to}": values.pop("difference")} | {
            f"to_{to}_{name}": value for name, value in values.items()
        }

    def mirrored(self) -> Standing:
        """Return the standing of the other model against this one."""
        return self._replace(
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
            difference=-self.difference,
            lo=-self.hi,
            hi=-self.lo,
            users_better=self.users_worse,
            users_worse=self.users_better,
        )


@dataclass(frozen=True)
class Rules:
    """Which models may lead, when each predicts, and what they are compared with."""

    # 0 for models that may lead; others do where no model of a lower rank is
    ranks: tuple[int, ...]
    times: tuple[int, ...]  # A leader is named for each time
    sign: float = 1.0  # 1 if lower is better, -1 if higher is
    baseline: int = 0


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """One metric of several models over the same users, compared two by two."""

    weighting: Weighting
    effective: float  # Number of users of equal weight with as precise a mean
    mean: FloatArray  # [models], with the 99 % interval
    lo: FloatArray
    hi: FloatArray
    below: Mapping[tuple[int, int], Estimate]  # Difference of a model to each of a lower number
    values: FloatArray  # [users, models]
    rules: Rules

    def difference(self, a: int, b: int) -> Estimate:
        """Return the mean difference of two models, not adjusted for other pairs."""
        return self.below[a, b] if b < a else self.below[b, a].mirrored()

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Models by the time of their predictions, then the best first; without a score last."""
        return tuple(np.lexsort((self.rules.sign * self.mean, np.array(self.rules.times))).tolist())

    @cached_property
    def leaders(self) -> dict[int, int]:
        """The model that each is compared with: the best of its time that may lead, -1 if none.

        Where none of that time may lead, it is the leader of the time before.
        """
        scored = [model for model in self.order if not math.isnan(self.mean[model])]
        least = min((self.rules.ranks[model] for model in scored), default=0)
        able = {model for model in scored if self.rules.ranks[model] == least}
        leaders, leader = dict[int, int](), -1
        for _, models in groupby(self.order, self.rules.times.__getitem__):
            group = [*models]
            leader = next((model for model in group if model in able), leader)
            leaders |= dict.fromkeys(group, leader)
        return leaders

    @cached_property
    def groups(self) -> dict[int, list[int]]:
        """Models compared with each leader, itself among them, in the order of the table."""
        groups: dict[int, list[int]] = {}
        for model in self.order:
            groups.setdefault(self.leaders[model], []).append(model)
        return groups

    @cached_property
    def to_best(self) -> dict[int, Standing]:
        """Each model against its leader, which was selected on the same scores.

        Models that may lead are adjusted by their place: see `behind_leader`. The others are
        adjusted by Holm's method.
        """
        standings = dict[int, Standing]()
        for leader, group in self.groups.items():
            if leader < 0:
                standings |= dict.fromkeys(group, Standing("unknown"))
            else:
                standings |= self._behind(leader, [model for model in group if model != leader])
        return standings

    @cached_property
    def to_baseline(self) -> dict[int, Standing]:
        """Each model against the baseline, which was chosen beforehand, by Holm's method.

        The baseline and its leader are compared once, in the comparison with the leader.
        """
        baseline, leader = self.rules.baseline, self.leaders[self.rules.baseline]
        others = [model for model in range(len(self.mean)) if model != baseline]
        standings = {baseline: Standing("identical"), **self._by_holm(others, baseline)}
        if leader == baseline:
            standings |= {model: self.to_best[model] for model in self.groups[leader]}
        elif leader >= 0:
            standings[leader] = self.to_best[baseline].mirrored()
        return standings

    def _behind(self, leader: int, others: Sequence[int]) -> dict[int, Standing]:
        """Compare the models that share a leader with it."""
        rank = self.rules.ranks[leader]
        rivals = [m for m in others if self.rules.ranks[m] == rank and not math.isnan(self.mean[m])]
        ranked = [model for model in rivals if not self.difference(model, leader).is_zero]
        twins = [self._twin(ranked, place) for place in range(len(ranked))]
        counts = self._counts(ranked, leader)
        average = behind_leader(
            [self.difference(model, leader).p_value for model in ranked],
            twins,
            [True] * len(ranked),
        )
        users = behind_leader(
            [each.p_value for each in counts], twins, [each.worse > each.better for each in counts]
        )
        standings = {
            **self._judged(ranked, leader, counts, average, users),
            **self._by_holm([model for model in others if model not in rivals], leader),
            **self._by_holm([model for model in rivals if model not in ranked], leader),
        }
        is_best = rank == 0 and {standings[model].verdict for model in rivals} == {"worse"}
        return {**standings, leader: Standing("best" if is_best else "leads")}

    def _by_holm(self, models: Sequence[int], other: int) -> dict[int, Standing]:
        counts = self._counts(models, other)
        average = holm([self.difference(model, other).p_value for model in models])
        return self._judged(models, other, counts, average, holm([c.p_value for c in counts]))

    def _judged(
        self,
        models: Sequence[int],
        other: int,
        counts: Sequence[SignTest],
        average: Adjusted,
        users: Adjusted,
    ) -> dict[int, Standing]:
        standings = {}
        for place, model in enumerate(models):
            estimate, p = self.difference(model, other), float(average.p_value[place])
            level = 1 - ALPHA / int(average.factor[place])
            verdict = "worse" if self.rules.sign * estimate.mean > 0 else "better"
            if math.isnan(p):
                verdict = "unknown"
            elif estimate.is_zero:
                verdict = "identical"
            elif p >= ALPHA:
                verdict = NOISE
            users_p = float(users.p_value[place])
            test = (estimate.mean, *estimate.interval(level), level, p)
            standings[model] = Standing(verdict, *test, *counts[place], users_p)
        return standings

    def _counts(self, models: Sequence[int], other: int) -> list[SignTest]:
        values = self.rules.sign * self.values
        return [paired_signs(values[:, model], values[:, other]) for model in models]

    def _twin(self, ranked: Sequence[int], place: int) -> int | None:
        """Return the place of an earlier model with the same scores."""
        earlier = (k for k in range(place) if self.difference(ranked[place], ranked[k]).is_zero)
        return next(earlier, None)
