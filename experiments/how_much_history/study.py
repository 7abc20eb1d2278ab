"""How many reviews a fit needs before it predicts better than published parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from evaluations import Change, score, with_means
from findings import findings, panels, ticks_on_log_scale
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from review_logs import SIMULATED, CardParts, logs

import srs_eval as se
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Fold, Reviews, Source, Task
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, VERMILION
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import mean_of_users

SIZES = (25, 50, 100, 200, 400, 800)
PARTS = 4
NOT_SHOWN, TOO_FEW = "not shown", "too few lapses"
FEWEST = 20  # lapses of a verdict
EDGE = 0.12  # of the figure
# Name, algorithm and the options of a fit; published parameters are fit="default".
FITS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "FSRS-6": ("fsrs6", {}),
    "FSRS-6, first stabilities": ("fsrs6", {"fit": "s0"}),
    "FSRS-6, public trainer": ("fsrs6", {"fit": "reference"}),
    "FSRS-5": ("fsrs5", {}),
    "FSRS-4.5": ("fsrs45", {}),
    "FSRS-7": ("fsrs7", {}),
    "HLR": ("hlr", {}),
}
# Without published parameters that could be used as they are.
OTHERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "logistic regression": ("logistic", {}),
    "DASH": ("dash", {}),
    "boosted trees": ("boosted_trees", {}),
    "share of recalls": ("avg", {}),
}
QUICK = ("FSRS-6", "FSRS-6, first stabilities", "HLR", "share of recalls")
SHOWN = {"FSRS-6": BLUE, "FSRS-6, first stabilities": GREEN, "logistic regression": VERMILION}
SHOWN |= {"share of recalls": MUTED}


@dataclass(frozen=True)
class Doubling:
    """Fit to the first 25, 50, 100 … reviews that `SrsBenchmark` scores; predict as many more."""

    name: ClassVar[str] = "doubling"
    version: ClassVar[str] = "1"
    folds: ClassVar[int] = len(SIZES)

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Split one log, which needs 50 reviews that can be scored."""
        task = SrsBenchmark()(reviews, same_day=same_day)
        last = task.folds[-1]
        rows = np.sort(np.concatenate([last.train, last.test]))
        found = tuple(
            Fold(number, train=rows[:size], test=rows[size : 2 * size])
            for number, size in enumerate(SIZES)
            if len(rows) >= 2 * size
        )
        if not found:
            raise FitSkipped(f"user {reviews.user}: {len(rows)} reviews can be scored")
        return Task(task.reviews, found, task.nth_review, task.lapses, task.log_row)


def by_size(source: Source, names: Sequence[str]) -> pd.DataFrame:
    """Return the mean log loss and the lapses by user, model and number of training reviews."""
    models = {name: {**FITS, **OTHERS}[name] for name in names}
    versions = sorted({algo for name, (algo, _) in models.items() if name in FITS})
    published = {f"{algo}, published": (algo, {"fit": "default"}) for algo in versions}
    frames = []
    for name, (algo, fit) in {**models, **published}.items():
        reviews = score(source, se.algorithm(algo, **fit), Doubling()).reviews
        each = reviews.assign(lapses=~reviews["recalled"]).groupby(["user", "fold"])
        frame = each.agg({"loss": "mean", "lapses": "sum"}).reset_index()
        frames.append(frame.assign(model=name, reviews=frame["fold"].map(dict(enumerate(SIZES)))))
    return pd.concat(frames, ignore_index=True)


