"""Which metrics can be cheated: predictions that are worse, and score better."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import SIMULATED, LogOptions, panels, real_logs, write
from hydra.core.config_store import ConfigStore
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srs_eval.data.reviews import FloatArray, Source
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.bins import WIKI_2024
from srs_eval.metrics.means import mean_of_users
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import (
    auc,
    brier,
    corp_miscalibration_log,
    log_bins,
    log_loss,
    rmse_bins,
    rmse_bins_by_p,
    rmse_bins_wiki,
)
from srs_eval.metrics.smooth_ece import smece
from srs_eval.plots.style import BLUE, INK, MUTED, VERMILION

HONEST, TRUTH, BASE, HINDSIGHT = "honest", "the truth", "base rate, known before", "base rate"
SHRUNK, FLAT = "honest, shrunk by 30 %", "honest, shrunk by 90 %"
TWO = "two levels"
EXPLOIT, WIKI, BALANCED = "bins balanced", "wiki's bins balanced", "referee's bins balanced"
CHEATS = (BASE, HINDSIGHT, TWO, SHRUNK, FLAT, EXPLOIT, WIKI, BALANCED)
UNIVERSAL = "Universal Metric"
INTERVAL = "99 % interval"
# Lower is better in all but the last.
METRICS = {
    "log_loss": "log loss",
    "brier": "Brier score",
    "rmse_bins_by_p": "RMSE(bins) by prediction",
    "rmse_bins_wiki": "RMSE(bins) of the wiki",
    "rmse_bins": "RMSE(bins)",
    UNIVERSAL: UNIVERSAL,
    "smece": "SmoothECE",
    "corp_miscalibration_log": "CORP miscalibration",
    "auc": "AUC",
}
FACTS = ("elapsed_days", "nth_review", "lapses")


def predictions(source: Source) -> dict[str, pd.DataFrame]:
    """Return honest and cheating predictions of the same reviews."""
    models: dict[str, tuple[str, dict[str, Any]]] = {
        HONEST: ("fsrs6", {}),
        "referee": ("fsrs45", {}),
        BASE: ("avg", {}),
        EXPLOIT: ("rmse_bins_exploit", {}),
    }
    if isinstance(source, SyntheticUsers):
        models[TRUTH] = ("oracle", {})
    found = {
        name: se.evaluate(model, source, curves_per_user=0, panel="quick", **arguments).predictions
        for name, (model, arguments) in models.items()
    }
    honest = found[HONEST]
    rate = honest.groupby("user")["recalled"].transform("mean")
    found[HINDSIGHT] = honest.assign(p=rate)
    for name, share in ((SHRUNK, 0.3), (FLAT, 0.9)):
        found[name] = honest.assign(p=(1 - share) * honest["p"] + share * rate)
    upper = honest["p"] > honest.groupby("user")["p"].transform("median")
    levels = honest.groupby(["user", upper])["recalled"].transform("mean")
    found[TWO] = honest.assign(p=levels)
    scales = (WIKI_2024.interval, WIKI_2024.reviews, WIKI_2024.lapses)
    codes = [scale.codes(honest[fact]) for scale, fact in zip(scales, FACTS, strict=True)]
    wiki = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    for name, bins in ((WIKI, wiki), (BALANCED, log_bins(found["referee"]["p"]))):
        start = found[BASE]["p"].to_numpy()
        users = honest.assign(bin=bins, start=start).groupby("user", sort=False)
        found[name] = honest.assign(p=np.concatenate([_balanced(own) for _, own in users]))
    return found


def _balanced(own: pd.DataFrame) -> FloatArray:
    """Predict one user's reviews so that each bin adds up, one review late.

    The first prediction of a bin is the base rate that is known before.
    """
    bins, recalled = own["bin"].to_numpy(), own["recalled"].to_numpy(float)
    _, first = np.unique(bins, return_index=True)
    missing = np.zeros(bins.max() + 1)
    missing[bins[first]] = own["start"].to_numpy()[first]
    p = np.empty(len(bins))
    for review in np.argsort(own["row"].to_numpy(), kind="stable"):
        here = bins[review]
        p[review] = min(max(missing[here], 1e-6), 1 - 1e-6)
        missing[here] += recalled[review] - p[review]
    return p


def universal(p: FloatArray, recalled: FloatArray, referee: FloatArray) -> float:
    """Compute the universal metric: root mean square gap over bins of the referee's predictions."""
    bins = log_bins(referee)
    gaps, counts = np.bincount(bins, p - recalled), np.bincount(bins)
    held = counts > 0
    return float(np.sqrt((gaps[held] ** 2 / counts[held]).sum() / len(p)))


