"""Differences between models by stratum: card history, predicted recall, and size of the user.

The reviews of each user together count once, as in the mean over users. So the strata add up: the
sum over strata of share times difference is the mean paired difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.predictions import losses, scored_by
from srs_eval.comparison.restriction import SameReviews
from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.bootstrap import sample_of
from srs_eval.metrics.means import Estimate, mean_of_users, ratio_of_sums
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.universal import um_plus

# Users whose predictions are read at most.
READ = 10_000


@dataclass(frozen=True, slots=True)
class Fact:
    """Property by which reviews are stratified."""

    name: str  # Of the column of predictions; ``size`` is the number of reviews of the user
    title: str
    # Increasing; a stratum holds values from one edge up to, not including, the next
    edges: tuple[float, ...]
    labels: tuple[str, ...]  # One for each stratum

    def values(self, reviews: Predictions) -> FloatArray | IntArray | None:
        """Return the value of each review, by the baseline; None if it was not saved."""
        if self.name == "size":
            return np.full(len(reviews), len(reviews))
        found: FloatArray | IntArray | None = getattr(reviews, self.name)
        return found

    def stratum(self, values: FloatArray | IntArray) -> IntArray:
        """Return the stratum of each value; values beyond the edges are in the outermost ones."""
        place = np.searchsorted(np.array(self.edges), values, side="right") - 1
        return np.clip(place, 0, len(self.labels) - 1).astype(np.int64)


FACTS = (
    Fact(
        "nth_review",
        "Number of the review on its card",
        (0, 3, 4, 5, 7, 10, 15, 25, math.inf),
        ("2", "3", "4", "5-6", "7-9", "10-14", "15-24", "25+"),
    ),
    Fact(
        "elapsed_days",
        "Days since the card's review before",
        (0, 1, 2, 4, 8, 15, 31, 91, 366, math.inf),
        ("same day", "1", "2-3", "4-7", "8-14", "15-30", "31-90", "91-365", "366+"),
    ),
    Fact(
        "lapses",
        "Lapses of the card before",
        (0, 1, 2, 3, 5, 9, math.inf),
        ("0", "1", "2", "3-4", "5-8", "9+"),
    ),
    Fact(
        "last_rating",
        "Answer of the card's review before",
        (-math.inf, 1, 2, 3, 4, math.inf),
        ("none", "again", "hard", "good", "easy"),
    ),
    Fact(
        "recalls",
        "Recalls of the card before",
        (0, 1, 2, 3, 5, 10, math.inf),
        ("0", "1", "2", "3-4", "5-9", "10+"),
    ),
    Fact(
        "p",
        "Recall predicted by the baseline",
        (0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, math.inf),
        ("<0.5", "0.5-0.7", "0.7-0.8", "0.8-0.85", "0.85-0.9", "0.9-0.95", "0.95-0.98", "≥0.98"),
    ),
    Fact(
        "size",
        "Scored reviews of the user",
        (0, 1_000, 3_000, 10_000, 30_000, math.inf),
        ("<1,000", "1,000-2,999", "3,000-9,999", "10,000-29,999", "30,000+"),
    ),
)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Differences to the baseline in one stratum of the reviews."""

    label: str
    share: float  # Share of all reviews, where each user counts once
    # Numbers of reviews, and of users (or cards of a single user)
    n_reviews: int
    n_clusters: int
    # [runs]: Mean score less the baseline's, with its 99 % interval over users or cards, for this
    # stratum alone
    gap: FloatArray
    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True, slots=True)
class Strata:
    """Differences to the baseline in every stratum of the reviews."""

    # Numbers of the runs with saved predictions, in the order of the columns; the baseline is among
    # them
    runs: tuple[int, ...]
    score: str  # Score of single reviews
    over: str  # Clusters of the intervals: ``users``, or ``cards`` of a single user
    # Without empty strata, and without facts that have only one stratum
    facts: tuple[tuple[Fact, tuple[Stratum, ...]], ...]
    # [runs][runs]: UM+ of a run, and against another, as the mean over users
    um_plus: tuple[tuple[Estimate, ...], ...]
    sample: str = ""  # The sample of users that was read; "" for all

    def um_plus_of(self, run: int, other: int) -> tuple[float, float, float]:
        """Return UM+ of a run against another, both by position, and the bounds of its interval."""
        found = self.um_plus[run][other]
        lo, hi = found.interval()
        return found.mean, max(lo, 0.0), min(hi, 1.0)


