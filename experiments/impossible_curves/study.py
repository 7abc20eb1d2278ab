"""Which models have forgetting curves that rise, and what it costs to forbid them that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paired_losses import difference, losses, scored, with_interval
from real_logs import real_logs

import srs_eval as se
from srs_eval.api.result import RunResult
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.temporal_magnitude import TemporalMaxRise, falling_fit
from srs_eval.nouns import Source
from srs_eval.plots.style import (
    BLUE,
    VERMILION,
    house_style,
    new_figure,
    style_axes,
)
from srs_eval.run.study import Findings

CURVES = 1000
ROUNDING = 1e-6
TICKS = (1, 2, 5, 10, 20)  # days
OFTEN = 0.05  # of the pairs of times
FREE, BY_EQUATION, BY_CONSTRAINT = "free", "falls by its equation", "falls by a constraint"
MODELS: Mapping[str, tuple[str, str]] = {
    "FSRS-6": ("fsrs6", BY_EQUATION),
    "FSRS-7": ("fsrs7", BY_EQUATION),
    "HLR": ("hlr", BY_EQUATION),
    "LSTM": ("lstm", BY_EQUATION),
    "logistic regression": ("logistic", FREE),
    "DASH": ("dash", FREE),
    "DASH[MCM]": ("dash_mcm", FREE),
    "boosted trees": ("boosted_trees", FREE),
    "monotone trees": ("boosted_trees_monotone", BY_CONSTRAINT),
}
NETWORKS: Mapping[str, tuple[str, str]] = {
    "free GRU": ("gru_p", FREE),
    "GRU of power curves": ("gru_curves", BY_EQUATION),
}
PAIRS = (
    ("boosted trees", "monotone trees"),
    ("free GRU", "GRU of power curves"),
)
QUICK = ("FSRS-6", "HLR", "DASH", "boosted trees", "monotone trees")
PANEL = Panel([LogLoss(), Temporal("strict"), Temporal("flat"), TemporalMaxRise()])


def evaluated(source: Source, models: Mapping[str, tuple[str, str]]) -> dict[str, RunResult]:
    """Evaluate the models on the reviews of the public protocol in whole days."""
    given: dict[str, Any] = {"panel": PANEL, "curves_per_user": CURVES, "progress": False}
    return {name: se.evaluate(algo, source, **given) for name, (algo, _) in models.items()}


def made_to_fall(result: RunResult) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the losses of sampled reviews as predicted, and with the nearest falling curves.

    A curve is known at no more than 16 intervals of its user; in between, the correction is
    interpolated.
    """
    frames = []
    for user in result.predicted.of(result.complete):
        curves = user.curves
        at = {row: number for number, row in enumerate(user.row.tolist())}
        numbers = np.array([at[row] for row in curves.row.tolist()])
        fitted = falling_fit(curves.p.astype(np.float64), curves.weight)
        moved = np.where(curves.weight > 0, fitted - curves.p, 0.0)
        moved[np.abs(moved) < ROUNDING] = 0.0
        known = (curves.weight[0] > 0) & ~np.isnan(curves.elapsed[0])
        times, own = curves.elapsed[0, known], user.elapsed_days[numbers]
        by = [np.interp(t, times, each[known]) for t, each in zip(own, moved, strict=True)]
        p, recalled = user.p[numbers].astype(np.float64), user.recalled[numbers]
        frame = pd.DataFrame({"user": user.users[0], "row": user.row[numbers]})
        frame = frame.assign(card=user.card[numbers], day=user.day[numbers])
        frame["loss"] = losses(p, recalled)
        frame["fallen"] = losses(np.clip(p + by, 1e-6, 1 - 1e-6), recalled)
        frames.append(frame.sort_values("row", ignore_index=True))
    found = pd.concat(frames, ignore_index=True)
    return found, found.assign(loss=found["fallen"])


def curves_table(
    log: str, results: Mapping[str, RunResult], kinds: Mapping[str, Any]
) -> pd.DataFrame:
    """Return one row per model: what its curves do, and what it costs to make them fall."""
    rows = []
    for name, result in results.items():
        frame, metrics = scored(result), result.facts.metrics
        free, fallen = made_to_fall(result)
        change = difference(fallen, free)
        rows.append(
            {
                "log": log,
                "model": name,
                "curve": kinds[name][1],
                "log loss": frame["loss"].mean(),
                "rises": metrics["temporal_strict"].pooled,
                "flat": metrics["temporal_flat"].pooled,
                "largest rise": metrics["temporal_max_rise"].pooled,
                "made to fall": with_interval(change),
                "change": change.mean,
                "settled": not change.is_zero and change.p_value < 0.01,
            }
        )
    return pd.DataFrame(rows)


def pairs_table(log: str, results: Mapping[str, RunResult]) -> pd.DataFrame:
    """Return what a constraint changes when it is there while the model is fitted."""
    rows = []
    for free, constrained in PAIRS:
        if free in results:
            change = difference(scored(results[constrained]), scored(results[free]))
            row = {"log": log, "free": free, "constrained": constrained}
            row |= {"log loss, constrained - free": with_interval(change)}
            rows.append(row | {"difference": change.mean, "settled": change.p_value < 0.01})
    return pd.DataFrame(rows)


