"""The content of ``summary.json``: what a run says of itself."""

from __future__ import annotations

import hashlib
import math
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from srs_eval.algorithms.algorithm import UNKNOWN
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.metrics.means import MetricSummary

# What sets a model apart from one that is fitted to earlier reviews of the same user and then
# left as it is: the mark of its name, and what the mark means.
TRAITS = {
    "pretrained": ("°", "has learned from other users"),
    "sees_truth": ("†", "knows the truth of simulated users: a bound"),
    "in_sample": ("‡", "may have been fitted to the very reviews that it is scored on"),
}
# Fits that are not what the name of a model says.
EXCEPTIONS = {
    "fallback": "fell back",
    "failed": "failed",
    "skipped": "skipped",
    "not_converged": "did not converge",
}
_MOST_REASONS = 20
_LONGEST_REASON = 300
LOUD = 0.1
# Below these, scores say next to nothing
FEWEST_REVIEWS, FEWEST_OF_A_KIND = 100, 10


@dataclass(slots=True)
class LeftOut:
    """Users without a score for reasons that differ in numbers and names alone."""

    status: str  # ``skipped`` or ``failed``
    reason: str  # That of the first
    users: int = 0
    reviews: int = 0  # In their logs, as far as these could be read


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

    def without(self, status: str, reason: str, sizes: Collection[float]) -> Coverage:
        """Return what is left if users of other sizes are left out too."""
        users, reviews = len(sizes), int(sum(sizes))
        lost = LeftOut(status, reason, self.users.scored - users, self.reviews.scored - reviews)
        left_out = (*self.left_out, *[lost] * bool(lost.users or lost.reviews))
        of_users = replace(self.users, scored=users)
        return Coverage(of_users, replace(self.reviews, scored=reviews), left_out)

    @property
    def caution(self) -> str:
        """A warning where more than a tenth of users or reviews is left out; else "".

        Reviews of a kind that is never scored are not left out.
        """
        users, reviews = self.users, self.reviews
        lost = reviews.read - reviews.scored - sum(reviews.unscored.values())
        counts = {"users": (users.read - users.scored, users.read), "reviews": (lost, reviews.read)}
        shares = [
            f"{100 * part / whole:.0f} % of the {what} ({part:,} of {whole:,} read)"
            for what, (part, whole) in counts.items()
            if part > LOUD * whole
        ]
        return f"{' and '.join(shares)} left out" if shares else ""


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
    when: str = UNKNOWN  # When predictions were made, one of `srs_eval.algorithms.algorithm.WHEN`
    sees_truth: bool = False
    pretrained: bool = False
    in_sample: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)  # Rows that are no reviews, by reason
    data_fingerprint: str = ""  # Digest of the logs
    rows_fingerprint: str = ""  # Digest of the scored reviews
    coverage: Coverage = field(default_factory=Coverage)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def too_few(self) -> str:
        """Why scores of so few answers say nothing; "" where there are enough."""
        rarer = min(self.forgotten, self.reviews - self.forgotten)
        if self.reviews >= FEWEST_REVIEWS and rarer >= FEWEST_OF_A_KIND:
            return ""
        return (
            f"Too few answers to tell: {self.reviews:,} scored, {self.forgotten:,} forgotten. It "
            f"takes {FEWEST_REVIEWS}, {FEWEST_OF_A_KIND} of them forgotten, {FEWEST_OF_A_KIND} not."
        )

    @property
    def exceptions(self) -> str:
        """Numbers of irregular fits, such as ``140 fell back, 1 failed, of 145 fits``."""
        counts = {how: getattr(self, status) for status, how in EXCEPTIONS.items()}
        parts = [f"{count:,} {how}" for how, count in counts.items() if count]
        total = [f"of {self.fits:,} fit{'s' * (self.fits > 1)}"] if parts and self.fits else []
        return ", ".join([*parts, *total])

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Summary:
        """Build from the content of the file; raise `ValueError` if it is something else."""
        metrics = {name: _numbers(row) for name, row in content.get("metrics", {}).items()}
        thresholds = [_numbers(row) for row in content.get("thresholds", ())]
        content = {**content, "metrics": metrics, "thresholds": thresholds}
        summary: Summary = _SUMMARY.validate_python(content)
        return summary


