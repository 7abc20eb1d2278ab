"""The tables, the figure and the words of a causal study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from srs_eval.draws.estimate import within
from srs_eval.draws.reconstruct import MATCHED
from srs_eval.draws.result import Lottery, OfDraws, OfModel, by_rule
from srs_eval.plots.lottery_plot import ModelInLottery, lottery_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEN_PERCENT = math.log(1.1)
_ASSUMED = (
    "Assumed: fuzz is random given the rule (tested: places, load of the days, balance), acts by "
    "the days that go by alone, and reviews that were not seen are as predicted, within the bound. "
    "It holds near the intervals that people have, for slopes and not for the level of recall."
)


def model_records(lottery: Lottery) -> list[dict[str, Any]]:
    """Return one row a model."""
    return [
        {
            "model": model.name,
            "reviews": model.trials,
            "ratio": model.ratio.value,
            "se": model.ratio.se,
            "se by user": model.users_se,
            "95 % interval": _interval(model),
            "log loss": model.log_loss,
            "slope": model.slope,
            "later": model.later.value,
            "later se": model.later.se,
            "verdict": model.verdict,
        }
        for model in lottery.models
    ]


def draw_records(lottery: Lottery) -> list[dict[str, Any]]:
    """Return what the draws do, one row a quantity."""
    draws = lottery.draws
    if draws is None:
        return []
    effects = {
        "recall per ln day, by lot": draws.slope,
        "recall per ln day, naive regression": draws.naive,
        "share seen again per ln day (attrition)": draws.attrition,
    }
    rows = [_effect_row(name, effect) for name, effect in effects.items()]
    rows += [_effect_row(f"before: {name}, sd", one) for name, one in draws.balance.items()]
    return rows


def _effect_row(name: str, effect: Any) -> dict[str, Any]:
    t = effect.value / effect.se if effect.se > 0 else math.nan
    return {"effect of the draw on": name, "value": effect.value, "se": effect.se, "t": t}


def count_records(lottery: Lottery) -> list[dict[str, Any]]:
    """Return how many answers were used, by rule, and how many were not and why."""
    collected = lottery.collected
    rows = []
    if collected.parts:
        found = by_rule(collected.trials())
        rows = [
            {"answers": f"used: drawn by {rule}", "number": number, "users": users}
            for rule, (number, users) in found.items()
        ]
    rows += [
        {"answers": f"not used: {reason}", "number": number, "users": None}
        for reason, number in collected.excluded.items()
        if number
    ]
    return rows


def month_records(lottery: Lottery) -> list[dict[str, Any]]:
    """Return the rule of each month of each user."""
    return [{"user": user, **month._asdict()} for user, month in lottery.collected.months]


def sentences(lottery: Lottery) -> list[str]:
    """Return what was found, in words."""
    collected, draws = lottery.collected, lottery.draws
    lines = []
    if draws is not None:
        lines += _of_draws(draws)
        lines += [*(_of_model(draws, model) for model in lottery.models), _ASSUMED]
    matched = [month.matched >= MATCHED for _, month in collected.months]
    if matched:
        lines.append(f"{sum(matched)} of {len(matched)} months are explained by a rule.")
    lines += [f"Refused: {user}: {reason}" for user, reason in collected.refused.items()]
    lines += [f"No prediction of {name}: {reason}" for name, reason in collected.missing.items()]
    return lines


def answer(lottery: Lottery) -> str:
    """Return the verdicts in one sentence."""
    draws = lottery.draws
    if draws is None:
        reasons = "; ".join(lottery.collected.refused.values()) or "no log was given"
        return f"Nothing can be said: {reasons}"
    verdicts = (
        f"{model.name} {model.verdict}"
        if model.refused
        else f"{model.name} {model.ratio.value:.2f} ± {model.ratio.se:.2f} ({model.verdict})"
        for model in lottery.models
    )
    return f"Real over predicted change of recall, 1 if right: {', '.join(verdicts)}."


def _of_draws(draws: OfDraws) -> list[str]:
    ten, error = 100 * _TEN_PERCENT * draws.slope.value, 100 * _TEN_PERCENT * draws.slope.se
    naive = 100 * _TEN_PERCENT * draws.naive.value
    lines = [
        f"By lot, cards came back 10 % later: recall changed by {ten:+.2f} ± {error:.2f} points "
        f"({draws.trials:,} reviews of {draws.cards:,} cards of {draws.users} "
        f"user{'s' * (draws.users > 1)}; {100 * draws.recalled:.1f} % recalled). The same reviews "
        f"compared without the lot say {naive:+.2f}.",
        f"The draw moves the days that go by with F = {draws.f:,.0f}, and recall with z = "
        f"{draws.permutation_z:+.1f} over all permutations within cells.",
        f"{100 * draws.seen:.1f} % of {draws.draws:,} draws were seen again; that share changes by "
        f"{draws.attrition.value:+.3f} ± {draws.attrition.se:.3f} per unit of ln days.",
    ]
    if draws.balance:
        worst = max(draws.balance.items(), key=lambda item: abs(item[1].value / item[1].se))
        lines.append(
            f"Of {len(draws.balance)} facts known before the draw, the most unbalanced is "
            f"{worst[0]}: {worst[1].value:+.3f} sd, t = {worst[1].value / worst[1].se:+.1f}."
        )
    return lines


def _of_model(draws: OfDraws, model: OfModel) -> str:
    if model.refused:
        return f"{model.name}: {model.verdict}."
    said = 100 * _TEN_PERCENT * model.slope
    bound = f", of which {model.bound:.2f} on either side for cards not seen again"
    slopes = draws.slope.value / model.slope if model.slope else math.nan
    return (
        f"{model.name} said {said:+.2f} points: {model.verdict}, {_interval(model)}"
        f"{bound * (model.bound > 0)}; ratio of slopes {slopes:.2f}. At the review after, recall "
        f"is {100 * _TEN_PERCENT * model.later.value:+.2f} ± "
        f"{100 * _TEN_PERCENT * model.later.se:.2f} points above what it says."
    )


def _interval(model: OfModel) -> str:
    low, high = model.interval()
    if not (math.isfinite(low) and math.isfinite(high)):
        return "any"
    return f"[{low:+.2f}, {high:+.2f}]"


def figure(lottery: Lottery, *, title: str = "") -> Figure:
    """Draw the two panels of a study that has found something."""
    draws = lottery.draws
    assert draws is not None
    trials = lottery.collected.trials()
    shown = [
        ModelInLottery(
            model.name, model.slope, model.ratio.value, *model.interval(), model.log_loss
        )
        for model in lottery.models
        if model.trials
    ]
    residual = within(trials.recalled, trials.cell)
    slope = draws.slope.value, draws.slope.se
    return lottery_figure(trials.log_drawn, residual, slope, shown, title=title)
