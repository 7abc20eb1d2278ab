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
    own: tuple[Entry, ...]  # Those of them that are not yardsticks
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
    def unscored(self) -> frozenset[User]:
        """Users whom no run scored, but for yardsticks."""
        scored = frozenset().union(*(run.rows for run in self.own))
        return frozenset(self.users) - scored if self.own else frozenset()

    @cached_property
    def different(self) -> list[User]:
        """Users whom some run scored, and not every run on the same reviews."""
        alike = self.same | self.unscored
        return [user for user in self.users if user not in alike]

    def restrictable(self) -> list[User]:
        """List the other users whose common reviews can be found in saved predictions."""
        if not (self.by_digest and all(run.has_predictions for run in self.runs)):
            return []
        return self.scored_by_all(self.different)

    def scored_by_all(self, users: Sequence[User]) -> list[User]:
        """Select the users that every run scored."""
        return [user for user in users if all(user in run.rows for run in self.runs)]

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
            incomplete = set(run.incomplete)
            lost = [user for user in self.different if user in incomplete]
            scored = [user for user in self.different if user in run.rows]
            absent = [u for u in self.different if u not in run.rows and u not in incomplete]
            other = [user for user in scored if self._identity(run, user) != self._usual(user)]
            if lost:
                said = "a fit failed or was skipped"
                yield f"{run.name} has no scores of {named_users(lost)}: {said}"
            if absent:
                yield f"{run.name} did not score {named_users(absent)}"
            if other:
                yield self._other_reviews(run, other)

    def _other_reviews(self, run: Entry, users: Sequence[User]) -> str:
        first = users[0]
        usual = self._usual(first)
        like = next(one for one in (*self.own, *self.runs) if self._identity(one, first) == usual)
        return (
            f"{run.name} scored other reviews than {like.name} of {named_users(users)}: "
            f"{run.reviews[first]:,} and {like.reviews[first]:,} of user {first}, "
            f"{'by digest' if self.by_digest else 'by number'}"
        )

    def _identity(self, run: Entry, user: User) -> object:
        return run.rows.get(user) if self.by_digest else run.reviews.get(user)

    def _usual(self, user: User) -> object:
        """Return the reviews that most runs scored; the first of equally frequent ones."""
        scored = [run for run in self.own if user in run.rows] or self.runs
        found = [self._identity(run, user) for run in scored if user in run.rows]
        return max(found, key=found.count)

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


def named_users(users: Sequence[User]) -> str:
    """Format some users as part of a sentence."""
    return f"user{'s' if len(users) > 1 else ''} {listed(users)}"
