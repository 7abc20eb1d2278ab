"""What a comparison rests on: users and reviews that were read, and why others do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import IntArray
from srs_eval.runs.summary import Coverage, LeftOut

_STATUSES = {
    "skipped": "Skipped",
    "failed": "Failed",
    "not_in_every_run": "Not scored alike by every run",
    "undefined": "Not defined",
}


@dataclass(frozen=True, slots=True)
class Rest:
    """The coverage of the run that has read and scored most, less what others lack."""

    of_run: Coverage
    lost: tuple[LeftOut, ...]  # ``not_in_every_run`` and ``undefined``

    @property
    def users(self) -> int:
        """Users that are compared."""
        return self.of_run.users.scored - sum(each.users for each in self.lost)

    @property
    def reviews(self) -> int:
        """Reviews that are compared."""
        return self.of_run.reviews.scored - sum(each.reviews for each in self.lost)

    @property
    def shortly(self) -> str:
        """Users and reviews that are compared among those that were read."""
        users, reviews = self.of_run.users, self.of_run.reviews
        return (
            f"{self.users:,} of {counted(users.read, 'user')} and "
            f"{self.reviews:,} of {counted(reviews.read, 'review')}"
        )

    @property
    def sentences(self) -> list[str]:
        """What scores rest on, and what is left out for which reason."""
        left_out = [
            f"{_STATUSES[each.status]}: {counted(each.users, 'user')} with "
            f"{counted(each.reviews, 'review')}: {each.reason.rstrip('.')}"
            for each in (*self.of_run.left_out, *self.lost)
        ]
        return [f"Rests on {self.shortly}", *left_out]

    @property
    def caution(self) -> str:
        """A warning where more than a tenth of users or reviews is left out; else ""."""
        users, reviews = self.of_run.users, self.of_run.reviews
        lost = sum(each.reviews for each in self.lost)
        whole = Coverage(
            replace(users, scored=self.users), replace(reviews, skipped=reviews.skipped + lost)
        )
        return whole.caution.capitalize() if self.users else ""

    def as_json(self) -> dict[str, Any]:
        """Return the numbers; users and reviews add up to those read."""
        counts = {}
        for what in ("users", "reviews"):
            read = asdict(getattr(self.of_run, what))
            rules = {name: read.pop(name) for name in ("dropped", "unscored")}
            lost = {each.status: getattr(each, what) for each in self.lost}
            counts[what] = {**read, "scored": getattr(self, what), **lost}
            counts[what] |= rules if what == "reviews" else {}
        left_out = [asdict(each) for each in (*self.of_run.left_out, *self.lost)]
        return {**counts, "left_out": left_out, "caution": self.caution}


def rest_of(
    entries: Sequence[Entry], paired: IntArray, compared: IntArray, metric: str
) -> Rest | None:
    """Return what a comparison rests on; None if no entry says what it has read.

    `paired` are the numbers of reviews of the users whom all scored alike, `compared` those of the
    users for whom the metric is defined.
    """
    known = {e.name: e.facts.coverage for e in entries if e.facts.coverage.users.read}
    if not known:
        return None
    most = max(known.values(), key=lambda c: (c.users.read, c.users.scored, c.reviews.scored))
    scored = most.users.scored, most.reviews.scored
    fewer = [
        f"{name} scored {c.reviews.scored:,} reviews of {counted(c.users.scored, 'user')}"
        for name, c in known.items()
        if (c.users.scored, c.reviews.scored) != scored
    ]
    both, alike = int(paired.sum()), int(compared.sum())
    lost = (
        LeftOut("not_in_every_run", listed(fewer), scored[0] - len(paired), scored[1] - both),
        LeftOut("undefined", metric, len(paired) - len(compared), both - alike),
    )
    return Rest(most, tuple(each for each in lost if each.users or each.reviews))
