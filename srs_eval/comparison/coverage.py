"""What a comparison rests on: users and reviews that were read, and why others do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
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
_OURS = ("not_in_every_run", "undefined")


def coverage_of(
    entries: Sequence[Entry], paired: IntArray, compared: IntArray, metric: str
) -> Coverage | None:
    """Return the coverage of the run that has read and scored most, less what others lack.

    `paired` are the numbers of reviews of the users whom all scored alike, `compared` those of the
    users for whom the metric is defined. None if no run says what it has read.
    """
    counts = {e.name: e.facts.coverage for e in entries if e.facts.coverage.users.read}
    if not counts:
        return None
    most = max(counts.values(), key=lambda c: (c.users.read, c.users.scored, c.reviews.scored))
    users, reviews = most.users.scored, most.reviews.scored
    fewer = [
        f"{name} scored {c.reviews.scored:,} reviews of {counted(c.users.scored, 'user')}"
        for name, c in counts.items()
        if (c.users.scored, c.reviews.scored) != (users, reviews)
    ]
    both, alike = int(paired.sum()), int(compared.sum())
    lost = (
        LeftOut("not_in_every_run", listed(fewer), users - len(paired), reviews - both),
        LeftOut("undefined", metric, len(paired) - len(compared), both - alike),
    )
    return replace(
        most,
        users=replace(most.users, scored=len(compared)),
        reviews=replace(most.reviews, scored=alike),
        left_out=(*most.left_out, *(each for each in lost if each.users or each.reviews)),
    )


def sentences(coverage: Coverage) -> list[str]:
    """Return what scores rest on, and what is left out for which reason."""
    users, reviews = coverage.users, coverage.reviews
    rules = [f"{name} ({count:,})" for name, count in reviews.dropped.items()]
    kinds = [f"{name} ({count:,})" for name, count in reviews.unscored.items() if count]
    return [
        f"{users.scored:,} of {counted(users.read, 'user')} and {reviews.scored:,} of "
        f"{counted(reviews.read, 'review')} are compared",
        *([f"Dropped by rules: {', '.join(rules)}"] if rules else []),
        *([f"Never scored: {', '.join(kinds)}"] if kinds else []),
        *(
            f"{_STATUSES[each.status]}: {counted(each.users, 'user')} with "
            f"{counted(each.reviews, 'review')}: {each.reason.rstrip('.')}"
            for each in coverage.left_out
        ),
    ]


def as_json(coverage: Coverage) -> dict[str, Any]:
    """Return the numbers; users and reviews add up to those read."""
    lost = [each for each in coverage.left_out if each.status in _OURS]
    users, reviews = asdict(coverage.users), asdict(coverage.reviews)
    for name in ("dropped", "unscored"):
        users.pop(name)
    users |= {each.status: each.users for each in lost}
    reviews |= {each.status: each.reviews for each in lost}
    left_out = [asdict(each) for each in coverage.left_out]
    return {"users": users, "reviews": reviews, "left_out": left_out, "caution": coverage.caution}
