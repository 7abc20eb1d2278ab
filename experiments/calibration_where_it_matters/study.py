"""Calibration at the probabilities and delays that a scheduler acts on, beside log loss."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from evaluations import Change, clusters
from findings import findings, panels
from matplotlib.figure import Figure
from review_load import DESIRED, Scored, by_jackknife, evaluated
from review_logs import logs
from scipy.special import expit, logit

from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.metrics.threshold import STATISTICS, ConfusionCounts
from srs_eval.nouns import Algorithm, BoolArray, FloatArray
from srs_eval.plots.style import BLUE, GREEN, INK, VERMILION
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import Estimate, clustered_mean, mean_of_users
from srs_eval.stats.significance import ALPHA, holm

FRACTIONAL = "FSRS-7, fractional days"
MODELS: Mapping[str, Algorithm] = {
    "FSRS-6": Fsrs6(),
    "FSRS-6, published": Fsrs6(fit="default"),
    "FSRS-7": Fsrs7(),
    FRACTIONAL: Fsrs7(),
    "LSTM": Lstm(),
    "logistic regression": Logistic(),
    "HLR": Hlr(),
}
BASELINE = "FSRS-6"
THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
ENOUGH = 50  # reviews in a group
ALL_SET, AT_SETTING, REST = "all set to 90 %", "at the setting", "workload of these"
HELD = ["log", "model", "held at 1 day", "recalled", "expected after 1 day"]
HELD += ["of the workload", "above in both", REST]
SHOWN = {"FSRS-6": BLUE, "FSRS-6, published": VERMILION, "LSTM": GREEN}


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


def ppv_gap(found: Mapping[str, Scored]) -> tuple[float, Estimate]:
    """Return the smallest p-value among differences of ppv, and the greatest difference.

    The p-value is adjusted by Holm's method.
    """
    parts = []
    for name in SHOWN:
        rows = found[name].rows
        yes, recalled = (rows["p"] >= DESIRED).to_numpy(), rows["recalled"].to_numpy()
        ppv = recalled[yes].mean()
        # What each review contributes to the ppv: its mean is the ppv.
        parts.append(ppv + yes * (recalled - ppv) / yes.mean())
    gaps = [clustered_mean(a - b, *clusters(rows)) for a, b in combinations(parts, 2)]
    adjusted = holm([gap.p_value for gap in gaps]).p_value
    return float(adjusted.min()), max(gaps, key=lambda gap: abs(gap.mean))


def workloads(log: str, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return log loss and bias beside the workload at a setting that realises 90 %."""
    base = found[BASELINE]
    whole = np.ones(len(base.rows), bool)
    usual = base.load(base.setting(whole))
    user, by = base.rows.groupby("user").ngroup().to_numpy(), clusters(base.rows)
    table = []
    for name, each in found.items():
        mean, low, high = np.expm1(by_jackknife(each, base))
        known = bool(np.isfinite(low))
        row = {"log": log, "model": name, "log loss": each.rows["loss"].mean()}
        worse = clustered_mean((each.rows["loss"] - base.rows["loss"]).to_numpy(), *by)
        row["log loss - FSRS-6"] = Change.of(worse)
        row["worse"] = 0 if not worse.p_value < ALPHA else np.sign(worse.mean)
        row["bias"] = bias(each.rows, whole).mean
        row["set to"] = each.setting(whole) if known else np.nan
        row[ALL_SET] = each.load(DESIRED).mean() / base.load(DESIRED).mean() - 1
        row[AT_SETTING] = mean if known else np.nan
        compared = known and name != BASELINE
        row["cards and days"] = f"{low:+.0%} to {high:+.0%}" if compared else ""
        row["settled"] = compared and (low > 0 or high < 0)
        own, theirs = (np.bincount(user, load) for load in (each.load(row["set to"]), usual))
        shares = ", ".join(f"{share:+.0%}" for share in own / theirs - 1)
        row["by user"] = shares if compared and len(own) > 1 else ""
        over = mean_of_users(np.log(own / theirs))
        row["settled, users"] = bool(row["by user"] and over.p_value < ALPHA)
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
        line, load = each.line(whole), each.load(desired)
        after = expit(line.intercept + line.slope * logit(each.tomorrow[below]))
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


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    sources, left_out = logs(options, small=(2, 2000), full=(4, 4000))
    names = [*SHOWN] if options.small else [*MODELS]
    whole, fractional = SrsBenchmark(), SrsBenchmarkEqualised()
    loads, of_day, first = [], [], None
    for log, source in sources.items():
        found = {
            name: evaluated(source, MODELS[name], fractional if name == FRACTIONAL else whole)
            for name in names
        }
        first = first or (log, found)
        loads.append(workloads(log, found))
        of_day.append(held(log, found, loads[-1].set_index("model")["set to"]))
    load, short = (pd.concat(each, ignore_index=True) for each in (loads, of_day))
    log, found = first or ("", {})
    of_groups = strata(log, found)
    tables = {
        "workload": load.drop(columns=["settled", "settled, users", "worse"]),
        "held": short,
        "strata": of_groups,
        "thresholds": thresholds(log, found),
    }
    share = dict.fromkeys(["bias near", "bias"], "+.1%") | {"set to": ".1%", "R*": ".2f"}
    share |= dict.fromkeys([ALL_SET, AT_SETTING, REST], "+.0%")
    share |= dict.fromkeys(HELD[2:-1], ".0%")
    words = _workload(load, short) | _strata(load[load["log"] == log], of_groups)
    p_value, greatest = ppv_gap(found)
    words |= {"log": log, "ppv": {"p_value": p_value, "greatest": Change.of(greatest)}}
    return findings(
        "calibration_where_it_matters",
        tables,
        {"bias": draw(found, log)},
        words | {"compared": len(SHOWN), "all_set": ALL_SET},
        metrics={f"{way}_reviews": float(len(words[way])) for way in ("more", "fewer")},
        left_out=left_out,
        formats=share | dict.fromkeys(STATISTICS, ".3f"),
    )


