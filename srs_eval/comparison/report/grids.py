"""The tables of a comparison, as text cells: every output is made of the same ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from srs_eval.comparison.board import Board
from srs_eval.comparison.report.grid import Grid
from srs_eval.comparison.report.parts import extremes, rank_grid, shares, strata_grid
from srs_eval.comparison.report.words import level_text, p_text, percent, share_interval, signed
from srs_eval.comparison.standing import Standing
from srs_eval.comparison.verdict import Verdict
from srs_eval.text.console import interval, number

_WEIGHTED = {
    "users": ("Each user counts once: the typical user", ""),
    "reviews": ("Each review counts once: the typical review", ""),
    "log_reviews": (
        "Users weighted by the logarithm of their reviews",
        "estimates nothing, and is here to compare with tables made so; ",
    ),
}


# The leader, and models not significantly different from it, stand out.
_ALIKE = ("best", "leads", "identical", "not significantly different")


def grids(verdict: Verdict) -> Iterator[Grid]:
    """Every table of a comparison, in the order of a report."""
    several = len(verdict.runs) > 1
    users = verdict.board.n_users > 1
    for board in verdict.boards:
        yield leaderboard(verdict, board)
        if several and users and board is verdict.board:
            yield majority(verdict, board.to_best, board.best, "leaderboard_majority")
    if verdict.beside:
        yield beside(verdict)
    if several:
        yield against(verdict)
        if users:
            yield majority(
                verdict, verdict.board.to_baseline, verdict.baseline, "against_baseline_majority"
            )
            yield shares(verdict)
            yield rank_grid(verdict)
        if verdict.where is not None:
            for fact, strata in verdict.where.facts:
                yield strata_grid(verdict, verdict.where, fact, strata)
        if users:
            yield extremes(verdict)
    yield sources(verdict)


def leaderboard(verdict: Verdict, board: Board) -> Grid:
    """Rank the runs for one weighting of users."""
    title, meaning = _WEIGHTED[board.weighting]
    rows: list[tuple[str, ...]] = []
    bold = set()
    for model in board.order:
        standing, run = board.to_best[model], verdict.runs[model]
        bold |= {len(rows)} if standing.average.verdict in _ALIKE else set()
        score = number(float(board.mean[model])), _bounds(board, model)
        rows.append((run.marked, *score, *difference_cells(standing)))
        rows += [
            (other.marked, *score, "", "", "", "", f"identical to {run.name}")
            for other in verdict.paired.duplicates_of(run)
        ]
    counted = "1 user; "
    if board.n_users > 1:
        counted = f"{board.n_users:,} users, as good as {board.effective:,.1f} of equal weight; "
    return Grid(
        key=f"leaderboard_{board.weighting}",
        title=title if board.n_users > 1 else "Leaderboard",
        caption=f"{counted}{meaning}to best: mean paired difference to the leader, with its p and "
        "its interval, both of which allow for the leader having been chosen by looking: the "
        "level is higher the more models ahead are not worse. The verdict is p at 1 %",
        headers=(
            *("run", verdict.metric, "99 % interval", "to best"),
            *("interval", "level", "p", "on average"),
        ),
        rows=tuple(rows),
        bold=frozenset(bold),
    )


def difference_cells(standing: Standing) -> list[str]:
    """Write a mean difference: its size, interval, level, p, and verdict."""
    answer = standing.average
    if math.isnan(standing.difference.mean):
        return ["", "", "", "", answer.verdict]
    return [
        signed(standing.difference.mean),
        interval(answer.lo, answer.hi),
        level_text(answer),
        p_text(answer.p_value),
        answer.verdict,
    ]


def majority(verdict: Verdict, standings: Sequence[Standing], other: int, key: str) -> Grid:
    """Say for how many users each run is better than the leader, or the baseline."""
    rows = []
    for model in verdict.order:
        counts, answer = standings[model].counts, standings[model].users
        if model == other or not sum(counts):
            continue
        rows.append(
            (
                verdict.runs[model].marked,
                *(f"{count:,}" for count in counts),
                percent(counts.share),
                share_interval(answer.lo, answer.hi),
                level_text(answer),
                p_text(answer.p_value),
                answer.verdict,
            )
        )
    name = verdict.runs[other].name
    return Grid(
        key=key,
        title=f"For most users, against {name}",
        caption=f"Users for whom the run is better than {name}, worse, and alike; share: better "
        "among those who differ, with the interval of Clopper and Pearson; p: exact sign test. "
        "Level and p allow for other comparisons as in the table of means",
        headers=(
            *("run", "better", "worse", "alike", "share"),
            *("interval", "level", "p", "for most users"),
        ),
        rows=tuple(rows),
    )


def beside(verdict: Verdict) -> Grid:
    """Means of other metrics."""
    rows = [
        (verdict.runs[model].marked, *(number(of[model]) for of in verdict.beside.values()))
        for model in verdict.order
    ]
    return Grid(
        key="beside",
        title="Other metrics",
        caption="Means over users" if verdict.board.n_users > 1 else "Of the same reviews",
        headers=("run", *verdict.beside),
        rows=tuple(rows),
    )


def against(verdict: Verdict) -> Grid:
    """Paired differences to the baseline."""
    base = verdict.baseline
    lower = "above" if verdict.better == "higher" else "below"
    over = "user by user"
    if verdict.board.n_users == 1:
        over = "review by review, with standard errors clustered by card and by day"
    return Grid(
        key="against_baseline",
        title=f"Against {verdict.runs[base].name}",
        caption=f"Mean paired difference, {over}; {lower} 0 is better than the baseline. Interval "
        "and p both allow for the number of comparisons by Holm's method, those of the leader for "
        "its having been chosen by looking, as in the leaderboard",
        headers=("run", "difference", "interval", "level", "p", "on average"),
        rows=tuple(
            (verdict.runs[model].marked, *difference_cells(verdict.board.to_baseline[model]))
            for model in verdict.order
            if model != base
        ),
    )


def sources(verdict: Verdict) -> Grid:
    """Say where each run was read from."""
    rows = [
        (
            run.marked,
            run.data,
            run.protocol,
            f"{len(run.rows):,}",
            run.fits.in_words or "as planned",
            str(run.summary.get("tags", {}).get("config_hash", "-")),
            str(run.place),
        )
        for run in verdict.paired.every_run
    ]
    return Grid(
        key="runs",
        title="Where they come from",
        caption="In the order they were given; settings: digest of the configuration",
        headers=(
            "run",
            "data",
            "protocol",
            "users scored",
            "exceptional fits",
            "settings",
            "folder",
        ),
        rows=tuple(rows),
        text=7,
    )


def _bounds(board: Board, model: int) -> str:
    return interval(float(board.lo[model]), float(board.hi[model]))
