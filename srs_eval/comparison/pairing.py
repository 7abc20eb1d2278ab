"""What runs are compared on: the very same reviews of the same users, or what is in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.comparison.common_rows import Restricted, restrict
from srs_eval.comparison.identical import Duplicate, find_duplicates
from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray, IntArray, User
from srs_eval.results.run import Run, protocols, usual_protocol
from srs_eval.results.saved_predictions import has_predictions

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Paired:
    """Runs that scored the same reviews of the same users.

    Attributes
    ----------
    reviews : int64 [users]
        Scored reviews of each user.
    notes : tuple of str
        What was left out, and what could not be verified; to be said in every output.
    restricted : frozenset of users
        Those of whom runs scored further reviews, which do not count here.
    duplicates : tuple of Duplicate
        Runs that predict as one of `runs` does, and are left out of it.
    """

    runs: tuple[Run, ...]
    users: tuple[User, ...]
    reviews: IntArray
    notes: tuple[str, ...] = ()
    restricted: frozenset[User] = frozenset()
    duplicates: tuple[Duplicate, ...] = ()

    @property
    def every_run(self) -> tuple[Run, ...]:
        """The runs, and those that predict as one of them does."""
        return (*self.runs, *(duplicate.run for duplicate in self.duplicates))

    def duplicates_of(self, run: Run) -> list[Run]:
        """List the runs that predict as `run` does."""
        return [one.run for one in self.duplicates if one.twin is run]

    def scores(self, metric: str) -> FloatArray:
        """Scores [users, runs]; NaN where not defined."""
        return np.stack([run.values(metric, self.users) for run in self.runs], axis=1)


def pair(
    runs: Sequence[Run],
    yardsticks: Sequence[Run] = (),
    *,
    intersect: bool = False,
    notes: Sequence[str] = (),
) -> Paired:
    """Pair runs user by user, or say why they cannot be compared.

    Parameters
    ----------
    runs : sequence of Run
        Runs to compare.
    yardsticks : sequence of Run
        Published runs beside them. They may have more users than the runs.
    intersect : bool
        Compare on the reviews that all scored, instead of refusing runs where any user differs:
        as far as all have kept their predictions, and else on the users of whom all scored the
        same reviews.
    notes : sequence of str
        What is to be said of the runs already.

    Raises
    ------
    ConfigError
        If runs differ in users or reviews, naming which; if nothing is in common; or if reviews
        in common turned out otherwise in another run.
    """
    every = (*runs, *yardsticks)
    # Without digests the number of reviews has to do.
    exact = all(run.has_digests for run in every)
    asked = list(dict.fromkeys(user for run in (runs or every) for user in _known(run)))
    alike = _alike(every, asked, exact=exact)
    apart = [user for user in asked if user not in alike]
    if apart and not intersect:
        raise ConfigError(_refusal(every, runs, asked, alike, exact=exact))
    partly = _partly_alike(every, apart, exact=exact)
    found = restrict(every, partly) if partly else Restricted(every)
    restricted = frozenset(found.users)
    users = tuple(user for user in asked if user in alike or user in restricted)
    if not users:
        raise ConfigError(
            "there is no user of whom all runs scored the same reviews\n"
            + "\n".join(_differences(every, runs, asked, alike, exact=exact))
        )
    reviews = np.array([found.runs[0].reviews[user] for user in users], np.int64)
    said = [*notes, *_said_of_restriction(every, asked, users, reviews, found)]
    if not exact:
        said.append(
            "Published runs do not say which reviews they scored: users were matched by name "
            "and number of scored reviews. Nor do they say which models learned from other users, "
            "or while they were tested, or how many fits fell back"
        )
    kinds = protocols(every)
    if len(kinds) > 1:
        scored = "of which the reviews in common count" if restricted else "on the same reviews"
        said.append(
            f"Runs were made under several protocols ({', '.join(kinds)}), {scored}; names "
            f"without a protocol: {usual_protocol(every)}"
        )
    return once_each(Paired(found.runs, users, reviews, tuple(said), restricted))


def once_each(paired: Paired) -> Paired:
    """Keep one of the runs that make the same predictions, and note the others."""
    found = find_duplicates(paired.runs, paired.users)
    left_out = [id(duplicate.run) for duplicate in found]
    return replace(
        paired,
        runs=tuple(run for run in paired.runs if id(run) not in left_out),
        notes=(*paired.notes, *(duplicate.in_words for duplicate in found)),
        duplicates=tuple(found),
    )


def _alike(runs: Sequence[Run], asked: Sequence[User], *, exact: bool) -> set[User]:
    """Find the users of whom all runs scored the very same reviews."""
    return {
        user
        for user in asked
        if user in runs[0].rows and len({_identity(run, user, exact=exact) for run in runs}) == 1
    }


def _scored_by_all(runs: Sequence[Run], users: Sequence[User]) -> list[User]:
    return [user for user in users if all(user in run.rows for run in runs)]


def _partly_alike(runs: Sequence[Run], apart: Sequence[User], *, exact: bool) -> list[User]:
    """Find the users of whom reviews in common can be told, if there are any."""
    told = exact and all(map(has_predictions, runs))
    return _scored_by_all(runs, apart) if told else []


def _said_of_restriction(
    runs: Sequence[Run],
    asked: Sequence[User],
    users: Sequence[User],
    reviews: IntArray,
    found: Restricted,
) -> Iterator[str]:
    """Say in numbers what of the runs is compared, if it is not everything."""
    anew = len(found.users)
    if len(users) == len(asked) and not anew:
        return
    of_reviews = sum(_most_reviews(runs, user) for user in asked)
    share = f"{int(reviews.sum()):,} of {of_reviews:,} reviews"
    if anew:
        yield (
            f"Restricted to {share} of {len(users):,} of {_counted(len(asked))}: those that all "
            f"runs scored; scores of {_counted(anew)} were computed anew from saved predictions"
        )
    else:
        yield (
            f"Restricted to {_counted(len(users))} of {len(asked):,}, with {share}: those of whom "
            "all runs scored the same reviews"
        )
    without = [run.name for run in runs if not has_predictions(run)]
    if without and len(_scored_by_all(runs, asked)) > len(users):
        yield (
            f"{_some(without)} kept no predictions: users of whom runs scored different reviews "
            "are left out, although they may have reviews in common"
        )
    if found.without:
        yield f"Left out, as no review of theirs was scored by all runs: {_named(found.without)}"
    if found.lost:
        left = "are left out" if len(users) == anew else "are of the other users only"
        yield f"Saved predictions do not tell {', '.join(found.lost)}, which {left}"


def _most_reviews(runs: Sequence[Run], user: User) -> int:
    """Count the reviews of a user that the run with most of them scored."""
    return max(run.reviews.get(user, 0) for run in runs)


def _known(run: Run) -> list[User]:
    return [*run.rows, *run.incomplete]


def _identity(run: Run, user: User, *, exact: bool) -> object:
    """Give what must be equal: the digest of the scored reviews, or else their number."""
    return run.rows.get(user) if exact else run.reviews.get(user)


def _refusal(
    runs: Sequence[Run],
    own: Sequence[Run],
    asked: Sequence[User],
    shared: set[User],
    *,
    exact: bool,
) -> str:
    lines = ["these runs did not score the same reviews, so their scores cannot be compared:"]
    lines += [f"  - {line}" for line in _differences(runs, own, asked, shared, exact=exact)]
    left = [] if not shared else [_reviews_of(runs, list(shared))]
    partly = _partly_alike(runs, [user for user in asked if user not in shared], exact=exact)
    if partly:
        at_most = _reviews_of(runs, partly)
        left.append(f"at most {at_most}{' more' if shared else ''}")
    if left:
        lines.append(f"  intersect=true compares them on {' and on '.join(left)}")
    return "\n".join(lines)


def _reviews_of(runs: Sequence[Run], users: Sequence[User]) -> str:
    """Count users, and of each the reviews that the run with fewest of them scored."""
    fewest = sum(min(run.reviews[user] for run in runs) for user in users)
    return f"{fewest:,} review{'' if fewest == 1 else 's'} of {_counted(len(users))}"


def _differences(
    runs: Sequence[Run],
    own: Sequence[Run],
    asked: Sequence[User],
    shared: set[User],
    *,
    exact: bool,
) -> list[str]:
    """Say of each run how it differs from what most scored: most of one's own, if they did."""
    apart = [user for user in asked if user not in shared]
    lines = []
    for run in runs:
        incomplete = set(run.incomplete)
        lost = [user for user in apart if user in incomplete]
        absent = [user for user in apart if user not in run.rows and user not in incomplete]
        other = [
            user
            for user in apart
            if user in run.rows
            and _identity(run, user, exact=exact) != _usual(runs, own, user, exact=exact)
        ]
        if lost:
            lines.append(f"{run.name} has a failed fold of {_named(lost)}")
        if absent:
            lines.append(f"{run.name} did not score {_named(absent)}")
        if other:
            usual = _usual(runs, own, other[0], exact=exact)
            like = next(o for o in (*own, *runs) if _identity(o, other[0], exact=exact) == usual)
            lines.append(
                f"{run.name} scored other reviews than {like.name} of {_named(other)}: "
                f"{run.reviews[other[0]]:,} and {like.reviews[other[0]]:,} of user {other[0]}, "
                f"{'by digest' if exact else 'by number'}"
            )
    return lines


def _usual(runs: Sequence[Run], own: Sequence[Run], user: User, *, exact: bool) -> object:
    """Find what most runs scored of a user; of equally frequent ones, what came first."""
    scored = [run for run in own if user in run.rows] or runs
    found = [_identity(run, user, exact=exact) for run in scored if user in run.rows]
    return max(found, key=found.count)


def _named(users: Sequence[User]) -> str:
    return f"user{'s' if len(users) > 1 else ''} {_some(users)}"


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(str, names[:_NAMED])) + more


def _counted(users: int) -> str:
    return "1 user" if users == 1 else f"{users:,} users"
