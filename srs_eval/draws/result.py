"""What a causal study has found: of the draws, and of each model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from srs_eval.draws.estimate import Effect, effect, permutation_z, regression, strength, within
from srs_eval.draws.study import WEAK, Collected
from srs_eval.draws.trials import Predicted, Trials, ratio
from srs_eval.metrics.proper import CLIP
from srs_eval.nouns import FloatArray

LEVEL = 0.95
# Above it, a ratio whose interval has 1 in it says nothing.
UNDECIDED_SE = 0.5
# Reviews that were not seen for a longer interval are supposed to differ by as much from their
# predictions. Where that moves a ratio by more than the limit, it is refused.
UNSEEN_DIFFER, LARGEST_BOUND = 0.10, 0.25
ATTRITION_T = 3.0
ENOUGH_USERS = 20
_NO_SLOPE = 1e-9


@dataclass(frozen=True, slots=True)
class OfDraws:
    """What the draws do, whatever any model says."""

    trials: int
    users: int
    cards: int
    recalled: float  # Share
    f: float  # F statistic of the first stage
    slope: Effect  # Change of recall per unit of ln days, within cells
    naive: Effect  # The same by regression on the days that went by, within users
    permutation_z: float  # Of recall and draws, permuted within cells
    draws: int  # That could be followed
    seen: float  # Share of them that were seen again
    attrition: Effect  # Change of that share per unit of ln days drawn
    # Effect of the draw on what was known before it, in standard deviations
    balance: Mapping[str, Effect]

    @property
    def is_weak(self) -> bool:
        """Whether the draws hardly move the days that go by."""
        return not self.f >= WEAK

    @property
    def attrition_t(self) -> float:
        """Attrition in standard errors."""
        return self.attrition.value / self.attrition.se if self.attrition.se > 0 else 0.0


@dataclass(frozen=True, slots=True)
class OfModel:
    """How much recall really changes by lot, over how much a model says it does."""

    name: str
    trials: int
    ratio: Effect
    users_se: float  # Standard error by user; NaN with fewer than `ENOUGH_USERS`
    slope: float  # Change of predicted recall per unit of ln days, as `OfDraws.slope`
    log_loss: float
    later: Effect  # Residual of recall at the review after, per unit of ln days drawn
    bound: float  # By how much attrition may move the ratio; 0 where there is none
    refused: str = ""  # Why there is no verdict

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval of the ratio, wider by the bound."""
        low, high = self.ratio.interval(level)
        return low - self.bound, high + self.bound

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        low, high = self.interval()
        if self.refused:
            return f"refused: {self.refused}"
        if low > 1:
            return "too flat"
        if high < 1:
            return "too steep"
        return "undecided" if self.ratio.se > UNDECIDED_SE else "not refuted"


@dataclass(frozen=True, slots=True)
class Lottery:
    """The result of a causal study."""

    collected: Collected
    draws: OfDraws | None  # None if there was nothing to study
    models: tuple[OfModel, ...]


def found_in(collected: Collected) -> Lottery:
    """Estimate everything that a study reports."""
    if not collected.parts:
        return Lottery(collected, None, ())
    trials = collected.trials()
    draws = _of_draws(collected, trials)
    models = (
        _of_model(name, trials, collected.predictions(name), draws) for name in collected.models
    )
    return Lottery(collected, draws, tuple(models))


def _of_draws(collected: Collected, trials: Trials) -> OfDraws:
    instrument, seen, user, card = collected.draws()
    by_user = within(np.log(trials.elapsed), trials.user)
    balance = {}
    for name, values in collected.facts().items():
        own = within(values, user)
        spread = float(own.std())
        if spread > 0:
            unit = instrument / instrument.std()
            balance[name] = regression(unit, own / spread, card)
    return OfDraws(
        trials=len(trials),
        users=len(collected.parts),
        cards=len(np.unique(trials.card)),
        recalled=float(trials.recalled.mean()),
        f=strength(trials.log_drawn, trials.log_elapsed, trials.card),
        slope=slope_of(trials, trials.recalled),
        naive=effect(by_user, within(trials.recalled, trials.user), by_user, trials.card),
        permutation_z=permutation_z(trials.log_drawn, trials.recalled, trials.cell),
        draws=len(seen),
        seen=float(seen.mean()),
        attrition=regression(instrument, within(seen, user), card),
        balance=balance,
    )


def slope_of(trials: Trials, outcome: FloatArray) -> Effect:
    """Estimate the change of an outcome per unit of ln days, with fixed effects of the cells."""
    cell = trials.cell
    exposure = within(np.log(trials.elapsed), cell)
    return effect(trials.log_drawn, within(outcome, cell), exposure, trials.card)


def _of_model(name: str, trials: Trials, model: Predicted, draws: OfDraws) -> OfModel:
    held = ~np.isnan(model.actual)
    own, said = trials.take(held), model.take(held)
    nothing = Effect(math.nan, math.nan, np.zeros(1), np.zeros(1))
    if not held.any():
        empty = math.nan, math.nan, math.nan
        return OfModel(name, 0, nothing, *empty, nothing, 0.0, "it predicts no user")
    slope = slope_of(own, said.actual).value
    found = ratio(own, said, own.recalled, own.card)
    bound = 0.0
    if abs(draws.attrition_t) > ATTRITION_T and slope:
        bound = UNSEEN_DIFFER * abs(draws.attrition.value) / draws.seen / abs(slope)
    refused = ""
    if float(np.abs(said.instrument).max()) < _NO_SLOPE:
        refused, found = "its predictions do not depend on the interval", nothing
    elif draws.is_weak:
        refused = f"draws hardly move the interval (F = {draws.f:.1f})"
    elif bound > LARGEST_BOUND:
        refused = f"cards not seen again could move the ratio by {bound:.2f}"
    return OfModel(
        name=name,
        trials=len(own),
        ratio=found,
        users_se=_users_se(own, said),
        slope=slope,
        log_loss=log_loss(said.actual, own.recalled),
        later=_later(own, said),
        bound=bound,
        refused=refused,
    )


def _users_se(trials: Trials, model: Predicted) -> float:
    if len(np.unique(trials.user)) < ENOUGH_USERS:
        return math.nan
    return ratio(trials, model, trials.recalled, trials.user).se


def _later(trials: Trials, model: Predicted) -> Effect:
    """Estimate what a longer draw does to the review after, beyond what the model says."""
    held = ~np.isnan(trials.later_recalled) & ~np.isnan(model.later)
    own = trials.take(held)
    return regression(own.log_drawn, own.later_recalled - model.later[held], own.card)


def log_loss(p: FloatArray, recalled: FloatArray) -> float:
    """Compute the mean log loss of predictions."""
    exact = np.clip(p, CLIP, 1 - CLIP)
    return float(-np.log(np.where(recalled > 0, exact, 1 - exact)).mean())


def by_rule(trials: Trials) -> dict[str, tuple[int, int]]:
    """Return how many trials there are of each rule, and of how many users."""
    return {
        str(rule): (int(np.sum(own)), len(np.unique(trials.user[own])))
        for rule in np.unique(trials.rule)
        for own in [trials.rule == rule]
    }
