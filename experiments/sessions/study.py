"""What a session says of forgetting: models that know it beside models that do not."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paired_losses import Scored, score, settled, with_interval
from real_logs import real_logs

from srs_eval.algorithms.baselines import Oracle
from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.sessions.forecast import Forecast, mixture
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.nouns import Algorithm, Contribution, EvaluationProtocol, Source
from srs_eval.plots.contributions_plot import plot_contributions
from srs_eval.plots.style import house_style, new_figure
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import Estimate

FEWEST = 100
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


def contributions(result: Evaluated) -> list[tuple[Contribution, ...]]:
    """Return what groups of features are worth to each user, in the last fit."""
    return [fits[-1].contributions for fits in result[FULL].fits.values()]


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
            row[f"{log}: to FSRS-7"] = ""
            if name in result:
                row[f"{log}: to FSRS-7"] = with_interval(result[name].less(result[BASELINE]))
        rows.append(row)
    return pd.DataFrame(rows)


def worth_table(found: Mapping[str, Evaluated]) -> pd.DataFrame:
    """Return what each group of features saves, in 1/10,000, with a standard error."""
    # Those of siblings are where a log has notes.
    logs = [contributions(result)[0] for result in found.values()]
    groups = dict.fromkeys(group.name for groups in sorted(logs, key=len) for group in groups)
    rows = [
        {"features": group, **{log: _worth(result, group) for log, result in found.items()}}
        for group in groups
    ]
    return pd.DataFrame(rows)


def _worth(result: Evaluated, group: str) -> str:
    if group not in {found.name for found in contributions(result)[0]}:
        return ""
    gain, error = worth(result, group)
    return f"{1e4 * gain:+.0f} ± {1e4 * error:.0f}"


def worth(result: Evaluated, group: str) -> tuple[float, float]:
    """Return what a group of features saves, and its standard error over users, or days of one."""
    every = [one for user in contributions(result) for one in user if one.name == group]
    gains = np.array([one.gain for one in every])
    if len(every) == 1:
        return float(gains[0]), every[0].standard_error
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))


def draw(found: Mapping[str, Evaluated]) -> Figure:
    """Draw the contributions of each log beside each other."""
    with house_style():
        columns = min(len(found), 2)
        rows = -(-len(found) // columns)
        figure = new_figure(4.6 * columns, 0.4 + 3.5 * rows)
        every = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (log, result) in zip(every, found.items(), strict=False):
            plot_contributions(axes, contributions(result))
            losses = list(result[FULL].losses.values())
            people = f"{len(losses)} user{'s' * (len(losses) > 1)}"
            reviews = sum(len(loss) for loss in losses)
            axes.set_title(f"{log}\n{people}, {reviews:,} scored reviews", fontsize=10)
            axes.locator_params(axis="x", nbins=5)
        for axes in every[len(found) :]:
            axes.remove()
        figure.suptitle(
            "What the session filter learns from each group of features", x=0.01, ha="left"
        )
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on every log."""
    real, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = (2, 1500) if options.small else (8, 5000)
    simulated = SyntheticUsers(users=users, max_reviews=reviews)
    sources: dict[str, Source] = {**real, "simulated": simulated}
    models = {name: MODELS[name] for name in QUICK} if options.small else MODELS
    found = {}
    for log, source in sources.items():
        truth = {"oracle": Oracle()} if isinstance(source, SyntheticUsers) else {}
        found[log] = evaluated(source, {**models, **truth})
    return _findings(found, left_out)


def _findings(found: Mapping[str, Evaluated], left_out: list[str]) -> Findings:
    def changes(name: str, against: str = BASELINE) -> dict[str, Estimate]:
        return {
            log: result[name].less(result[against])
            for log, result in found.items()
            if name in result and against in result
        }

    def on_each(name: str, against: str = BASELINE) -> str:
        every = changes(name, against)
        return ", ".join(
            f"{change.mean:+.4f}{' *' if settled(change) else ''} ({log})"
            for log, change in every.items()
        )

    most = []
    for log, result in found.items():
        groups = [group.name for group in contributions(result)[0]]
        best = max(groups, key=lambda group: worth(result, group)[0])
        saved, error = worth(result, best)
        most.append(f"{best} on {log} ({1e4 * saved:.0f} ± {1e4 * error:.0f})")
    learned = [
        "Twelve features in place of all change the log loss of the filter by "
        f"{on_each(SMALLER, FULL)} (in this list, * is significant at 1 %).",
        "The group of features that saves most, in 1/10,000 of log loss per training review and ± "
        f"a standard error, is {'; '.join(most)}.",
    ]
    if CARD in found[next(iter(found))]:
        learned += [
            "A curve that is fixed at the card's previous review, and corrected by the card's "
            f"history ({CARD}), changes FSRS-7 by {on_each(CARD)}. The session filter differs from "
            f"it by {on_each(FULL, CARD)}: that is what the session is worth beyond the history of "
            "the card.",
            f"The mixture by itself differs from FSRS-7 by {on_each('mixture')}, and with the "
            f"correction by {on_each('forecast')}.",
            f"Published parameters of FSRS-6 with the filter on top differ from FSRS-7 fitted to "
            f"the user by {on_each(PUBLISHED)}. They do so at the review: a scheduler cannot use "
            "that.",
            f"Without its safeguard the filter changes by {on_each(UNSAFE, FULL)}.",
        ]
    return Findings(
        answer="Predicting at the review, with the session known, changes the log loss of FSRS-7 "
        f"by {on_each(FULL)}: {sum(map(settled, changes(FULL).values()))} of {len(found)} "
        "differences are significant at 1 %.",
        learned=learned,
        tables={"losses": losses_table(found), "contributions": worth_table(found)},
        figures={"contributions": draw(found)},
        metrics={f"to_fsrs7_{n}": one.mean for n, one in enumerate(changes(FULL).values())},
        left_out=left_out,
    )
