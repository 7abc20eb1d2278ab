"""Calibration at the probabilities and delays that a scheduler acts on, beside log loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paired_losses import losses
from real_logs import real_logs
from scipy.special import stdtrit

from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.experiment.study import Findings
from srs_eval.metrics.slope import line_of
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import STATISTICS, ConfusionCounts
from srs_eval.nouns import Algorithm, BoolArray, FloatArray, Source
from srs_eval.plots.style import BLUE, GREEN, INK, VERMILION, house_style, new_figure, style_axes
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.stats.estimate import Estimate, clustered_mean

MODELS: Mapping[str, Algorithm] = {
    "FSRS-6": Fsrs6(),
    "FSRS-6, published": Fsrs6(fit="default"),
    "FSRS-7": Fsrs7(),
    "LSTM": Lstm(),
    "logistic regression": Logistic(),
    "HLR": Hlr(),
}
BASELINE = "FSRS-6"
THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
DESIRED = 0.9
# Desired retentions at which intervals are computed, and times at which curves are.
GRID = np.linspace(0.5, 0.99, 50)
TIMES = np.geomspace(1, 3650, 120)
GROUPS = 20  # of cards, for the jackknife
ENOUGH = 50  # reviews in a group
SAME_LOSS = 0.001
SHOWN = {"FSRS-6": BLUE, "FSRS-6, published": VERMILION, "LSTM": GREEN}


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
    """

    rows: pd.DataFrame
    per_day: FloatArray


