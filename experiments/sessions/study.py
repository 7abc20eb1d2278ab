"""What a session says of forgetting: models that know it beside models that do not."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from evaluations import Scored, score
from findings import findings, panels
from matplotlib.figure import Figure
from review_logs import logs

from srs_eval.algorithms.baselines import Oracle
from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.sessions.forecast import Forecast, mixture
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.nouns import Algorithm, Contribution, EvaluationProtocol, Source
from srs_eval.plots.contributions_plot import plot_contributions
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings

FEWEST = 100  # scored reviews of a user
BASELINE, FULL = "FSRS-7", "session filter"
CARD, SMALLER = "forecast on FSRS-7", "session filter, 12 features"
UNSAFE = "session filter, no safeguard"
PUBLISHED = "session filter on published FSRS-6, whole days"

SMALL = {"features": "small", "width": 0.03, "level_width": 0.03}
MODELS: Mapping[str, Algorithm] = {
    "FSRS-6, whole days": Fsrs6(),
    BASELINE: Fsrs7(),
    "mixture": mixture(),
    CARD: Forecast(Fsrs7()),
    "forecast": Forecast(),
    "blend of FSRS-7, by day": Blend(Fsrs7()),
    "blend of FSRS-7, by review": Blend(Fsrs7(), every="review"),
    PUBLISHED: SessionFilter(Fsrs6(fit="default")),
    SMALLER: SessionFilter(**SMALL),
    "session filter, weights by day": SessionFilter(every="day"),
    UNSAFE: SessionFilter(trust=1.0),
    FULL: SessionFilter(),
    "session filter on the mixture": SessionFilter(mixture()),
}
QUICK = (BASELINE, SMALLER, FULL)

Evaluated = Mapping[str, Scored]


def evaluated(source: Source, models: Mapping[str, Algorithm]) -> Evaluated:
    """Evaluate the users of a source who have 100 scored reviews or more."""
    found = {}
    for name, algorithm in models.items():
        # The same rows; the published FSRS-6 is made for whole days.
        protocol: EvaluationProtocol = (
            SrsBenchmark() if "whole days" in name else SrsBenchmarkEqualised()
        )
        found[name] = score(source, algorithm, protocol, fewest=FEWEST)
    return found


def losses_table(found: Mapping[str, Evaluated]) -> pd.DataFrame:
    """Return log loss, and the difference to the baseline, of each model on each log."""
    when = {name: algorithm.when for name, algorithm in MODELS.items()}
    rows = []
    for name in dict.fromkeys(name for result in found.values() for name in result):
        row: dict[str, object] = {"model": name, "predicts": when.get(name, "")}
        for log, result in found.items():
            row[f"{log}: log loss"] = result[name].log_loss if name in result else np.nan
            row[f"{log}: to FSRS-7"] = result[name].less(result[BASELINE]) if name in result else ""
        rows.append(row)
    return pd.DataFrame(rows)


def contributions(result: Evaluated) -> list[tuple[Contribution, ...]]:
    """Return what groups of features are worth to each user, in the last fit."""
    return [fits[-1].contributions for fits in result[FULL].fits.values()]


def worth(log: str, result: Evaluated) -> pd.DataFrame:
    """Return what each group of features saves, in 1/10,000, with a standard error.

    Errors are over users, or over days of one.
    """
    every = contributions(result)
    rows = []
    for group in [one.name for one in every[0]]:
        own = [one for user in every for one in user if one.name == group]
        gains = np.array([one.gain for one in own])
        error = own[0].standard_error
        if len(own) > 1:
            error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        rows.append((log, group, 1e4 * gains.mean(), 1e4 * error))
    return pd.DataFrame(rows, columns=["log", "group", "saved", "error"])


def worth_table(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what each group of features saves on each log; some groups need notes."""
    by_length = sorted(found.values(), key=len)
    groups = dict.fromkeys(group for one in by_length for group in one["group"])
    table = pd.DataFrame({"features": [*groups]})
    for log, own in found.items():
        cells = [f"{row.saved:+.0f} ± {row.error:.0f}" for row in own.itertuples()]
        table[log] = table["features"].map(dict(zip(own["group"], cells, strict=True))).fillna("")
    return table


def draw(found: Mapping[str, Evaluated]) -> Figure:
    """Draw the contributions of each log beside each other."""
    columns = min(len(found), 2)
    rows = -(-len(found) // columns)
    title = "What the session filter learns from each group of features"
    with panels(4.6 * columns, 0.4 + 3.5 * rows, columns, title, rows) as (figure, every):
        for axes, (log, result) in zip(every, found.items(), strict=False):
            plot_contributions(axes, contributions(result))
            losses = result[FULL].losses
            people = f"{len(losses)} user{'s' * (len(losses) > 1)}"
            reviews = sum(map(len, losses))
            axes.set_title(f"{log}\n{people}, {reviews:,} scored reviews", fontsize=10)
            axes.locator_params(axis="x", nbins=5)
        for axes in every[len(found) :]:
            axes.remove()
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    sources, left_out = logs(options, small=(2, 1500), full=(8, 5000))
    models = {name: MODELS[name] for name in QUICK} if options.small else MODELS
    found = {}
    for log, source in sources.items():
        truth = {"oracle": Oracle()} if isinstance(source, SyntheticUsers) else {}
        found[log] = evaluated(source, {**models, **truth})

    def changes(name: str, against: str = BASELINE) -> list[dict[str, Any]]:
        if name not in models:
            return []
        return [{"log": log, "change": one[name].less(one[against])} for log, one in found.items()]

    gains = {log: worth(log, result) for log, result in found.items()}
    full = changes(FULL)
    words = {
        "by_log": "{change.starred} ({log})",
        "full": full,
        "significant": sum(row["change"].settled for row in full),
        "smaller": changes(SMALLER, FULL),
        "most": pd.DataFrame([own.loc[own["saved"].idxmax()] for own in gains.values()]),
        "names": {"card": CARD},
        "card": changes(CARD),
        "full_to_card": changes(FULL, CARD) if CARD in models else [],
        "mixture": changes("mixture"),
        "forecast": changes("forecast"),
        "published": changes(PUBLISHED),
        "unsafe": changes(UNSAFE, FULL),
    }
    return findings(
        "sessions",
        {"losses": losses_table(found), "contributions": worth_table(gains)},
        {"contributions": draw(found)},
        words,
        metrics={f"to_fsrs7_{n}": row["change"].mean for n, row in enumerate(full)},
        left_out=left_out,
    )
