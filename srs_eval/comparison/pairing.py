"""Pair runs on the same reviews of the same users, or explain why they cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from srs_eval.comparison.entry import Entry, usual_protocol
from srs_eval.comparison.predictions import SAME, SameReviews
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.predictions import OPTIONAL_COLUMNS, rows_fingerprint

# Other inputs of metrics. Protocols may count them differently; those of one run serve all runs
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in SAME)


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
    yardsticks: Sequence[Entry] = (),
    *,
    intersect: bool = False,
    users: Sequence[User] | None = None,
    notes: Sequence[str] = (),
) -> Paired:
    """Pair runs user by user; parameters are those of `srs_eval.comparison.compare.compare`."""
    every = (*runs, *yardsticks)
    known = chain.from_iterable((*run.rows, *run.incomplete) for run in runs or every)
    scored = {*chain.from_iterable(run.rows for run in runs or every)}
    users = [user for user in dict.fromkeys(known if users is None else users) if user in scored]
    same = shared_users(every, users)
    alike = {*same}
    different = [user for user in users if user not in alike]
    by_all = [user for user in different if all(user in run.rows for run in every)]
    unsaved = [run.name for run in every if not run.has_predictions]
    restrictable = [] if unsaved else by_all
    if different and not intersect:
        hint = "\n  intersect=true compares them on the reviews that all of them scored"
        raise ConfigError(
            "these runs did not score the same reviews, so their scores cannot be compared:\n"
            + "\n".join(f"  - {line}" for line in _differences(runs, every, different))
            + hint * bool(same or restrictable)
        )
    if restrictable:
        every, anew = _restricted(every, restrictable)
        alike |= anew
    both = tuple(user for user in users if user in alike)
    if not both:
        raise ConfigError(
            "there is no user for whom all runs scored the same reviews\n"
            + "\n".join(_differences(runs, every, different))
        )
    reviews = np.array([every[0].reviews[user] for user in both], np.int64)
    notes = [*notes]
    if different:
        most = sum(max(run.reviews.get(u, 0) for run in (*runs, *yardsticks)) for u in users)
        notes.append(
            f"Restricted to what all runs scored: {int(reviews.sum()):,} of "
            f"{counted(most, 'review')}, {len(both):,} of {counted(len(users), 'user')}"
        )
    if unsaved and by_all:
        notes.append(
            f"{listed(unsaved)} kept no predictions: users for whom runs scored different reviews "
            "are left out, although they may have reviews in common"
        )
    return Paired(every, both, reviews, (*notes, *_caveats(every)))


def shared_users(runs: Sequence[Entry], users: Sequence[User] | None = None) -> list[User]:
    """List the `users` (by default of the first run) for whom all runs scored the same reviews.

    These are as many, and have the same digest in all runs that know it.
    """
    alike = []
    for of_runs in ([run.reviews for run in runs], [run.rows for run in runs if run.has_digests]):
        if of_runs:
            alike.append((of_runs[0], [each for each in of_runs if each != of_runs[0]]))
    return [
        user
        for user in (runs[0].rows if users is None else users)
        if all(
            user in first and all(other.get(user) == first[user] for other in others)
            for first, others in alike
        )
    ]


def _differences(
    runs: Sequence[Entry], every: Sequence[Entry], users: Sequence[User]
) -> Iterator[str]:
    """Describe how each run differs from the reviews that most runs scored."""
    usual: dict[User, Entry] = {}
    for user in users:
        own = [run for run in runs or every if user in run.rows]
        own = [run for run in own if run.rows[user]] or own
        scored = [(run.rows[user], run.reviews[user]) for run in own]
        usual[user] = own[scored.index(max(scored, key=scored.count))]
    for run in every:
        lost = [user for user in users if user in run.incomplete]
        absent = [user for user in users if user not in run.rows and user not in lost]
        other = [user for user in users if user in run.rows and _differ(run, usual[user], user)]
        if lost:
            yield f"{run.name} has no scores of {_users(lost)}: a fit failed or was skipped"
        if absent:
            yield f"{run.name} did not score {_users(absent)}"
        if other:
            like, user = usual[other[0]], other[0]
            yield (
                f"{run.name} scored other reviews than {like.name} of {_users(other)}: "
                f"{run.reviews[user]:,} and {like.reviews[user]:,} of user {user}, by "
                f"{_differ(run, like, user)}"
            )


def _differ(run: Entry, other: Entry, user: User) -> str:
    """Say by what the reviews of a user differ: their number, or digest if both runs know it."""
    if run.reviews[user] != other.reviews[user]:
        return "number"
    digests = {run.rows[user], other.rows[user]} - {""}
    return "digest" if len(digests) > 1 else ""


def _restricted(
    runs: Sequence[Entry], users: Sequence[User]
) -> tuple[tuple[Entry, ...], set[User]]:
    """Score users, whom all runs scored, on the reviews that all runs scored.

    Return the runs with new digests, numbers of reviews and scores of the users who have reviews in
    common, and these users. Metrics that cannot be computed from saved predictions are NaN.
    """
    panel, same, restricted = default_panel(), SameReviews(runs), set[User]()
    anew = tuple(
        replace(
            run,
            rows=dict(run.rows),
            reviews=dict(run.reviews),
            scores={name: column.copy() for name, column in run.scores.items()},
        )
        for run in runs
    )
    places = [{user: number for number, user in enumerate(run.rows)} for run in runs]
    for user in users:
        common = [*same.read(user).values()]
        if not len(common[0]):
            continue
        restricted.add(user)
        # One run's columns by which metrics group reviews, to group those of all runs alike
        facts = {name: getattr(common[0], name) for name in _FACTS}
        for run, place, predictions in zip(anew, places, common, strict=True):
            own = replace(predictions, **facts)
            scores = panel.score(own)
            run.rows[user], run.reviews[user] = rows_fingerprint(own), len(own)
            for name, column in run.scores.items():
                column[place[user]] = scores.get(name, math.nan)
    return anew, restricted


def _caveats(runs: Sequence[Entry]) -> Iterator[str]:
    """Say what is not certain."""
    published = [run.name for run in runs if not run.has_digests]
    if published:
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
