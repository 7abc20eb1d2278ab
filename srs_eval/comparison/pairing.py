"""Which users runs are compared on: those of whom all scored the very same reviews."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.comparison.runs import Run
from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray, IntArray, User

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
    """

    runs: tuple[Run, ...]
    users: tuple[User, ...]
    reviews: IntArray
    notes: tuple[str, ...] = ()

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
        Compare on the users of whom all scored the same reviews, instead of refusing runs
        where any user differs.
    notes : sequence of str
        What is to be said of the runs already.

    Raises
    ------
    ConfigError
        If runs differ in users or reviews, naming which; or nothing is in common.
    """
    every = (*runs, *yardsticks)
    kinds = {run.protocol for run in every}
    # Without digests the number of reviews has to do.
    exact = all(run.has_digests for run in every)
    first = every[0]
    asked = dict.fromkeys(user for run in (runs or every) for user in _known(run))
    alike = [
        user for user in asked if len({_identity(run, user, exact=exact) for run in every}) == 1
    ]
    users = tuple(user for user in alike if user in first.rows)
    if len(users) < len(asked) and not intersect:
        raise ConfigError(_refusal(every, list(asked), set(users), exact=exact))
    if not users:
        raise ConfigError(
            "there is no user of whom all runs scored the same reviews\n"
            + "\n".join(_differences(every, list(asked), set(users), exact=exact))
        )
    said = list(notes)
    if len(users) < len(asked):
        said.append(
            f"Restricted to {_counted(len(users))} of {len(asked):,}: those of whom all runs "
            "scored the same reviews"
        )
    if not exact:
        said.append(
            "Published runs do not say which reviews they scored: users were matched by name "
            "and number of scored reviews"
        )
    if len(kinds - {""}) > 1:
        said.append(
            f"Runs were made under several protocols ({', '.join(sorted(kinds - {''}))}) that "
            "score the same reviews"
        )
    reviews = np.array([first.reviews[user] for user in users], np.int64)
    return Paired(every, users, reviews, tuple(said))


def _known(run: Run) -> list[User]:
    return [*run.rows, *run.incomplete]


def _identity(run: Run, user: User, *, exact: bool) -> object:
    """Give what must be equal: the digest of the scored reviews, or else their number."""
    return run.rows.get(user) if exact else run.reviews.get(user)


def _refusal(runs: Sequence[Run], asked: list[User], shared: set[User], *, exact: bool) -> str:
    lines = ["these runs did not score the same reviews, so their scores cannot be compared:"]
    lines += [f"  - {line}" for line in _differences(runs, asked, shared, exact=exact)]
    if shared:
        lines.append(f"  intersect=true compares them on the {_counted(len(shared))} in common")
    return "\n".join(lines)


def _differences(
    runs: Sequence[Run], asked: list[User], shared: set[User], *, exact: bool
) -> list[str]:
    """Say of each run how it differs from what most runs scored."""
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
            and _identity(run, user, exact=exact) != _usual(runs, user, exact=exact)
        ]
        if lost:
            lines.append(f"{run.name} has a failed fold of {_named(lost)}")
        if absent:
            lines.append(f"{run.name} did not score {_named(absent)}")
        if other:
            first = next(one for one in runs if one is not run and other[0] in one.rows)
            lines.append(
                f"{run.name} scored other reviews than {first.name} of {_named(other)}: "
                f"{run.reviews[other[0]]:,} and {first.reviews[other[0]]:,} of user {other[0]}, "
                f"{'by digest' if exact else 'by number'}"
            )
    return lines


def _usual(runs: Sequence[Run], user: User, *, exact: bool) -> object:
    """Find what most runs scored of a user; of equally frequent ones, what came first."""
    found = [_identity(run, user, exact=exact) for run in runs if user in run.rows]
    return max(found, key=found.count)


def _named(users: list[User]) -> str:
    shown = ", ".join(str(user) for user in users[:_NAMED])
    more = f" and {len(users) - _NAMED:,} more" if len(users) > _NAMED else ""
    return f"user{'s' if len(users) > 1 else ''} {shown}{more}"


def _counted(users: int) -> str:
    return "1 user" if users == 1 else f"{users:,} users"
