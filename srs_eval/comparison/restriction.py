"""Restrict runs to the reviews they all scored.

Common reviews are found in saved predictions, user by user: no more than one user of each run is
in memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.nouns import OPTIONAL_COLUMNS, Predictions, User
from srs_eval.nouns.predictions import rows_fingerprint, select
from srs_eval.results.files import PREDICTIONS
from srs_eval.results.run import Run
from srs_eval.results.saved_predictions import (
    OwnPredictions,
    not_its_own,
    require_same_rows,
)

# Columns that do not depend on the run. Logs that differ in one of them are different logs.
_SAME = {"recalled": "outcomes", "card": "cards", "day": "days"}
# Other inputs of metrics. Protocols may count them differently; those of one run serve all runs.
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in _SAME)


@dataclass(frozen=True, slots=True)
class Restricted:
    """Runs with new scores of some users, computed on the reviews in common."""

    runs: tuple[Run, ...]  # Runs with new scores, digests and numbers of reviews of those users
    users: tuple[User, ...] = ()  # Users with reviews in common
    without: tuple[User, ...] = ()  # Users without
    lost: tuple[str, ...] = ()  # Metrics of some run that cannot be computed from saved predictions


@dataclass(slots=True)
class _Rescored:
    """Scores of a run on the reviews in common, by user."""

    digests: dict[User, str] = field(default_factory=dict)
    reviews: dict[User, int] = field(default_factory=dict)
    scores: dict[User, Mapping[str, float]] = field(default_factory=dict)

    def add(self, user: User, predictions: Predictions, panel: Panel) -> None:
        self.digests[user] = rows_fingerprint(predictions)
        self.reviews[user] = len(predictions)
        self.scores[user] = panel.score(predictions)

    def put_into(self, run: Run) -> Run:
        """Replace the scores of these users; metrics that cannot be computed are NaN."""
        scores = {name: column.copy() for name, column in run.scores.items()}
        place = {user: number for number, user in enumerate(run.rows)}
        for user, found in self.scores.items():
            for name, column in scores.items():
                column[place[user]] = found.get(name, math.nan)
        return replace(
            run,
            rows={**run.rows, **self.digests},
            reviews={**run.reviews, **self.reviews},
            scores=scores,
        )


def restrict(runs: Sequence[Run], users: Sequence[User]) -> Restricted:
    """Compute the scores of users, whom all runs scored, on the reviews that all runs scored."""
    panel = default_panel()
    files = [OwnPredictions(run) for run in runs]
    rescored = [_Rescored() for _ in runs]
    shared: list[User] = []
    without: list[User] = []
    for user in users:
        of_runs = [_own(file, user) for file in files]
        common = _in_common(runs, of_runs)
        (shared if len(common[0]) else without).append(user)
        for to, predictions in zip(rescored, common, strict=True):
            if len(predictions):
                to.add(user, _with_facts_of(common[0], predictions), panel)
    return Restricted(
        tuple(to.put_into(run) for to, run in zip(rescored, runs, strict=True)),
        tuple(shared),
        tuple(without),
        _lost(runs, rescored) if shared else (),
    )


def same_reviews(
    files: Sequence[OwnPredictions], user: User, *, restricted: bool
) -> list[Predictions]:
    """Read the predictions of a user by each run, for the same reviews in the same order.

    If `restricted`, these are the reviews in common; otherwise any other review is an error.
    """
    runs = [file.run for file in files]
    found = [file.read(user) for file in files]
    first = found[0]
    if first is None:
        raise not_its_own(runs[0], user)
    if restricted:
        of_runs = [one if one is not None else select(first, slice(0)) for one in found]
        same = _in_common(runs, of_runs)
    else:
        pairs = zip(runs[1:], found[1:], strict=True)
        same = [first, *(require_same_rows(run, first, other) for run, other in pairs)]
    for file, one in zip(files, same, strict=True):
        if len(one) != file.run.reviews[user]:
            raise not_its_own(file.run, user)
        file.check(one)
    return same


def _in_common(runs: Sequence[Run], of_runs: Sequence[Predictions]) -> list[Predictions]:
    """Select the reviews of a user that all runs predicted, ordered by row."""
    for run, one in zip(runs, of_runs, strict=True):
        _require_one_prediction(run, one)
    rows = reduce(np.intersect1d, [one.row for one in of_runs])
    common = [select(one, np.isin(one.row, rows)) for one in of_runs]
    for run, one in zip(runs[1:], common[1:], strict=True):
        _require_same_log(runs[0], run, common[0], one)
    return common


def _own(file: OwnPredictions, user: User) -> Predictions:
    """Read predictions of a user, and check that they match the scores of the run."""
    found = file.read(user)
    if found is None or rows_fingerprint(found) != file.run.rows[user]:
        raise not_its_own(file.run, user)
    file.check(found)
    return found


def _require_one_prediction(run: Run, predictions: Predictions) -> None:
    twice = np.flatnonzero(np.diff(predictions.row) == 0)
    if len(twice):
        raise ConfigError(
            f"{run.place / PREDICTIONS}: {run.name} scored review {predictions.row[twice[0]] + 1} "
            f"of user {predictions.users[0]} in more than one fold, so it has no single "
            "prediction to compare"
        )


def _require_same_log(first_run: Run, run: Run, first: Predictions, other: Predictions) -> None:
    for name, noun in _SAME.items():
        ours, theirs = getattr(first, name), getattr(other, name)
        if ours is None or theirs is None or not (ours != theirs).any():
            continue
        row = first.row[np.flatnonzero(ours != theirs)[0]]
        raise ConfigError(
            f"{first_run.name} and {run.name} are of different logs: for user {first.users[0]} "
            f"they have different {noun}, first at review {row + 1} of the log, so they have no "
            "reviews in common"
        )


def _with_facts_of(first: Predictions, predictions: Predictions) -> Predictions:
    """Return one run's columns by which metrics group reviews, to group all runs alike."""
    return replace(predictions, **{name: getattr(first, name) for name in _FACTS})


def _lost(runs: Sequence[Run], rescored: Sequence[_Rescored]) -> tuple[str, ...]:
    """List the metrics that some run had and that no user has on the reviews in common."""
    lost: dict[str, None] = {}
    for run, found in zip(runs, rescored, strict=True):
        users = list(found.scores)
        for name in run.scores:
            known = [score.get(name, math.nan) for score in found.scores.values()]
            if not np.isnan(run.values(name, users)).all() and np.isnan(known).all():
                lost[name] = None
    return tuple(lost)
