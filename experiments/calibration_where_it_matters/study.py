"""Calibration at the probabilities and delays that a scheduler acts on, beside log loss."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import (
    SIMULATED,
    LogOptions,
    change_of_reviews,
    clusters,
    panels,
    real_logs,
    simulated,
    write,
)
from hydra.core.config_store import ConfigStore
from matplotlib.figure import Figure
from scipy.special import expit, logit, stdtrit

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.reviews import BoolArray, FloatArray, Source
from srs_eval.metrics.means import Estimate, clustered_mean
from srs_eval.metrics.significance import ALPHA, holm
from srs_eval.metrics.tally import log_losses, tally
from srs_eval.metrics.threshold import RATES, confusion_rate
from srs_eval.plots.style import BLUE, GREEN, INK, VERMILION
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import EvaluationProtocol

FRACTIONAL = "FSRS-7, fractional days"
MODELS = {
    "FSRS-6": ("fsrs6", {}),
    "FSRS-6, published": ("fsrs6", {"fit": "default"}),
    "FSRS-7": ("fsrs7", {}),
    FRACTIONAL: ("fsrs7", {}),
    "LSTM": ("lstm", {}),
    "logistic regression": ("logistic", {}),
    "HLR": ("hlr", {}),
}
BASELINE = "FSRS-6"
THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
ENOUGH = 50  # reviews in a group
ALL_SET, AT_SETTING, REST = "all set to 90 %", "at the setting", "workload of these"
HELD = ["log", "model", "held at 1 day", "recalled", "expected after 1 day"]
HELD += ["of the workload", "above in both", REST]
SHOWN = {"FSRS-6": BLUE, "FSRS-6, published": VERMILION, "LSTM": GREEN}
DESIRED = 0.9
# Desired retentions at which intervals are computed, and times in days at which curves are.
GRID = np.linspace(0.5, 0.99, 491)
TIMES = np.geomspace(1, 3650, 120)
GROUPS = 20  # of cards, and of days, for the jackknife


@dataclass(frozen=True)
class Scored:
    """Scored reviews of a model, and what a scheduler would have made of each.

    Attributes
    ----------
    rows : DataFrame
        User, card, day, interval in days, prediction, outcome, loss, and whether the card lapsed
        before.
    per_day : float [n, len(GRID)]
        Reviews per day that each desired retention asks for: 1 / the interval, at least a day.
    tomorrow : float [n]
        Predicted recall one day later.
    """

    rows: pd.DataFrame
    per_day: FloatArray
    tomorrow: FloatArray

    def line(self, kept: BoolArray) -> tuple[float, float]:
        """Regress outcomes on predictions, both as log odds; return intercept and slope."""
        own = self.rows[kept]
        x = np.column_stack([np.ones(len(own)), logit(np.clip(own["p"], 1e-9, 1 - 1e-9))])
        intercept_and_slope = np.array([0.0, 1.0])
        for _ in range(25):  # Newton's method
            p = expit(x @ intercept_and_slope)
            curvature = (x * (p * (1 - p))[:, None]).T @ x
            intercept_and_slope += np.linalg.solve(curvature, x.T @ (own["recalled"] - p))
        return float(intercept_and_slope[0]), float(intercept_and_slope[1])

    def setting(self, kept: BoolArray) -> float:
        """Return the desired retention that realises 90 % by the line.

        NaN where that leads outside the middle nine tenths of the predictions.
        """
        intercept, slope = self.line(kept)
        desired = float(expit((logit(DESIRED) - intercept) / slope))
        low, high = np.quantile(self.rows["p"][kept], [0.05, 0.95])
        return desired if low <= desired <= high else np.nan

    def load(self, desired: float) -> FloatArray:
        """Return the reviews per day of each card at a desired retention; NaN where it is NaN."""
        if np.isnan(desired):
            return np.full(len(self.per_day), np.nan)
        place = (np.clip(desired, GRID[0], GRID[-1]) - GRID[0]) / (GRID[1] - GRID[0])
        place = np.round(place, 6)  # at a point of the grid exactly, despite rounding
        below = min(int(place), len(GRID) - 2)
        low, high = self.per_day[:, below], self.per_day[:, below + 1]
        found: FloatArray = low + (place - below) * (high - low)
        return found


def evaluated(source: Source, algorithm: Algorithm, protocol: EvaluationProtocol) -> Scored:
    """Fit and predict as the protocol does, with whole forgetting curves."""
    frames, loads, tomorrows = [], [], []
    for user in source.users():
        task = protocol(source.read(user), same_day=algorithm.same_day)
        reviews = task.reviews
        for fold in task.folds:
            model = algorithm.fit(reviews, fold.train, np.random.default_rng(fold.number))
            rows = fold.test
            p, recalled = model.predict(reviews, rows), reviews.recalled[rows]
            frame = pd.DataFrame(
                {"user": user, "card": reviews.card[rows], "day": reviews.day[rows]}
            )
            frame = frame.assign(days=reviews.elapsed[rows], p=p, recalled=recalled)
            frame["loss"], frame["lapsed"] = log_losses(p, recalled), task.lapses[rows] > 0
            frames.append(frame)
            curves = model.predict_at(reviews, rows, np.tile(TIMES, (len(rows), 1)))
            loads.append(1 / intervals(np.asarray(curves, np.float64)))
            tomorrows.append(np.asarray(curves[:, 0], np.float64))
    rows_of_all = pd.concat(frames, ignore_index=True)
    return Scored(rows_of_all, np.concatenate(loads), np.concatenate(tomorrows))


def intervals(curves: FloatArray) -> FloatArray:
    """Return the last of `TIMES` at which recall is at least each retention of `GRID`; 1 or more.

    Between two times, recall is a straight line over the logarithm of the time. A curve that
    rises is read as its running minimum.
    """
    falling = np.minimum.accumulate(curves, axis=1)
    falling = falling - 1e-12 * np.arange(len(TIMES))
    log_t = np.log(TIMES)
    found = [np.interp(-GRID, -curve, log_t) for curve in falling]
    return np.exp(np.array(found))


def by_jackknife(each: Scored, base: Scored) -> tuple[float, float, float]:
    """Return the log of the ratio of workloads at the settings, and its 99 % interval.

    The settings are found again without each of 20 groups of cards, and of days; both variances
    are added up.
    """

    def ratio(kept: BoolArray) -> float:
        loads = [one.load(one.setting(kept))[kept].mean() for one in (each, base)]
        return float(np.log(loads[0] / loads[1]))

    rng, variance = np.random.default_rng(0), 0.0
    for cluster in clusters(base.rows):
        group = rng.permutation(cluster.max() + 1)[cluster] % GROUPS
        without = [ratio(group != number) for number in range(GROUPS)]
        variance += (GROUPS - 1) * float(np.var(without))
    mean = ratio(np.ones(len(base.rows), bool))
    reach = -stdtrit(GROUPS - 1, ALPHA / 2) * np.sqrt(variance)
    return mean, mean - reach, mean + reach


def groups(own: pd.DataFrame, lateness: FloatArray) -> dict[str, dict[str, BoolArray]]:
    """Return the rows by horizon, by lateness and by kind."""
    days, lapsed = own["days"].to_numpy(), own["lapsed"].to_numpy()
    return {
        "days since the previous review": {
            "1": days == 1,
            "2 to 6": (days > 1) & (days < 7),
            "7 to 20": (days >= 7) & (days < 21),
            "21 or more": days >= 21,
        },
        "interval / FSRS-6's interval at 90 %": {
            "under 1/2": lateness < 0.5,
            "1/2 to 1": (lateness >= 0.5) & (lateness < 1),
            "1 to 2": (lateness >= 1) & (lateness < 2),
            "over 2": lateness >= 2,
        },
        "kind of review": {
            "next day, no lapse": (days == 1) & ~lapsed,
            "next day, lapsed before": (days == 1) & lapsed,
            "later, no lapse": (days > 1) & ~lapsed,
            "later, lapsed before": (days > 1) & lapsed,
        },
    }


def bias(own: pd.DataFrame, chosen: BoolArray) -> Estimate:
    """Estimate mean prediction less share of recalls, correlated within cards and days."""
    some = own[chosen]
    return clustered_mean((some["p"] - some["recalled"]).to_numpy(), *clusters(some))


def strata(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return the bias of each model in each group, with lateness by the baseline's intervals."""
    base = found[BASELINE]
    parted = groups(base.rows, base.rows["days"].to_numpy() * base.load(DESIRED))
    chosen = {(by, part): rows for by, parts in parted.items() for part, rows in parts.items()}
    chosen = {key: rows for key, rows in chosen.items() if rows.sum() >= ENOUGH}
    every = [bias(each.rows, rows) for rows in chosen.values() for each in found.values()]
    single = np.array([estimate.p_value for estimate in every])
    stars = (single < ALPHA).astype(int) + (holm(single).p_value < ALPHA)
    cells = iter(zip(every, stars, strict=True))
    table = []
    for (by, part), rows in chosen.items():
        row = {"log": log, "by": by, "group": part, "reviews": int(rows.sum())}
        for name, (estimate, star) in zip(found, cells, strict=False):
            row[name] = f"{100 * estimate.mean:+.1f} {'*' * star}".rstrip()
        table.append(row)
    return pd.DataFrame(table)


