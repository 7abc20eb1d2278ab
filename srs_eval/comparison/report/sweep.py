"""The tables at the end of a sweep: one comparison for each set of runs on the same reviews."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from srs_eval.comparison.compare import compare, directions
from srs_eval.comparison.matching import shared_users
from srs_eval.comparison.report.files import terminal_text
from srs_eval.comparison.verdict import Verdict
from srs_eval.results.run import Run, load_run, with_own_names
from srs_eval.text.console import counted

_RANKED_BY = "log_loss"


def sweep_verdicts(folders: Sequence[Path]) -> list[Verdict]:
    """Compare each set of runs that scored the same reviews; leave out runs without users."""
    return compare_groups([run for run in map(load_run, folders) if run.rows])


def sweep_texts(folders: Sequence[Path]) -> list[str]:
    """Format the leaderboard of each of these comparisons for the terminal."""
    return [terminal_text(verdict, of_sweep=True) for verdict in sweep_verdicts(folders)]


def compare_groups(runs: Sequence[Run]) -> list[Verdict]:
    """Compare runs in groups of the same data and protocol that share users.

    A run with fewer than half as many users as another of its group is not ranked. Groups
    without a metric to rank by are left out.
    """
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if _comparable([*group, run])), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return [_compared(with_own_names(group)) for group in groups if directions(group)]


def _comparable(runs: Sequence[Run]) -> bool:
    settings = {(run.facts.data, run.protocol) for run in runs}
    return len(settings) == 1 and len(shared_users(runs)) > 0


def _compared(group: Sequence[Run]) -> Verdict:
    most = max(len(run.rows) for run in group)
    ranked = [run for run in group if 2 * len(run.rows) >= most]
    users = shared_users(ranked)
    notes = [
        f"{run.marked} scored only {counted(len(run.rows), 'user')} and is not ranked"
        for run in group
        if 2 * len(run.rows) < most
    ]
    if len(users) < most and all(run.facts.coverage is None for run in ranked):
        notes.insert(0, f"{counted(len(users), 'user')} of {most:,}: those that every run scored")
    metric = _RANKED_BY if _RANKED_BY in directions(ranked) else next(iter(directions(ranked)))
    return compare(ranked, metric=metric, users=users, notes=notes)
