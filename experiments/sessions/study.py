"""What a session says of forgetting: models that know it beside models that do not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import (
    SIMULATED,
    LogOptions,
    evaluated,
    loss_change,
    mean_loss,
    panels,
    real_logs,
    scored_reviews,
    simulated,
    write,
)
from hydra.core.config_store import ConfigStore
from matplotlib.figure import Figure

from srs_eval.algorithms.algorithm import Algorithm, Contribution
from srs_eval.plots import plot_contributions
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark

ORACLE = "oracle"
FEWEST = 100  # scored reviews of a user
BASELINE, FULL = "FSRS-7", "session filter"
CARD, SMALLER = "forecast on FSRS-7", "session filter, 12 features"
UNSAFE = "session filter, no safeguard"
PUBLISHED = "session filter on published FSRS-6, whole days"

QUICK = (BASELINE, SMALLER, FULL)


def models() -> dict[str, Algorithm]:
    """Return the models that are compared."""
    published = se.algorithm("fsrs6", fit="default")
    return {
        "FSRS-6, whole days": se.algorithm("fsrs6"),
        BASELINE: se.algorithm("fsrs7"),
        "mixture": se.algorithm("mixture"),
        CARD: replace(se.algorithm("forecast"), base=se.algorithm("fsrs7")),
        "forecast": se.algorithm("forecast"),
        PUBLISHED: replace(se.algorithm("session_filter"), base=published),
        SMALLER: se.algorithm("session_filter_small"),
        UNSAFE: se.algorithm("session_filter", trust=1.0),
        FULL: se.algorithm("session_filter"),
        "session filter on the mixture": replace(
            se.algorithm("session_filter"), base=se.algorithm("mixture")
        ),
        ORACLE: se.algorithm("oracle"),
    }


def losses_table(reviews: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return log loss, and the difference to the baseline, of each model on each log."""
    rows = []
    for name, model in models().items():
        row: dict[str, object] = {"model": name, "predicts": "" if name == ORACLE else model.when}
        for log, own in reviews.items():
            known = name in own
            row[f"{log}: log loss"] = mean_loss(own[name]) if known else np.nan
            row[f"{log}: to FSRS-7"] = loss_change(own[name], own[BASELINE]) if known else ""
        if any(name in own for own in reviews.values()):
            rows.append(row)
    return pd.DataFrame(rows)


def contributions(result: Any) -> list[tuple[Contribution, ...]]:
    """Return what groups of features are worth to each user, in the last fit."""
    users = scored_reviews(result, FEWEST)["user"].unique()
    last = {fit.user: fit for fit in result.run.fits()}
    return [last[user].contributions for user in users]


def worth(every: list[tuple[Contribution, ...]]) -> pd.DataFrame:
    """Return what each group of features saves, in 1/10,000, with a standard error.

    Errors are over users, or over days of one.
    """
    rows = []
    for group in [one.name for one in every[0]]:
        own = [one for user in every for one in user if one.name == group]
        gains = np.array([one.gain for one in own])
        error = own[0].standard_error
        if len(own) > 1:
            error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        rows.append((group, 1e4 * gains.mean(), 1e4 * error))
    return pd.DataFrame(rows, columns=["group", "saved", "error"])


def worth_table(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what each group of features saves on each log; some groups need notes."""
    by_length = sorted(found.values(), key=len)
    groups = dict.fromkeys(group for one in by_length for group in one["group"])
    table = pd.DataFrame({"features": [*groups]})
    for log, own in found.items():
        cells = [f"{row.saved:+.0f} ± {row.error:.0f}" for row in own.itertuples()]
        table[log] = table["features"].map(dict(zip(own["group"], cells, strict=True))).fillna("")
    return table


def draw(found: Mapping[str, list[tuple[Contribution, ...]]], reviews: Mapping[str, int]) -> Figure:
    """Draw the contributions of each log beside each other, with its number of scored reviews."""
    columns = min(len(found), 2)
    rows = -(-len(found) // columns)
    title = "What the session filter learns from each group of features"
    with panels(4.6 * columns, 0.4 + 3.5 * rows, columns, title, rows) as (figure, every):
        for axes, (log, users) in zip(every, found.items(), strict=False):
            plot_contributions(axes, users)
            people = f"{len(users)} user{'s' * (len(users) > 1)}"
            axes.set_title(f"{log}\n{people}, {reviews[log]:,} scored reviews", fontsize=10)
            axes.locator_params(axis="x", nbins=5)
        for axes in every[len(found) :]:
            axes.remove()
    return figure


ConfigStore.instance().store("sessions", LogOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="sessions")
def main(options: LogOptions) -> None:
    """Evaluate every model on every log, on the rows that are scored in whole days."""
    logs = {**real_logs(options), SIMULATED: simulated(options, small=(2, 1500), full=(8, 5000))}
    reviews: dict[str, dict[str, pd.DataFrame]] = {log: {} for log in logs}
    groups = {}
    for log, source in logs.items():
        for name, model in models().items():
            if name not in QUICK and options.small and name != ORACLE:
                continue
            if name == ORACLE and log != SIMULATED:
                continue
            in_days = "whole days" in name  # as the published FSRS-6 is made for them
            protocol = SrsBenchmark() if in_days else SrsBenchmarkEqualised()
            result = evaluated(source, model, protocol)
            reviews[log][name] = scored_reviews(result, FEWEST)
            if name == FULL:
                groups[log] = contributions(result)
    saved = {log: worth(users) for log, users in groups.items()}
    tables = {"losses": losses_table(reviews), "contributions": worth_table(saved)}
    counts = {log: len(own[FULL]) for log, own in reviews.items()}
    write("sessions", options, tables, {"contributions": draw(groups, counts)}, {})


if __name__ == "__main__":
    main()
