"""The table of the 2024 benchmark post made again: other people's reviews, the same algorithms."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import (
    Change,
    LogOptions,
    evaluated,
    loss_change,
    panels,
    real_logs,
    scored_reviews,
    ticks_on_log_scale,
    write,
)
from hydra.core.config_store import ConfigStore
from matplotlib.figure import Figure
from scipy.stats import kendalltau

from srs_eval.data.reviews import Source
from srs_eval.metrics.means import mean_of_users, user_weights
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import log_loss, rmse_bins, rmse_bins_by_p
from srs_eval.plots.style import BLUE, GREEN, INK, VERMILION

# The post "The Benchmark" (2024): 19,990 users, weighted by the logarithm of their reviews; log
# loss and RMSE(bins) by prediction, with half-widths of 99 % intervals.
PUBLISHED = {
    "FSRS-4.5": (0.346, 0.0030, 0.063, 0.0008),
    "FSRS v4": (0.354, 0.0033, 0.074, 0.0009),
    "FSRS-4.5 (only pretrain)": (0.361, 0.0032, 0.079, 0.0009),
    "FSRS-4.5 (default parameters)": (0.376, 0.0033, 0.095, 0.0011),
    "FSRS v3": (0.416, 0.0043, 0.104, 0.0014),
    "LSTM": (0.50, 0.007, 0.137, 0.0018),
    "SM-2": (0.68, 0.011, 0.210, 0.0020),
    "HLR": (2.03, 0.045, 0.391, 0.0040),
}
ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "FSRS-4.5": ("fsrs45", {"fit": "reference"}),
    "FSRS v4": ("fsrs4", {"fit": "reference"}),
    "FSRS-4.5 (only pretrain)": ("fsrs45", {"fit": "s0"}),
    "FSRS-4.5 (default parameters)": ("fsrs45", {"fit": "default"}),
    "FSRS v3": ("fsrs3", {"fit": "reference"}),
    "LSTM": ("lstm_published", {}),
    "SM-2": ("sm2", {}),
    "HLR": ("hlr", {}),
}
METRICS = {"log_loss": "log loss", "rmse_bins_by_p": "RMSE(bins), old", "rmse_bins": "RMSE(bins)"}
BEST = "FSRS-4.5"
POST = "post of 2024"
NOT_APART = "not significantly different"
COLOURS = (INK, BLUE, VERMILION, GREEN)
_FEWEST = 100  # scored reviews of a user
Users = dict[str, pd.DataFrame]  # Scores of users, by algorithm


def scores(source: Source, names: list[str]) -> tuple[Users, dict[str, pd.DataFrame]]:
    """Return the scores of each user by algorithm, and the losses of the reviews of one user."""
    panel = Panel([log_loss, rmse_bins_by_p, rmse_bins])
    found, reviews = {}, {}
    for name in names:
        option, arguments = ALGORITHMS[name]
        result = evaluated(source, option, panel=panel, **arguments)
        found[name] = result.scores[result.scores["reviews"] >= _FEWEST]
        if len(found[name]) == 1:
            reviews[name] = scored_reviews(result, _FEWEST)
    return found, reviews


def weighted(users: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Return the mean weighted by the logarithm of reviews, and half its 99 % interval."""
    weights = user_weights(users["reviews"].to_numpy(), "log_reviews")
    found = mean_of_users(users[metric].to_numpy(), weights)
    low, high = found.interval()
    return found.mean, (high - low) / 2


