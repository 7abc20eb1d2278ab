"""Pair runs on the same reviews of the same users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from srs_eval.comparison.entry import Entry, protocols, usual_protocol
from srs_eval.comparison.identical import Duplicate, find_duplicates
from srs_eval.comparison.matching import Matching, users_of
from srs_eval.comparison.restriction import Restricted, restrict
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Paired:
    """Runs that scored the same reviews of the same users."""

    runs: tuple[Entry, ...]
    users: tuple[User, ...]
    reviews: IntArray  # [users]: Scored reviews of each user
    # What was left out and what could not be verified, for every output
    notes: tuple[str, ...] = ()
    # Users for whom runs scored further reviews, which do not count here
    restricted: frozenset[User] = frozenset()
    # Runs with the predictions of one of `runs`, and left out of it
    duplicates: tuple[Duplicate, ...] = ()

    @property
    def every_run(self) -> tuple[Entry, ...]:
        """The runs and their duplicates."""
        return (*self.runs, *(duplicate.run for duplicate in self.duplicates))

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
    """Pair runs user by user, or explain why they cannot be compared.

    Parameters are those of `srs_eval.comparison.compare.compare`.
    """
    every = (*runs, *yardsticks)
    if users is None:
        known = (chain(run.rows, run.incomplete) for run in (runs or every))
        users = list(dict.fromkeys(chain.from_iterable(known)))
    match = Matching(every, tuple(runs), tuple(users))
    if match.different and not intersect:
        raise ConfigError(match.refusal())
    restrictable = match.restrictable()
    part = restrict(every, restrictable) if restrictable else Restricted(every)
    both = tuple(user for user in users if user in match.same or user in part.users)
    if not both:
        raise ConfigError(
            "there is no user for whom all runs scored the same reviews\n"
            + "\n".join(match.differences())
        )
    reviews = np.array([part.runs[0].reviews[user] for user in both], np.int64)
    duplicates = find_duplicates(part.runs, both)
    left_out = [id(duplicate.run) for duplicate in duplicates]
    return Paired(
        runs=tuple(run for run in part.runs if id(run) not in left_out),
        users=both,
        reviews=reviews,
        notes=(
            *notes,
            *_notes(match, int(reviews.sum()), len(both), part),
            *(duplicate.in_words for duplicate in duplicates),
        ),
        restricted=frozenset(part.users),
        duplicates=tuple(duplicates),
    )


def _notes(match: Matching, reviews: int, users: int, part: Restricted) -> Iterator[str]:
    """Say what part of the runs is compared, unless it is everything, and what is not certain."""
    runs, most = match.runs, len(match.scored)
    if users < most or part.users:
        every = sum(max(run.reviews.get(user, 0) for run in runs) for user in match.scored)
        yield (
            f"Restricted to what all runs scored: {reviews:,} of {counted(every, 'review')}, "
            f"{users:,} of {counted(most, 'user')}"
            + (f"; {counted(len(part.users), 'user')} scored anew" if part.users else "")
        )
        without = [run.name for run in runs if not run.has_predictions]
        if without and len(match.by_all(match.scored)) > users:
            yield (
                f"{listed(without)} kept no predictions: users for whom runs scored different "
                "reviews are left out, although they may have reviews in common"
            )
        if part.without:
            yield f"Left out, as they have no review that all scored: {users_of(part.without)}"
        if part.lost:
            left = "are left out" if users == len(part.users) else "are of the other users only"
            yield f"Saved predictions do not give {', '.join(part.lost)}, which {left}"
    published = [run.name for run in runs if not run.has_digests]
    if published:
        yield (
            f"Published: {listed(published)}. Users were matched by name and number of reviews; it "
            "is not known which reviews these are, nor which models learned from other users"
        )
    names = protocols(runs)
    if len(names) > 1:
        yield (
            f"Several protocols ({', '.join(names)}), compared on the same reviews; names without "
            f"one: {usual_protocol(runs)}"
        )
