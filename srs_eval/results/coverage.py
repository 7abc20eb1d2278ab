"""What scores rest on: users and reviews that were read, and why others have no score."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator

from srs_eval.text.console import counted
from srs_eval.text.validated import validated


def whole_number(value: object) -> int:
    """Check a count that was read from a file."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a whole number, 0 or more")
    return value


Count = Annotated[int, BeforeValidator(whole_number)]
# How users are without a score, and how sentences about them begin.
STATUSES = {
    "skipped": "Skipped",
    "failed": "Failed",
    "not_in_every_run": "Not scored alike by every run",
    "undefined": "Not defined",
}
LOUD_ABOVE = 0.1
_OTHERWISE = "not used by the protocol"
_OTHER_REASONS = "other reasons, all in fits.parquet"
_REASONS_KEPT = 5
_LONGEST_REASON = 300
# A whole number that stands alone; dates, versions and names have other digits.
_NUMBER = re.compile(r"(?<![^\s(\[])\d+(?:,\d{3})*(?=[;,:.)\]]?(?:\s|$))")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Users who have no score for the same reason."""

    status: str  # A key of `STATUSES`
    reason: str  # Where numbers in it differ between users, the lowest and the highest
    users: Count
    reviews: Count  # In their logs, as far as these could be read
    rules: Mapping[str, Count] = field(default_factory=dict)  # Which of them no rule lets be scored
    # By protocol that could score them: ``users`` and ``reviews``
    could_score: Mapping[str, Mapping[str, Count]] = field(default_factory=dict)

    @property
    def in_numbers(self) -> str:
        """Numbers of users and reviews."""
        users, reviews = counted(self.users, "user"), counted(self.reviews, "review")
        if not self.users:
            return f"{reviews} of the other users"
        if self.status == "failed" and not self.reviews:  # of a log that could not be read
            return f"{users} whose reviews are not counted"
        return f"{users} with {reviews}" if self.reviews else users

    @property
    def in_words(self) -> str:
        """Numbers, reason and remedy."""
        said = [f"{self.in_numbers}: {self.reason}" if self.reason else self.in_numbers]
        if self.rules:
            said.append(f"of their reviews, {_listed(self.rules)}")
        said += [
            f"protocol={protocol} could score {counted(could['reviews'], 'review')} of "
            f"{'all' if could['users'] == self.users else format(could['users'], ',')} of them"
            for protocol, could in self.could_score.items()
        ]
        return "; ".join(said)


def _together(left_out: Iterable[LeftOut]) -> Iterator[LeftOut]:
    """Add the numbers of users with other reasons, but those with and without known reviews."""
    alike: dict[tuple[bool, bool], list[LeftOut]] = {}
    for each in left_out:
        alike.setdefault((each.users > 0, each.reviews > 0), []).append(each)
    for same in alike.values():
        users, reviews = sum(each.users for each in same), sum(each.reviews for each in same)
        yield LeftOut(same[0].status, "", users, reviews)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Users and reviews that were read, and that scores rest on."""

    # Users and reviews that were read, and those among them that have scores
    users: Count
    reviews: Count
    scored_users: Count
    scored_reviews: Count
    left_out: tuple[LeftOut, ...] = ()
    # Other reviews of the users with scores: by rule that drops them, and by reason why they are
    # not scored in any case
    dropped: Mapping[str, Count] = field(default_factory=dict)
    unscored: Mapping[str, Count] = field(default_factory=dict)

    @property
    def shortly(self) -> str:
        """Users and reviews with scores among those that were read."""
        return (
            f"{self.scored_users:,} of {counted(self.users, 'user')} and "
            f"{self.scored_reviews:,} of {counted(self.reviews, 'review')}"
        )

    def sentences(self, *, bare: Collection[str] = (), reviews: bool = True) -> list[str]:
        """Return what scores rest on, and what is left out for which reason; one line each.

        Of the statuses in `bare`, only numbers are given; without `reviews`, nothing of single
        reviews of users with scores.
        """
        said = [f"Rests on {self.shortly}"]
        for status, title in STATUSES.items():
            same = [each for each in self.left_out if each.status == status]
            if status in bare:
                parts = [each.in_numbers for each in _together(same)]
            else:
                parts = [each.in_words for each in same]
            said += [f"{title}: {', and '.join(parts)}"] if parts else []
        if self.dropped and reviews:
            said.append(f"Dropped by the protocol: {_listed(self.dropped)}")
        if self.unscored and reviews:
            said.append(f"Other reviews of these users: {_listed(self.unscored)}")
        return said

    @property
    def in_words(self) -> str:
        """The same as a paragraph."""
        return ". ".join(self.sentences()) + "."

    @property
    def caution(self) -> str:
        """A warning where more than 10 % of users or reviews are left out; else ""."""
        reviews = sum(each.reviews for each in self.left_out) + sum(self.dropped.values())
        shares = [
            (count / total, f"of the {what} ({count:,} of {total:,})")
            for what, count, total in (
                ("users", self.users - self.scored_users, self.users),
                ("reviews", reviews, self.reviews),
            )
            if count and total
        ]
        if not self.scored_users or max(shares, default=(0.0,))[0] <= LOUD_ABOVE:
            return ""
        said = " and ".join(f"{100 * share:.0f} % {of}" for share, of in shares)
        return f"Caution: {said} are left out"

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as they are in files; users and reviews add up to those read."""
        lost = {status: [e for e in self.left_out if e.status == status] for status in STATUSES}
        shown = [status for status in STATUSES if lost[status] or status in ("skipped", "failed")]
        return {
            "users": {
                "read": self.users,
                "scored": self.scored_users,
                **{status: sum(each.users for each in lost[status]) for status in shown},
            },
            "reviews": {
                "read": self.reviews,
                "scored": self.scored_reviews,
                **{status: sum(each.reviews for each in lost[status]) for status in shown},
                "dropped": dict(self.dropped),
                "unscored": dict(self.unscored),
            },
            "left_out": [asdict(each) for each in self.left_out],
            "caution": self.caution,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Coverage:
        """Build from what `as_json` returned.

        Raise `LookupError`, `TypeError` or `ValueError` if it is something else.
        """
        users, reviews = content["users"], content["reviews"]
        found = {
            "users": users["read"],
            "reviews": reviews["read"],
            "scored_users": users["scored"],
            "scored_reviews": reviews["scored"],
            "left_out": content["left_out"],
            "dropped": reviews["dropped"],
            "unscored": reviews["unscored"],
        }
        return validated(cls, found)


@dataclass(slots=True)
class _Group:
    """Users whose reasons differ in digits only."""

    named: str  # The reason of the first, with its name
    first: str  # The same without the name
    bounds: list[tuple[int, int]]  # Lowest and highest of each of its numbers
    has_others: bool = False  # Whether reasons differ in digits that are no number
    users: int = 0
    reviews: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    could_score: dict[str, Counter[str]] = field(default_factory=dict)

    def left_out(self, status: str) -> LeftOut:
        """Return the users, who are without a score for one reason."""
        could = {protocol: dict(found) for protocol, found in self.could_score.items()}
        return LeftOut(status, self._reason, self.users, self.reviews, dict(+self.rules), could)

    @property
    def _reason(self) -> str:
        """The reason of all, in which numbers that differ are ranges."""
        if self.users == 1:
            return self.named
        if self.has_others:
            return f"such as {self.named}"
        ranges = iter(self.bounds)

        def shown(number: re.Match[str]) -> str:
            low, high = next(ranges)
            return number[0] if low == high else f"{low:,} to {high:,}"

        return _NUMBER.sub(shown, self.first)

    def note(self, reason: str) -> None:
        """Note the reason of one more user, without the name."""
        self.has_others |= _NUMBER.sub("", reason) != _NUMBER.sub("", self.first)
        if not self.has_others:
            both = zip(self.bounds, _numbers(reason), strict=True)
            self.bounds = [(min(low, number), max(high, number)) for (low, high), number in both]


class CoverageCount:
    """Adds up users, in any order but for the words of groups, which begin with the first."""

    def __init__(self) -> None:
        self._sums = Counter[str]()
        self._groups: dict[tuple[str, str], _Group] = {}
        self._dropped, self._unscored = Counter[str](), Counter[str]()

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a user: a row of `users_table`, whose status is "" with a score."""
        reviews = row["reviews_read"]
        self._sums.update(users=1, reviews=reviews)
        dropped, unscored = dict(row["dropped"]), dict(row["unscored"])
        if not row["status"]:
            self._sums.update(scored_users=1, scored_reviews=row["reviews"])
            self._dropped.update(dropped)
            rest = reviews - row["reviews"] - sum((*dropped.values(), *unscored.values()))
            self._unscored.update({**unscored, _OTHERWISE: max(rest, 0)})
            return
        named = _shortened(row["reason"], row["status"])
        name = rf"\buser {re.escape(str(row['user']))}(?!\w)"
        reason = re.sub(name, "user …", re.sub(rf"^{name}(, fold \d+)?: ", "", named))
        key = row["status"], re.sub(r"\d+", "#", _NUMBER.sub("#", reason))
        if key not in self._groups:
            bounds = [(number, number) for number in _numbers(reason)]
            self._groups[key] = _Group(named, reason, bounds)
        group = self._groups[key]
        group.note(reason)
        group.users += 1
        group.reviews += reviews
        group.rules.update({**dropped, **unscored})
        for protocol, count in dict(row["could_score"]).items():
            group.could_score.setdefault(protocol, Counter()).update(users=1, reviews=count)

    @property
    def total(self) -> Coverage:
        """All users that were added."""
        return Coverage(
            self._sums["users"],
            self._sums["reviews"],
            self._sums["scored_users"],
            self._sums["scored_reviews"],
            tuple(each for status in STATUSES for each in self._of_status(status)),
            dict(+self._dropped),
            dict(+self._unscored),
        )

    def _of_status(self, status: str) -> list[LeftOut]:
        """Return the reasons of most users, and one for all others."""
        groups = [group.left_out(status) for (of, _), group in self._groups.items() if of == status]
        groups.sort(key=lambda each: -each.users)
        kept, others = groups[:_REASONS_KEPT], groups[_REASONS_KEPT:]
        if others:
            users, reviews = sum(e.users for e in others), sum(e.reviews for e in others)
            kept.append(LeftOut(status, _OTHER_REASONS, users, reviews))
        return kept


def _shortened(reason: str, status: str) -> str:
    """Return a reason on one line; of a skipped user its gist."""
    gist = reason.partition("; ")[0] if status == "skipped" else reason
    gist = re.sub(r"(?<![:.;?!])\n", ". ", re.sub(r"\n\s*- ", "\n", gist))
    return textwrap.shorten(gist, _LONGEST_REASON, placeholder=" …").rstrip(".")


def _numbers(reason: str) -> list[int]:
    return [int(number.replace(",", "")) for number in _NUMBER.findall(reason)]


def _listed(counts: Mapping[str, int]) -> str:
    """List counts, the largest first."""
    return ", ".join(f"{count:,} {reason}" for reason, count in Counter(counts).most_common())
