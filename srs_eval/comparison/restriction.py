"""Restrict runs to the reviews they all scored.

Common reviews are found in saved predictions, user by user: no more than one user of each run is
in memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.predictions import (
    OwnPredictions,
    not_its_own,
    require_same_rows,
)
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.predictions import OPTIONAL_COLUMNS, Predictions, rows_fingerprint, select
from srs_eval.runs.folder import PREDICTIONS

# Columns that do not depend on the run. Logs that differ in one of them are different logs.
_SAME = {"recalled": "outcomes", "card": "cards", "day": "days"}
# Other inputs of metrics. Protocols may count them differently; those of one run serve all runs.
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in _SAME)


@dataclass(frozen=True, slots=True)
class Restricted:
    """Runs with new scores of some users, computed on the reviews in common."""

    runs: tuple[Entry, ...]  # Runs with new scores, digests and numbers of reviews of those users
    users: tuple[User, ...] = ()  # Users with reviews in common
    without: tuple[User, ...] = ()  # Users without
    lost: tuple[str, ...] = ()  # Metrics of some run that cannot be computed from saved predictions


# What a run has of a user on the reviews in common: their digest and number, and scores by metric.
_Rescored = tuple[str, int, Mapping[str, float]]


def restrict(runs: Sequence[Entry], users: Sequence[User]) -> Restricted:
    """Compute the scores of users, whom all runs scored, on the reviews that all runs scored."""
    panel = default_panel()
    files = [OwnPredictions(run) for run in runs]
    rescored: list[dict[User, _Rescored]] = [{} for _ in runs]
    for user in users:
        common = _in_common(runs, [_own(file, user) for file in files])
        if not len(common[0]):
            continue
        # one run's columns by which metrics group reviews, to group those of all runs alike
        facts = {name: getattr(common[0], name) for name in _FACTS}
        for of_run, predictions in zip(rescored, common, strict=True):
            own = replace(predictions, **facts)
            of_run[user] = rows_fingerprint(own), len(own), panel.score(own)
    return Restricted(
        tuple(map(_with_scores, runs, rescored)),
        tuple(rescored[0]),
        tuple(user for user in users if user not in rescored[0]),
        _lost(runs, rescored) if rescored[0] else (),
    )


def _with_scores(run: Entry, rescored: Mapping[User, _Rescored]) -> Entry:
    """Replace the scores of some users; metrics that cannot be computed are NaN."""
    scores = {name: column.copy() for name, column in run.scores.items()}
    place = {user: number for number, user in enumerate(run.rows)}
    rows, reviews = dict(run.rows), dict(run.reviews)
    for user, (digest, count, found) in rescored.items():
        rows[user], reviews[user] = digest, count
        for name, column in scores.items():
            column[place[user]] = found.get(name, math.nan)
    return replace(run, rows=rows, reviews=reviews, scores=scores)


class SameReviews:
    """The predictions of runs for the same reviews in the same order, read user by user."""

    def __init__(self, runs: Sequence[Entry], restricted: Collection[User] = ()) -> None:
        self.runs = [n for n, run in enumerate(runs) if run.has_predictions]  # those that saved
        self._files = [OwnPredictions(runs[n]) for n in self.runs]
        self._restricted = restricted

    def read(self, user: User) -> dict[int, Predictions]:
        """Return the predictions of a user by the number of the run.

        Of a restricted user, these are the reviews in common; otherwise any other review is an
        error.
        """
        runs = [file.entry for file in self._files]
        found = [file.read(user) for file in self._files]
        if not found:
            return {}
        first = found[0]
        if first is None:
            raise not_its_own(runs[0], user)
        if user in self._restricted:
            of_runs = [one if one is not None else select(first, slice(0)) for one in found]
            same = _in_common(runs, of_runs)
        else:
            same = [
                require_same_rows(run, first, one) for run, one in zip(runs, found, strict=True)
            ]
        for file, one in zip(self._files, same, strict=True):
            if len(one) != file.entry.reviews[user]:
                raise not_its_own(file.entry, user)
            file.check(one)
        return dict(zip(self.runs, same, strict=True))


def _in_common(runs: Sequence[Entry], of_runs: Sequence[Predictions]) -> list[Predictions]:
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
    if found is None or rows_fingerprint(found) != file.entry.rows[user]:
        raise not_its_own(file.entry, user)
    file.check(found)
    return found


def _require_one_prediction(run: Entry, predictions: Predictions) -> None:
    twice = np.flatnonzero(np.diff(predictions.row) == 0)
    if len(twice):
        raise ConfigError(
            f"{run.place / PREDICTIONS}: {run.name} scored review {predictions.row[twice[0]] + 1} "
            f"of user {predictions.users[0]} in more than one fold, so it has no single "
            "prediction to compare"
        )


def _require_same_log(first_run: Entry, run: Entry, first: Predictions, other: Predictions) -> None:
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


def _lost(runs: Sequence[Entry], rescored: Sequence[Mapping[User, _Rescored]]) -> tuple[str, ...]:
    """List the metrics that some run had and that no user has on the reviews in common."""
    lost: dict[str, None] = {}
    for run, of_run in zip(runs, rescored, strict=True):
        for name in run.scores:
            known = [found.get(name, math.nan) for _, _, found in of_run.values()]
            if not np.isnan(run.values(name, [*of_run])).all() and np.isnan(known).all():
                lost[name] = None
    return tuple(lost)
