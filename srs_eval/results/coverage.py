"""What scores rest on: users and reviews that were read, and why others have no score."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from srs_eval.text.console import counted

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
    users: int
    reviews: int  # In their logs, as far as these could be read
    rules: Mapping[str, int] = field(default_factory=dict)  # Which of them no rule lets be scored
    # By protocol that could score them: numbers of users and reviews
    could_score: Mapping[str, tuple[int, int]] = field(default_factory=dict)

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
            f"protocol={protocol} could score {counted(reviews, 'review')} of "
            f"{'all' if users == self.users else f'{users:,}'} of them"
            for protocol, (users, reviews) in self.could_score.items()
        ]
        return "; ".join(said)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as they are in files."""
        could = {
            protocol: {"users": users, "reviews": reviews}
            for protocol, (users, reviews) in self.could_score.items()
        }
        return {**asdict(self), "could_score": could}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LeftOut:
        """Build from what `as_json` returned."""
        could: Iterable[tuple[str, Any]] = dict(content["could_score"]).items()
        return cls(
            str(content["status"]),
            str(content["reason"]),
            whole_number(content["users"]),
            whole_number(content["reviews"]),
            _counts(content["rules"]),
            {
                str(name): (whole_number(found["users"]), whole_number(found["reviews"]))
                for name, found in could
            },
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """Users and reviews that were read, and that scores rest on."""

    # Users and reviews that were read, and those among them that have scores
    users: int
    reviews: int
    scored_users: int
    scored_reviews: int
    left_out: tuple[LeftOut, ...] = ()
    # Other reviews of the users with scores: by rule that drops them, and by reason why they are
    # not scored in any case
    dropped: Mapping[str, int] = field(default_factory=dict)
    unscored: Mapping[str, int] = field(default_factory=dict)

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
            parts = [each.in_numbers if status in bare else each.in_words for each in same]
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
        groups = {status: [e for e in self.left_out if e.status == status] for status in STATUSES}
        kept = {s: each for s, each in groups.items() if each or s in ("skipped", "failed")}
        return {
            "users": {
                "read": self.users,
                "scored": self.scored_users,
                **{status: sum(each.users for each in kept[status]) for status in kept},
            },
            "reviews": {
                "read": self.reviews,
                "scored": self.scored_reviews,
                **{status: sum(each.reviews for each in kept[status]) for status in kept},
                "dropped": dict(self.dropped),
                "unscored": dict(self.unscored),
            },
            "left_out": [each.as_json() for each in self.left_out],
            "caution": self.caution,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Coverage:
        """Build from what `as_json` returned.

        Raise `LookupError`, `TypeError` or `ValueError` if it is something else.
        """
        users, reviews = content["users"], content["reviews"]
        return cls(
            whole_number(users["read"]),
            whole_number(reviews["read"]),
            whole_number(users["scored"]),
            whole_number(reviews["scored"]),
            tuple(LeftOut.from_json(each) for each in content["left_out"]),
            _counts(reviews["dropped"]),
            _counts(reviews["unscored"]),
        )


@dataclass(slots=True)
class _Group:
    """Users whose reasons differ in digits only."""

    named: str  # The reason of the first, with its name
    first: str  # The same without the name
    bounds: list[tuple[int, int]]  # Lowest and highest of each number that stands alone
    differ: bool = False  # Whether reasons differ
    differ_otherwise: bool = False  # Also in digits that are no number
    users: int = 0
    reviews: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    could_score: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, reason: str, reviews: int, rules: Mapping[str, int]) -> None:
        """Add a user."""
        self.differ |= reason != self.first
        self.differ_otherwise |= _NUMBER.sub("", reason) != _NUMBER.sub("", self.first)
        if not self.differ_otherwise:
            found = _numbers(reason)
            self.bounds = [
                (min(lo, n), max(hi, n)) for (lo, hi), n in zip(self.bounds, found, strict=True)
            ]
        self.users += 1
        self.reviews += reviews
        self.rules.update(rules)

    @property
    def reason(self) -> str:
        """The reason of all, in which numbers that differ are ranges."""
        if self.users == 1:
            return self.named
        if self.differ_otherwise:
            return f"such as {self.named}"
        ranges = iter(self.bounds)

        def shown(number: re.Match[str]) -> str:
            lo, hi = next(ranges)
            return number[0] if lo == hi else f"{lo:,} to {hi:,}"

        return _NUMBER.sub(shown, self.first) if self.differ else self.first


class CoverageCount:
    """Adds up users, in any order but for the words of groups, which begin with the first."""

    def __init__(self) -> None:
        self._read = self._reviews = self._scored = self._scored_reviews = 0
        self._groups: dict[tuple[str, str], _Group] = {}
        self._dropped, self._unscored = Counter[str](), Counter[str]()

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a user: a row of `users_table`, whose status is "" with a score."""
        self._read += 1
        self._reviews += row["reviews_read"]
        dropped, unscored = dict(row["dropped"]), dict(row["unscored"])
        if not row["status"]:
            self._scored += 1
            self._scored_reviews += row["reviews"]
            self._dropped.update(dropped)
            rest = (
                row["reviews_read"] - row["reviews"] - sum((*dropped.values(), *unscored.values()))
            )
            self._unscored.update({**unscored, _OTHERWISE: max(rest, 0)})
            return
        named = _shortened(row["reason"], row["status"])
        name = rf"\buser {re.escape(str(row['user']))}(?!\w)"
        reason = re.sub(name, "user …", re.sub(rf"^{name}(, fold \d+)?: ", "", named))
        key = row["status"], re.sub(r"\d+", "#", _NUMBER.sub("#", reason))
        if key not in self._groups:
            self._groups[key] = _Group(named, reason, [(n, n) for n in _numbers(reason)])
        group = self._groups[key]
        group.add(reason, row["reviews_read"], {**dropped, **unscored})
        for protocol, count in dict(row["could_score"]).items():
            users, reviews = group.could_score.get(protocol, (0, 0))
            group.could_score[protocol] = users + 1, reviews + count

    @property
    def total(self) -> Coverage:
        """All users that were added."""
        return Coverage(
            self._read,
            self._reviews,
            self._scored,
            self._scored_reviews,
            tuple(each for status in STATUSES for each in self._of_status(status)),
            _without_zeros(self._dropped),
            _without_zeros(self._unscored),
        )

    def _of_status(self, status: str) -> list[LeftOut]:
        """Return the reasons of most users, and one for all others."""
        groups = [
            LeftOut(status, g.reason, g.users, g.reviews, _without_zeros(g.rules), g.could_score)
            for (of, _), g in self._groups.items()
            if of == status
        ]
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
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count:,} {reason}" for reason, count in ordered)


def _without_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def whole_number(value: object, name: str = "") -> int:
    """Return a value that has to be a whole number, 0 or more; `name` is for the message."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        place = f"{name}: " if name else ""
        raise ValueError(f"{place}{value!r}, expected a whole number, 0 or more")
    return value


def _counts(content: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): whole_number(count) for name, count in dict(content).items()}
