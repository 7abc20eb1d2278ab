"""Models over the same users, and the tests of their differences to a leader and a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.algorithms.algorithm import UNKNOWN, WHEN
from srs_eval.metrics.means import Estimate
from srs_eval.metrics.significance import ALPHA, LEVEL, Adjusted, SignTest, behind_leader, holm

NOISE = "can be noise"  # The verdict where a difference is not significant
# Beside the difference of a model to another: its interval at the level that several comparisons
# ask for, and the users for whom the model is better, worse and the same
_VERSUS = ["verdict", "lo", "hi", "level", "p"]
_VERSUS += ["users_better", "users_worse", "users_alike", "users_p"]
_Row = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Models by the mean of one metric over users, compared two by two."""

    # A row for each model, by its name: ``mean``, ``when`` it predicts, and ``rank``, 0 if it may
    # lead; others do where no model of a lower rank is
    models: pd.DataFrame
    # Of each model and every other: the difference of their means, not adjusted for other pairs,
    # and the users for whom it is better, and worse
    gaps: Mapping[tuple[str, str], Estimate]
    signs: Mapping[tuple[str, str], SignTest]
    sign: float  # 1 if lower is better, -1 if higher is
    baseline: str

    @property
    def table(self) -> pd.DataFrame:
        """The models by time, then the best first, with their leader and place behind it.

        A leader is the best of its time that may lead; where there is none, that of the time
        before, or else "". Models are compared with it by place if they may lead, by Holm's method
        otherwise, and by that with the baseline; what is compared with both, once.
        """
        time, base = self.models.when.map((*WHEN, UNKNOWN).index), self.baseline
        models = self.models.iloc[np.lexsort((self.sign * self.models["mean"], time))]
        able = models[models["mean"].notna()]
        able = able[able["rank"] == able["rank"].min()]
        leaders = able.index.to_series().groupby(able.when).first()
        leaders = leaders.reindex(models.when.unique()).ffill().fillna("")
        leader = models.when.map(leaders).rename("leader")
        to_best = dict[str, _Row]()
        for name, group in leader.groupby(leader, sort=False).groups.items():
            to_best |= self._behind(str(name), group.tolist())
        to_baseline = self._against([name for name in models.index if name != base], base)
        to_baseline[base] = _alone("identical")
        if leader[base] == base:
            to_baseline |= {name: to_best[name] for name in leader.index[leader == base]}
        elif leader[base]:
            *_, level, p, _, _, _, users_p = to_best[base]
            to_baseline[leader[base]] = self._row(leader[base], base, level, p, users_p)
        table = models.join(leader).assign(place=1 + leader.groupby(leader).cumcount())
        for to, rows in (("to_best", to_best), ("to_baseline", to_baseline)):
            columns = [to, *(f"{to}_{name}" for name in _VERSUS)]
            table = table.join(pd.DataFrame.from_dict(rows, orient="index", columns=columns))
        return table

    def _behind(self, leader: str, group: Sequence[str]) -> dict[str, _Row]:
        """Compare the models that share a leader with it."""
        if not leader:
            return dict.fromkeys(group, _alone("unknown"))
        ranks, is_known = self.models["rank"], self.models["mean"].notna()
        others = [model for model in group if model != leader]
        rivals = [m for m in others if is_known[m] and ranks[m] == ranks[leader]]
        rest = [model for model in others if model not in rivals]
        alike = [model for model in rivals if self.gaps[model, leader].is_zero]
        differ = [model for model in rivals if model not in alike]
        twins = [  # The place of an earlier model with the same scores
            next((k for k in range(n) if self.gaps[differ[k], model].is_zero), None)
            for n, model in enumerate(differ)
        ]
        rows = self._against(differ, leader, lambda p, drop: behind_leader(p, twins, drop))
        rows |= self._against(rest, leader) | self._against(alike, leader)
        is_best = ranks[leader] == 0 and {rows[model][1] for model in rivals} == {"worse"}
        return rows | {leader: _alone("best" if is_best else "leads")}

    def _against(
        self,
        models: Sequence[str],
        other: str,
        adjust: Callable[[Sequence[float], Sequence[bool]], Adjusted] = lambda p, _: holm(p),
    ) -> dict[str, _Row]:
        """Compare models with another one, adjusted for their number."""
        signs = [self.signs[model, other] for model in models]
        average = adjust([self.gaps[m, other].p_value for m in models], [True] * len(models))
        users = adjust([each.p_value for each in signs], [s.worse > s.better for s in signs])
        adjusted = zip(1 - ALPHA / average.factor, average.p_value, users.p_value, strict=True)
        numbers = zip(models, adjusted, strict=True)
        return {model: self._row(model, other, *map(float, each)) for model, each in numbers}

    def _row(self, model: str, other: str, level: float, p: float, users_p: float) -> _Row:
        """Return the difference of two models, with what is adjusted for several."""
        gap, verdict = self.gaps[model, other], "unknown"
        if gap.is_zero:
            verdict = "identical"
        elif p >= ALPHA:
            verdict = NOISE
        elif p < ALPHA:
            verdict = "worse" if self.sign * gap.mean > 0 else "better"
        users = *self.signs[model, other], users_p
        return gap.mean, verdict, *gap.interval(level), level, p, *users


def _alone(verdict: str) -> _Row:
    """Return what a model is that is compared with no other."""
    return math.nan, verdict, math.nan, math.nan, LEVEL, math.nan, 0, 0, 0, math.nan
