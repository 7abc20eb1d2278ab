"""Where models differ: by the history of a card, by what was predicted, by who answers.

Each user's reviews together count once, as in the mean over users, so that the parts add up:
the sum over strata of share times difference is the mean paired difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from srs_eval.comparison.common_rows import same_reviews
from srs_eval.comparison.pairing import Paired
from srs_eval.nouns import FloatArray, IntArray, Predictions
from srs_eval.results.saved_predictions import (
    OwnPredictions,
    has_predictions,
    losses,
    scored_by,
)
from srs_eval.stats.estimate import ratio_of_sums

# One value for each review of a user; None where it was not kept.
OfReviews = Callable[[Predictions], FloatArray | IntArray | None]


@dataclass(frozen=True, slots=True)
class Fact:
    """What reviews are told apart by.

    Attributes
    ----------
    values : callable
        Takes the values from a user's reviews, as the baseline predicted them.
    edges : tuple of float
        Increasing; a stratum holds values from one edge up to, not including, the next.
    labels : tuple of str
        One for each stratum.
    """

    name: str
    title: str
    values: OfReviews
    edges: tuple[float, ...]
    labels: tuple[str, ...]

    def stratum(self, values: FloatArray | IntArray) -> IntArray:
        """Find the stratum of each value; values outside the edges go to the outermost."""
        place = np.searchsorted(np.array(self.edges), values, side="right") - 1
        return np.clip(place, 0, len(self.labels) - 1).astype(np.int64)


def _size(reviews: Predictions) -> IntArray:
    """Count the scored reviews of the user, once for each of them."""
    return np.full(len(reviews), len(reviews))


FACTS = (
    Fact(
        "nth_review",
        "Number of the review on its card",
        attrgetter("nth_review"),
        (0, 3, 4, 5, 7, 10, 15, 25, math.inf),
        ("2", "3", "4", "5-6", "7-9", "10-14", "15-24", "25+"),
    ),
    Fact(
        "elapsed_days",
        "Days since the card's review before",
        attrgetter("elapsed_days"),
        (0, 1, 2, 4, 8, 15, 31, 91, 366, math.inf),
        ("same day", "1", "2-3", "4-7", "8-14", "15-30", "31-90", "91-365", "366+"),
    ),
    Fact(
        "lapses",
        "Lapses of the card before",
        attrgetter("lapses"),
        (0, 1, 2, 3, 5, 9, math.inf),
        ("0", "1", "2", "3-4", "5-8", "9+"),
    ),
    Fact(
        "last_rating",
        "Answer of the card's review before",
        attrgetter("last_rating"),
        (-math.inf, 1, 2, 3, 4, math.inf),
        ("none", "again", "hard", "good", "easy"),
    ),
    Fact(
        "p",
        "Recall predicted by the baseline",
        attrgetter("p"),
        (0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, math.inf),
        ("<0.5", "0.5-0.7", "0.7-0.8", "0.8-0.85", "0.85-0.9", "0.9-0.95", "0.95-0.98", "≥0.98"),
    ),
    Fact(
        "size",
        "Scored reviews of the user",
        _size,
        (0, 1_000, 3_000, 10_000, 30_000, math.inf),
        ("<1,000", "1,000-2,999", "3,000-9,999", "10,000-29,999", "30,000+"),
    ),
)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Differences to the baseline in one part of the reviews.

    Attributes
    ----------
    share : float
        Of all reviews, each user's counting once.
    n_reviews, n_clusters : int
        Reviews, and users (or cards of one user) they are of.
    gap, lo, hi : float64 [runs]
        Mean score less the baseline's, with its 99 % interval over users or
        cards, for this part alone.
    """

    label: str
    share: float
    n_reviews: int
    n_clusters: int
    gap: FloatArray
    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True, slots=True)
class Where:
    """Differences to the baseline in every part of the reviews.

    Attributes
    ----------
    runs : tuple of int
        Numbers of the runs that kept predictions, in the order of the columns; the baseline is
        among them.
    score : str
        What reviews were scored by.
    over : str
        What the intervals are over: ``users``, or ``cards`` of a single user.
    facts : tuple of (Fact, strata)
        Strata without reviews are left out, and facts that all reviews have in common.
    """

    runs: tuple[int, ...]
    score: str
    over: str
    facts: tuple[tuple[Fact, tuple[Stratum, ...]], ...]