def thresholds(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return confusion statistics at each threshold, and the bias near it."""
    rows = []
    for name in SHOWN:
        each = found[name]
        p = each.rows["p"].to_numpy()
        reviews = tally(p, each.rows["recalled"])
        for threshold in THRESHOLDS:
            near = np.abs(p - threshold) < 0.02
            row = {"log": log, "model": name, "R*": threshold}
            row |= {name: confusion_rate(reviews, name, threshold) for name in RATES}
            row["reviews near"] = int(near.sum())
            row["bias near"] = bias(each.rows, near).mean if near.sum() >= ENOUGH else np.nan
            rows.append(row)
    return pd.DataFrame(rows)


def workloads(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return log loss and bias beside the workload at a setting that realises 90 %."""
    base = found[BASELINE]
    whole = np.ones(len(base.rows), bool)
    usual = base.load(base.setting(whole))
    user = base.rows.groupby("user").ngroup().to_numpy()
    table = []
    for name, each in found.items():
        mean, low, high = np.expm1(by_jackknife(each, base))
        known = bool(np.isfinite(low))
        row = {"log": log, "model": name, "log loss": each.rows["loss"].mean()}
        worse = (each.rows["loss"] - base.rows["loss"]).to_numpy()
        row["log loss - FSRS-6"] = change_of_reviews(worse, base.rows)
        row["bias"] = bias(each.rows, whole).mean
        row["set to"] = each.setting(whole) if known else np.nan
        row[ALL_SET] = each.load(DESIRED).mean() / base.load(DESIRED).mean() - 1
        row[AT_SETTING] = mean if known else np.nan
        compared = known and name != BASELINE
        row["cards and days"] = f"{low:+.0%} to {high:+.0%}" if compared else ""
        own, theirs = (np.bincount(user, load) for load in (each.load(row["set to"]), usual))
        shares = ", ".join(f"{share:+.0%}" for share in own / theirs - 1)
        row["by user"] = shares if compared and len(own) > 1 else ""
        table.append(row)
    return pd.DataFrame(table)


def held(log: str, found: Mapping[str, Scored], settings: pd.Series[float]) -> pd.DataFrame:
    """Return which cards are asked for daily at the setting, and the workload of the others."""
    whole = np.ones(len(found[BASELINE].rows), bool)
    daily = {name: found[name].tomorrow <= desired for name, desired in settings.items()}
    table = []
    for name, desired in settings.items():
        if np.isnan(desired + settings[BASELINE]):
            continue
        each, below = found[name], daily[name]
        (intercept, slope), load = each.line(whole), each.load(desired)
        after = expit(intercept + slope * logit(each.tomorrow[below]))
        both = ~below & ~daily[BASELINE]
        usual = found[BASELINE].load(settings[BASELINE])
        recalled = each.rows["recalled"][below].mean()
        share = load[below].sum() / load.sum()
        rest = load[both].mean() / usual[both].mean() - 1
        cells = (below.mean(), recalled, after.mean(), share, both.mean(), rest)
        table.append((log, name, *cells))
    return pd.DataFrame(table, columns=HELD)


def draw(found: Mapping[str, Scored], log: str) -> Figure:
    """Draw the bias by the horizon and by lateness, for some models."""
    base = found[BASELINE]
    parted = groups(base.rows, base.rows["days"].to_numpy() * base.load(DESIRED))
    reviews = f"{log}, {len(base.rows):,} reviews"
    title = f"Bias where a scheduler acts: {reviews} (lines are 99 % intervals)"
    with panels(10.5, 3.6, len(parted), title, sharey=True) as (figure, every):
        for axes, (by, parts) in zip(every, parted.items(), strict=True):
            enough = {part: chosen for part, chosen in parts.items() if chosen.sum() >= ENOUGH}
            for shift, (name, colour) in enumerate(SHOWN.items()):
                for place, chosen in enumerate(enough.values()):
                    estimate = bias(found[name].rows, chosen)
                    at_x = place + 0.2 * (shift - 1)
                    axes.plot([at_x, at_x], 100 * np.array(estimate.interval()), color=colour)
                    axes.plot(at_x, 100 * estimate.mean, "o", color=colour, markersize=4)
            axes.set_xticks(range(len(enough)), [part.replace(", ", ",\n") for part in enough])
            axes.axhline(0, color=INK, linewidth=0.8)
            axes.set_xlabel(by)
        for name, colour in SHOWN.items():
            every[0].plot([], [], "o-", color=colour, markersize=4, label=name)
        every[0].legend(loc="best")
        every[0].set_ylabel("predicted - recalled, points")
    return figure


ConfigStore.instance().store("calibration_where_it_matters", LogOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="calibration_where_it_matters")
def main(options: LogOptions) -> None:
    """Evaluate every model on every log; the strata are of the first."""
    logs = {**real_logs(options), SIMULATED: simulated(options, small=(2, 2000), full=(4, 4000))}
    found: dict[str, dict[str, Scored]] = {}
    for log, source in logs.items():
        found[log] = {}
        for name in SHOWN if options.small else MODELS:
            option, arguments = MODELS[name]
            protocol = SrsBenchmarkEqualised() if name == FRACTIONAL else SrsBenchmark()
            found[log][name] = evaluated(source, se.algorithm(option, **arguments), protocol)
    loads = {log: workloads(log, own) for log, own in found.items()}
    settings = {log: load.set_index("model")["set to"] for log, load in loads.items()}
    daily = [held(log, own, settings[log]) for log, own in found.items()]
    first = next(iter(logs))
    tables = {
        "workload": pd.concat(loads.values(), ignore_index=True),
        "held": pd.concat(daily, ignore_index=True),
        "strata": strata(first, found[first]),
        "thresholds": thresholds(first, found[first]),
    }
    formats = dict.fromkeys(["bias near", "bias"], "+.1%") | {"set to": ".1%", "R*": ".2f"}
    formats |= dict.fromkeys([ALL_SET, AT_SETTING, REST], "+.0%")
    formats |= dict.fromkeys(HELD[2:-1], ".0%") | dict.fromkeys(RATES, ".3f")
    figures = {"bias": draw(found[first], first)}
    write("calibration_where_it_matters", options, tables, figures, formats)


if __name__ == "__main__":
    main()
