"""Differences between models by stratum: card history, predicted recall, and size of the user.

The reviews of each user together count once, as in the mean over users. So the strata add up: the
sum over strata of share times difference is the mean paired difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.predictions import PER_REVIEW, SameReviews, losses
from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.bootstrap import sample_of
from srs_eval.metrics.means import mean_of_users, ratio_of_sums
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.scores import um_plus

# Users whose predictions are read at most
READ = 10_000
# Facts by the column of predictions: what it is, and where its strata begin. Values below the first
# are in the first stratum; ``size`` is the number of reviews of the user.
FACTS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "nth_review": (
        "Number of the review on its card",
        {"2": 2, "3": 3, "4": 4, "5-6": 5, "7-9": 7, "10-14": 10, "15-24": 15, "25+": 25},
    ),
    "elapsed_days": (
        "Days since the card's review before",
        {"same day": 0, "1": 1, "2-3": 2, "4-7": 4, "8-14": 8, "15-30": 15, "31-90": 31}
        | {"91-365": 91, "366+": 366},
    ),
    "lapses": ("Lapses of the card before", {"0": 0, "1": 1, "2": 2, "3-4": 3, "5-8": 5, "9+": 9}),
    "last_rating": (
        "Answer of the card's review before",
        {"none": 0, "again": 1, "hard": 2, "good": 3, "easy": 4},
    ),
    "recalls": (
        "Recalls of the card before",
        {"0": 0, "1": 1, "2": 2, "3-4": 3, "5-9": 5, "10+": 10},
    ),
    "p": (
        "Recall predicted by the baseline",
        {"<0.5": 0, "0.5-0.7": 0.5, "0.7-0.8": 0.7, "0.8-0.85": 0.8, "0.85-0.9": 0.85}
        | {"0.9-0.95": 0.9, "0.95-0.98": 0.95, "≥0.98": 0.98},
    ),
    "size": (
        "Scored reviews of the user",
        {"<1,000": 1, "1,000-2,999": 1_000, "3,000-9,999": 3_000, "10,000-29,999": 10_000}
        | {"30,000+": 30_000},
    ),
}


@dataclass(frozen=True, slots=True)
class Strata:
    """Differences to the baseline in every stratum of the reviews."""

    score: str  # Score of single reviews
    over: str  # Clusters of the intervals: ``users``, or ``cards`` of a single user
    # A row for each stratum and run: fact, label, share, reviews, clusters, run, difference, lo,
    # hi. Without empty strata, and without facts that have only one stratum
    frame: pd.DataFrame
    um_plus: pd.DataFrame  # UM+ of a run against another: run, other, mean, lo, hi
    sample: str = ""  # The sample of users that was read; "" for all


def stratify(paired: Paired, baseline: int, metric: str) -> Strata | None:
    """Compute differences by stratum from the predictions of all runs, user by user.

    Of more than 10,000 users, 10,000 are read: those with the smallest digests of their names. None
    if the baseline, or every other run, has no saved predictions.
    """
    same = SameReviews(paired.runs)
    if baseline not in same.runs or len(same.runs) < 2:
        return None
    users, is_alone = sample_of(paired.users, READ), len(paired.users) == 1
    of_users, um_of_users = [], []
    for user in users:
        reviews = same.read(user)
        of_users.append(_sums(reviews, baseline, metric, by_card=is_alone))
        several = [*reviews.values()]
        um_of_users.append([[um_plus(a.p, b.p, a.recalled) for b in several] for a in several])
    names = [paired.runs[number].name for number in same.runs]
    rows: list[dict[str, Any]] = []
    for fact, parts in zip(FACTS, zip(*of_users, strict=True), strict=True):
        gaps, mass, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        strata = np.flatnonzero(counts.any(axis=0)).tolist()
        for k in strata if len(strata) > 1 else ():
            about = {
                "fact": fact,
                "label": [*FACTS[fact][1]][k],
                "share": float(mass[:, k].sum() / mass.sum()),
                "reviews": int(counts[:, k].sum()),
                "clusters": int(np.count_nonzero(counts[:, k])),
            }
            for run, column in zip(names, gaps[:, k].T, strict=True):
                estimate = ratio_of_sums(column, mass[:, k], size=1.0)
                ends = dict(zip(("lo", "hi"), estimate.interval(), strict=True))
                rows.append({**about, "run": run, "difference": estimate.mean, **ends})
    values, um = np.array(um_of_users), []
    for a, b in zip(*np.nonzero(~np.eye(len(names), dtype=bool)), strict=True):
        mean = mean_of_users(values[:, a, b])
        um.append((names[a], names[b], mean.mean, *np.clip(mean.interval(), 0.0, 1.0).tolist()))
    sample = f"{len(users):,} of {len(paired.users):,} users"
    return Strata(
        metric if metric in PER_REVIEW else "log_loss",
        "cards" if is_alone else "users",
        pd.DataFrame(rows),
        pd.DataFrame(um, columns=["run", "other", "mean", "lo", "hi"]),
        sample if len(users) < len(paired.users) else "",
    )


def _sums(
    predictions: Mapping[int, Predictions], baseline: int, metric: str, *, by_card: bool
) -> list[tuple[FloatArray, FloatArray, IntArray]]:
    """Sum the reviews of one user by stratum of each fact.

    Return weighted differences [clusters, strata, runs], weights [clusters, strata] and numbers of
    reviews [clusters, strata]. Clusters are the user or, if it is the only one, its cards.
    """
    reviews = predictions[baseline]
    before = losses(reviews, metric)
    gaps = [losses(each, metric) - before for each in predictions.values()]
    cluster = np.unique(reviews.card if by_card else reviews.user, return_inverse=True)[1]
    sums: list[tuple[FloatArray, FloatArray, IntArray]] = []
    for fact, (_, edges) in FACTS.items():
        values = np.full(len(reviews), len(reviews)) if fact == "size" else getattr(reviews, fact)
        known = slice(None if values is not None else 0)  # no review if the fact was not saved
        place = (
            0 if values is None else np.searchsorted([*edges.values()], values, side="right") - 1
        )
        shape = int(cluster.max()) + 1, len(edges)
        cell = (cluster * len(edges) + np.clip(place, 0, len(edges) - 1))[known]
        counts, *of_runs = (
            np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)
            for weights in (None, *(gap[known] for gap in gaps))
        )
        size = len(reviews)
        sums.append((np.stack(of_runs, axis=2) / size, counts / size, counts.astype(np.int64)))
    return sums