def _workload(load: pd.DataFrame, short: pd.DataFrame) -> dict[str, Any]:
    """Return which comparisons with FSRS-6 ask for more reviews, and what is held at a day."""
    known = load[(load["model"] != BASELINE) & load[AT_SETTING].notna()]
    more = known[known["settled"] & (known[AT_SETTING] > 0)]
    equal = more[more["worse"] <= 0]
    by_user = equal["by user"]
    places = {*zip(equal["log"], equal["model"], strict=True)}
    own = np.array([place in places for place in zip(short["log"], short["model"], strict=True)])
    rest = [f" (where both are above a day: {share:+.0%} reviews)" for share in short[REST]]
    shown = own | (short["model"] == BASELINE)
    return {
        "known": known,
        "more": more,
        "fewer": known[known["settled"] & (known[AT_SETTING] < 0)],
        "equal": equal.assign(**{"by users": ("; by user " + by_user).where(by_user != "", "")}),
        "over": known[known["by user"] != ""],
        "held": short.assign(rest=np.where(own, rest, ""))[shown],
        "unknown": sorted(load[load[AT_SETTING].isna()]["log"].unique()),
    }


def _strata(load: pd.DataFrame, table: pd.DataFrame) -> dict[str, Any]:
    """Return the significant biases in groups of FSRS-6, and the worst that others hide.

    It is of a model that is nearly unbiased: by less than a point over all reviews.
    """
    cells = table.melt("group", table.columns[4:], "model", "bias")
    starred = cells[cells["bias"].str.contains("*", regex=False)]
    overall = starred["model"].map(load.set_index("model")["bias"]).astype(float)
    hidden = starred.assign(overall=100 * overall)[overall.abs() < 0.01]
    size = hidden["bias"].str.rstrip(" *").astype(float).abs()
    return {
        "worst": hidden.loc[size.idxmax()].to_dict() if len(hidden) else None,
        "groups": len(table),
        "tests": len(cells),
        "starred": starred[starred["model"] == BASELINE],
    }
