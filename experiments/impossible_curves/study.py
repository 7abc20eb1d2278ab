"""Which models have forgetting curves that rise, and what it costs to forbid them that."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import srs_eval  # noqa: F401 - before NumPy

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "examples" / "boosted_trees"))

import hydra
import numpy as np
import pandas as pd
from book import (
    SIMULATED,
    Change,
    LogOptions,
    change_of_reviews,
    evaluated,
    loss_change,
    panels,
    real_logs,
    scored_reviews,
    simulated,
    ticks_on_log_scale,
    write,
)
from boosted_trees import BoostedTrees
from hydra.core.config_store import ConfigStore
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Curves
from srs_eval.metrics.scores import log_loss, temporal_flat, temporal_strict
from srs_eval.metrics.tally import log_losses
from srs_eval.plots.style import BLUE, VERMILION

CURVES = 1000
ROUNDING = 1e-6
TICKS = (1, 2, 5, 10, 20)  # days
FREE, BY_EQUATION, BY_CONSTRAINT = "free", "falls by its equation", "falls by a constraint"
MODELS: Mapping[str, tuple[str | Algorithm, str]] = {
    "FSRS-6": ("fsrs6", BY_EQUATION),
    "FSRS-7": ("fsrs7", BY_EQUATION),
    "HLR": ("hlr", BY_EQUATION),
    "LSTM": ("lstm", BY_EQUATION),
    "logistic regression": ("logistic", FREE),
    "DASH": ("dash", FREE),
    "DASH[MCM]": ("dash_mcm", FREE),
    "boosted trees": (BoostedTrees(), FREE),
    "monotone trees": (BoostedTrees(monotone=True), BY_CONSTRAINT),
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
PANEL = Panel([log_loss, temporal_strict, temporal_flat])


def falling(curves: Curves) -> FloatArray:
    """Fit the nearest curves that never rise, by least squares with the weights of the times."""
    fitted = curves.p.astype(np.float64)
    for own, weight in zip(fitted, curves.weight, strict=True):
        known = weight > 0
        own[known] = isotonic_regression(own[known], weights=weight[known], increasing=False).x
    return fitted


def largest_rises(curves: Curves) -> FloatArray:
    """Return the greatest rise of each curve from an earlier to a later time."""
    shown = np.where(curves.weight > 0, curves.p.astype(np.float64), np.nan)
    return np.fmax.reduce(shown - np.fmin.accumulate(shown, axis=1), axis=1, initial=0.0)


def made_to_fall(result: Any) -> Change:
    """Estimate what the nearest falling curves of sampled reviews change.

    A curve is known at no more than 16 intervals of its user; in between, the correction is
    interpolated.
    """
    frames = []
    for user in result.run.every_prediction():
        curves = user.curves
        order = np.argsort(curves.row, kind="stable")
        numbers = np.searchsorted(user.row, curves.row[order])
        moved = np.where(curves.weight > 0, falling(curves) - curves.p, 0.0)
        moved[np.abs(moved) < ROUNDING] = 0.0
        known = (curves.weight[0] > 0) & ~np.isnan(curves.elapsed[0])
        times, own = curves.elapsed[0, known], user.elapsed_days[numbers]
        by = [np.interp(t, times, one[known]) for t, one in zip(own, moved[order], strict=True)]
        p, recalled = user.p[numbers].astype(np.float64), user.recalled[numbers]
        fallen = log_losses(np.clip(p + by, 1e-6, 1 - 1e-6), recalled)
        columns = {"user": user.users[0], "card": user.card[numbers], "day": user.day[numbers]}
        columns["change"] = fallen - log_losses(p, recalled)
        frames.append(pd.DataFrame(columns))
    reviews = pd.concat(frames, ignore_index=True)
    return change_of_reviews(reviews["change"].to_numpy(), reviews)


def curves_table(
    log: str, results: Mapping[str, Any], kinds: Mapping[str, tuple[str | Algorithm, str]]
) -> pd.DataFrame:
    """Return one row per model: what its curves do, and what it costs to make them fall."""
    rows = []
    for name, result in results.items():
        metrics = result.facts.metrics
        users = result.run.every_prediction()
        row = {"log": log, "model": name, "curve": kinds[name][1]}
        row["log loss"] = scored_reviews(result)["loss"].mean()
        row["rises"] = metrics["temporal_strict"].pooled
        row["flat"] = metrics["temporal_flat"].pooled
        row["largest rise"] = np.concatenate([largest_rises(u.curves) for u in users]).mean()
        rows.append(row | {"made to fall": made_to_fall(result)})
    return pd.DataFrame(rows)


def pairs_table(log: str, results: Mapping[str, Any]) -> pd.DataFrame:
    """Return what a constraint changes when it is there while the model is fitted."""
    rows = []
    for free, constrained in PAIRS:
        if free in results:
            both = scored_reviews(results[constrained]), scored_reviews(results[free])
            row = {"log": log, "free": free, "constrained": constrained}
            rows.append(row | {CONSTRAINED: loss_change(*both, by_user=False)})
    return pd.DataFrame(rows)


def draw(results: Mapping[str, Any], log: str) -> Figure:
    """Draw curves of the same reviews by free models and by a constrained one."""
    shown = ("free GRU" if "free GRU" in results else "DASH", *PAIRS[0])
    title = f"Which curves rise? 40 reviews of {log}"
    with panels(9.0, 3.2, len(shown), title, sharey=True) as (figure, every):
        for axes, name in zip(every, shown, strict=True):
            user = next(results[name].run.every_prediction())
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


ConfigStore.instance().store("impossible_curves", LogOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="impossible_curves")
def main(options: LogOptions) -> None:
    """Evaluate every model on every log; the networks only on one, as they take long."""
    logs = {**real_logs(options), SIMULATED: simulated(options, small=(2, 1500), full=(4, 4000))}
    curves, pairs, figure = [], [], None
    for log, source in logs.items():
        has_networks = log == "josh" and find_spec("torch") is not None
        models = {**MODELS, **(NETWORKS if has_networks else {})}
        models = {name: models[name] for name in QUICK} if options.small else models
        results = {
            name: evaluated(source, algo, panel=PANEL, curves_per_user=CURVES)
            for name, (algo, _) in models.items()
        }
        curves.append(curves_table(log, results, models))
        pairs.append(pairs_table(log, results))
        figure = figure or draw(results, log)
    tables = {
        "curves": pd.concat(curves, ignore_index=True),
        "constraints": pd.concat(pairs, ignore_index=True),
    }
    formats = {"rises": ".1%", "flat": ".1%"}
    write("impossible_curves", options, tables, {"curves": figure}, formats)


if __name__ == "__main__":
    main()
