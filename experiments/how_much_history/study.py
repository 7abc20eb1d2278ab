"""How many reviews a fit needs before it predicts better than published parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from card_parts import CardParts
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paired_losses import scored
from real_logs import real_logs

import srs_eval as se
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Fold, Reviews, Source, Task
from srs_eval.plots.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    VERMILION,
    house_style,
    new_figure,
    style_axes,
)
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import Estimate, mean_of_users

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
        given: dict[str, Any] = {"protocol": Doubling(), "curves_per_user": 0, "panel": "quick"}
        result = se.evaluate(algo, source, progress=False, **given, **fit)
        each = scored(result).groupby(["user", "fold"])
        lapses = each["recalled"].agg(lambda recalled: int((~recalled.astype(bool)).sum()))
        frame = pd.DataFrame({"loss": each["loss"].mean(), "lapses": lapses}).reset_index()
        frames.append(frame.assign(model=name, reviews=frame["fold"].map(dict(enumerate(SIZES)))))
    return pd.concat(frames, ignore_index=True)


def gains(found: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return for each fit and size the estimate of its difference to published parameters.

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
            rows.append(row | {"estimate": mean_of_users(own.to_numpy())})
    return pd.DataFrame(rows)


def helps_from(estimates: pd.DataFrame) -> int | None:
    """Return the smallest size from which on every fit is significantly better.

    Only sizes with enough lapses are given.
    """
    from_size = None
    for _, row in estimates.sort_values("reviews", ascending=False).iterrows():
        if not (row["estimate"].mean < 0 and row["estimate"].p_value < 0.01):
            break
        from_size = int(row["reviews"])
    return from_size


def sizes_table(changes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per model and log: the difference by size, and from when a fit is better.

    A star marks differences whose 99 % interval excludes 0, a question mark too few lapses.
    """
    rows = []
    for log, every in changes.items():
        for name, own in every.groupby("model", sort=False):
            row = {"log": log, "model": str(name)}
            at = own.set_index("reviews")
            for size in SIZES:
                row[f"{size:,}"] = _cell(at.loc[size]) if size in at.index else ""
            rows.append(row)
    return pd.DataFrame(rows)


def _cell(row: pd.Series) -> str:
    estimate: Estimate = row["estimate"]
    star = " *" if estimate.p_value < 0.01 else ""
    return f"{estimate.mean:+.4f}" + (" ?" if row["lapses"] < FEWEST else star)


def evidence_table(changes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the logs, and the lapses among their predicted reviews, by log and size."""
    rows = []
    for log, every in changes.items():
        at = every.drop_duplicates("reviews").set_index("reviews")
        cells = {
            f"{size:,}": f"{row.logs} logs, {row.lapses:,} lapse{'s' if row.lapses > 1 else ''}"
            for size, row in at.iterrows()
        }
        rows.append({"log": log} | {f"{size:,}": cells.get(f"{size:,}", "") for size in SIZES})
    return pd.DataFrame(rows)


def from_table(changes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return for each model and log from how many reviews on it is better."""
    first = next(iter(changes.values()))
    rows = []
    for name in first["model"].unique():
        row = {"model": name}
        for log, every in changes.items():
            own = every[(every["model"] == name) & (every["lapses"] >= FEWEST)]
            size = helps_from(own)
            verdict = NOT_SHOWN if size is None else f"{size:,}"
            row[log] = TOO_FEW if own.empty else verdict
        rows.append(row)
    return pd.DataFrame(rows)


def _panel(axes: Axes, log: str, changes: pd.DataFrame) -> None:
    for name, colour in SHOWN.items():
        own = changes[changes["model"] == name]
        if own.empty:
            continue
        means = np.array([each.mean for each in own["estimate"]])
        if name == "FSRS-6":
            low, high = np.array([each.interval() for each in own["estimate"]]).T
            axes.fill_between(
                own["reviews"], low, high, color=colour, alpha=0.15, linewidth=0,
                label="99 % interval, FSRS-6",
            )  # fmt: skip
        axes.plot(own["reviews"], means, color=colour, marker="o", markersize=3, label=name)
        beyond = np.abs(means) > EDGE
        if beyond.any():  # an empty line that is not clipped would break the layout
            edges = np.sign(means[beyond]) * EDGE
            axes.plot(own["reviews"][beyond], edges, "^", color=colour, markersize=6, clip_on=False)
    axes.plot([], [], "^", color=MUTED, label=f"beyond ±{EDGE}")
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES], rotation=45)
    axes.minorticks_off()
    axes.set_ylim(-EDGE, EDGE)
    axes.set_title(f"{log}\n{changes['logs'].max()} logs")
    if (changes["lapses"] < FEWEST).all():
        axes.text(0.97, 0.03, TOO_FEW, transform=axes.transAxes, ha="right")
    axes.set_xlabel("training reviews")
    style_axes(axes)


