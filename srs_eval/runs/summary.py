"""The content of ``summary.json``: what a run says of itself."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.metrics.summary import MetricSummary
from srs_eval.nouns import Fit
from srs_eval.nouns.when import UNKNOWN
from srs_eval.stats.significance import LEVEL

# What sets a model apart from one that is fitted to earlier reviews of the same user.
TRAITS = ("pretrained", "sees_truth", "in_sample")
_MOST_REASONS = 5
_LONGEST_REASON = 300
_LOUD = 0.1
_OTHERWISE = "not used by the protocol"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Users without a score for reasons that differ in numbers and names alone."""

    status: str  # ``skipped`` or ``failed``
    reason: str  # That of the first
    users: int
    reviews: int  # In their logs, as far as these could be read
    could_score: Mapping[str, int] = field(default_factory=dict)  # Reviews, by protocol


@dataclass(frozen=True, slots=True)
class Counts:
    """Users or reviews: all that were read, and what became of them."""

    read: int = 0
    scored: int = 0
    skipped: int = 0
    failed: int = 0
    # Of users with scores, reviews that a rule drops, and those not scored in any case
    dropped: Mapping[str, int] = field(default_factory=dict)
    unscored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What scores rest on."""

    users: Counts = field(default_factory=Counts)
    reviews: Counts = field(default_factory=Counts)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def caution(self) -> str:
        """A warning where more than a tenth of users or reviews is left out; else ""."""
        lost = self.reviews.skipped + self.reviews.failed + sum(self.reviews.dropped.values())
        shares = [
            f"{part / whole:.0%} of the {what} ({part:,} of {whole:,})"
            for what, part, whole in (
                ("users", self.users.read - self.users.scored, self.users.read),
                ("reviews", lost, self.reviews.read),
            )
            if part > _LOUD * whole
        ]
        return f"caution: {' and '.join(shares)} left out" if shares else ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of ``summary.json``."""

    label: str  # The algorithm with its chosen arguments
    algo: str = ""
    data: str = ""
    protocol: str = ""  # Name of the evaluation protocol
    # Whether the scored reviews are validation rows, which test rows come after
    is_validation: bool = False
    # Users without a missing fold, their scored reviews, and how many of these were forgotten
    users: int = 0
    reviews: int = 0
    forgotten: int = 0
    fits: int = 0
    failed: int = 0
    fallback: int = 0
    skipped: int = 0
    not_converged: int = 0  # Fits that made predictions, although their optimiser stopped early
    metrics: Mapping[str, MetricSummary] = field(default_factory=dict)  # The panel
    # Confusion counts and rates at each threshold, over all reviews
    thresholds: tuple[Mapping[str, float], ...] = ()
    # What the intervals are over: ``users``, or ``cards and days`` of a single user
    interval_over: str = "users"
    interval_level: float = LEVEL
    when: str = UNKNOWN  # When predictions were made, one of `srs_eval.nouns.when.WHEN`
    sees_truth: bool = False
    pretrained: bool = False
    in_sample: bool = False
    seed: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)  # Rows that are no reviews, by reason
    notes: tuple[str, ...] = ()  # Remarks of the source on the logs
    fit_notes: tuple[str, ...] = ()  # Remarks of algorithms on the last fit of each user
    data_fingerprint: str = ""  # Digest of the logs
    rows_fingerprint: str = ""  # Digest of the scored reviews
    coverage: Coverage = field(default_factory=Coverage)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def traits(self) -> tuple[str, ...]:
        """Traits of the model."""
        return tuple(trait for trait in TRAITS if getattr(self, trait))

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file; NaN is not yet null."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Summary:
        """Build from the content of the file; raise `ValueError` if it is something else."""
        tables = {
            "metrics": {name: _numbers(row) for name, row in content.get("metrics", {}).items()},
            "thresholds": [_numbers(row) for row in content.get("thresholds", ())],
        }
        summary: Summary = _SUMMARY.validate_python({**content, **tables})
        return summary


_SUMMARY = TypeAdapter(Summary)


class CoverageCount:
    """Adds up users, in the order of the source."""

    def __init__(self) -> None:
        self.users, self.reviews = Counter[str](), Counter[str]()
        self.dropped, self.unscored = Counter[str](), Counter[str]()
        self._alike: dict[tuple[str, str], list[Any]] = {}

    def add(self, user: ScoredUser) -> None:
        """Add a user."""
        log, status = user.log, "scored"
        if user.is_complete:
            self.dropped.update(log.dropped)
            known = sum((*log.dropped.values(), *log.unscored.values()))
            rest = max(log.reviews - user.reviews - known, 0)
            self.unscored.update({**log.unscored, _OTHERWISE: rest})
        else:
            status, reason = _missing(user)
            row = self._alike.setdefault((status, _kind(reason)), [reason, 0, 0, Counter()])
            row[1] += 1
            row[2] += log.reviews
            row[3].update(log.could_score)
        self.users.update(["read", status])
        self.reviews["read"] += log.reviews
        self.reviews[status] += user.reviews if status == "scored" else log.reviews

    @property
    def total(self) -> Coverage:
        """All users that were added."""
        left_out = [
            LeftOut(status, reason, users, reviews, dict(could_score))
            for (status, _), (reason, users, reviews, could_score) in self._alike.items()
        ]
        left_out.sort(key=lambda each: (each.status, -each.users))
        dropped, unscored = dict(+self.dropped), dict(+self.unscored)
        of_users, of_reviews = dict[str, Any](self.users), dict[str, Any](self.reviews)
        reviews = Counts(**of_reviews, dropped=dropped, unscored=unscored)
        return Coverage(Counts(**of_users), reviews, tuple(_shortest(left_out)))


def reason_of(fit: Fit) -> str:
    """Return the reason of a fit, with its user and fold named once."""
    where = f"user {fit.user}" + (f", fold {fit.fold}" if fit.fold >= 0 else "")
    reason = fit.reason.removeprefix(f"{where}: ").removeprefix(f"user {fit.user}: ")
    return f"{where}: {reason}" if reason else where


def _missing(user: ScoredUser) -> tuple[str, str]:
    """Return how a fit without predictions ended, and its reason."""
    for status in ("failed", "skipped"):
        for fit in user.fits:
            if fit.status == status:
                gist = reason_of(fit).partition("; ")[0] if status == "skipped" else reason_of(fit)
                line = re.sub(r"(?<![:.;?!])\n", ". ", re.sub(r"\n\s*- ", "\n", gist))
                return status, textwrap.shorten(line, _LONGEST_REASON, placeholder=" …")
    return "skipped", "nothing was scored"


def _kind(reason: str) -> str:
    """Return a reason without what differs between users: names and numbers."""
    return re.sub(r"\d+(?:[.,]\d+)*", "#", re.sub(r"^user .*?: ", "", reason))


def _shortest(left_out: list[LeftOut]) -> Iterable[LeftOut]:
    """Return the reasons of most users of each status, and one for all others."""
    for status in dict.fromkeys(each.status for each in left_out):
        same = [each for each in left_out if each.status == status]
        yield from same[:_MOST_REASONS]
        if rest := same[_MOST_REASONS:]:
            users, reviews = sum(e.users for e in rest), sum(e.reviews for e in rest)
            yield LeftOut(status, "other reasons, all in fits.parquet", users, reviews)


def _numbers(row: Mapping[str, float | None]) -> dict[str, float]:
    """Read numbers from JSON, where null stands for NaN."""
    return {name: math.nan if value is None else value for name, value in row.items()}
