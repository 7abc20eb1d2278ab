"""The tables of a comparison, as text cells: every output is made of the same ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

from srs_eval.comparison.board import Board
from srs_eval.comparison.verdict import Verdict
from srs_eval.report.compare_grid import Grid
from srs_eval.report.compare_parts import extremes, rank_grid, shares, strata_grid
from srs_eval.report.compare_words import p_text, percent, signed
from srs_eval.report.console import interval, number

_WEIGHTED = {
    "users": ("Each user counts once: the typical user", ""),
    "reviews": ("Each review counts once: the typical review", ""),
    "log_reviews": (
        "Users weighted by the logarithm of their reviews",
        "estimates nothing, and is here to compare with tables made so; ",
    ),
}


def grids(verdict: Verdict) -> Iterator[Grid]:
    """Every table of a comparison, in the order of a report."""
    for board in verdict.boards:
        yield leaderboard(verdict, board)
    if verdict.beside:
        yield beside(verdict)
    if len(verdict.runs) > 1:
        yield against(verdict) if verdict.board.n_users > 1 else against_on_one_user(verdict)
        if verdict.board.n_users > 1:
            yield shares(verdict)
            yield rank_grid(verdict)
        if verdict.where is not None:
            for fact, strata in verdict.where.facts:
                yield strata_grid(verdict, verdict.where, fact, strata)
        if verdict.board.n_users > 1:
            yield extremes(verdict)
    yield sources(verdict)


def leaderboard(verdict: Verdict, board: Board) -> Grid:
    """Rank the runs for one weighting of users."""
    title, meaning = _WEIGHTED[board.weighting]
    rows = []
    for model in board.order:
        row = [verdict.runs[model].marked, _value(board.mean[model]), _bounds(board, model)]
        if board.best < 0 or model == board.best:
            row += ["", "", "", "best" if model == board.best else ""]
        else:
            at = (model, board.best)
            row += [signed(board.gap[at]), interval(board.gap_lo[at], board.gap_hi[at])]
            row += [p_text(board.p_value[at]), board.standing(model)]
        rows.append(tuple(row))
    alike = {"best", "not told apart"}
    bold = {n for n, model in enumerate(board.order) if board.standing(model) in alike}
    counted = "1 user; "
    if board.n_users > 1:
        counted = f"{board.n_users:,} users, as good as {board.effective:,.1f} of equal weight; "
    return Grid(
        key=f"leaderboard_{board.weighting}",
        title=title if board.n_users > 1 else "Leaderboard",
        caption=f"{counted}{meaning}to best: mean paired difference to the best run, with the "
        "interval of that pair alone; p is adjusted over all pairs of the table, and the verdict "
        "is p at 1 %",
        headers=(
            "run",
            verdict.metric,
            "99 % interval",
            "to best",
            "99 % interval",
            "p",
            "verdict",
        ),
        rows=tuple(rows),
        bold=frozenset(bold),
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
    board, base = verdict.board, verdict.baseline
    rows = []
    for model in verdict.order:
        if model == base:
            continue
        found = verdict.against[model]
        rows.append(
            (
                verdict.runs[model].marked,
                signed(board.gap[model, base]),
                interval(board.gap_lo[model, base], board.gap_hi[model, base]),
                p_text(found.p_holm, floor=1e-12),
                "-" if math.isnan(found.p_holm) else number(found.test.effect, 2),
                percent(found.share),
                f"{percent(found.share_lo)} to {percent(found.share_hi)}",
                f"{found.n_tied:,}",
            )
        )
    lower = "above" if verdict.better == "higher" else "below"
    return Grid(
        key="against_baseline",
        title=f"Against {verdict.runs[base].name}",
        caption=f"Mean paired difference, {lower} 0 is better than the baseline; Wilcoxon's "
        "signed-rank test of it, adjusted by Holm, with its effect size (0.1 small, 0.3 medium, "
        "0.5 large); users for whom the run is better, ties half, with a 99 % interval",
        headers=(
            "run",
            "difference",
            "99 % interval",
            "p (Holm)",
            "effect",
            "better for",
            "99 % interval",
            "ties",
        ),
        rows=tuple(rows),
    )


def against_on_one_user(verdict: Verdict) -> Grid:
    """Differences to the baseline on a single user, review by review."""
    board, base = verdict.board, verdict.baseline
    rows = [
        (
            verdict.runs[model].marked,
            signed(board.gap[model, base]),
            interval(board.gap_lo[model, base], board.gap_hi[model, base]),
            p_text(board.p_value[model, base], floor=1e-12),
        )
        for model in verdict.order
        if model != base
    ]
    return Grid(
        key="against_baseline",
        title=f"Against {verdict.runs[base].name}",
        caption="Mean difference over reviews; intervals from standard errors clustered by card "
        "and by day, the wider of the two; p adjusted by Holm over all pairs",
        headers=("run", "difference", "99 % interval", "p"),
        rows=tuple(rows),
    )


def sources(verdict: Verdict) -> Grid:
    """Say where each run was read from."""
    rows = [
        (
            run.marked,
            run.data,
            run.protocol,
            f"{len(run.rows):,}",
            str(run.summary.get("failed", "-")),
            str(run.summary.get("tags", {}).get("config_hash", "-")),
            str(run.place),
        )
        for run in verdict.runs
    ]
    return Grid(
        key="runs",
        title="Where they come from",
        caption="In the order they were given; settings: digest of the configuration",
        headers=("run", "data", "protocol", "users scored", "failed fits", "settings", "folder"),
        rows=tuple(rows),
        text=7,
    )


def _value(value: float) -> str:
    return number(float(value))


def _bounds(board: Board, model: int) -> str:
    return interval(float(board.lo[model]), float(board.hi[model]))
