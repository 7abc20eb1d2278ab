"""Finished runs side by side, from their saved scores: nothing is fitted again.

Runs are compared on the users that each of them could score, and on the same reviews.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from srs_eval.comparison.board import Board
from srs_eval.comparison.pairing import Paired, once_each
from srs_eval.comparison.report.grids import difference_cells
from srs_eval.comparison.report.words import board_headline, few_users, mark_notes
from srs_eval.comparison.selection import selection_notes
from srs_eval.comparison.verdict import boards_of_runs
from srs_eval.nouns import FloatArray, User
from srs_eval.results.run import Run, load_run, with_own_names
from srs_eval.text.console import interval, number, table

RANKED_BY = "log_loss"
_BESIDE = ("normalized_entropy", "brier_skill", "smece", "auc", "rmse_bins")


def leaderboards(folders: Sequence[Path]) -> list[str]:
    """One table for each set of runs that scored the same reviews, best run first.

    Parameters
    ----------
    folders : sequence of Path
        Output folders of finished runs. Runs that scored nothing are in no table.
    """
    groups: list[list[Run]] = []
    for run in map(load_run, folders):
        if not run.rows:
            continue
        group = next((group for group in groups if _comparable([*group, run])), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return [_leaderboard(with_own_names(group)) for group in groups]


def _comparable(runs: Sequence[Run]) -> bool:
    """Whether there is a user of whom all runs scored the same reviews."""
    settings = {(run.summary["data"], run.summary["protocol"]) for run in runs}
    return len(settings) == 1 and len(_shared(runs)) > 0


def _shared(runs: Sequence[Run]) -> list[User]:
    """Users of whom all runs scored the same reviews."""
    return [user for user in runs[0].rows if len({run.rows.get(user) for run in runs}) == 1]


def _leaderboard(group: Sequence[Run]) -> str:
    most = max(len(run.rows) for run in group)
    ranked = tuple(run for run in group if 2 * len(run.rows) >= most)
    users = tuple(_shared(ranked))
    reviews = np.array([ranked[0].reviews[user] for user in users], np.int64)
    paired = once_each(Paired(ranked, users, reviews))
    (board,) = boards_of_runs(paired, RANKED_BY, "lower", weightings=("users",))
    rows = []
    for model in board.order:
        run = paired.runs[model]
        mean, lo, hi = (float(of[model]) for of in (board.mean, board.lo, board.hi))
        score = number(mean), interval(lo, hi)
        others = [number(_mean(run.values(metric, users))) for metric in _BESIDE]
        rows.append([run.marked, *score, *_behind(board, model), *others])
        rows += [
            [other.marked, *score, "identical", "", *others] for other in paired.duplicates_of(run)
        ]
    headers = ["algorithm", RANKED_BY, "99 % interval", "behind", "interval", *_BESIDE]
    said = ["", board_headline(board, paired.runs, RANKED_BY)] if len(paired.runs) > 1 else []
    return "\n".join([_caption(paired, most), table(rows, headers), *said, *_notes(group, paired)])


def _behind(board: Board, model: int) -> list[str]:
    """Write how far a run is behind the leader, with its interval."""
    if model == board.best:
        return [board.to_best[model].average.verdict, ""]
    return difference_cells(board.to_best[model])[:2]


def _caption(paired: Paired, most: int) -> str:
    summary, users = paired.runs[0].summary, len(paired.users)
    every = f" of {most:,}, those that every run could score" if users < most else ""
    over = "users" if users > 1 else summary["interval_over"]
    return (
        f"{summary['data']}, protocol {summary['protocol']}: {_counted(users)}{every}; "
        f"{int(paired.reviews.sum()):,} scored reviews\n"
        f"Means over users; intervals over {over}; behind: the mean paired difference to the "
        "leader, whose\n"
        "interval allows for the number of models ahead, and leaves out 0 exactly where the "
        "difference is significant at 1 %\n"
    )


def _notes(group: Sequence[Run], paired: Paired) -> list[str]:
    few = few_users(len(paired.users))
    return [
        *mark_notes(paired.every_run),
        *paired.notes,
        *([few] if few else []),
        *(
            f"{run.marked} scored only {_counted(len(run.rows))} and is not ranked"
            for run in group
            if all(run is not ranked for ranked in paired.every_run)
        ),
        *selection_notes(paired.runs),
    ]


def _counted(users: int) -> str:
    return "1 user" if users == 1 else f"{users:,} users"


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan
