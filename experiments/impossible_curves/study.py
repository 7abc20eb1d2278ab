"""Which models have forgetting curves that rise, and what it costs to forbid them that."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from evaluations import Change, clusters, scored, with_means
from findings import findings, panels, ticks_on_log_scale
from matplotlib.figure import Figure
from review_logs import logs

import srs_eval as se
from srs_eval.api.result import RunResult
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss, log_losses
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.temporal_magnitude import TemporalMaxRise, falling_fit
from srs_eval.nouns import Source
from srs_eval.plots.style import BLUE, VERMILION
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import clustered_mean

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
CONSTRAINED = "log loss, constrained - free"
PANEL = Panel([LogLoss(), Temporal("strict"), Temporal("flat"), TemporalMaxRise()])


def evaluated(source: Source, models: Mapping[str, tuple[str, str]]) -> dict[str, RunResult]:
    """Evaluate the models on the reviews of the public protocol in whole days."""
    given: dict[str, Any] = {"panel": PANEL, "curves_per_user": CURVES, "progress": False}
    return {name: se.evaluate(algo, source, **given) for name, (algo, _) in models.items()}


def made_to_fall(result: RunResult) -> Change:
    """Estimate what the nearest falling curves of sampled reviews change.

    A curve is known at no more than 16 intervals of its user; in between, the correction is
    interpolated.
    """
    frames = []
    for user in result.predicted.of(result.complete):
        curves = user.curves
        order = np.argsort(curves.row, kind="stable")
        numbers = np.searchsorted(user.row, curves.row[order])
        fitted = falling_fit(curves.p.astype(np.float64), curves.weight)
        moved = np.where(curves.weight > 0, fitted - curves.p, 0.0)
        moved[np.abs(moved) < ROUNDING] = 0.0
        known = (curves.weight[0] > 0) & ~np.isnan(curves.elapsed[0])
        times, own = curves.elapsed[0, known], user.elapsed_days[numbers]
        by = [np.interp(t, times, one[known]) for t, one in zip(own, moved[order], strict=True)]
        p, recalled = user.p[numbers].astype(np.float64), user.recalled[numbers]
        fallen = log_losses(np.clip(p + by, 1e-6, 1 - 1e-6), recalled)
        columns = {"user": user.users[0], "card": user.card[numbers], "day": user.day[numbers]}
        columns["change"] = fallen - log_losses(p, recalled)
        frames.append(pd.DataFrame(columns))
    found = pd.concat(frames, ignore_index=True)
    return Change.of(clustered_mean(found["change"].to_numpy(), *clusters(found)))


def curves_table(
    log: str, results: Mapping[str, RunResult], kinds: Mapping[str, Any]
) -> pd.DataFrame:
    """Return one row per model: what its curves do, and what it costs to make them fall."""
    rows = []
    for name, result in results.items():
        metrics = result.facts.metrics
        row = {"log": log, "model": name, "curve": kinds[name][1]}
        row["log loss"] = scored(result).reviews["loss"].mean()
        row["rises"] = metrics["temporal_strict"].pooled
        row["flat"] = metrics["temporal_flat"].pooled
        row["largest rise"] = metrics["temporal_max_rise"].pooled
        rows.append(row | {"made to fall": made_to_fall(result)})
    return pd.DataFrame(rows)


def pairs_table(log: str, results: Mapping[str, RunResult]) -> pd.DataFrame:
    """Return what a constraint changes when it is there while the model is fitted."""
    rows = []
    for free, constrained in PAIRS:
        if free in results:
            row = {"log": log, "free": free, "constrained": constrained}
            change = scored(results[constrained]).less(scored(results[free]), by_user=False)
            rows.append(row | {CONSTRAINED: change})
    return pd.DataFrame(rows)


def draw(results: Mapping[str, RunResult], log: str) -> Figure:
    """Draw curves of the same reviews by free models and by a constrained one."""
    shown = ("free GRU" if "free GRU" in results else "DASH", *PAIRS[0])
    title = f"Which curves rise? 40 reviews of {log}"
    with panels(9.0, 3.2, len(shown), title, sharey=True) as (figure, every):
        for axes, name in zip(every, shown, strict=True):
            user = next(iter(results[name].predicted.of(results[name].complete)))
            curves = user.curves
            for each in np.linspace(0, len(curves.row) - 1, 40).astype(int):
                known = curves.weight[each] > 0
                p, t = curves.p[each, known], curves.elapsed[each, known]
                rises = bool((np.diff(p) > 1e-9).any())
                colour, z = (VERMILION, 2) if rises else (BLUE, 1)
                axes.plot(t, p, color=colour, zorder=z, linewidth=1, alpha=0.7)
            ticks_on_log_scale(axes, TICKS)
            axes.set_ylim(0, 1)
            axes.set_title(name)
            axes.set_xlabel("days since the previous review")
        every[0].set_ylabel("predicted recall")
        for colour, text in ((VERMILION, "rises somewhere"), (BLUE, "never rises")):
            every[0].plot([], [], color=colour, label=text)
        every[0].legend(loc="lower left")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    sources, left_out = logs(options, small=(2, 1500), full=(4, 4000))
    has_networks = "josh" in sources and find_spec("torch") is not None
    if not has_networks:
        left_out.append("the networks, which need PyTorch and study.josh")
    curves, pairs, figure = [], [], None
    for log, source in sources.items():
        models = {**MODELS, **(NETWORKS if has_networks and log == "josh" else {})}
        models = {name: models[name] for name in QUICK} if options.small else models
        results = evaluated(source, models)
        curves.append(curves_table(log, results, models))
        pairs.append(pairs_table(log, results))
        figure = figure or draw(results, log)
    table, constrained = pd.concat(curves, ignore_index=True), pd.concat(pairs, ignore_index=True)
    known = with_means(table, "made to fall")
    rising = known[known["rises"] > OFTEN]
    worst = table.loc[table["rises"].idxmax()]
    words = {
        "rising": rising,
        "names": sorted(rising["model"].unique()),
        "worst": worst,
        "sure": rising[rising["settled"]],
        "trees": with_means(constrained[constrained["free"] == PAIRS[0][0]], CONSTRAINED),
        "monotone": table[table["curve"] == BY_CONSTRAINT],
        "free": table[table["model"] == PAIRS[0][0]],
        "first": table[table.groupby("log")["log loss"].rank() == 1],
    }
    return findings(
        "impossible_curves",
        {"curves": table, "constraints": constrained},
        {"curves": figure},
        words,
        metrics={"most_rises": worst["rises"], "greatest_gain": -rising["mean"].min()},
        left_out=left_out,
        formats={"rises": ".1%", "flat": ".1%"},
    )
