"""Models that learned from short intervals and predict long ones, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paired_losses import Scored, score, settled, with_interval
from real_logs import real_logs
from scipy.stats import kendalltau
from usual_models import MODELS, PUBLISHED

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.nouns import Source
from srs_eval.plots.style import BLUE, INK, VERMILION, house_style, new_figure, style_axes
from srs_eval.protocol.shifted import Shifted
from srs_eval.run.study import Findings

QUICK = ("FSRS-6", "HLR", "share of recalls", PUBLISHED)
FEW = (*QUICK, "FSRS-7", "LSTM", "logistic regression")  # with the median of each card
OTHER = {"long": "short", "short": "long"}  # what is learned from, by what is scored
FEWEST = 50  # scored reviews of a user
EDGE = 0.3  # of the figure
Found = Mapping[tuple[str, str, str], Scored]  # by model, side scored, and side learned from


def evaluated(source: Source, names: tuple[str, ...], median: str) -> Found:
    """Fit each model to the other side, and to as many reviews of both."""
    return {
        (name, test, train): score(
            source, MODELS[name], Shifted(train, test, median=median), fewest=FEWEST
        )
        for test, other in OTHER.items()
        for name in names
        for train in ("both", other)
    }


def bias(each: Scored) -> float:
    """Return by how many percentage points too much is predicted, mean over users."""
    own = [float(np.mean(one.p) - np.mean(one.recalled)) for one in each.predictions.values()]
    return 100 * float(np.mean(own))


def changes(log: str, found: Found) -> pd.DataFrame:
    """Return what learning from the other side changes, by side scored and model."""
    rows = []
    for name, test in dict.fromkeys((name, test) for name, test, _ in found):
        both, other = found[name, test, "both"], found[name, test, OTHER[test]]
        if not other.losses:  # nobody has enough reviews on this side
            continue
        change = other.less(both)
        row = {"log": log, "scored": test, "model": name}
        row |= {"of both sides": both.log_loss, "of the other side": other.log_loss}
        row |= {"change": with_interval(change), "bias, both": bias(both)}
        row |= {"bias, other": bias(other), "mean": change.mean, "settled": settled(change)}
        low, high = (0.0, 0.0) if change.is_zero else change.interval()
        rows.append(row | {"low": low, "high": high})
    return pd.DataFrame(rows)


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return who is best after learning from both sides and from the other, and how far they agree.

    Kendall's tau of the two orders: 1 if they are the same, 0 if they have nothing in common.
    """
    rows = []
    for (log, test), own in table.groupby(["log", "scored"], sort=False):
        at = own.set_index("model")
        both, other = at["of both sides"], at["of the other side"]
        row = {"log": log, "scored": test, "best, both sides": both.idxmin()}
        row |= {"best, other side": other.idxmin()}
        rows.append(row | {"tau": float(kendalltau(both, other).statistic)})
    return pd.DataFrame(rows)


def evidence(log: str, found: Found) -> pd.DataFrame:
    """Return how much each side has to say."""
    rows = []
    for test in OTHER:
        own = list(next(each for key, each in found.items() if key[1] == test).predictions.values())
        recalled = np.concatenate([one.recalled for one in own]).astype(bool)
        days = np.concatenate(
            [np.zeros(0) if p.elapsed_days is None else p.elapsed_days for p in own]
        )
        row = {"log": log, "scored": test, "users": len(own), "reviews": len(recalled)}
        row |= {"lapses": int((~recalled).sum()), "median days": float(np.median(days))}
        rows.append(row)
    return pd.DataFrame(rows)


def _panel(axes: Axes, own: pd.DataFrame) -> None:
    names = [*dict.fromkeys(own["model"])][::-1]
    for shift, (test, colour) in zip(
        (0.15, -0.15), (("long", BLUE), ("short", VERMILION)), strict=True
    ):
        at = own[own["scored"] == test].set_index("model").loc[names]
        y = np.arange(len(names)) + shift
        low, high = (at[end].clip(-EDGE / 3, EDGE) for end in ("low", "high"))
        axes.hlines(y, low, high, color=colour, linewidth=1.2)
        label = f"{OTHER[test]} → {test}"
        axes.plot(at["mean"].clip(-EDGE / 3, EDGE), y, "o", color=colour, markersize=4, label=label)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(-EDGE / 3, EDGE)
    style_axes(axes)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the change of log loss by model, direction and log, with 99 % intervals."""
    logs = table["log"].unique()
    with house_style():
        figure = new_figure(2.2 + 2.9 * len(logs), 1.4 + 0.28 * table["model"].nunique())
        every = figure.subplots(1, len(logs), sharey=True, squeeze=False)[0]
        for axes, log in zip(every, logs, strict=True):
            _panel(axes, table[table["log"] == log])
            axes.set_title(str(log))
            axes.set_xlabel(f"change of log loss\n(to {EDGE} at most)")
        figure.suptitle("What learning from the other side alone changes", x=0.01, ha="left")
        handles = every[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=2)
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model in both directions on every log."""
    real, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = (3, 2500) if options.small else (20, 4000)
    sources = {**real, "simulated": SyntheticUsers(users=users, max_reviews=reviews)}
    names = QUICK if options.small else tuple(MODELS)
    by_user = {log: evaluated(source, names, "user") for log, source in sources.items()}
    by_card = {log: evaluated(source, FEW[: len(names)], "card") for log, source in sources.items()}
    table, of_cards = (
        pd.concat([changes(log, found) for log, found in each.items()], ignore_index=True)
        for each in (by_user, by_card)
    )
    counts = pd.concat([evidence(log, found) for log, found in by_user.items()], ignore_index=True)
    return _findings(table, of_cards, counts, left_out)