# For each fact: weighted differences [clusters, strata, runs], weights [clusters, strata] and
# numbers of reviews [clusters, strata]. Clusters are the user or, if it is the only one, its cards.
_Sums = list[tuple[FloatArray, FloatArray, IntArray]]


def stratify(paired: Paired, baseline: int, metric: str) -> Strata | None:
    """Compute differences by stratum from the predictions of all runs, user by user.

    Of more than 10,000 users, 10,000 are read: those with the smallest digests of their names. None
    if the baseline, or every other run, has no saved predictions.
    """
    same = SameReviews(paired.runs, paired.restricted)
    if baseline not in same.runs or len(same.runs) < 2:
        return None
    users = sample_of(paired.users, READ)
    of_users, um_of_users = [], []
    for user in users:
        predicted = same.read(user)
        of_users.append(_sums(predicted, baseline, metric, by_card=len(paired.users) == 1))
        runs = [(one.p, one.recalled) for one in predicted.values()]
        um_of_users.append(
            [[um_plus(p, other, recalled) for other, _ in runs] for p, recalled in runs]
        )
    facts = []
    for fact, parts in zip(FACTS, zip(*of_users, strict=True), strict=True):
        gaps, mass, reviews = (np.concatenate(part) for part in zip(*parts, strict=True))
        total = sum(float(column.sum()) for column in mass.T)
        strata = tuple(
            _stratum(label, gaps[:, k], mass[:, k], reviews[:, k], total)
            for k, label in enumerate(fact.labels)
            if reviews[:, k].any()
        )
        if len(strata) > 1:
            facts.append((fact, strata))
    um = np.moveaxis(np.array(um_of_users), 0, -1)  # [runs, runs, users]
    sample = f"{len(users):,} of {len(paired.users):,} users"
    return Strata(
        tuple(same.runs),
        scored_by(metric),
        "users" if len(paired.users) > 1 else "cards",
        tuple(facts),
        tuple(tuple(map(mean_of_users, row)) for row in um),
        sample if len(users) < len(paired.users) else "",
    )


def _sums(
    predicted: Mapping[int, Predictions], baseline: int, metric: str, *, by_card: bool
) -> _Sums:
    """Sum the reviews of one user by stratum."""
    reviews = predicted[baseline]
    before = losses(reviews, metric)
    gaps = [losses(predicted[n], metric) - before for n in sorted(predicted)]
    cluster = np.zeros(len(reviews), np.int64)
    if by_card:
        cluster = np.unique(reviews.card, return_inverse=True)[1]
    clusters = int(cluster.max()) + 1
    found: _Sums = []
    for fact in FACTS:
        values, size = fact.values(reviews), len(fact.labels)
        known = slice(None if values is not None else 0)  # no review if the fact was not saved
        stratum = 0 if values is None else fact.stratum(values)
        cell, cells, shape = (cluster * size + stratum)[known], clusters * size, (clusters, size)
        counts = np.bincount(cell, minlength=cells).reshape(shape).astype(np.int64)
        sums = [np.bincount(cell, gap[known], minlength=cells).reshape(shape) for gap in gaps]
        found.append((np.stack(sums, axis=2) / len(reviews), counts / len(reviews), counts))
    return found


def _stratum(
    label: str, gaps: FloatArray, mass: FloatArray, reviews: IntArray, total: float
) -> Stratum:
    found = [ratio_of_sums(column, mass, size=1.0) for column in gaps.T]
    lo, hi = np.array([each.interval() for each in found]).T
    return Stratum(
        label=label,
        share=float(mass.sum()) / total,
        n_reviews=int(reviews.sum()),
        n_clusters=int(np.count_nonzero(reviews)),
        gap=np.array([each.mean for each in found]),
        lo=lo,
        hi=hi,
    )