def draw(changes: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the difference to the published parameters of FSRS-6 by number of reviews.

    The band is the 99 % interval of FSRS-6 over logs; triangles are means beyond the frame.
    """
    with house_style():
        figure = new_figure(1.4 + 2.6 * len(changes), 4.6)
        every = figure.subplots(1, len(changes), sharey=True, squeeze=False)[0]
        for axes, (log, own) in zip(every, changes.items(), strict=True):
            _panel(axes, log, own)
        every[0].set_ylabel("log loss - published FSRS-6")
        title = "Models fitted to the first reviews, against published parameters of FSRS-6"
        figure.suptitle(title, x=0.01, ha="left")
        figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Fit every model to the beginnings of every log."""
    sources: dict[str, Source] = {}
    left_out: list[str] = []
    if options.small:
        sources["simulated in 2"] = CardParts(SyntheticUsers(users=3, max_reviews=3000), 2)
    else:
        real, left_out = real_logs(options)
        sources |= {f"{log} in {PARTS}": CardParts(each, PARTS) for log, each in real.items()}
        sources["simulated"] = SyntheticUsers(users=16, max_reviews=4000)
    models = {**FITS, **OTHERS}
    names = QUICK if options.small else tuple(models)
    changes = {log: gains(by_size(source, names), names) for log, source in sources.items()}
    return _findings(changes, left_out)


def _findings(changes: Mapping[str, pd.DataFrame], left_out: list[str]) -> Findings:
    every = pd.concat([own.assign(log=log) for log, own in changes.items()], ignore_index=True)
    every = every[every["lapses"] >= FEWEST]
    mean = every["estimate"].map(lambda each: each.mean)
    sure = every["estimate"].map(lambda each: each.p_value < 0.01)
    every = every.assign(mean=mean, worse=sure & (mean > 0), better=sure & (mean < 0))
    needed = from_table(changes).set_index("model")
    fewest = every["reviews"].min()
    usual, small = every[every["model"] == "FSRS-6"], every[every["reviews"] == fewest]
    verdicts = needed.loc["FSRS-6"]
    found = [log for log in needed if verdicts[log] not in (NOT_SHOWN, TOO_FEW)]
    doubtful = [log for log in needed if verdicts[log] == TOO_FEW]
    most = every.groupby("log")["reviews"].max()
    ahead = int((usual["mean"] < 0).sum())
    plain = every[every["model"].isin(OTHERS)]
    learned = [
        f"FSRS-6 fitted with a prior predicts better on average at {ahead} of {len(usual)} sizes "
        f"and logs, significantly at {int(usual['better'].sum())}, and is significantly worse at "
        f"{int(usual['worse'].sum())}. Here and below, sizes with fewer than {FEWEST} lapses among "
        "the predicted reviews of a log are not counted.",
        f"At {fewest} reviews a fit changes log loss, from log to log, by "
        + "; ".join(
            f"{_range(own['mean'])} ({name})"
            for name, own in small.groupby("model", sort=False)
            if name in FITS
        )
        + ".",
        f"Models without usable published parameters are significantly better than published "
        f"FSRS-6 at {int(plain['better'].sum())} of {len(plain)} sizes and logs, and significantly "
        f"worse at {int(plain['worse'].sum())}; they are worse on average at "
        f"{int((plain['mean'] > 0).sum())}.",
    ]
    answer = (
        "A fit of FSRS-6 with a prior is significantly better than published parameters "
        + (_by_log(verdicts[found], most) if found else "on no log")
        + f"; it is significantly worse at {int(usual['worse'].sum())} of {len(usual)} sizes and "
        "logs."
        + (f" There are too few lapses for a verdict on {', '.join(doubtful)}." if doubtful else "")
    )
    tables = {"better_from": needed.reset_index(), "evidence": evidence_table(changes)}
    return Findings(
        answer=answer,
        learned=learned,
        tables=tables | {"sizes": sizes_table(changes)},
        figures={"history": draw(changes)},
        metrics={"worse_cells_fsrs6": float(usual["worse"].sum())},
        left_out=left_out,
    )


def _by_log(row: pd.Series, most: pd.Series) -> str:
    """Return the size from which on; a size that is the largest of its log has nothing after it."""
    is_last = {log: size == f"{most[log]:,}" for log, size in row.items()}
    return ", ".join(
        f"at {size} reviews, the most there are ({log})"
        if is_last[log]
        else f"from {size} reviews on ({log})"
        for log, size in row.items()
    )


def _range(values: pd.Series) -> str:
    return f"{values.min():+.3f} to {values.max():+.3f}"
