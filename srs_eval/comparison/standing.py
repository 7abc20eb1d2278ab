"""One model against another: on average, and for most users.

The two questions have separate tests. Each verdict comes with an interval at the level of its
test: the interval excludes 0, or 1/2, exactly if the difference is significant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


def behind(
    leaders: Sequence[int],
    order: Sequence[int],
    eligible: Sequence[bool],
    pairs: Pairs,
    values: FloatArray,
    sign: float,
    *,
    any_best: bool = True,
) -> tuple[Standing, ...]:
    """Compare every model with its leader, which was selected on the same scores.

    Eligible models are adjusted by their place among those with the same leader: see
    `behind_leader`. The others are adjusted by Holm's method. Without `any_best`, no model may be
    called the best.
    """
    found: dict[int, Standing] = {}
    for leader in set(leaders):
        group = [model for model in order if leaders[model] == leader]
        found |= _behind_one(leader, group, eligible, pairs, values, sign)
    if not any_best:
        found |= {leader: _alone("leads") for leader in set(leaders) if leader >= 0}
    return tuple(found[model] for model in range(len(leaders)))


def _behind_one(
    leader: int,
    group: Sequence[int],
    eligible: Sequence[bool],
    pairs: Pairs,
    values: FloatArray,
    sign: float,
) -> dict[int, Standing]:
    """Compare the models that share a leader with it."""
    if leader < 0:
        return {model: _alone("unknown") for model in group}
    differences = {model: pairs[model][leader] for model in group}
    counts = {model: _counts(values, model, leader, sign) for model in group}
    table = [model for model in group if eligible[model] and model != leader]
    alike = [differences[model].is_zero for model in table]
    ranked = [model for model, is_alike in zip(table, alike, strict=True) if not is_alike]
    twins = [_twin(ranked, place, pairs) for place in range(len(ranked))]
    average = behind_leader(
        [differences[model].p_value for model in ranked], twins, [True] * len(ranked)
    )
    users = behind_leader(
        [counts[model].p_value for model in ranked],
        twins,
        [counts[model].worse > counts[model].better for model in ranked],
    )
    others = [model for model in group if not eligible[model] and model != leader]
    found = {
        **_standings(ranked, differences, counts, (average, users), sign),
        **_compared(others, differences, counts, sign),
        **_compared([m for m in table if m not in ranked], differences, counts, sign),
    }
    rivals = [found[model].average.verdict for model in table]
    is_best = bool(rivals) and all(verdict == "worse" for verdict in rivals)
    return {**found, leader: _alone("best" if is_best else "leads")}


def against(
    baseline: int,
    leaders: Sequence[int],
    to_leader: tuple[Standing, ...],
    pairs: Pairs,
    values: FloatArray,
    sign: float,
) -> tuple[Standing, ...]:
    """Compare every model with a baseline that was chosen beforehand, by Holm's method.

    The baseline and its leader are compared only once, in the comparison with the leader.
    """
    models = range(len(pairs))
    differences = dict(enumerate(pairs[model][baseline] for model in models))
    counts = {model: _counts(values, model, baseline, sign) for model in models}
    others = [model for model in models if model != baseline]
    found = _compared(others, differences, counts, sign)
    leader = leaders[baseline]
    if leader == baseline:
        found.update({model: to_leader[model] for model in models if leaders[model] == leader})
    elif leader >= 0:
        found[leader] = to_leader[baseline].mirrored()
    return tuple(found.get(model, _alone("identical")) for model in models)


def _compared(
    models: Sequence[int],
    differences: Mapping[int, Estimate],
    counts: Mapping[int, SignTest],
    sign: float,
) -> dict[int, Standing]:
    """Compare some models with the same other model, adjusted by Holm's method."""
    adjusted = (
        holm([differences[model].p_value for model in models]),
        holm([counts[model].p_value for model in models]),
    )
    return _standings(models, differences, counts, adjusted, sign)


def _standings(
    models: Sequence[int],
    differences: Mapping[int, Estimate],
    counts: Mapping[int, SignTest],
    adjusted: tuple[Adjusted, Adjusted],
    sign: float,
) -> dict[int, Standing]:
    found = {}
    for place, model in enumerate(models):
        (p, factor), (p_users, factor_users) = (
            (float(each.p_value[place]), int(each.factor[place])) for each in adjusted
        )
        found[model] = Standing(
            differences[model],
            counts[model],
            _on_average(differences[model], p, factor, sign),
            _for_most_users(counts[model], p_users, factor_users),
        )
    return found


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


def _counts(values: FloatArray, model: int, other: int, sign: float) -> SignTest:
    return paired_signs(sign * values[:, model], sign * values[:, other])


def _twin(ranked: Sequence[int], place: int, pairs: Pairs) -> int | None:
    """Return the place of an earlier model with the same scores."""
    earlier = (k for k in range(place) if pairs[ranked[place]][ranked[k]].is_zero)
    return next(earlier, None)


def _alone(verdict: Decision) -> Standing:
    """Return the standing of the model that others are compared with."""
    none = Answer(verdict, math.nan, 1, math.nan, math.nan)
    return Standing(Estimate(math.nan), SignTest(0, 0, 0), none, none)