def _findings(
    table: pd.DataFrame, of_cards: pd.DataFrame, counts: pd.DataFrame, left_out: list[str]
) -> Findings:
    order = ranks(table)
    differ = int((order["best, both sides"] != order["best, other side"]).sum())
    taus = ", ".join(f"{row.tau:.2f} ({row.scored}, {row.log})" for row in order.itertuples())
    learned = [
        *(_direction(table, test) for test in OTHER),
        f"FSRS-6 changes by {_of(table, 'FSRS-6')}. {_against_published(table)}",
        f"HLR changes by {_of(table, 'HLR')}.",
        f"The order of the models agrees with that after a fit to both sides by a Kendall's tau of "
        f"{taus}; the best model is another in {differ} of {len(order)} cases.",
        "With the median of each card instead of that of the user, FSRS-6 changes by "
        f"{_of(of_cards, 'FSRS-6')}.",
    ]
    shown = ["log", "scored", "model", "of both sides", "of the other side", "change"]
    return Findings(
        answer=" ".join(_worse(table, test) for test in OTHER),
        learned=learned,
        tables={
            "evidence": counts,
            "changes": table[[*shown, "bias, both", "bias, other"]],
            "ranks": order,
            "by_card": of_cards[shown],
        },
        figures={"shifted": draw(table)},
        metrics={"mean_change_fsrs6": float(table[table["model"] == "FSRS-6"]["mean"].mean())},
        left_out=left_out,
        formats={"bias, both": "+.1f", "bias, other": "+.1f", "tau": ".2f", "median days": ".0f"},
    )


def _worse(table: pd.DataFrame, test: str) -> str:
    """Count the fits to the other side that are significantly worse, and name the models."""
    own = table[(table["model"] != PUBLISHED) & (table["scored"] == test)]
    worse = own["settled"] & (own["mean"] > 0)
    by_model = worse.groupby(own["model"], sort=False)
    always, never = by_model.all(), ~by_model.any()
    named = {"all": always[always].index, "none": never[never].index}
    found = "; ".join(
        f"on {logs} of the logs: {', '.join(of) or '-'}" for logs, of in named.items()
    )
    return (
        f"Scored on {test} intervals, {int(worse.sum())} of {len(own)} fits to {OTHER[test]} ones "
        f"are significantly worse than fits to as many reviews of both sides ({found})."
    )


def _direction(table: pd.DataFrame, test: str) -> str:
    own = table[(table["model"] != PUBLISHED) & (table["scored"] == test)]
    least, most = (own.groupby("model")["mean"].mean().agg(end) for end in ("idxmin", "idxmax"))
    means = own.groupby("model")["mean"].mean()
    better = int((own["settled"] & (own["mean"] < 0)).sum())
    return (
        f"From {OTHER[test]} to {test} intervals, log loss changes on average over the logs by "
        f"{means[least]:+.4f} ({least}) to {means[most]:+.4f} ({most}); {better} of {len(own)} "
        f"changes are significant gains. Predictions are off by {own['bias, other'].min():+.0f} to "
        f"{own['bias, other'].max():+.0f} percentage points, after a fit to both sides by "
        f"{own['bias, both'].min():+.0f} to {own['bias, both'].max():+.0f}."
    )


def _of(table: pd.DataFrame, model: str) -> str:
    """List the changes of a model."""
    own = table[table["model"] == model]
    return ", ".join(
        f"{row.mean:+.4f}{' *' if row.settled else ''} ({OTHER[row.scored]} to {row.scored}, "
        f"{row.log})"
        for row in own[["mean", "settled", "scored", "log"]].itertuples(name="Row", index=False)
    )


def _against_published(table: pd.DataFrame) -> str:
    """Count where published parameters predict better than a fit to the other side."""
    at = table.pivot_table(index=["log", "scored"], columns="model", values="of the other side")
    worse = at["FSRS-6"] > at[PUBLISHED]
    return (
        "Fitted to the other side, it predicts worse than with published parameters in "
        f"{int(worse.sum())} of {len(at)} cases."
    )
