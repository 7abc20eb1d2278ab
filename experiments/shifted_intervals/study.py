"""Models that learned from short intervals and predict long ones, and the reverse."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import (
    MODELS,
    PUBLISHED,
    SIMULATED,
    LogOptions,
    evaluated,
    loss_change,
    mean_loss,
    panels,
    real_logs,
    scored_reviews,
    simulated,
    write,
)
from hydra.core.config_store import ConfigStore
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import kendalltau

from srs_eval.data.reviews import IntArray, Reviews, Source
from srs_eval.plots.style import BLUE, INK, VERMILION
from srs_eval.protocol.candidates import FOLDS, in_whole_days
from srs_eval.protocol.split import expanding_folds, on_folds, used_rows
from srs_eval.protocol.task import Fold, Task

QUICK = ("FSRS-6", "HLR", "share of recalls", PUBLISHED)
FEW = (*QUICK, "FSRS-7", "LSTM", "logistic regression")  # with the median of each card
OTHER = {"long": "short", "short": "long"}  # what is learned from, by what is scored
FEWEST = 50  # scored reviews of a user
EDGE = 0.3  # of the figure
SIDES = ("short", "long")
UNUSED = "outside both parts of the shifted split"
# Scored reviews by model, side scored, and side learned from.
Found = Mapping[tuple[str, str, str], pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Shifted:
    """Learn from one side of the median interval, and score the other, in the folds of the public.

    The blocks are those of `SrsBenchmark`. Of each, only the reviews on the side `test` are scored,
    by a model that learned from the reviews before the block on the side `train`. Short intervals
    are those up to the median of the intervals before the block, which is all that it is taken of.

    Parameters
    ----------
    train : str
        ``short``, ``long``, or ``both`` for a fit to compare with: it scores the same reviews, and
        learns from as many as the other side has, spread evenly over all reviews before the block.
    test : str
        ``long`` or ``short``, the side that `train` is not.
    median : str
        Whether the median is that of the ``user`` or of each ``card``. A card without an interval
        before the block has no median, and is not scored there.
    """

    version: ClassVar[str] = "1"
    folds: ClassVar[int] = FOLDS
    train: str = "short"
    test: str = "long"
    median: str = "user"

    @property
    def name(self) -> str:
        """The name, with both sides, and whose median it is if it is not the user's."""
        own = "_by_card" if self.median == "card" else ""
        return f"shifted_{self.train}_to_{self.test}{own}"

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter one user's log as `SrsBenchmark` does, and split it twice."""
        task, targets = in_whole_days(reviews, same_day=same_day)
        parts = [self._part(task.reviews, block) for block in expanding_folds(targets, FOLDS)]
        whole = [part for part in parts if len(part.train) and len(part.test)]
        unused = len(targets) - len(used_rows(whole))
        dropped = {**task.dropped, **({UNUSED: unused} if unused else {})}
        what = (
            f"user {reviews.user}: no block of {len(targets)} reviews has {self.test} intervals "
            f"after {OTHER[self.test]} ones"
        )
        return on_folds(task, whole, dropped, what)

    def _part(self, reviews: Reviews, block: Fold) -> Fold:
        """Keep one side of a block, and the other side, or as many rows, of what comes before."""
        group = reviews.card if self.median == "card" else np.zeros_like(reviews.card)
        before, after = (
            sides_of(reviews.elapsed_days, group, block.train, rows)
            for rows in (block.train, block.test)
        )
        train = block.train[before == SIDES.index(OTHER[self.test])]
        if self.train == "both":
            spread = np.linspace(0, len(block.train) - 1, len(train))
            train = block.train[spread.round().astype(np.int64)]
        return replace(block, train=train, test=block.test[after == SIDES.index(self.test)])


def sides_of(days: IntArray, group: IntArray, known: IntArray, rows: IntArray) -> IntArray:
    """Return 0 for rows up to the median of their group's known rows, 1 above it, -1 without one.

    Of an even number of intervals, the median is the lower of the two in the middle.
    """
    order = known[np.lexsort((days[known], group[known]))]
    groups, begins, counts = np.unique(group[order], return_index=True, return_counts=True)
    medians = days[order[begins + (counts - 1) // 2]]
    at = np.minimum(np.searchsorted(groups, group[rows]), len(groups) - 1)
    return np.where(groups[at] == group[rows], days[rows] > medians[at], -1)


def fits(source: Source, names: Iterable[str], median: str) -> Found:
    """Fit each model to the other side, and to as many reviews of both."""
    found = {}
    for test, other in OTHER.items():
        for name in names:
            for train in ("both", other):
                option, arguments = MODELS[name]
                model = se.algorithm(option, **arguments)
                result = evaluated(source, model, Shifted(train, test, median))
                found[name, test, train] = scored_reviews(result, FEWEST)
    return found


def bias(reviews: pd.DataFrame) -> float:
    """Return by how many percentage points too much is predicted, mean over users."""
    means = reviews.groupby("user")[["p", "recalled"]].mean()
    return 100 * float((means["p"] - means["recalled"]).mean())


def changes(log: str, found: Found) -> pd.DataFrame:
    """Return what learning from the other side changes, by side scored and model."""
    rows = []
    for name, test in dict.fromkeys((name, test) for name, test, _ in found):
        both, other = found[name, test, "both"], found[name, test, OTHER[test]]
        if len(other):  # somebody has enough reviews on this side
            row = {"log": log, "scored": test, "model": name}
            row |= {"of both sides": mean_loss(both), "of the other side": mean_loss(other)}
            row |= {"change": loss_change(other, both), "bias, both": bias(both)}
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
        own = next(each for key, each in found.items() if key[1] == test)
        row = {"log": log, "scored": test, "users": own["user"].nunique(), "reviews": len(own)}
        row |= {"lapses": int((~own["recalled"]).sum())}
        rows.append(row | {"median days": own["elapsed_days"].median()})
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


ConfigStore.instance().store("shifted_intervals", LogOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="shifted_intervals")
def main(options: LogOptions) -> None:
    """Evaluate every model in both directions on every log."""
    logs = {**real_logs(options), SIMULATED: simulated(options, small=(3, 2500), full=(20, 4000))}
    names = QUICK if options.small else tuple(MODELS)
    few = QUICK if options.small else FEW
    by_user = {log: fits(source, names, "user") for log, source in logs.items()}
    by_card = {log: fits(source, few, "card") for log, source in logs.items()}
    table, of_cards = (
        pd.concat([changes(log, found) for log, found in each.items()], ignore_index=True)
        for each in (by_user, by_card)
    )
    counts = [evidence(log, found) for log, found in by_user.items()]
    tables = {
        "evidence": pd.concat(counts, ignore_index=True),
        "changes": table,
        "ranks": ranks(table),
        "by_card": of_cards.drop(columns=["bias, both", "bias, other"]),
    }
    formats = {"bias, both": "+.1f", "bias, other": "+.1f", "tau": ".2f", "median days": ".0f"}
    write("shifted_intervals", options, tables, {"shifted": draw(table)}, formats)


if __name__ == "__main__":
    main()