_SUMMARY = TypeAdapter(Summary)


class Census:
    """Counts users with their reviews and fits, in the order of the source."""

    def __init__(self) -> None:
        self.users, self.reviews, self.fits = Counter[str](), Counter[str](), Counter[str]()
        self.dropped, self.unscored, self.rows = Counter[str](), Counter[str](), Counter[str]()
        self.left_out: dict[tuple[str, str], LeftOut] = {}
        self.forgotten = self.not_converged = 0
        self.logs = hashlib.sha256()

    def add(self, user: ScoredUser) -> None:
        """Add a user."""
        log, status, reviews = user.log, "scored", user.reviews
        if user.is_complete:
            self.dropped.update(log.dropped)
            self.unscored.update(log.unscored)
        else:
            status, reviews = self._add_left_out(user), log.reviews
        self.users.update(["read", status])
        self.reviews.update({"read": log.reviews, status: reviews})
        self.fits.update(fit.status for fit in user.fits)
        self.not_converged += sum(fit.predicts and not fit.converged for fit in user.fits)
        self.forgotten += user.forgotten
        self.rows.update(log.left_out)
        self.logs.update(log.fingerprint.encode())

    def facts(self) -> dict[str, Any]:
        """Return what a summary says of all of them."""
        others = 2 * self.reviews["read"] - self.reviews.total()
        others -= self.dropped.total() + self.unscored.total()
        self.unscored["not used by the protocol"] = others
        of_users, of_reviews = dict[str, Any](self.users), dict[str, Any](self.reviews)
        of_reviews |= {"dropped": dict(+self.dropped), "unscored": dict(+self.unscored)}
        left_out = sorted(self.left_out.values(), key=lambda each: (each.status, -each.users))
        return {
            "forgotten": self.forgotten,
            "fits": self.fits.total(),
            **{status: self.fits[status] for status in ("failed", "fallback", "skipped")},
            "not_converged": self.not_converged,
            "left_out": dict(self.rows),
            "data_fingerprint": self.logs.hexdigest()[:16],
            "coverage": Coverage(Counts(**of_users), Counts(**of_reviews), tuple(left_out)),
        }

    def _add_left_out(self, user: ScoredUser) -> str:
        """Count a user under the reason why there is no score; return how the fit ended."""
        nothing = Fit(user.user, -1, "skipped", "nothing was scored")
        without = [fit for fit in user.fits if not fit.predicts] or [nothing]
        missing = min(without, key=lambda fit: fit.status)
        reason = textwrap.shorten(reason_of(missing), _LONGEST_REASON, placeholder=" …")
        key = missing.status, kind_of(reason)
        if len(self.left_out) >= _MOST_REASONS and key not in self.left_out:
            key, reason = (missing.status, ""), "other reasons, all in fits.parquet"
        alike = self.left_out.setdefault(key, LeftOut(missing.status, reason))
        alike.users += 1
        alike.reviews += user.log.reviews
        return missing.status


def reason_of(fit: Fit) -> str:
    """Return the reason of a fit, with its user and fold named once."""
    where = f"user {fit.user}" + (f", fold {fit.fold}" if fit.fold >= 0 else "")
    reason = fit.reason.removeprefix(f"{where}: ").removeprefix(f"user {fit.user}: ")
    return f"{where}: {reason}" if reason else where


def kind_of(reason: str) -> str:
    """Return a reason without what differs between users: names and numbers."""
    return re.sub(r"\d+(?:[.,]\d+)*", "#", re.sub(r"^user .*?: ", "", reason))


def _numbers(row: Mapping[str, float | None]) -> dict[str, float]:
    """Read numbers from JSON, where null stands for NaN."""
    return {name: math.nan if value is None else value for name, value in row.items()}
