"""Pair runs on the same reviews of the same users, or explain why they cannot be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from srs_eval.comparison.entry import Entry, usual_protocol
from srs_eval.comparison.identical import Duplicate, find_duplicates
from srs_eval.comparison.restriction import restrict
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
    """Pair runs user by user; parameters are those of `srs_eval.comparison.compare.compare`."""
    every = (*runs, *yardsticks)
    if users is None:
        known = (chain(run.rows, run.incomplete) for run in (runs or every))
        users = list(dict.fromkeys(chain.from_iterable(known)))
    scored = {*chain.from_iterable(run.rows for run in runs)} if runs else {*users}
    users = [user for user in users if user in scored]  # Others do not count
    same = {*shared_users(every, users)}
    different = [user for user in users if user not in same]
    by_all = [user for user in different if all(user in run.rows for run in every)]
    restrictable = by_all if all(run.has_predictions for run in every) else []
    if different and not intersect:
        lines = ["these runs did not score the same reviews, so their scores cannot be compared:"]
        lines += [f"  - {line}" for line in _differences(runs, every, different)]
        left = [_fewest_reviews(every, [*same])] if same else []
        left += [f"at most {_fewest_reviews(every, by_all)} more"] if restrictable else []
        lines += [f"  intersect=true compares them on {' and on '.join(left)}"] if left else []
        raise ConfigError("\n".join(lines))
    part, anew = restrict(every, restrictable) if restrictable else (every, frozenset[User]())
    both = tuple(user for user in users if user in same or user in anew)
    if not both:
        lines = ["there is no user for whom all runs scored the same reviews"]
        raise ConfigError("\n".join([*lines, *_differences(runs, every, different)]))
    reviews = np.array([part[0].reviews[user] for user in both], np.int64)
    duplicates = find_duplicates(part, both)
    twins = [id(duplicate.run) for duplicate in duplicates]
    fate = "are left out" if len(anew) == len(both) else "are of the other users only"
    return Paired(
        runs=tuple(run for run in part if id(run) not in twins),
        users=both,
        reviews=reviews,
        notes=(
            *notes,
            *([_restriction(every, users, reviews, anew)] if different else ()),
            *_losses(every, part, by_all, anew, fate),
            *_caveats(every),
            *(_in_words(*duplicate) for duplicate in duplicates),
        ),
        restricted=anew,
        duplicates=tuple(duplicates),
    )


def shared_users(runs: Sequence[Entry], users: Sequence[User] | None = None) -> list[User]:
    """List the `users` (by default of the first run) for whom all runs scored the same reviews."""
    first, *others = _identities(runs)
    others = [other for other in others if other != first]
    return [
        user
        for user in (first if users is None else users)
        if user in first and all(other.get(user) == first[user] for other in others)
    ]


def _identities(runs: Sequence[Entry]) -> list[dict[User, str | int]]:
    """Return what identifies the reviews of each user: digests, or their number for want of it."""
    by_digest = all(run.has_digests for run in runs)
    return [dict(run.rows if by_digest else run.reviews) for run in runs]


def _differences(
    runs: Sequence[Entry], every: Sequence[Entry], users: Sequence[User]
) -> Iterator[str]:
    """Describe how each run differs from the reviews that most runs scored."""
    identities = _identities(every)
    own = identities[: len(runs)] or identities
    usual = {}
    for user in users:
        reviews = [each[user] for each in own if user in each]
        usual[user] = max(reviews, key=reviews.count)
    how = "digest" if all(run.has_digests for run in every) else "number"
    for run, mine in zip(every, identities, strict=True):
        lost = [user for user in users if user in run.incomplete]
        absent = [user for user in users if user not in mine and user not in run.incomplete]
        other = [user for user in users if mine.get(user, usual[user]) != usual[user]]
        if lost:
            yield f"{run.name} has no scores of {users_of(lost)}: a fit failed or was skipped"
        if absent:
            yield f"{run.name} did not score {users_of(absent)}"
        if other:
            first = other[0]
            like = next(
                run
                for run, theirs in zip(every, identities, strict=True)
                if theirs.get(first) == usual[first]
            )
            yield (
                f"{run.name} scored other reviews than {like.name} of {users_of(other)}: "
                f"{run.reviews[first]:,} and {like.reviews[first]:,} of user {first}, by {how}"
            )


def _restriction(
    runs: Sequence[Entry], users: Sequence[User], reviews: IntArray, anew: Collection[User]
) -> str:
    """Say what part of the runs is compared."""
    every = sum(max(run.reviews.get(user, 0) for run in runs) for user in users)
    scored = f"; {counted(len(anew), 'user')} scored anew" if anew else ""
    return (
        f"Restricted to what all runs scored: {int(reviews.sum()):,} of "
        f"{counted(every, 'review')}, {len(reviews):,} of {counted(len(users), 'user')}{scored}"
    )


def _losses(
    runs: Sequence[Entry],
    part: Sequence[Entry],
    users: Sequence[User],
    anew: Collection[User],
    fate: str,
) -> Iterator[str]:
    """Say what is lost of the users for whom runs scored different reviews.

    `fate` is what becomes of metrics that saved predictions do not give.
    """
    unsaved = [run.name for run in runs if not run.has_predictions]
    without = [user for user in users if user not in anew]
    if unsaved and users:
        yield (
            f"{listed(unsaved)} kept no predictions: users for whom runs scored different reviews "
            "are left out, although they may have reviews in common"
        )
    elif without:
        yield f"Left out, as they have no review that all scored: {users_of(without)}"
    lost = {
        name: None
        for before, after in zip(runs, part, strict=True)
        for name in before.scores
        if anew
        and not np.isnan(before.values(name, [*anew])).all()
        and np.isnan(after.values(name, [*anew])).all()
    }
    if lost:
        yield f"Saved predictions do not give {', '.join(lost)}, which {fate}"


def _in_words(run: Entry, twin: Entry) -> str:
    """Say that a run is the duplicate of another."""
    if run.has_predictions and twin.has_predictions:
        return f"{run.name} makes the same predictions as {twin.name}; both count as one"
    same = f"has the scores of {twin.name} in every metric and for every user"
    return f"{run.name} {same}; both count as one"


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


def _fewest_reviews(runs: Sequence[Entry], users: Sequence[User]) -> str:
    """Count users, and the reviews of each in the run that scored fewest of them."""
    fewest = sum(min(run.reviews[user] for run in runs) for user in users)
    return f"{counted(fewest, 'review')} of {counted(len(users), 'user')}"


def users_of(users: Sequence[User]) -> str:
    """Format some users as part of a sentence."""
    return f"user{'s' if len(users) > 1 else ''} {listed(users)}"
