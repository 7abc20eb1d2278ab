"""One model against another: on average, and for most users.

The two questions have separate tests. Each verdict comes with an interval at the level of its
test: the interval excludes 0, or 1/2, exactly if the difference is significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from srs_eval.nouns import FloatArray
from srs_eval.stats.estimate import Estimate
from srs_eval.stats.paired import paired_signs
from srs_eval.stats.significance import ALPHA, Adjusted, SignTest, behind_leader, holm

# "best": every other eligible model is significantly worse; "leads": not every one is.
Decision = Literal[
    "best", "leads", "identical", "better", "worse", "not significantly different", "unknown"
]
Pairs = Sequence[Sequence[Estimate]]


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


@dataclass(frozen=True, slots=True)
class Answer:
    """Test of a difference, adjusted for multiple comparisons."""

    verdict: Decision  # Whether the model is significantly better or worse than the other at 1 %
    p_value: float  # Adjusted; NaN without a test
    factor: int  # Factor of the adjustment: the level is 1 - ALPHA / factor
    # Interval at that level: of the mean difference, or of the share of users without a tie for
    # whom the model is better
    lo: float
    hi: float

    @property
    def level(self) -> float:
        """Level of the interval."""
        return 1 - ALPHA / self.factor

    def mirrored(self, total: float) -> Answer:
        """Return the answer for the other model; both estimates add up to `total`."""
        opposite: dict[Decision, Decision] = {"better": "worse", "worse": "better"}
        verdict = opposite.get(self.verdict, self.verdict)
        lo, hi = total - self.hi, total - self.lo
        return Answer(verdict, self.p_value, self.factor, lo, hi)


@dataclass(frozen=True, slots=True)
class Standing:
    """One model against another."""

    difference: Estimate  # Mean of the model's scores less the other's
    counts: SignTest  # Users for whom the model is better and worse
    # Whether it differs on average, and for most users
    average: Answer
    users: Answer

    def mirrored(self) -> Standing:
        """Return the standing of the other model against this one."""
        return Standing(
            self.difference.mirrored(),
            self.counts.mirrored(),
            self.average.mirrored(0.0),
            self.users.mirrored(1.0),
        )


@dataclass(frozen=True, slots=True)
class Field:
    """Models that are compared two by two, on the scores of the same users."""

    eligible: Sequence[bool]  # Which models may lead
    pairs: Pairs  # Mean paired differences, the row's model less the column's
    values: FloatArray  # [users, models]: Scores
    sign: float  # 1 if lower is better, -1 if higher is

    def behind(
        self, leaders: Sequence[int], order: Sequence[int], *, any_best: bool = True
    ) -> tuple[Standing, ...]:
        """Compare every model with its leader, which was selected on the same scores.

        Eligible models are adjusted by their place among those with the same leader: see
        `behind_leader`. The others are adjusted by Holm's method. Without `any_best`, no model may
        be called the best.
        """
        found: dict[int, Standing] = {}
        for leader in set(leaders):
            found |= self._behind_one(leader, [n for n in order if leaders[n] == leader])
        if not any_best:
            found |= {leader: _alone("leads") for leader in set(leaders) if leader >= 0}
        return tuple(found[model] for model in range(len(leaders)))

    def against(
        self, baseline: int, leaders: Sequence[int], to_leader: tuple[Standing, ...]
    ) -> tuple[Standing, ...]:
        """Compare every model with a baseline that was chosen beforehand, by Holm's method.

        The baseline and its leader are compared only once, in the comparison with the leader.
        """
        models, leader = range(len(self.pairs)), leaders[baseline]
        found = self._compared([model for model in models if model != baseline], baseline)
        if leader == baseline:
            found |= {model: to_leader[model] for model in models if leaders[model] == leader}
        elif leader >= 0:
            found[leader] = to_leader[baseline].mirrored()
        return tuple(found.get(model, _alone("identical")) for model in models)

    def _behind_one(self, leader: int, group: Sequence[int]) -> dict[int, Standing]:
        """Compare the models that share a leader with it."""
        if leader < 0:
            return {model: _alone("unknown") for model in group}
        table = [model for model in group if self.eligible[model] and model != leader]
        ranked = [model for model in table if not self.pairs[model][leader].is_zero]
        twins = [self._twin(ranked, place) for place in range(len(ranked))]
        counts = [self._counts(model, leader) for model in ranked]
        average = behind_leader(
            [self.pairs[model][leader].p_value for model in ranked], twins, [True] * len(ranked)
        )
        users = behind_leader(
            [each.p_value for each in counts], twins, [each.worse > each.better for each in counts]
        )
        others = [model for model in group if not self.eligible[model] and model != leader]
        found = {
            **self._standings(ranked, leader, counts, average, users),
            **self._compared(others, leader),
            **self._compared([model for model in table if model not in ranked], leader),
        }
        rivals = [found[model].average.verdict for model in table]
        is_best = bool(rivals) and all(verdict == "worse" for verdict in rivals)
        return {**found, leader: _alone("best" if is_best else "leads")}

    def _compared(self, models: Sequence[int], other: int) -> dict[int, Standing]:
        """Compare some models with the same other model, adjusted by Holm's method."""
        counts = [self._counts(model, other) for model in models]
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
        found = {}
        for place, model in enumerate(models):
            difference = self.pairs[model][other]
            found[model] = Standing(
                difference,
                counts[place],
                _on_average(difference, *_at(average, place), self.sign),
                _for_most_users(counts[place], *_at(users, place)),
            )
        return found

    def _counts(self, model: int, other: int) -> SignTest:
        return paired_signs(self.sign * self.values[:, model], self.sign * self.values[:, other])

    def _twin(self, ranked: Sequence[int], place: int) -> int | None:
        """Return the place of an earlier model with the same scores."""
        earlier = (k for k in range(place) if self.pairs[ranked[place]][ranked[k]].is_zero)
        return next(earlier, None)


def _at(adjusted: Adjusted, place: int) -> tuple[float, int]:
    return float(adjusted.p_value[place]), int(adjusted.factor[place])


def _on_average(difference: Estimate, p: float, factor: int, sign: float) -> Answer:
    interval = difference.interval(1 - ALPHA / factor)
    verdict = _verdict(p, is_zero=difference.is_zero, is_worse=sign * difference.mean > 0)
    return Answer(verdict, p, factor, *interval)


def _for_most_users(counts: SignTest, p: float, factor: int) -> Answer:
    is_zero = counts.tied > 0 and not counts.better + counts.worse
    verdict = _verdict(p, is_zero=is_zero, is_worse=counts.worse > counts.better)
    return Answer(verdict, p, factor, *counts.interval(1 - ALPHA / factor))


def _verdict(p: float, *, is_zero: bool, is_worse: bool) -> Decision:
    if math.isnan(p):
        return "unknown"
    if is_zero:
        return "identical"
    if p >= ALPHA:
        return "not significantly different"
    return "worse" if is_worse else "better"


def _alone(verdict: Decision) -> Standing:
    """Return the standing of the model that others are compared with."""
    none = Answer(verdict, math.nan, 1, math.nan, math.nan)
    return Standing(Estimate(math.nan), SignTest(0, 0, 0), none, none)
