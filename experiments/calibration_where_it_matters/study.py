"""Calibration at the probabilities and delays that a scheduler acts on, beside log loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paired_losses import with_interval
from real_logs import real_logs
from review_load import DESIRED, Scored, by_jackknife, clusters, evaluated
from scipy.special import expit, logit

from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.threshold import STATISTICS, ConfusionCounts
from srs_eval.nouns import Algorithm, BoolArray, FloatArray, Source
from srs_eval.plots.style import BLUE, GREEN, INK, VERMILION, house_style, new_figure, style_axes
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
        row["log loss - FSRS-6"] = with_interval(worse)
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
    lateness = base.rows["days"].to_numpy() * base.load(DESIRED)
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
        reviews = f"{log}, {len(base.rows):,} reviews"
        title = f"Bias where a scheduler acts: {reviews} (lines are 99 % intervals)"
        figure.suptitle(title, x=0.01, ha="left")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    real, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = (2, 2000) if options.small else (4, 4000)
    sources: dict[str, Source] = {
        **real,
        "simulated": SyntheticUsers(users=users, max_reviews=reviews),
    }
    names = [*SHOWN] if options.small else [*MODELS]
    parts = ("workload", "held", "strata", "thresholds")
    tables: dict[str, list[pd.DataFrame]] = {part: [] for part in parts}
    figure, ppv = None, None
    for log, source in sources.items():
        found = {
            name: evaluated(
                source,
                MODELS[name],
                SrsBenchmarkEqualised() if name == FRACTIONAL else SrsBenchmark(),
            )
            for name in names
        }
        tables["workload"].append(workloads(log, found))
        settings = tables["workload"][-1].set_index("model")["set to"]
        tables["held"].append(held(log, found, settings))
        if figure is None:
            tables["strata"].append(strata(log, found))
            tables["thresholds"].append(thresholds(log, found))
            figure, ppv = draw(found, log), ppv_gap(found)
    joined = {name: pd.concat(each, ignore_index=True) for name, each in tables.items()}
    return _findings(joined, figure, ppv, left_out)


def _findings(
    tables: Mapping[str, pd.DataFrame],
    figure: Figure,
    ppv: tuple[float, Estimate],
    left_out: list[str],
) -> Findings:
    load, short, log = tables["workload"], tables["held"], tables["workload"]["log"].iloc[0]
    known = load[(load["model"] != BASELINE) & load[AT_SETTING].notna()]
    more = known[known["settled"] & (known[AT_SETTING] > 0)]
    fewer = known[known["settled"] & (known[AT_SETTING] < 0)]
    equal = more[more["worse"] <= 0]
    better, alike, worse = (int((more["worse"] == sign).sum()) for sign in (-1, 0, 1))
    asked = more[more[ALL_SET] < 0]
    over = known[known["by user"] != ""]
    unknown = sorted(load[load[AT_SETTING].isna()]["log"].unique())
    share = dict.fromkeys(["bias near", "bias"], "+.1%") | {"set to": ".1%", "R*": ".2f"}
    share |= dict.fromkeys([ALL_SET, AT_SETTING, REST], "+.0%")
    share |= dict.fromkeys(HELD[2:-1], ".0%")
    users = (
        f"Over the simulated users, {int(over['settled, users'].sum())} of {len(over)} differences "
        "are significant."
    )
    learned = [
        f"With people and fits as they are, {len(more)} of {len(known)} comparisons with FSRS-6 "
        f"ask for significantly more reviews, {len(fewer)} for fewer. {users}",
        "The setting realises 90 % only where the interval is above a day. Cards held at a day are "
        "asked for daily and recalled less often: "
        + ("; ".join(_held(short, equal)) or "none known")
        + ".",
        "Models that look cheaper than FSRS-6 when all are set to 90 %, and are significantly "
        f"dearer at the setting: {'; '.join(_dearer(asked)) or 'none'}.",
        *_hidden(load[load["log"] == log], tables["strata"]),
        "Of the eight confusion statistics four are one minus the others. At R* = "
        f"{DESIRED}, the greatest difference in the share of recalls among predicted recalls "
        f"(ppv) between two of {len(SHOWN)} models on {log} is {with_interval(ppv[1])}; "
        f"{'at least one' if ppv[0] < ALPHA else 'no'} difference is significant.",
    ]
    if unknown:
        learned.append(
            "The workload at the setting is unknown for some or all models on "
            f"{', '.join(unknown)}: they, or FSRS-6, have hardly any predictions near what "
            "would realise 90 %."
        )
    hidden = ["settled", "settled, users", "worse"]
    return Findings(
        answer="At a setting that realises 90 % among cards with intervals above a day, "
        f"{len(more)} of {len(known)} comparisons ask for significantly more reviews than FSRS-6: "
        f"{better} with a significantly better log loss, {alike} with no significant difference, "
        f"{worse} with a significantly worse one"
        + (f". Not worse, and dearer: {_listed(equal)}. " if len(equal) else ". ")
        + f"This holds for these people and fits. {users}",
        learned=learned,
        tables={**tables, "workload": load.drop(columns=hidden)},
        figures={"bias": figure},
        metrics={"more_reviews": float(len(more)), "fewer_reviews": float(len(fewer))},
        left_out=left_out,
        formats=share | dict.fromkeys(STATISTICS, ".3f"),
    )


def _listed(rows: pd.DataFrame) -> str:
    return "; ".join(
        f"{row['model']} on {row['log']} ({row[AT_SETTING]:+.0%}, {row['cards and days']}"
        + (f"; by user {row['by user']})" if row["by user"] else ")")
        for _, row in rows.iterrows()
    )


def _dearer(rows: pd.DataFrame) -> Iterator[str]:
    for _, row in rows.iterrows():
        yield f"{row['model']} on {row['log']} ({row[ALL_SET]:+.0%} and {row[AT_SETTING]:+.0%})"


def _held(short: pd.DataFrame, equal: pd.DataFrame) -> Iterator[str]:
    """Describe what is held at a day by FSRS-6, and by the models that are compared with it."""
    places = {*zip(equal["log"], equal["model"], strict=True)}
    for _, row in short.iterrows():
        own = (row["log"], row["model"]) in places
        if own or row["model"] == BASELINE:
            yield (
                f"{row['model']} on {row['log']} holds {row['held at 1 day']:.0%}, recalled in "
                f"{row['recalled']:.0%}, which make {row['of the workload']:.0%} of its workload"
                + (f" (where both are above a day: {row[REST]:+.0%} reviews)" if own else "")
            )


def _hidden(load: pd.DataFrame, strata: pd.DataFrame) -> Iterator[str]:
    """Describe significant biases in groups: the greatest of a nearly unbiased model, and FSRS-6's.

    Nearly unbiased is an overall bias of less than a point.
    """
    columns = strata.columns[4:]
    cells = strata.melt("group", columns, "model", "bias")
    starred = cells[cells["bias"].str.contains("*", regex=False)]
    overall = load.set_index("model")["bias"]
    small = starred[starred["model"].map(overall).astype(float).abs() < 0.01]
    if len(small):
        size = small["bias"].str.rstrip(" *").astype(float).abs()
        worst = small.loc[size.idxmax()]
        yield (
            f"A small overall bias can hide larger ones: that of {worst['model']} is "
            f"{100 * overall[worst['model']]:+.1f} points over all reviews, and {worst['bias']} "
            f"points in the group '{worst['group']}'."
        )
    own = starred[starred["model"] == BASELINE]
    listed = ", ".join(f"{row['bias']} ({row['group']})" for _, row in own.iterrows())
    yield (
        f"Of {len(strata)} groups, the bias of {BASELINE} is significant in {len(own)}"
        + (f": {listed}" if listed else "")
        + f". The table of groups has {len(cells)} tests at 1 % (* alone, ** by Holm's method too)."
    )
