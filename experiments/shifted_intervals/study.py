"""Models that learned from short intervals and predict long ones, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from evaluations import MODELS, PUBLISHED, Scored, score, with_means
from findings import findings, panels
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from review_logs import logs
from scipy.stats import kendalltau

from srs_eval.nouns import Source
from srs_eval.plots.style import BLUE, INK, VERMILION
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
        if other.losses:  # somebody has enough reviews on this side
            row = {"log": log, "scored": test, "model": name}
            row |= {"of both sides": both.log_loss, "of the other side": other.log_loss}
            row |= {"change": other.less(both), "bias, both": bias(both)}
            rows.append(row | {"bias, other": bias(other)})
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
    for shift, test, colour in ((0.15, "long", BLUE), (-0.15, "short", VERMILION)):
        changes = own[own["scored"] == test].set_index("model")["change"].loc[names]
        y = np.arange(len(names)) + shift
        ends = [(0, 0) if change.is_zero else change.interval() for change in changes]
        low, high = np.clip(ends, -EDGE / 3, EDGE).T
        axes.hlines(y, low, high, color=colour, linewidth=1.2)
        means = np.clip([change.mean for change in changes], -EDGE / 3, EDGE)
        label = f"{OTHER[test]} → {test}"
        axes.plot(means, y, "o", color=colour, markersize=4, label=label)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(-EDGE / 3, EDGE)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the change of log loss by model, direction and log, with 99 % intervals."""
    logs = table["log"].unique()
    size = 2.2 + 2.9 * len(logs), 1.4 + 0.28 * table["model"].nunique()
    title = "What learning from the other side alone changes"
    with panels(*size, len(logs), title, sharey=True) as (figure, every):
        for axes, log in zip(every, logs, strict=True):
            _panel(axes, table[table["log"] == log])
            axes.set_title(str(log))
            axes.set_xlabel(f"change of log loss\n(to {EDGE} at most)")
        handles = every[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=2)
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model in both directions on every log."""
    sources, left_out = logs(options, small=(3, 2500), full=(20, 4000))
    names = QUICK if options.small else tuple(MODELS)
    by_user = {log: evaluated(source, names, "user") for log, source in sources.items()}
    by_card = {log: evaluated(source, FEW[: len(names)], "card") for log, source in sources.items()}
    table, of_cards = (
        pd.concat([changes(log, found) for log, found in each.items()], ignore_index=True)
        for each in (by_user, by_card)
    )
    counts = pd.concat([evidence(log, found) for log, found in by_user.items()], ignore_index=True)
    known = with_means(table).assign(other=table["scored"].map(OTHER))
    at = table.pivot_table(index=["log", "scored"], columns="model", values="of the other side")
    words = {
        "sides": {test: _side(known, test) for test in OTHER},
        "fsrs6": known[known["model"] == "FSRS-6"],
        "hlr": known[known["model"] == "HLR"],
        "worse_than_published": at["FSRS-6"] > at[PUBLISHED],
        "ranks": ranks(table),
        "fsrs6_by_card": of_cards[of_cards["model"] == "FSRS-6"].assign(
            other=lambda own: own["scored"].map(OTHER)
        ),
    }
    tables = {"evidence": counts, "changes": table, "ranks": words["ranks"]}
    tables["by_card"] = of_cards.drop(columns=["bias, both", "bias, other"])
    return findings(
        "shifted_intervals",
        tables,
        {"shifted": draw(table)},
        words,
        metrics={"mean_change_fsrs6": float(words["fsrs6"]["mean"].mean())},
        left_out=left_out,
        formats={"bias, both": "+.1f", "bias, other": "+.1f", "tau": ".2f", "median days": ".0f"},
    )


def _side(table: pd.DataFrame, test: str) -> dict[str, Any]:
    """Return how fits to the other side do on one, without published parameters."""
    rows = table[(table["model"] != PUBLISHED) & (table["scored"] == test)]
    worse = rows["settled"] & (rows["mean"] > 0)
    by_model = worse.groupby(rows["model"], sort=False)
    always, never = by_model.all(), ~by_model.any()
    return {
        "other": OTHER[test],
        "rows": rows,
        "worse": worse,
        "better": rows["settled"] & (rows["mean"] < 0),
        "always": [*always[always].index],
        "never": [*never[never].index],
        "by_model": rows.groupby("model")["mean"].mean(),
    }
