"""What the draws do, and how much recall really changes by lot over how much a model says."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from estimates import Effect, change, effect, permutation_z, within
from trials import FACTS, WEAK, Lottery

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.tally import log_losses

# Above it, a ratio whose interval has 1 in it says nothing.
UNDECIDED_SE = 0.5
# Reviews that were not seen for a longer interval are supposed to differ by as much from their
# predictions. Where that moves a ratio by more than the limit, it is refused.
UNSEEN_DIFFER, LARGEST_BOUND = 0.10, 0.25
ATTRITION_T = 3.0
ENOUGH_USERS = 20
NO_SLOPE = 1e-9


def ratio(said: pd.DataFrame, outcome: FloatArray, cluster: IntArray) -> Effect:
    """Return how much an outcome changes by lot, over how much a model says it changes.

    1 if the model is causally right. With the true probability of recall as `outcome`, it is the
    ratio that the truth has. Trials of which the model says nothing are left out.
    """
    held = said["actual"].notna().to_numpy()
    actual, drawn, mean = said.loc[held, ["actual", "drawn", "mean"]].to_numpy().T
    return effect(drawn - mean, outcome[held] - mean, actual - mean, cluster[held])


def log_loss(said: pd.DataFrame, recalled: FloatArray) -> float:
    """Return the mean log loss of predictions at the days that went by."""
    return float(log_losses(said["actual"].to_numpy(), recalled > 0).mean())


def slope(trials: pd.DataFrame, outcome: FloatArray) -> Effect:
    """Estimate the change of an outcome per unit of ln days, with fixed effects of the cells."""
    cell = trials["cell"].to_numpy()
    exposure = within(np.log(trials["elapsed"].to_numpy()), cell)
    return effect(
        trials["z"].to_numpy(), within(outcome, cell), exposure, trials["card"].to_numpy()
    )


def first_stage(trials: pd.DataFrame) -> Effect:
    """Estimate the change of the days that went by per unit of days drawn, both logarithms."""
    exposure = np.log(trials["elapsed"]) - trials["mean_log"]
    return change(trials["z"].to_numpy(), exposure.to_numpy(), trials["card"].to_numpy())


def attrition(draws: pd.DataFrame) -> Effect:
    """Estimate the change of the share seen again per unit of ln days drawn."""
    z, seen, user, card = (draws[name].to_numpy() for name in ("z", "seen", "user", "card"))
    return change(z, within(seen.astype(float), user), card)


def balance(draws: pd.DataFrame) -> dict[str, Effect]:
    """Estimate the effect of the draw on what was known before it, in standard deviations."""
    z, user, card = (draws[name].to_numpy() for name in ("z", "user", "card"))
    own = {name: within(draws[name].to_numpy(), user) for name in FACTS}
    return {
        name: change(z / z.std(), values / values.std(), card)
        for name, values in own.items()
        if values.std() > 0
    }


def draws_table(lottery: Lottery) -> pd.DataFrame:
    """Return what the draws do, whatever any model says, one row a quantity."""
    if not len(lottery.draws):
        return pd.DataFrame()
    trials = lottery.trials
    recalled, user, card, cell = (
        trials[name].to_numpy() for name in ("recalled", "user", "card", "cell")
    )
    days = within(np.log(trials["elapsed"].to_numpy()), user)
    permuted = permutation_z(trials["z"].to_numpy(), recalled, cell)
    effects = {
        "ln days that went by": first_stage(trials),
        "recall per ln day, by lot": slope(trials, recalled),
        "recall per ln day, naive regression": change(days, within(recalled, user), card),
        "share seen again per ln day (attrition)": attrition(lottery.draws),
        **{f"before: {name}, sd": each for name, each in balance(lottery.draws).items()},
    }
    rows = [
        {"effect of the draw on": name, "value": one.value, "se": one.se, "t": one.t}
        for name, one in effects.items()
    ]
    rows.insert(2, {"effect of the draw on": "recall, over all permutations", "t": permuted})
    return pd.DataFrame(rows, columns=["effect of the draw on", "value", "se", "t"])


def models_table(lottery: Lottery) -> pd.DataFrame:
    """Return one row a model; `low` and `high` are the 95 % interval of its ratio."""
    return pd.DataFrame([row_of(lottery, name) for name in lottery.predictions])


def row_of(lottery: Lottery, model: str) -> dict[str, object]:
    """Estimate the ratio of a model with its interval, wider by what attrition may do to it."""
    held = lottery.predictions[model]["actual"].notna().to_numpy()
    trials, said = lottery.trials[held], lottery.predictions[model][held]
    if not held.any():
        return {"model": model, "reviews": 0, "verdict": "refused: it predicts no user"}
    recalled, card, user = (trials[name].to_numpy() for name in ("recalled", "card", "user"))
    own, its = ratio(said, recalled, card), slope(trials, said["actual"].to_numpy()).value
    gone, bound = attrition(lottery.draws), 0.0
    if abs(gone.t) > ATTRITION_T and its:
        share = lottery.draws["seen"].mean()
        bound = UNSEEN_DIFFER * abs(gone.value) / share / abs(its)
    refused, f = "", first_stage(lottery.trials).t ** 2
    if (said["drawn"] - said["mean"]).abs().max() < NO_SLOPE:
        refused, own = "its predictions do not depend on the interval", Effect()
    elif not f >= WEAK:
        refused = f"draws hardly move the interval (F = {f:.1f})"
    elif bound > LARGEST_BOUND:
        refused = f"cards not seen again could move the ratio by {bound:.2f}"
    by_user = ratio(said, recalled, user).se if len(set(user)) >= ENOUGH_USERS else math.nan
    both = (trials["later"].notna().to_numpy()) & said["later"].notna().to_numpy()
    ahead = trials["later"].to_numpy()[both] - said["later"].to_numpy()[both]
    later = change(trials["z"].to_numpy()[both], ahead, card[both])
    low, high = own.low - bound, own.high + bound
    return {
        "model": model,
        "reviews": len(trials),
        "ratio": own.value,
        "se": own.se,
        "se by user": by_user,
        "low": low,
        "high": high,
        "log loss": log_loss(said, recalled),
        "slope": its,
        "later": later.value,
        "later se": later.se,
        "verdict": f"refused: {refused}" if refused else verdict(low, high, own.se),
    }


def verdict(low: float, high: float, se: float) -> str:
    """Return in a word or two what an interval of the ratio says of a model."""
    if low > 1:
        return "too flat"
    if high < 1:
        return "too steep"
    return "undecided" if se > UNDECIDED_SE else "not refuted"


def answers_table(lottery: Lottery) -> pd.DataFrame:
    """Return how many answers were used, by rule, and how many were not and why."""
    used = (
        lottery.trials.groupby("rule")["user"].agg(["size", "nunique"])
        if len(lottery.draws)
        else pd.DataFrame()
    )
    rows = [
        {"answers": f"used: drawn by {one.Index}", "number": one.size, "users": one.nunique}
        for one in used.itertuples()
    ]
    rows += [
        {"answers": f"not used: {reason}", "number": number}
        for reason, number in lottery.excluded.items()
        if number
    ]
    return pd.DataFrame(rows, columns=["answers", "number", "users"])
