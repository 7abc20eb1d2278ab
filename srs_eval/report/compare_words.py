"""A comparison in words: who predicts best, what was compared, and what to keep in mind."""

from __future__ import annotations

import math

from srs_eval.comparison.runs import TRAITS, UNLIKE
from srs_eval.comparison.verdict import Verdict
from srs_eval.report.console import number

_DIRECTIONS = {"lower": "lower is better", "higher": "higher is better", "zero": "near 0 is better"}


def headline(verdict: Verdict) -> str:
    """Say in a sentence or two who predicts best, and what cannot be told apart from it."""
    board = verdict.board
    if board.best < 0:
        return f"No run has a {verdict.metric}."
    names = [run.name for run in verdict.runs]
    if len(names) == 1:
        return f"{names[0]}: {verdict.metric} {number(board.mean[0])}. Nothing to compare it with."
    standing = {model: board.standing(model) for model in board.order}
    alike, worse, ahead, unknown = (
        [names[model] for model, where in standing.items() if where == wanted]
        for wanted in ("not told apart", "worse", "better", "unknown")
    )
    unlike = [run for run in verdict.runs if set(run.traits) & set(UNLIKE)]
    among = " of the models that play by the same rules" if unlike else ""
    mean = number(float(board.mean[board.best]))
    said = [f"{names[board.best]} predicts best{among} ({verdict.metric} {mean})."]
    if alike:
        said.append(f"Not told apart from it: {', '.join(alike)}.")
    if worse:
        said.append(f"Worse: {', '.join(worse)}.")
    if ahead:
        said.append(f"Ahead, but not by the same rules: {', '.join(ahead)}.")
    if unknown:
        said.append(f"Nothing can be said of how surely: {', '.join(unknown)}.")
    return " ".join(said)


def facts_of(verdict: Verdict) -> str:
    """Say what was compared, on what."""
    paired, board = verdict.paired, verdict.board
    data = ", ".join(dict.fromkeys(run.data for run in verdict.runs if run.data))
    protocol = ", ".join(dict.fromkeys(run.protocol for run in verdict.runs if run.protocol))
    by = f", protocol {protocol}" if protocol else ""
    users = f"{board.n_users:,} user{'' if board.n_users == 1 else 's'}"
    return (
        f"{len(verdict.runs)} runs on {data}{by}: {users}, "
        f"{int(paired.reviews.sum()):,} scored reviews. "
        f"Compared by {verdict.metric}, {_DIRECTIONS[verdict.better]}; "
        f"baseline {verdict.runs[verdict.baseline].name}."
    )


def remarks(verdict: Verdict) -> list[str]:
    """Everything a reader has to know beside the numbers."""
    said = list(verdict.notes)
    for trait, (mark, meaning) in TRAITS.items():
        if any(trait in run.traits for run in verdict.runs):
            rule = "; never called the best" if trait in UNLIKE else ""
            said.append(f"{mark} {meaning}{rule}")
    users = verdict.board.n_users
    if users == 1:
        said.append(
            "One user: intervals are over its cards and days, and say nothing of other users"
        )
    elif users < 5:
        said.append("Fewer than 5 users: no intervals and no tests")
    elif users < 30:
        said.append("Fewer than 30 users: take the intervals as a rough guide")
    lost = sum(len(run.incomplete) for run in verdict.runs)
    if lost:
        said.append(f"Users with a failed fold, who have no scores: {lost:,} over all runs")
    return said


def signed(value: float) -> str:
    """Print a difference with its sign; 0 has none, and a dash stands for no number."""
    if math.isnan(value):
        return "-"
    shown = f"{value:+z.4f}"
    return "0.0000" if float(shown) == 0 else shown


def p_text(value: float, *, floor: float = 0.0002) -> str:
    """Print a p-value, but not below `floor`: 9,999 resamples tell no more than 0.0002."""
    if math.isnan(value):
        return "-"
    if value < floor:
        return f"<{floor:g}"
    return f"{value:.1g}" if value < 0.001 else f"{value:.3f}"


def percent(share: float) -> str:
    """Print a share in per cent."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"