def gains(found: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return for each fit and size the difference to published parameters.

    A fit is compared with the published parameters of the same algorithm, or those of FSRS-6
    where it has none.
    """
    wide = found.pivot_table(index=["reviews", "user"], columns="model", values="loss")
    lapses = found.groupby(["reviews", "user"])["lapses"].first()
    rows = []
    for name in names:
        algo = FITS[name][0] if name in FITS else "fsrs6"
        for size, own in (wide[name] - wide[f"{algo}, published"]).groupby(level="reviews"):
            own = own.dropna()
            row = {"model": name, "reviews": size, "logs": len(own)}
            row["lapses"] = int(lapses[own.index].sum())
            rows.append(row | {"change": Change.of(mean_of_users(own.to_numpy()))})
    return pd.DataFrame(rows)


def helps_from(changes: pd.DataFrame) -> str:
    """Return the smallest size from which on every fit is significantly better.

    Only sizes with enough lapses count.
    """
    own = changes[changes["lapses"] >= FEWEST]
    if own.empty:
        return TOO_FEW
    verdict = NOT_SHOWN
    for _, row in own.sort_values("reviews", ascending=False).iterrows():
        if not (row["change"].mean < 0 and row["change"].settled):
            break
        verdict = f"{row['reviews']:,}"
    return verdict


def by_columns(changes: Mapping[str, pd.DataFrame], cell: Callable[[Any], str]) -> pd.DataFrame:
    """Return one row per log and model, and one column per size; sizes that are not there empty."""
    every = pd.concat([own.assign(log=log) for log, own in changes.items()])
    every["cell"] = [cell(row) for row in every.itertuples()]
    order = every[["log", "model"]].drop_duplicates()
    wide = every.pivot(index=["log", "model"], columns="reviews", values="cell")
    wide = wide.loc[[*order.itertuples(index=False, name=None)]].reindex(
        columns=SIZES, fill_value=""
    )
    return wide.fillna("").rename(columns="{:,}".format).reset_index()


def difference(row: Any) -> str:
    """Format a difference: a star where its 99 % interval excludes 0, or ? if lapses are few."""
    return f"{row.change.mean:+.4f} ?" if row.lapses < FEWEST else row.change.starred


def evidence(row: Any) -> str:
    """Format how many logs there are, and lapses among their predicted reviews."""
    return f"{row.logs} logs, {row.lapses:,} lapse{'s' if row.lapses > 1 else ''}"


def from_table(changes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return for each model and log from how many reviews on it is better."""
    verdicts = {
        log: {name: helps_from(own) for name, own in every.groupby("model", sort=False)}
        for log, every in changes.items()
    }
    return pd.DataFrame(verdicts).rename_axis("model").reset_index()


def _panel(axes: Axes, log: str, changes: pd.DataFrame) -> None:
    for name, colour in SHOWN.items():
        own = changes[changes["model"] == name]
        if own.empty:
            continue
        means = np.array([change.mean for change in own["change"]])
        if name == "FSRS-6":
            low, high = np.array([change.interval() for change in own["change"]]).T
            band = axes.fill_between(own["reviews"], low, high, color=colour, alpha=0.15)
            band.set(linewidth=0, label="99 % interval, FSRS-6")
        axes.plot(own["reviews"], means, color=colour, marker="o", markersize=3, label=name)
        beyond = np.abs(means) > EDGE
        if beyond.any():  # an empty line that is not clipped would break the layout
            edges = np.sign(means[beyond]) * EDGE
            axes.plot(own["reviews"][beyond], edges, "^", color=colour, markersize=6, clip_on=False)
    axes.plot([], [], "^", color=MUTED, label=f"beyond ±{EDGE}")
    axes.axhline(0, color=INK, linewidth=0.8)
    ticks_on_log_scale(axes, SIZES)
    axes.tick_params(axis="x", rotation=45)
    axes.set_ylim(-EDGE, EDGE)
    axes.set_title(f"{log}\n{changes['logs'].max()} logs")
    if (changes["lapses"] < FEWEST).all():
        axes.text(0.97, 0.03, TOO_FEW, transform=axes.transAxes, ha="right")
    axes.set_xlabel("training reviews")


def draw(changes: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the difference to the published parameters of FSRS-6 by number of reviews.

    The band is the 99 % interval of FSRS-6 over logs; triangles are means beyond the frame.
    """
    title = "Models fitted to the first reviews, against published parameters of FSRS-6"
    size = 1.4 + 2.6 * len(changes), 4.6
    with panels(*size, len(changes), title, sharey=True) as (figure, every):
        for axes, (log, own) in zip(every, changes.items(), strict=True):
            _panel(axes, log, own)
        every[0].set_ylabel("log loss - published FSRS-6")
        figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Fit every model to the beginnings of every log."""
    found, left_out = logs(options, small=(3, 3000), full=(16, 4000))
    whole = () if options.small else (SIMULATED,)  # the others are one user each
    parts = 2 if options.small else PARTS
    sources: dict[str, Source] = {
        log if log in whole else f"{log} in {parts}": (
            source if log in whole else CardParts(source, parts)
        )
        for log, source in found.items()
    }
    names = QUICK if options.small else (*FITS, *OTHERS)
    changes = {log: gains(by_size(source, names), names) for log, source in sources.items()}
    needed = from_table(changes)
    every = pd.concat([own.assign(log=log) for log, own in changes.items()], ignore_index=True)
    every = with_means(every[every["lapses"] >= FEWEST])
    every["worse"], every["better"] = (
        every["settled"] & (every["mean"] * sign > 0) for sign in (1, -1)
    )
    usual, most = every[every["model"] == "FSRS-6"], every.groupby("log")["reviews"].max()
    verdicts = needed.set_index("model").loc["FSRS-6"]
    small = every[(every["reviews"] == every["reviews"].min()) & every["model"].isin(FITS)]
    words = {
        "better": [
            (size, log, size == f"{most[log]:,}")
            for log, size in verdicts.items()
            if size not in (NOT_SHOWN, TOO_FEW)
        ],
        "doubtful": [*verdicts.index[verdicts == TOO_FEW]],
        "usual": usual,
        "fewest": every["reviews"].min(),
        "fewest_lapses": FEWEST,
        "small": [*small.groupby("model", sort=False)],
        "plain": every[every["model"].isin(OTHERS)],
    }
    first = {log: own[own["model"] == names[0]] for log, own in changes.items()}
    tables = {"better_from": needed, "evidence": by_columns(first, evidence).drop(columns="model")}
    return findings(
        "how_much_history",
        tables | {"sizes": by_columns(changes, difference)},
        {"history": draw(changes)},
        words,
        metrics={"worse_cells_fsrs6": float(usual["worse"].sum())},
        left_out=left_out,
    )
