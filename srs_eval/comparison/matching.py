"""Which users of several runs have the same scored reviews, and how the others differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import User


@dataclass(frozen=True)
class Matching:
    """Scored reviews of several runs, matched user by user."""

    runs: tuple[Entry, ...]  # All runs
    own: tuple[Entry, ...]  # Those of them that are not published
    users: tuple[User, ...]  # Users to match

    @property
    def by_digest(self) -> bool:
        """Whether all runs have digests of the reviews; otherwise their number has to do."""
        return all(run.has_digests for run in self.runs)

    @cached_property
    def same(self) -> frozenset[User]:
        """Users for whom all runs scored the same reviews."""
        return frozenset(shared_users(self.runs, self.users))

    @cached_property
    def scored(self) -> list[User]:
        """Users whom some run scored; without runs of one's own, all."""
        known = set().union(*(run.rows for run in self.own)) if self.own else {*self.users}
        return [user for user in self.users if user in known]

    @cached_property
    def different(self) -> list[User]:
        """Users whom some run scored, and not every run on the same reviews."""
        return [user for user in self.scored if user not in self.same]

    def by_all(self, users: Sequence[User]) -> list[User]:
        """Select the users whom every run scored."""
        return [user for user in users if all(user in run.rows for run in self.runs)]

    def restrictable(self) -> list[User]:
        """List the other users whose common reviews can be found in saved predictions."""
        can = self.by_digest and all(run.has_predictions for run in self.runs)
        return self.by_all(self.different) if can else []

    def refusal(self) -> str:
        """Explain why the runs cannot be compared, and what ``intersect=true`` would leave."""
        lines = ["these runs did not score the same reviews, so their scores cannot be compared:"]
        lines += [f"  - {line}" for line in self.differences()]
        left = [self._fewest_reviews(list(self.same))] if self.same else []
        if restrictable := self.restrictable():
            more = " more" if self.same else ""
            left.append(f"at most {self._fewest_reviews(restrictable)}{more}")
        if left:
            lines.append(f"  intersect=true compares them on {' and on '.join(left)}")
        return "\n".join(lines)

    def differences(self) -> Iterator[str]:
        """Describe how each run differs from the reviews that most runs scored."""
        for run in self.runs:
            lost = [user for user in self.different if user in run.incomplete]
            absent = [u for u in self.different if u not in run.rows and u not in run.incomplete]
            other = [u for u in self.different if u in run.rows and run is not self._like(run, u)]
            if lost:
                yield f"{run.name} has no scores of {users_of(lost)}: a fit failed or was skipped"
            if absent:
                yield f"{run.name} did not score {users_of(absent)}"
            if other:
                first, like = other[0], self._like(run, other[0])
                yield (
                    f"{run.name} scored other reviews than {like.name} of {users_of(other)}: "
                    f"{run.reviews[first]:,} and {like.reviews[first]:,} of user {first}, "
                    f"{'by digest' if self.by_digest else 'by number'}"
                )

    def _like(self, run: Entry, user: User) -> Entry:
        """Return a run that scored the reviews that most did: `run` if it is one."""
        runs = [one for one in self.own if user in one.rows] or [
            one for one in self.runs if user in one.rows
        ]
        reviews = [(one.rows if self.by_digest else one.reviews)[user] for one in runs]
        usual = max(reviews, key=reviews.count)
        mine = (run.rows if self.by_digest else run.reviews)[user]
        return run if mine == usual else runs[reviews.index(usual)]

    def _fewest_reviews(self, users: Sequence[User]) -> str:
        """Count users, and the reviews of each in the run that scored fewest of them."""
        fewest = sum(min(run.reviews[user] for run in self.runs) for user in users)
        return f"{counted(fewest, 'review')} of {counted(len(users), 'user')}"


def shared_users(runs: Sequence[Entry], users: Sequence[User] | None = None) -> list[User]:
    """List the `users` (by default of the first run) for whom all runs scored the same reviews."""
    by_digest = all(run.has_digests for run in runs)
    first, *others = (run.rows if by_digest else run.reviews for run in runs)
    others = [other for other in others if other != first]
    return [
        user
        for user in (first if users is None else users)
        if user in first and all(other.get(user) == first[user] for other in others)
    ]


def users_of(users: Sequence[User]) -> str:
    """Format some users as part of a sentence."""
    return f"user{'s' if len(users) > 1 else ''} {listed(users)}"
