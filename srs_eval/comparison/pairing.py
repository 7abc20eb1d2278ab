"""Pair runs on the same reviews of the same users, or explain why they cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.comparison.entry import DIGEST, SIZE, Entry, index_of, usual_protocol
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.predictions import OPTIONAL_COLUMNS, Predictions, rows_fingerprint, select
from srs_eval.runs.folder import PREDICTIONS

# Columns that do not depend on the run: logs that differ in one of them are different logs
_SAME = {"recalled": "outcomes", "card": "cards", "day": "days"}
# Other inputs of metrics. Protocols may count them differently; those of one run serve all runs
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in _SAME)


@dataclass(frozen=True, slots=True)
class Paired:
    """Runs that scored the same reviews of the same users."""

    runs: tuple[Entry, ...]
    users: tuple[User, ...]
    reviews: IntArray  # [users]: Scored reviews of each user
    # What was left out and what could not be verified, for every output
    notes: tuple[str, ...] = ()

    def scores(self, metric: str) -> FloatArray:
        """Scores [users, runs]; NaN where not defined."""
        return np.stack([run.values(metric, self.users) for run in self.runs], axis=1)


def pair(
    runs: Sequence[Entry],
    *,
    intersect: bool = False,
    users: Iterable[User] | None = None,
    notes: Sequence[str] = (),
) -> Paired:
    """Pair runs user by user: see `srs_eval.comparison.compare.compare`."""
    own = [run for run in runs if run.run] or runs  # Published ones may have more users
    users = [*(dict.fromkeys(u for run in own for u in run.users) if users is None else users)]
    alike = {*shared_users(runs, users)}
    different = [user for user in users if user not in alike]
    by_all = [user for user in different if all(user in run.scores.index for run in runs)]
    unsaved = [run.name for run in runs if not run.has_predictions]
    restrictable = [] if unsaved else by_all
    if different and not intersect:
        message = "these runs did not score the same reviews, so their scores cannot be compared:"
        lines = [f"  - {line}" for line in _differences(runs, different)]
        if alike or restrictable:
            lines.append("  intersect=true compares them on the reviews that all of them scored")
        raise ConfigError(message, *lines)
    sizes = pd.concat([run.scores[SIZE] for run in runs], axis=1).max(axis=1)
    if restrictable:
        runs, anew = _restricted(runs, restrictable)
        alike |= anew
    both = tuple(user for user in users if user in alike)
    if not both:
        message = "there is no user for whom all runs scored the same reviews"
        raise ConfigError(message, *_differences(runs, different))
    reviews = runs[0].scores[SIZE][index_of(both)].to_numpy(np.int64)
    notes = [*notes]
    if different:
        most = counted(sizes[index_of(users)].sum(), "review")
        notes.append(
            f"Restricted to what all runs scored: {int(reviews.sum()):,} of {most}, "
            f"{len(both):,} of {counted(len(users), 'user')}"
        )
    if unsaved and by_all:
        notes.append(
            f"{listed(unsaved)} kept no predictions: users for whom runs scored different reviews "
            "are left out, although they may have reviews in common"
        )
    return Paired(tuple(runs), both, reviews, (*notes, *_caveats(runs)))


def shared_users(runs: Sequence[Entry], users: Iterable[User] | None = None) -> list[User]:
    """List the users, by default of the first run, of whom all runs scored the same reviews."""
    index = runs[0].scores.index if users is None else index_of(users)
    alike = np.ones(len(index), bool)
    for name, of_runs in ((SIZE, runs), (DIGEST, [run for run in runs if run.has_digests])):
        columns = [run.scores[name].reindex(index) for run in of_runs]
        for column in columns:
            alike &= (column == columns[0]).to_numpy()
    return [*compress(index, alike)]


def _differences(runs: Sequence[Entry], users: Sequence[User]) -> Iterator[str]:
    """Describe how each run differs from the first, or from the first with digests."""
    first = min(runs, key=lambda run: not run.has_digests)
    for run in runs:
        alike, there = {*shared_users([first, run], users)}, run.scores.index
        absent = [user for user in users if user not in there]
        other = [u for u in users if u in there and u in first.scores.index and u not in alike]
        if absent:
            why = ": a fit failed or was skipped" * any(u in run.incomplete for u in absent)
            yield f"{run.name} has no scores of {_users(absent)}{why}"
        if other:
            ours, theirs = (each.scores[SIZE][other[0]] for each in (run, first))
            by = ", by digest" * bool(ours == theirs)
            yield (
                f"{run.name} scored other reviews than {first.name} of {_users(other)}: "
                f"{ours:,} and {theirs:,} of user {other[0]}{by}"
            )


def _restricted(
    runs: Sequence[Entry], users: Sequence[User]
) -> tuple[tuple[Entry, ...], set[User]]:
    """Score users on the reviews that all runs scored; return the runs, and users that have any."""
    panel, restricted = default_panel(), set[User]()
    anew = tuple(replace(run, scores=run.scores.copy()) for run in runs)
    for user, common in zip(users, same_reviews(runs, users), strict=True):
        if not len(common[0]):
            continue
        restricted.add(user)
        # One run's columns by which metrics group reviews, to group those of all runs alike
        facts = {name: getattr(common[0], name) for name in _FACTS}
        for number, predictions in common.items():
            own, scores = replace(predictions, **facts), anew[number].scores
            values: dict[Any, Any] = {
                **panel.score(own),
                SIZE: len(own),
                DIGEST: rows_fingerprint(own),
            }
            scores.loc[user] = [values.get(name, math.nan) for name in scores]
    return anew, restricted


def same_reviews(runs: Sequence[Entry], users: Iterable[User]) -> Iterator[dict[int, Predictions]]:
    """Go through users: predictions of the reviews in common, by the number of a run with any."""
    # Copies: entries outlive comparisons, and many of them must not keep their files open
    saved = {n: copy(each.run) for n, each in enumerate(runs) if each.run and each.has_predictions}
    scores = {n: run.by_user for n, run in saved.items()}
    digests = {n: dict(zip(each.users, each.rows, strict=True)) for n, each in scores.items()}
    for user in users:
        parts = {}
        for number, run in saved.items():
            predictions = run.predictions(user, curves=False)
            if predictions is None or rows_fingerprint(predictions) != digests[number][user]:
                raise ConfigError(
                    f"{run.folder / PREDICTIONS}: the predictions of user {user} are not of the "
                    "reviews that scores.parquet is about; the files are of different runs"
                )
            parts[number] = predictions
        is_same = len({digests[number][user] for number in parts}) == 1
        yield parts if is_same else _in_common([run.name for run in runs], parts)


def _in_common(names: Sequence[str], parts: Mapping[int, Predictions]) -> dict[int, Predictions]:
    """Select the reviews of a user that all runs predicted."""
    rows = reduce(np.intersect1d, [part.row for part in parts.values()])
    common = {n: select(part, np.isin(part.row, rows)) for n, part in parts.items()}
    if twice := [names[n] for n, part in common.items() if len(part) > len(rows)]:
        raise ConfigError(
            f"{listed(twice)} scored a review in more than one fold, so it has no single "
            "prediction to compare"
        )
    first, *others = common
    for column, noun in _SAME.items():
        for other in others:
            ours, theirs = getattr(common[first], column), getattr(common[other], column)
            if ours is not None and theirs is not None and (ours != theirs).any():
                raise ConfigError(
                    f"{names[first]} and {names[other]} are of different logs: for user "
                    f"{common[first].users[0]} they have different {noun}, first at review "
                    f"{rows[(ours != theirs).argmax()] + 1} of the log, so they have no reviews "
                    "in common"
                )
    return common


def _caveats(runs: Sequence[Entry]) -> Iterator[str]:
    """Say what is not certain."""
    if published := [run.name for run in runs if not run.has_digests]:
        yield (
            f"Published: {listed(published)}. Users were matched by name and number of reviews; it "
            "is not known which reviews these are, nor which models learned from other users"
        )
    names = sorted({run.facts.protocol for run in runs} - {""})
    if len(names) > 1:
        yield (
            f"Several protocols ({', '.join(names)}), compared on the same reviews; names without "
            f"one: {usual_protocol(runs)}"
        )


def _users(users: Sequence[User]) -> str:
    return f"user{'s' if len(users) > 1 else ''} {listed(users)}"
