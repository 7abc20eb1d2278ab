"""Pair runs on the same reviews of the same users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from srs_eval.comparison.entry import Entry, protocols, usual_protocol
from srs_eval.comparison.identical import Duplicate, find_duplicates
from srs_eval.comparison.matching import Matching, named_users
from srs_eval.comparison.restriction import Restricted, restrict
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.errors import ConfigError

_UNVERIFIED = (
    "Published runs ({}) do not say which reviews they scored: users were matched by name and "
    "number of scored reviews. Nor do they say which models learned from other users, or while "
    "they were tested, or how many fits fell back"
)


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

    def duplicates_of(self, run: Entry) -> list[Entry]:
        """List the runs with the predictions of `run`."""
        return [one.run for one in self.duplicates if one.twin is run]

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
    found = restrict(every, restrictable) if restrictable else Restricted(every)
    restricted = frozenset(found.users)
    kept = tuple(user for user in users if user in match.same or user in restricted)
    if not kept:
        raise ConfigError(
            "there is no user for whom all runs scored the same reviews\n"
            + "\n".join(match.differences())
        )
    reviews = np.array([found.runs[0].reviews[user] for user in kept], np.int64)
    duplicates = find_duplicates(found.runs, kept)
    published = [run.name for run in every if not run.has_digests]
    left_out = [id(duplicate.run) for duplicate in duplicates]
    return Paired(
        runs=tuple(run for run in found.runs if id(run) not in left_out),
        users=kept,
        reviews=reviews,
        notes=(
            *notes,
            *_restriction_notes(match, int(reviews.sum()), len(kept), found),
            *(() if match.by_digest else (_UNVERIFIED.format(listed(published)),)),
            *_protocol_notes(every, is_restricted=bool(restricted)),
            *(duplicate.in_words for duplicate in duplicates),
        ),
        restricted=restricted,
        duplicates=tuple(duplicates),
    )


def _restriction_notes(
    match: Matching, reviews: int, users: int, found: Restricted
) -> Iterator[str]:
    """Describe in numbers what part of the runs is compared, unless it is everything."""
    anew, runs = len(found.users), match.runs
    asked = [user for user in match.users if user not in match.unscored]
    if users == len(asked) and not anew:
        return
    most = sum(max(run.reviews.get(user, 0) for run in runs) for user in asked)
    share = f"{reviews:,} of {most:,} reviews"
    if anew:
        yield (
            f"Restricted to {share} of {users:,} of {counted(len(asked), 'user')} that "
            "runs scored: those that all "
            f"runs scored; scores of {counted(anew, 'user')} were computed anew from saved "
            "predictions"
        )
    else:
        yield (
            f"Restricted to {counted(users, 'user')} of {len(asked):,} that runs scored, with "
            f"{share}: those for "
            "whom all runs scored the same reviews"
        )
    without = [run.name for run in runs if not run.has_predictions]
    if without and len(match.scored_by_all(asked)) > users:
        yield (
            f"{listed(without)} kept no predictions: users for whom runs scored different "
            "reviews are left out, although they may have reviews in common"
        )
    if found.without:
        yield f"Left out, as they have no review that all runs scored: {named_users(found.without)}"
    if found.lost:
        left = "are left out" if users == anew else "are of the other users only"
        yield f"Saved predictions do not give {', '.join(found.lost)}, which {left}"


def _protocol_notes(runs: Sequence[Entry], *, is_restricted: bool) -> Iterator[str]:
    kinds = protocols(runs)
    if len(kinds) > 1:
        scored = "of which the reviews in common count" if is_restricted else "on the same reviews"
        yield (
            f"Runs were made under several protocols ({', '.join(kinds)}), {scored}; names "
            f"without a protocol: {usual_protocol(runs)}"
        )