def evaluated(source: Source, algorithm: Algorithm) -> Scored:
    """Fit and predict as the public protocol does, with whole forgetting curves."""
    frames, loads = [], []
    for user in source.users():
        task = SrsBenchmark()(source.read(user), same_day=algorithm.same_day)
        reviews = task.reviews
        for fold in task.folds:
            model = algorithm.fit(reviews, fold.train, np.random.default_rng(fold.number))
            rows = fold.test
            p, recalled = model.predict(reviews, rows), reviews.recalled[rows]
            frame = pd.DataFrame(
                {"user": user, "card": reviews.card[rows], "day": reviews.day[rows]}
            )
            frame = frame.assign(days=reviews.elapsed[rows], p=p, recalled=recalled)
            frame["loss"], frame["lapsed"] = losses(p, recalled), task.lapses[rows] > 0
            frames.append(frame)
            curves = model.predict_at(reviews, rows, np.tile(TIMES, (len(rows), 1)))
            loads.append(1 / intervals(np.asarray(curves, np.float64)))
    return Scored(pd.concat(frames, ignore_index=True), np.concatenate(loads))


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
        "interval / interval at 90 %": {
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
    clusters = (some.groupby(["user", name]).ngroup().to_numpy() for name in ("card", "day"))
    return clustered_mean((some["p"] - some["recalled"]).to_numpy(), *clusters)


def strata(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return the bias of each model in each group, with lateness by the baseline's intervals."""
    at = int(np.argmin(np.abs(GRID - DESIRED)))
    lateness = found[BASELINE].rows["days"].to_numpy() * found[BASELINE].per_day[:, at]
    rows = []
    for by, parts in groups(found[BASELINE].rows, lateness).items():
        for part, chosen in parts.items():
            if chosen.sum() < ENOUGH:
                continue
            row = {"log": log, "by": by, "group": part, "reviews": int(chosen.sum())}
            for name, each in found.items():
                estimate = bias(each.rows, chosen)
                star = "" if not estimate.p_value < 0.01 else " *"
                row[name] = f"{100 * estimate.mean:+.1f}{star}"
            rows.append(row)
    return pd.DataFrame(rows)


def thresholds(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return confusion statistics at each threshold, and the bias near it."""
    rows = []
    for name in SHOWN:
        each = found[name]
        p, recalled = each.rows["p"].to_numpy(), each.rows["recalled"].to_numpy()
        for threshold in THRESHOLDS:
            yes, near = p >= threshold, np.abs(p - threshold) < 0.02
            sums = [(yes & recalled).sum(), (yes & ~recalled).sum()]
            sums += [(~yes & recalled).sum(), (~yes & ~recalled).sum()]
            counts = ConfusionCounts(*sums)
            row = {"log": log, "model": name, "R*": threshold}
            row |= {statistic: counts.rate(statistic) for statistic in STATISTICS}
            row["reviews near"] = int(near.sum())
            row["bias near"] = bias(each.rows, near).mean if near.sum() >= ENOUGH else np.nan
            rows.append(row)
    return pd.DataFrame(rows)


def workload(each: Scored, kept: BoolArray) -> tuple[float, float]:
    """Return the desired retention that realises 90 %, and the reviews per card and day of it.

    What a desired retention realises is read from the line between the log odds of predictions
    and outcomes. NaN where that leads outside the middle nine tenths of the predictions.
    """
    own = each.rows[kept]
    line = line_of(tally(own["p"].to_numpy(), own["recalled"].to_numpy()))
    wanted = (np.log(DESIRED / (1 - DESIRED)) - line.intercept) / line.slope
    desired = 1 / (1 + np.exp(-wanted))
    low, high = np.quantile(own["p"], [0.05, 0.95])
    if not low <= desired <= high:
        return np.nan, np.nan
    return desired, float(np.interp(desired, GRID, each.per_day[kept].mean(axis=0)))


def workloads(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return log loss and bias beside the workload at 90 % realised retention.

    The interval of the workload is a jackknife over 20 groups of cards.
    """
    base = found[BASELINE].rows
    cards = base.groupby(["user", "card"]).ngroup().to_numpy()
    group = np.random.default_rng(0).permutation(cards.max() + 1)[cards] % GROUPS
    kept = [group != number for number in range(GROUPS)]
    whole = np.ones(len(base), bool)
    usual = np.log([workload(found[BASELINE], each)[1] for each in [whole, *kept]])
    at = int(np.argmin(np.abs(GRID - DESIRED)))
    rows = []
    for name, each in found.items():
        own = np.log([workload(each, part)[1] for part in [whole, *kept]]) - usual
        error = np.sqrt((GROUPS - 1) * np.var(own[1:]))
        reach = -stdtrit(GROUPS - 1, 0.005) * error
        low, high = np.exp(own[0] - reach) - 1, np.exp(own[0] + reach) - 1
        asked = each.per_day[:, at].mean() / found[BASELINE].per_day[:, at].mean() - 1
        row = {"log": log, "model": name, "log loss": each.rows["loss"].mean()}
        row["bias"] = bias(each.rows, whole).mean
        is_known = np.isfinite(low)
        row["set to"] = workload(each, whole)[0] if is_known else np.nan
        row["workload at 90 % asked for"] = asked
        row["workload at 90 % realised"] = np.exp(own[0]) - 1 if is_known else np.nan
        known = name != BASELINE and is_known
        row["99 % interval"] = f"{low:+.0%} to {high:+.0%}" if known else ""
        row["settled"] = bool(known and (low > 0 or high < 0))
        rows.append(row)
    return pd.DataFrame(rows)


def draw(found: Mapping[str, Scored], log: str) -> Figure:
    """Draw the bias by the horizon and by lateness, for some models."""
    at = int(np.argmin(np.abs(GRID - DESIRED)))
    lateness = found[BASELINE].rows["days"].to_numpy() * found[BASELINE].per_day[:, at]
    with house_style():
        figure = new_figure(10.5, 3.6)
        every = figure.subplots(1, 3, sharey=True)
        parted = groups(found[BASELINE].rows, lateness).items()
        for axes, (by, parts) in zip(every, parted, strict=True):
            enough = {part: chosen for part, chosen in parts.items() if chosen.sum() >= ENOUGH}
            for shift, (name, colour) in enumerate(SHOWN.items()):
                for place, chosen in enumerate(enough.values()):
                    estimate = bias(found[name].rows, chosen)
                    at_x = place + 0.2 * (shift - 1)
                    axes.plot([at_x, at_x], 100 * np.array(estimate.interval()), color=colour)
                    axes.plot(at_x, 100 * estimate.mean, "o", color=colour, markersize=4)
            labels = [part.replace(", ", ",\n") for part in enough]
            axes.set_xticks(range(len(enough)), labels, fontsize=8)
            axes.axhline(0, color=INK, linewidth=0.8)
            axes.set_xlabel(by)
            style_axes(axes)
        for name, colour in SHOWN.items():
            every[0].plot([], [], "o-", color=colour, markersize=4, label=name)
        every[0].legend(loc="best")
        every[0].set_ylabel("predicted - recalled, points")
        figure.suptitle(f"Bias where a scheduler acts: {log}", x=0.01, ha="left")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    real, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = (2, 1500) if options.small else (4, 4000)
    sources: dict[str, Source] = {
        **real,
        "simulated": SyntheticUsers(users=users, max_reviews=reviews),
    }
    names = [*SHOWN] if options.small else [*MODELS]
    tables: dict[str, list[pd.DataFrame]] = {"workload": [], "strata": [], "thresholds": []}
    figure = None
    for log, source in sources.items():
        found = {name: evaluated(source, MODELS[name]) for name in names}
        tables["workload"].append(workloads(log, found))
        if figure is None:
            tables["strata"].append(strata(log, found))
            tables["thresholds"].append(thresholds(log, found))
            figure = draw(found, log)
    joined = {name: pd.concat(each, ignore_index=True) for name, each in tables.items()}
    return _findings(joined, figure, left_out)


def _findings(tables: Mapping[str, pd.DataFrame], figure: Figure, left_out: list[str]) -> Findings:
    load, realised = tables["workload"], "workload at 90 % realised"
    base = load[load["model"] == BASELINE].set_index("log")["log loss"]
    load = load.assign(worse=load["log loss"] - load["log"].map(base))
    known = load[(load["model"] != BASELINE) & load[realised].notna()]
    more = known[known["settled"] & (known[realised] > 0)]
    equal = more[more["worse"] < SAME_LOSS]
    fewer = known[known["settled"] & (known[realised] < 0)]
    won = int((more["worse"] < 0).sum())
    asked = more[more["workload at 90 % asked for"] < 0]
    unknown = sorted(load[load[realised].isna()]["log"].unique())
    thresholds = tables["thresholds"]
    at = thresholds[thresholds["R*"] == DESIRED]
    log = load["log"].iloc[0]
    ppv = at[at["log"] == log]["ppv"]
    shown = load[(load["log"] == log) & load["model"].isin(SHOWN)]["log loss"]
    share = {"bias": "+.1%", "set to": ".1%", "bias near": "+.1%", "R*": ".2f"}
    share |= dict.fromkeys(["workload at 90 % asked for", realised], "+.0%")
    learned = [
        f"At 90 % realised retention, {len(more)} of {len(known)} comparisons with FSRS-6 ask for "
        f"significantly more reviews ({len(more) - won} with the worse log loss too), {len(fewer)} "
        "for fewer. "
        + (
            "A log loss that is at most "
            f"{SAME_LOSS:.3f} worse than that of FSRS-6, and more reviews: {_listed(equal)}."
            if len(equal)
            else "None of them has a log loss as good as that of FSRS-6."
        ),
        "Best log loss, and fewest reviews where the workload is known: "
        + "; ".join(_winners(load, realised))
        + ".",
        "Models that look cheaper than FSRS-6 when all are set to 90 %, and are significantly "
        f"dearer when all realise it: {'; '.join(_dearer(asked)) or 'none'}.",
        "An overall bias can hide larger ones: " + _hidden(load, tables["strata"]),
        "Of the eight confusion statistics four are one minus the others. At R* = "
        f"{DESIRED}, the share of recalls among predicted recalls (ppv) of {len(ppv)} models on "
        f"{log} is between {ppv.min():.3f} and {ppv.max():.3f}, while their log loss is between "
        f"{shown.min():.4f} and {shown.max():.4f}.",
    ]
    if unknown:
        learned.append(
            "The workload at 90 % cannot be told for some or all models on "
            f"{' and '.join(unknown)}: they, or FSRS-6, have hardly any predictions near what "
            "would realise 90 %."
        )
    return Findings(
        answer=f"In {won} of {len(known)} comparisons a model with a better log loss than FSRS-6 "
        "asks for significantly more reviews at equal realised retention; in "
        f"{len(more) - won} one with a worse log loss does"
        + (f". About as good and dearer: {_listed(equal)}." if len(equal) else "."),
        learned=learned,
        tables={
            "workload": load.drop(columns=["settled", "worse"]),
            "strata": tables["strata"],
            "thresholds": thresholds,
        },
        figures={"bias": figure},
        metrics={"more_reviews": float(len(more)), "fewer_reviews": float(len(fewer))},
        left_out=left_out,
        formats=share | dict.fromkeys(STATISTICS, ".3f"),
    )


def _listed(rows: pd.DataFrame) -> str:
    return "; ".join(
        f"{row['model']} on {row['log']} ({row['worse']:+.4f} in log loss, "
        f"{row['workload at 90 % realised']:+.0%} reviews, {row['99 % interval']})"
        for _, row in rows.iterrows()
    )


def _dearer(rows: pd.DataFrame) -> Iterator[str]:
    for _, row in rows.iterrows():
        yield (
            f"{row['model']} on {row['log']} ({row['workload at 90 % asked for']:+.0%} and "
            f"{row['workload at 90 % realised']:+.0%})"
        )


def _winners(load: pd.DataFrame, realised: str) -> Iterator[str]:
    for log, own in load.groupby("log", sort=False):
        if own[realised].notna().sum() > 1:
            best, least = (own.loc[own[name].idxmin(), "model"] for name in ("log loss", realised))
            yield f"{best} and {least} ({log})"


def _hidden(load: pd.DataFrame, strata: pd.DataFrame) -> str:
    """Return the model whose bias differs most between horizons."""
    horizon = strata[strata["by"] == "days since the previous review"]
    spread = {
        (log, name): own[name].str.rstrip(" *").astype(float)
        for log, own in horizon.groupby("log")
        for name in load["model"].unique()
    }
    log, name = max(spread, key=lambda key: np.ptp(spread[key]))
    overall = load[(load["log"] == log) & (load["model"] == name)]["bias"].iloc[0]
    return (
        f"that of {name} on {log} is {100 * overall:+.1f} points over all reviews, and between "
        f"{spread[log, name].min():+.1f} and {spread[log, name].max():+.1f} by horizon."
    )
