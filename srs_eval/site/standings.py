"""The numbers that pages show of a board, for each metric: those of `srs_eval.comparison`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from srs_eval.comparison.by_users import extremes_of
from srs_eval.comparison.leaderboard import Leaderboard
from srs_eval.comparison.standing import Standing
from srs_eval.comparison.strata import FACTS
from srs_eval.comparison.verdict import Verdict, complete
from srs_eval.nouns import FloatArray, IntArray
from srs_eval.results.remarks import worse_than_a_constant
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.paired import Weighting, paired_signs, user_weights
from srs_eval.stats.significance import ALPHA, holm

WEIGHTINGS: tuple[Weighting, ...] = ("users", "reviews")
(_SIZE,) = (fact for fact in FACTS if fact.name == "size")
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


def boards_of(verdict: Verdict) -> dict[Weighting, Leaderboard]:
    """Return the leaderboards that are shown; those of a single user are the same."""
    boards = verdict.leaderboards
    return dict(zip(WEIGHTINGS, boards if len(boards) > 1 else boards * 2, strict=False))


def standings(verdict: Verdict) -> dict[str, Any]:
    """Return means, and every model against its leader and against each model as a baseline."""
    boards = boards_of(verdict).items()
    return {"n_users": len(verdict.users), **{name: _table(verdict, each) for name, each in boards}}


def _table(verdict: Verdict, board: Leaderboard) -> dict[str, Any]:
    letters = [""] * len(verdict.runs)
    for when in verdict.times:
        for number, group in enumerate(cliques(verdict, board, when)):
            for model in group:
                letters[model] += chr(ord("a") + number % 26) + "'" * (number // 26)
    return {
        "means": np.column_stack([board.mean, board.lo, board.hi]).tolist(),
        "order": board.order,
        "groups": letters,
        "said": [_said(verdict, board, leader) for leader in board.groups if leader >= 0],
        "best": [_row(standing) for standing in board.to_best],
        "against": [
            [_row(standing) for standing in board.against(n)] for n in range(len(verdict.runs))
        ],
    }


def _row(standing: Standing) -> list[Any]:
    """Return the numbers of a row of the table, in the order in which its script reads them."""
    average, counts = standing.average, standing.counts
    mean = standing.difference.mean
    found = [mean, average.lo, average.hi, average.p_value, average.verdict]
    return [*found, counts.better, counts.worse]


def _said(verdict: Verdict, board: Leaderboard, leader: int) -> list[str]:
    """Return when a leader predicts, and what is said of it."""
    run = verdict.runs[leader]
    verb = "predicts best" if board.to_best[leader].average.verdict == "best" else "leads"
    but = worse_than_a_constant(run, verdict.paired.users)
    return [run.when, f"{run.name} {verb}{f', but {but}' if but else ''}."]


def cliques(verdict: Verdict, board: Leaderboard, when: str) -> list[list[int]]:
    """Return neighbours in the order of one time, no two of them significantly different."""
    group = [n for n in board.order if verdict.runs[n].when == when and not np.isnan(board.mean[n])]
    pairs = list(combinations(range(len(group)), 2))
    adjusted = holm([board.pairs[group[b]][group[a]].p_value for a, b in pairs]).p_value
    differ = [pair for pair, p in zip(pairs, adjusted, strict=True) if p < ALPHA]
    # the first model that differs from none up to each other one
    first = [max((a + 1 for a, b in differ if b <= last), default=0) for last in range(len(group))]
    return [
        group[start : last + 1]
        for last, (start, following) in enumerate(pairwise([*first, len(group)]))
        if start < last and start < following
    ]


def of_model(verdict: Verdict, model: int) -> dict[str, Any]:
    """Return the scores of a model over its users, and its differences to each other model."""
    known = verdict.every_score[:, model]
    known = known[~np.isnan(known)]
    return {
        "n_users": len(known),
        "quantiles": np.quantile(known, _SHARES).tolist() if len(known) else [],
        "histogram": histogram(known),
        "ranks": _ranks(verdict, model),
        "against": [difference(verdict, model, other) for other in range(len(verdict.runs))],
    }


def _ranks(verdict: Verdict, model: int) -> dict[str, Any] | None:
    """Return the ranks of a model over users, among those with the same leader."""
    board = verdict.leaderboard
    peers = board.groups[board.leaders[model]]
    if len(peers) < 2 or np.isnan(board.mean[model]) or not len(verdict.users):
        return None
    theirs, own = board.sign * verdict.scores[:, peers], board.sign * verdict.scores[:, [model]]
    # 1 is best, and ties share a rank, with the model itself among them
    own = 0.5 + (theirs < own).sum(axis=1) + (theirs == own).sum(axis=1) / 2
    ends, median = (0.5, len(peers) + 0.5), float(np.median(own))
    return {
        "peers": len(peers),
        "mean": float(own.mean()),
        "first": float(np.mean(own == 1)),
        "histogram": _binned(own, ends, len(peers), median),
    }


def difference(verdict: Verdict, model: int, other: int) -> dict[str, Any]:
    """Return the numbers of a model less another, on all users with scores of both.

    Intervals and p-values are not adjusted for others.
    """
    scores = verdict.every_score[:, [model, other]]
    kept = np.flatnonzero(complete(scores))
    ours, theirs = np.ascontiguousarray(scores[kept].T)
    reviews, sign = verdict.paired.reviews[kept], verdict.leaderboard.sign
    counts = paired_signs(sign * ours, sign * theirs)
    most = extremes_of(ours - theirs, kept.tolist(), sign=sign)
    place = _SIZE.stratum(reviews)
    inside = {label: np.flatnonzero(place == n) for n, label in enumerate(_SIZE.labels)}
    return {
        "n_users": len(kept),
        "counts": counts,
        "share": counts.interval(),
        "extremes": [[(str(verdict.paired.users[int(n)]), by) for n, by in each] for each in most],
        "histogram": histogram(ours - theirs, zero=True),
        **{
            name: _weighted(ours, theirs, user_weights(reviews, name), inside)
            for name in WEIGHTINGS
        },
    }


def _weighted(
    ours: FloatArray, theirs: FloatArray, weights: FloatArray, inside: Mapping[str, IntArray]
) -> dict[str, Any]:
    """Return means, their difference, and its strata, of which `inside` has the users."""
    gap = ours - theirs
    size = float(max(np.abs(ours).max(initial=0.0), np.abs(theirs).max(initial=0.0)))
    found = mean_of_users(gap, weights, size=size)
    strata = []
    for label, users in inside.items():
        if len(users):
            part = mean_of_users(gap[users], weights[users], size=1.0)
            strata.append([label, len(users), part.mean, *part.interval()])
    return {
        "means": [_mean(each, weights) for each in (ours, theirs)],
        "difference": [found.mean, *found.interval()],
        "p": found.p_value,
        "alike": found.is_zero,
        "strata": strata,
    }


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(np.average(values, weights=weights)) if weights.any() else math.nan


def histogram(values: FloatArray, *, zero: bool = False) -> dict[str, Any] | None:
    """Count the users with each value, those beyond half a percent on each side in the last bars.

    Marked is the median, or 0 if `zero`. None of fewer than two users, or without values.
    """
    if len(values) < 2 or np.isnan(values).all():
        return None
    low, high = np.quantile(values, (0.005, 0.995)).tolist()
    margin = 0.02 * (high - low) or 0.02 * abs(high) or 1.0
    low, high = low - margin, high + margin
    ends = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    bins = max(8, min(48, int(np.ceil(2 * np.cbrt(len(values))))))
    return _binned(values, ends, bins, 0.0 if zero else float(np.median(values)))


def _binned(values: FloatArray, ends: Sequence[float], bins: int, mark: float) -> dict[str, Any]:
    place = np.floor((values - ends[0]) / (ends[1] - ends[0]) * bins).astype(np.int64)
    counts = np.bincount(np.clip(place, 0, bins - 1), minlength=bins)
    return {"ends": ends, "counts": counts.tolist(), "mark": mark}
