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

from srs_eval.comparison.pairing import Paired, same_reviews
from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.bootstrap import sample_of
from srs_eval.metrics.means import mean_of_users, ratio_of_sums
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.scores import um_plus
from srs_eval.metrics.tally import log_losses

# Metrics that are a mean of a loss of each review
PER_REVIEW = ("log_loss", "brier")
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
    """Compute differences by stratum from the predictions of all runs, of 10,000 users at most.

    None if the baseline, or every other run, has no saved predictions.
    """
    saved = [run.has_predictions for run in paired.runs]
    if not saved[baseline] or sum(saved) < 2:
        return None
    names = [run.name for run in paired.runs if run.has_predictions]
    users, is_alone = sample_of(paired.users, READ), len(paired.users) == 1
    of_users, um_of_users = [], []
    for reviews in same_reviews(paired.runs, users):
        of_users.append(_sums(reviews, baseline, metric, by_card=is_alone))
        several = [*reviews.values()]
        um_of_users.append([[um_plus(a.p, b.p, a.recalled) for b in several] for a in several])
    rows: list[dict[str, Any]] = []
    for fact, parts in zip(FACTS, zip(*of_users, strict=True), strict=True):
        sums = np.concatenate(parts)
        counts, mass = sums[:, :, 0], sums[:, :, 1]
        strata = np.flatnonzero(counts.any(axis=0)).tolist()
        for k in strata if len(strata) > 1 else ():
            about = {
                "fact": fact,
                "label": [*FACTS[fact][1]][k],
                "share": float(mass[:, k].sum() / mass.sum()),
                "reviews": int(counts[:, k].sum()),
                "clusters": int(np.count_nonzero(counts[:, k])),
            }
            for run, column in zip(names, sums[:, k, 2:].T, strict=True):
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


def losses(predictions: Predictions, metric: str) -> FloatArray:
    """Score each review by log loss, or by the Brier score where that is the metric."""
    p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
    return (p - recalled) ** 2 if metric == "brier" else log_losses(p, recalled)


def _sums(
    predictions: Mapping[int, Predictions], baseline: int, metric: str, *, by_card: bool
) -> list[FloatArray]:
    """Sum numbers, weights and weighted differences of the reviews of a user by stratum.

    Of each fact, [clusters, strata, 2 + runs]; clusters are the user, or cards of the only one.
    """
    reviews = predictions[baseline]
    before, size = losses(reviews, metric), len(reviews)
    gaps = [losses(each, metric) - before for each in predictions.values()]
    cluster = np.unique(reviews.card if by_card else reviews.user, return_inverse=True)[1]
    sums = []
    for fact, (_, edges) in FACTS.items():
        values = np.full(size, size) if fact == "size" else getattr(reviews, fact)
        values = () if values is None else values  # where the fact was not saved
        place = np.searchsorted([*edges.values()], values, side="right") - 1
        cell = cluster[: len(values)] * len(edges) + np.clip(place, 0, len(edges) - 1)
        cells = (int(cluster.max()) + 1) * len(edges)
        count = np.bincount(cell, minlength=cells)
        of_runs = [np.bincount(cell, gap[: len(values)], cells) / size for gap in gaps]
        planes = np.stack([count, count / size, *of_runs], axis=1)
        sums.append(planes.reshape(-1, len(edges), len(planes.T)))
    return sums