def where(paired: Paired, baseline: int, metric: str) -> Where | None:
    """Stream the predictions of all runs, one user after the other, and add differences up.

    Parameters
    ----------
    baseline : int
        Number of the run whose predictions the others are compared with.

    Returns
    -------
    Where or None
        None if the baseline, or every other run, kept no predictions.

    Raises
    ------
    ConfigError
        If predictions are not those of the scores, or not of the same reviews.
    """
    kept = [n for n, run in enumerate(paired.runs) if has_predictions(run)]
    if baseline not in kept or len(kept) < 2:
        return None
    files = {n: OwnPredictions(paired.runs[n]) for n in kept}
    users = len(paired.users)
    of_users = [_of_user(paired, files, baseline, number, metric) for number in range(users)]
    gaps, mass, reviews = (np.concatenate(parts) for parts in zip(*of_users, strict=True))
    facts = []
    at = 0
    for fact in FACTS:
        strata = [
            _stratum(label, gaps[:, k], mass[:, k], reviews[:, k], mass, fact)
            for k, label in enumerate(fact.labels, start=at)
            if reviews[:, k].any()
        ]
        at += len(fact.labels)
        if len(strata) > 1:
            facts.append((fact, tuple(strata)))
    over = "users" if users > 1 else "cards"
    return Where(tuple(kept), scored_by(metric), over, tuple(facts))


def _of_user(
    paired: Paired, files: dict[int, OwnPredictions], baseline: int, number: int, metric: str
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Add up one user, given by number: weighted differences, weights, and reviews, by stratum.

    Returns
    -------
    gaps : float64 [clusters, strata, runs]
    mass : float64 [clusters, strata]
    reviews : int64 [clusters, strata]
        Clusters are the user itself or, if there is no other, its cards.
    """
    predicted = _same_reviews(paired, files, baseline, number)
    reviews = predicted[baseline]
    before = losses(reviews, metric)
    gaps = [losses(predicted[n], metric) - before for n in files]
    only = len(paired.users) == 1
    cluster = (
        np.unique(reviews.card, return_inverse=True)[1] if only else np.zeros(len(reviews), int)
    )
    clusters = int(cluster.max()) + 1
    strata = [_strata(fact, reviews) for fact in FACTS]
    sums, counts = [], []
    for fact, stratum in zip(FACTS, strata, strict=True):
        size = len(fact.labels)
        known = stratum >= 0
        cell = (cluster * size + stratum)[known]
        shape = (clusters, size)
        counts.append(np.bincount(cell, minlength=clusters * size).reshape(shape))
        of_runs = [
            np.bincount(cell, gap[known], minlength=clusters * size).reshape(shape) for gap in gaps
        ]
        sums.append(np.stack(of_runs, axis=2))
    held = np.concatenate(counts, axis=1)
    return np.concatenate(sums, axis=1) / len(reviews), held / len(reviews), held


def _same_reviews(
    paired: Paired, files: dict[int, OwnPredictions], baseline: int, number: int
) -> dict[int, Predictions]:
    """Read what each run predicted for the reviews that a user is compared on."""
    user = paired.users[number]
    ordered = [baseline, *(n for n in files if n != baseline)]
    found = same_reviews([files[n] for n in ordered], user, restricted=user in paired.restricted)
    return dict(zip(ordered, found, strict=True))


def _strata(fact: Fact, reviews: Predictions) -> IntArray:
    """Stratum of each review; -1 where the fact was not kept."""
    values = fact.values(reviews)
    if values is None:
        return np.full(len(reviews), -1, np.int64)
    return fact.stratum(values)


def _stratum(
    label: str,
    gaps: FloatArray,
    mass: FloatArray,
    reviews: IntArray,
    all_mass: FloatArray,
    fact: Fact,
) -> Stratum:
    total = float(mass.sum())
    of_fact = sum(float(all_mass[:, k].sum()) for k in _columns(fact))
    found = [ratio_of_sums(column, mass, size=1.0) for column in gaps.T]
    lo, hi = np.array([each.interval() for each in found]).T
    return Stratum(
        label=label,
        share=total / of_fact,
        n_reviews=int(reviews.sum()),
        n_clusters=int(np.count_nonzero(reviews)),
        gap=np.array([each.mean for each in found]),
        lo=lo,
        hi=hi,
    )


def _columns(fact: Fact) -> Sequence[int]:
    begin = 0
    for other in FACTS:
        if other is fact:
            break
        begin += len(other.labels)
    return range(begin, begin + len(fact.labels))