def draw(results: Mapping[str, RunResult], log: str) -> Figure:
    """Draw curves of the same reviews by free models and by a constrained one."""
    with house_style():
        shown = ("free GRU" if "free GRU" in results else "DASH", *PAIRS[0])
        figure = new_figure(9.0, 3.2)
        every = figure.subplots(1, len(shown), sharey=True)
        for axes, name in zip(every, shown, strict=True):
            user = next(iter(results[name].predicted.of(results[name].complete)))
            curves = user.curves
            chosen = np.linspace(0, len(curves.row) - 1, 40).astype(int)
            for each in chosen:
                known = curves.weight[each] > 0
                p, t = curves.p[each, known], curves.elapsed[each, known]
                rises = bool((np.diff(p) > 1e-9).any())
                colour, z = (VERMILION, 2) if rises else (BLUE, 1)
                axes.plot(t, p, color=colour, zorder=z, linewidth=1, alpha=0.7)
            axes.set_xscale("log")
            axes.set_xticks(TICKS, [str(days) for days in TICKS])
            axes.minorticks_off()
            axes.set_ylim(0, 1)
            axes.set_title(name)
            axes.set_xlabel("days since the previous review")
            style_axes(axes)
        every[0].set_ylabel("predicted recall")
        for colour, text in ((VERMILION, "rises somewhere"), (BLUE, "never rises")):
            every[0].plot([], [], color=colour, label=text)
        every[0].legend(loc="lower left")
        figure.suptitle(f"Which curves rise? 40 reviews of {log}", x=0.01, ha="left")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    logs, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = (2, 1500) if options.small else (4, 4000)
    sources: dict[str, Source] = {
        **logs,
        "simulated": SyntheticUsers(users=users, max_reviews=reviews),
    }
    curves, pairs, figure = [], [], None
    for log, source in sources.items():
        with_networks = log == "josh" and find_spec("torch") is not None
        models = {**MODELS, **(NETWORKS if with_networks else {})}
        models = {name: models[name] for name in QUICK} if options.small else models
        results = evaluated(source, models)
        curves.append(curves_table(log, results, models))
        pairs.append(pairs_table(log, results))
        figure = figure or draw(results, log)
    if "josh" not in sources or find_spec("torch") is None:
        left_out.append("the networks, which need PyTorch and study.josh")
    table, constrained = pd.concat(curves, ignore_index=True), pd.concat(pairs, ignore_index=True)
    return _findings(table, constrained, figure, left_out)


def _findings(
    table: pd.DataFrame, pairs: pd.DataFrame, figure: Figure, left_out: list[str]
) -> Findings:
    rising = table[table["rises"] > OFTEN]
    names = sorted(rising["model"].unique())
    worst = table.loc[table["rises"].idxmax()]
    better, worse = rising["change"] < 0, rising["change"] > 0
    trees = pairs[pairs["free"] == PAIRS[0][0]]
    flat = table[table["curve"] == BY_CONSTRAINT]
    free = table[table["model"] == PAIRS[0][0]]
    ranks = table.assign(rank=table.groupby("log")["log loss"].rank())
    first = ranks[ranks["rank"] == 1]
    sure = trees[trees["settled"]]
    others = [log for log in trees["log"] if log not in set(sure["log"])]
    learned = [
        f"Recall rises with time at more than {OFTEN:.0%} of the pairs of intervals for "
        f"{_listed(names)}; most often for {worst['model']} on {worst['log']} "
        f"({worst['rises']:.0%} of the pairs; the largest rise of a curve is "
        f"{worst['largest rise']:.3f} on average). None of these models has an equation that makes "
        "its curve fall.",
        f"Replacing each such curve by the nearest one that never rises, after the fit, lowers the "
        f"log loss in {better.sum()} of {len(rising)} cases (significantly in "
        f"{(better & rising['settled']).sum()}) and raises it in {worse.sum()} (significantly in "
        f"{(worse & rising['settled']).sum()}); the change is between "
        f"{rising['change'].min():+.4f} and {rising['change'].max():+.4f}.",
        "Forbidding trees to rise while they are fitted changes their log loss by "
        f"{trees['difference'].min():+.4f} to {trees['difference'].max():+.4f}: "
        + "".join(
            f"significantly {'worse' if row['difference'] > 0 else 'better'} on {row['log']}, "
            for _, row in sure.iterrows()
        )
        + f"no difference found on {_listed(others) or 'none'}.",
        f"Never rising is not forgetting: curves of the monotone trees are flat at "
        f"{_flat(flat)} of the pairs, those of the free trees at {_flat(free)}, which a check for "
        "rises alone does not see.",
        "The best log loss of each log, by a margin that is not tested, belongs to: "
        + ", ".join(
            f"{row['model']} ({row['log']}; {row['rises']:.0%} of pairs rise)"
            for _, row in first.iterrows()
        )
        + ".",
    ]
    return Findings(
        answer=f"Of the models without a falling equation, {_listed(names)} have curves that rise "
        f"at more than {OFTEN:.0%} of the pairs of intervals on some log; making them fall changes "
        f"log loss by {rising['change'].min():+.4f} to {rising['change'].max():+.4f}, "
        f"significantly in {rising['settled'].sum()} of {len(rising)} cases.",
        learned=learned,
        tables={
            "curves": table.drop(columns=["change", "settled"]),
            "constraints": pairs.drop(columns=["difference", "settled"]),
        },
        figures={"curves": figure},
        metrics={"most_rises": worst["rises"], "greatest_gain": -rising["change"].min()},
        left_out=left_out,
        formats={"rises": ".1%", "flat": ".1%"},
    )


def _flat(rows: pd.DataFrame) -> str:
    return f"{rows['flat'].min():.1%} to {rows['flat'].max():.1%}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