def scores(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the scores of each user's predictions."""
    panel = Panel(
        [
            *(log_loss, brier, rmse_bins_by_p, rmse_bins_wiki, rmse_bins, smece),
            *(corp_miscalibration_log, auc),
        ]
    )
    rows = []
    for name in (HONEST, *([TRUTH] if TRUTH in found else []), *CHEATS):
        for user, own in found[name].groupby("user", sort=False):
            facts = {fact: own[fact] for fact in FACTS}
            one = dict(se.score(own["p"], own["recalled"], panel=panel, resamples=0, **facts))
            referee = found["referee"]
            referee = referee[referee["user"] == user]["p"].to_numpy()
            one[UNIVERSAL] = universal(own["p"].to_numpy(), own["recalled"].to_numpy(), referee)
            named = {label: float(one[metric]) for metric, label in METRICS.items()}
            rows.append({"predictions": name, "user": user, **named})
    return pd.DataFrame(rows)


def means(users: pd.DataFrame) -> pd.DataFrame:
    """Return the means over users."""
    every = users.drop(columns="user").groupby("predictions", sort=False)
    return every.mean().reset_index()


def cheated(users: pd.DataFrame) -> pd.DataFrame:
    """Return for each metric the cheat that gains most by it, and what it costs in log loss.

    What it gains on, the truth where that is known, is what no predictions should beat. The
    interval is over users, and not corrected for the choice of the best cheat.
    """
    by_name = means(users).set_index("predictions")
    by_user = users.set_index(["predictions", "user"])
    best_known = TRUTH if TRUTH in by_name.index else HONEST
    honest, cheats = by_name.loc[best_known], by_name.loc[list(CHEATS)]
    rows = []
    for metric in METRICS.values():
        scores = cheats[metric].round(12)  # Of equal ones, the first
        best = scores.idxmax() if metric == "AUC" else scores.idxmin()
        sign = 1 if metric == "AUC" else -1
        gain = (cheats[metric][best] - honest[metric]) * sign
        gains = (by_user.loc[best, metric] - by_user.loc[best_known, metric]) * sign
        low, high = mean_of_users(gains.to_numpy()).interval()
        row = {"metric": metric, best_known: honest[metric], "best cheat": best}
        row |= {"score": cheats[metric][best], "gain": gain}
        row |= {INTERVAL: "" if np.isnan(low) else f"{low:+.4f} to {high:+.4f}"}
        rows.append(row | {"cost in log loss": cheats["log loss"][best] - honest["log loss"]})
    return pd.DataFrame(rows)


def draw(found: Mapping[str, pd.DataFrame], table: pd.DataFrame, log: str) -> Figure:
    """Draw the calibration of honest and of cheating predictions, and what metrics say of them."""
    by_name = table.set_index("predictions")
    reviews, users = len(found[HONEST]), found[HONEST]["user"].nunique()
    title = f"Calibration, honest and cheating: {users} {log}, {reviews:,} reviews"
    with panels(10.0, 3.9, 3, title, width_ratios=(1, 1, 1.25)) as (figure, axes):
        for place, name in zip(axes, (HONEST, TWO), strict=False):
            own = by_name.loc[name]
            _calibration(place, found[name])
            place.set_title("FSRS-6" if name == HONEST else "cheating: two levels per user")
            scores = f"old RMSE(bins) {own['RMSE(bins) by prediction']:.3f}\n"
            scores += f"log loss {own['log loss']:.3f}"
            place.text(0.97, 0.03, scores, transform=place.transAxes, ha="right")
        axes[0].set_ylabel("share recalled")
        _gains(axes[2], by_name)
    return figure


def _calibration(axes: Axes, own: pd.DataFrame) -> None:
    """Draw the old bins: the area of a dot is the number of reviews."""
    bins = pd.Series(log_bins(own["p"]), index=own.index)
    means = own.groupby(bins)[["p", "recalled"]].mean()
    counts = own.groupby(bins).size()
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
    axes.scatter(means["p"], means["recalled"], s=600 * counts / counts.sum() + 4, color=BLUE)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="predicted recall")


def _gains(axes: Axes, by_name: pd.DataFrame) -> None:
    """Draw the best cheating score of each metric, relative to that of the truth."""
    shown = [metric for metric in METRICS.values() if metric != "AUC"][::-1]
    best = by_name.loc[list(CHEATS), shown].min() / by_name.loc[TRUTH, shown]
    for height, metric in enumerate(shown):
        colour = VERMILION if best[metric] < 1 else INK
        axes.plot([1, best[metric]], [height, height], color=colour, linewidth=1.6)
        axes.plot(best[metric], height, "o", color=colour)
    axes.axvline(1, color=MUTED, linewidth=0.8)
    axes.set_yticks(range(len(shown)), shown)
    axes.set_xlim(-0.05, 1.5)
    axes.set_xlabel("best cheat's score / the truth's")
    axes.set_title("Cheated: left of 1")


ConfigStore.instance().store("metric_gaming", LogOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="metric_gaming")
def main(options: LogOptions) -> None:
    """Score honest and cheating predictions of the same reviews."""
    size = {"users": 2, "size_scale": 0.03} if options.small else {"users": 8, "max_reviews": 5000}
    logs = {SIMULATED: se.source("synthetic", **size), **real_logs(options)}
    found = {log: predictions(source) for log, source in logs.items()}
    users = {log: scores(each) for log, each in found.items()}
    tables = {log: means(each) for log, each in users.items()}
    figure = draw(found[SIMULATED], tables[SIMULATED], "simulated users")
    tables |= {f"{log}_cheated": cheated(each) for log, each in users.items()}
    write("metric_gaming", options, tables, {"metric_gaming": figure}, {})


if __name__ == "__main__":
    main()
