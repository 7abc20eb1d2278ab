"""What a comparison rests on: users and reviews that were read, and why others do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.words import counted
from srs_eval.data.reviews import IntArray
from srs_eval.runs.summary import Coverage, LeftOut

_STATUSES = {"skipped": "Skipped", "failed": "Failed"}
_STATUSES |= {"not_in_every_run": "Not scored alike by every run", "undefined": "Not defined"}


def coverage_of(
    entries: Sequence[Entry], paired: IntArray, compared: IntArray, metric: str
) -> Coverage | None:
    """Return the coverage of the run that has read and scored most, less what others lack.

    `paired` are the numbers of reviews of the users whom all scored alike, `compared` those of the
    users for whom the metric is defined. None if no run says what it has read.
    """
    known = [e.facts.coverage for e in entries if e.facts.coverage.users.read]
    if not known:
        return None
    most = max(known, key=lambda c: (c.users.read, c.users.scored, c.reviews.scored))
    users, reviews = most.users.scored, most.reviews.scored
    both, alike = int(paired.sum()), int(compared.sum())
    lost = (
        LeftOut("not_in_every_run", "", users - len(paired), reviews - both),
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
    counts = {"Dropped by rules": reviews.dropped, "Never scored": reviews.unscored}
    said = [
        f"{users.scored:,} of {counted(users.read, 'user')} and {reviews.scored:,} of "
        f"{counted(reviews.read, 'review')} are compared"
    ]
    for what, of_reasons in counts.items():
        reasons = [f"{name} ({count:,})" for name, count in of_reasons.items() if count]
        said += [f"{what}: {', '.join(reasons)}"] if reasons else []
    for each in coverage.left_out:
        count = f"{counted(each.users, 'user')} with {counted(each.reviews, 'review')}"
        said.append(f"{_STATUSES[each.status]}: {count}: {each.reason}".rstrip(".: "))
    return said
