"""Restrict runs to the reviews that they all scored, which are found in saved predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.predictions import SAME, OwnPredictions, in_common
from srs_eval.data.reviews import User
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.predictions import OPTIONAL_COLUMNS, rows_fingerprint

# Other inputs of metrics. Protocols may count them differently; those of one run serve all runs.
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in SAME)
# What a run has of a user on the reviews in common: their digest and number, and scores by metric.
_Rescored = tuple[str, int, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Restricted:
    """Runs with new scores of some users, computed on the reviews in common."""

    runs: tuple[Entry, ...]  # With new scores, digests and numbers of reviews of those users
    users: tuple[User, ...] = ()  # Users with reviews in common
    without: tuple[User, ...] = ()  # Users without
    lost: tuple[str, ...] = ()  # Metrics that cannot be computed from saved predictions


def restrict(runs: Sequence[Entry], users: Sequence[User]) -> Restricted:
    """Compute the scores of users, whom all runs scored, on the reviews that all runs scored."""
    panel = default_panel()
    files = [OwnPredictions(run) for run in runs]
    rescored: list[dict[User, _Rescored]] = [{} for _ in runs]
    for user in users:
        common = in_common(runs, [file.read_own(user) for file in files])
        if not len(common[0]):
            continue
        # one run's columns by which metrics group reviews, to group those of all runs alike
        facts = {name: getattr(common[0], name) for name in _FACTS}
        for of_run, predictions in zip(rescored, common, strict=True):
            own = replace(predictions, **facts)
            of_run[user] = rows_fingerprint(own), len(own), panel.score(own)
    both = list(zip(runs, rescored, strict=True))
    lost = {
        name: None
        for run, of_run in both
        for name in run.scores
        if not np.isnan(run.values(name, [*of_run])).all()
        and all(math.isnan(scores.get(name, math.nan)) for _, _, scores in of_run.values())
    }
    return Restricted(
        tuple(_with_scores(run, of_run) for run, of_run in both),
        tuple(rescored[0]),
        tuple(user for user in users if user not in rescored[0]),
        tuple(lost) if rescored[0] else (),
    )


def _with_scores(run: Entry, rescored: Mapping[User, _Rescored]) -> Entry:
    """Replace the scores of some users; metrics that cannot be computed are NaN."""
    scores = {name: column.copy() for name, column in run.scores.items()}
    place = {user: number for number, user in enumerate(run.rows)}
    rows, reviews = dict(run.rows), dict(run.reviews)
    for user, (digest, count, anew) in rescored.items():
        rows[user], reviews[user] = digest, count
        for name, column in scores.items():
            column[place[user]] = anew.get(name, math.nan)
    return replace(run, rows=rows, reviews=reviews, scores=scores)
