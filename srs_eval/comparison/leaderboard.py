"""Models over the same users, and the tests of their differences to a leader and a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.means import Estimate
from srs_eval.metrics.significance import ALPHA, LEVEL, Adjusted, SignTest, behind_leader, holm

NOISE = "can be noise"  # The verdict where a difference is not significant
_OPPOSITE = {"better": "worse", "worse": "better"}
# One model against another: the mean of its scores less the other's with an interval at the level
# that several comparisons ask for, and the users for whom it is better, worse and the same
_Versus = dict[str, Any]
_NOTHING: _Versus = {
    **{"difference": math.nan, "verdict": "unknown", "lo": math.nan, "hi": math.nan},
    **{"level": LEVEL, "p": math.nan},
    **{"users_better": 0, "users_worse": 0, "users_alike": 0, "users_p": math.nan},
}


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Models by the mean of one metric over users, compared two by two."""

    mean: FloatArray  # [models]
    # Of each model and every other: the difference of their means, not adjusted for other pairs,
    # and the users for whom it is better, and worse
    gaps: Mapping[tuple[int, int], Estimate]
    signs: Mapping[tuple[int, int], SignTest]
    # 0 for models that may lead; others do where no model of a lower rank is
    ranks: Sequence[int]
    times: Sequence[int]  # When each predicts: a leader is named for each time
    sign: float = 1.0  # 1 if lower is better, -1 if higher is
    baseline: int = 0

    @cached_property
    def order(self) -> pd.DataFrame:
        """Number of each model's leader, and its place among those of that leader.

        By time, then the best first. A leader is the best of its time that may lead; where there
        is none, that of the time before, or else -1.
        """
        models = pd.DataFrame({"time": self.times, "rank": self.ranks, "mean": self.mean})
        models = models.iloc[np.lexsort((self.sign * self.mean, np.array(self.times)))]
        able = models[models["mean"].notna()]
        able = able[able["rank"] == able["rank"].min()]
        leaders = able.index.to_series().groupby(able.time).first()
        of_times = leaders.reindex(models.time.unique()).ffill().fillna(-1).astype(int)
        leader = models.time.map(of_times)
        return pd.DataFrame({"leader": leader, "place": 1 + leader.groupby(leader).cumcount()})

    @cached_property
    def to_best(self) -> dict[int, _Versus]:
        """Each model against its leader: by place if it may lead, by Holm's method otherwise."""
        versus = dict[int, _Versus]()
        for leader, group in self.order.groupby("leader", sort=False).groups.items():
            versus |= self._behind(int(str(leader)), [model for model in group if model != leader])
        return versus

    @cached_property
    def to_baseline(self) -> dict[int, _Versus]:
        """Each model against the baseline by Holm's method, its leader as in `to_best`."""
        base, leader = self.baseline, int(self.order.leader[self.baseline])
        others = [model for model in range(len(self.mean)) if model != base]
        versus = {base: {**_NOTHING, "verdict": "identical"}, **self._against(others, base)}
        if leader == base:
            group = self.order.index[self.order.leader == leader]
            return versus | {model: self.to_best[model] for model in group}
        if leader >= 0:
            own = self.to_best[base]
            versus[leader] = own | {
                "verdict": _OPPOSITE.get(own["verdict"], own["verdict"]),
                **{"difference": -own["difference"], "lo": -own["hi"], "hi": -own["lo"]},
                **{"users_better": own["users_worse"], "users_worse": own["users_better"]},
            }
        return versus

    def _behind(self, leader: int, others: Sequence[int]) -> dict[int, _Versus]:
        """Compare the models that share a leader with it."""
        if leader < 0:
            return dict.fromkeys(others, _NOTHING)
        rank = self.ranks[leader]
        rivals = [m for m in others if self.ranks[m] == rank and not math.isnan(self.mean[m])]
        rest = [model for model in others if model not in rivals]
        alike = [model for model in rivals if self.gaps[model, leader].is_zero]
        differ = [model for model in rivals if model not in alike]
        twins = [  # The place of an earlier model with the same scores
            next((k for k in range(n) if self.gaps[differ[k], model].is_zero), None)
            for n, model in enumerate(differ)
        ]
        versus = self._against(differ, leader, lambda p, drop: behind_leader(p, twins, drop))
        versus |= self._against(rest, leader) | self._against(alike, leader)
        is_best = rank == 0 and {versus[model]["verdict"] for model in rivals} == {"worse"}
        return versus | {leader: {**_NOTHING, "verdict": "best" if is_best else "leads"}}

    def _against(
        self,
        models: Sequence[int],
        other: int,
        adjust: Callable[[Sequence[float], Sequence[bool]], Adjusted] = lambda p, _: holm(p),
    ) -> dict[int, _Versus]:
        """Compare models with another one, adjusted for their number."""
        gaps = [self.gaps[model, other] for model in models]
        signs = [self.signs[model, other] for model in models]
        average = adjust([gap.p_value for gap in gaps], [True] * len(gaps))
        users = adjust([each.p_value for each in signs], [s.worse > s.better for s in signs])
        versus = {}
        for place, (model, gap) in enumerate(zip(models, gaps, strict=True)):
            p, level = float(average.p_value[place]), 1 - ALPHA / int(average.factor[place])
            verdict = "worse" if self.sign * gap.mean > 0 else "better"
            if math.isnan(p):
                verdict = "unknown"
            elif gap.is_zero:
                verdict = "identical"
            elif p >= ALPHA:
                verdict = NOISE
            numbers = gap.mean, verdict, *gap.interval(level), level, p
            counts = *signs[place], float(users.p_value[place])
            versus[model] = dict(zip(_NOTHING, (*numbers, *counts), strict=True))
        return versus