def steps(log: str, users: Users, reviews: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the paired difference of each algorithm to the next in the order of one log.

    Intervals are over users or, for one user, over cards and days.
    """
    order = sorted(users, key=lambda name: weighted(users[name], "log_loss")[0])
    rows = []
    for name, after in pairwise(order):
        if reviews:
            change = loss_change(reviews[after], reviews[name])
        else:
            gap = users[after]["log_loss"] - users[name]["log_loss"]
            sizes = users[name]["reviews"].loc[gap.index].to_numpy()
            weights = user_weights(sizes, "log_reviews")
            change = Change(**asdict(mean_of_users(gap.to_numpy(), weights)))
        row = {"log": log, "algorithm": name, "next": after, "difference, 99 % interval": change}
        rows.append(row | {"verdict": "significant" if change.settled else NOT_APART})
    return pd.DataFrame(rows)


def tables(found: dict[str, Users], names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table in words, and the numbers in log loss by log."""
    rows, numbers = [], []
    for name in names:
        loss, loss_half, bins, bins_half = PUBLISHED[name]
        row = {"algorithm": name, f"{POST}: log loss": f"{loss:.3f} ± {loss_half:.4f}"}
        row[f"{POST}: RMSE(bins), old"] = f"{bins:.3f} ± {bins_half:.4f}"
        number = {"algorithm": name, POST: loss}
        for log, each in found.items():
            for metric, label in METRICS.items():
                mean, half = weighted(each[name], metric)
                row[f"{log}: {label}"] = f"{mean:.4f}" + (
                    "" if np.isnan(half) else f" ± {half:.4f}"
                )
                if metric == "log_loss":
                    number[log] = mean
        rows.append(row)
        numbers.append(number)
    return pd.DataFrame(rows), pd.DataFrame(numbers)


def agreement(found: dict[str, Users], numbers: pd.DataFrame) -> pd.DataFrame:
    """Return how the order of each log agrees with that of the post."""
    rows = []
    for log, each in found.items():
        own, others = numbers[log], numbers["algorithm"] != "HLR"
        metrics = {
            label: [weighted(users, metric)[0] for users in each.values()]
            for metric, label in METRICS.items()
        }
        users = next(iter(each.values()))
        rows.append(
            {
                "log": log,
                "users": len(users),
                "scored reviews": int(users["reviews"].sum()),
                "best": str(numbers["algorithm"][own.idxmin()]),
                "Kendall's tau to the post": float(kendalltau(own, numbers[POST]).statistic),
                "without HLR": float(kendalltau(own[others], numbers[POST][others]).statistic),
                "old RMSE(bins) to log loss": _tau(metrics, "RMSE(bins), old"),
                "RMSE(bins) to log loss": _tau(metrics, "RMSE(bins)"),
            }
        )
    return pd.DataFrame(rows)


def _tau(metrics: dict[str, list[float]], label: str) -> float:
    return float(kendalltau(metrics[label], metrics["log loss"]).statistic)


def draw(numbers: pd.DataFrame) -> Figure:
    """Draw log loss relative to that of FSRS-4.5, by log."""
    logs = [name for name in numbers if name != "algorithm"]
    best = numbers.set_index("algorithm").loc[BEST]
    with panels(7.6, 4.2) as (figure, (axes,)):
        heights = np.arange(len(numbers))[::-1]
        for log, colour, marker in zip(logs, COLOURS, "os^D", strict=False):
            axes.plot(numbers[log] / best[log], heights, marker, color=colour, ms=6, label=log)
        axes.axvline(1, color=INK, linewidth=0.6)
        axes.set_yticks(heights, numbers["algorithm"])
        ticks_on_log_scale(axes, [1, 1.5, 2, 3, 5, 10, 20], "{:g}")
        axes.set_xlabel("log loss / log loss of FSRS-4.5")
        axes.set_title("The table of 2024 (19,990 users) on other reviews")
        axes.legend()
    return figure


@dataclass
class TableOptions(LogOptions):
    """Options of this study."""

    users: int = 60  # simulated
    max_reviews: int = 1000  # of each


ConfigStore.instance().store("seed_table", TableOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="seed_table")
def main(options: TableOptions) -> None:
    """Score the algorithms of the post on every log."""
    small = options.small
    has_torch = find_spec("torch") is not None and not small
    names = [name for name in ALGORITHMS if name != "LSTM" or has_torch]
    users = 3 if small else options.users
    size = {"size_scale": 0.02} if small else {"max_reviews": options.max_reviews}
    simulated = se.source("synthetic", users=users, **size)
    logs = {f"{users} simulated users": simulated, **real_logs(options)}
    scores_of = {log: scores(source, names) for log, source in logs.items()}
    found = {log: users for log, (users, _) in scores_of.items()}
    gaps = pd.concat([steps(log, *both) for log, both in scores_of.items()], ignore_index=True)
    table, numbers = tables(found, names)
    agreed = agreement(found, numbers)
    every = {"scores": table, "neighbours": gaps, "agreement": agreed}
    formats = dict.fromkeys(agreed.columns[4:], ".2f")
    write("seed_table", options, every, {"seed_table": draw(numbers)}, formats)


if __name__ == "__main__":
    main()
