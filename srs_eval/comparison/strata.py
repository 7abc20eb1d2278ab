"""Differences between models by stratum: card history, predicted recall, and size of the user.

The reviews of each user together count once, as in the mean over users. So the strata add up: the
sum over strata of share times difference is the mean paired difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
import pandas as pd

from srs_eval.comparison.entry import Entry, same_reviews
from srs_eval.data.reviews import FloatArray, User
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
# are in the first stratum; ``size`` is the number of reviews of the user
FACTS: Mapping[str, tuple[str, Sequence[float]]] = {
    "nth_review": ("Number of the review on its card", (2, 3, 4, 5, 7, 10, 15, 25)),
    "elapsed_days": ("Days since the card's review before", (0, 1, 2, 4, 8, 15, 31, 91, 366)),
    "lapses": ("Lapses of the card before", (0, 1, 2, 3, 5, 9)),
    "last_rating": ("Answer of the card's review before", (0, 1, 2, 3, 4)),
    "recalls": ("Recalls of the card before", (0, 1, 2, 3, 5, 10)),
    "p": ("Recall predicted by the baseline", (0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)),
    "size": ("Scored reviews of the user", (1, 1_000, 3_000, 10_000, 30_000)),
}
_RATINGS = ["none", "again", "hard", "good", "easy"]
_COLUMNS = ["fact", "label", "share", "reviews", "clusters", "run", "difference", "lo", "hi"]


@dataclass(frozen=True, slots=True)
class Strata:
    """Differences to the baseline in every stratum of the reviews."""

    score: str  # Score of single reviews
    over: str  # Clusters of the intervals: ``users``, or ``cards`` of a single user
    # A row for each stratum and run, without empty strata, and facts that have only one stratum
    frame: pd.DataFrame
    um_plus: pd.DataFrame  # UM+ of a run against another: run, other, mean, lo, hi
    sample: str = ""  # The sample of users that was read; "" for all


def stratify(
    runs: Mapping[str, Entry], users: Sequence[User], baseline: str, metric: str
) -> Strata | None:
    """Compute differences by stratum from the predictions of all runs, of 10,000 users at most.

    None if the baseline, or every other run, has no saved predictions.
    """
    names = [name for name, run in runs.items() if run.has_predictions]
    if baseline not in names or len(names) < 2:
        return None
    every, users, is_alone = len(users), sample_of(users, READ), len(users) == 1
    pairs = [*permutations(names, 2)]
    of_users, um_of_users = [], []
    for reviews in same_reviews(runs.values(), users):
        of_users.append(_sums(reviews, baseline, metric, by_card=is_alone))
        several = ((reviews[run], reviews[other]) for run, other in pairs)
        um_of_users.append([um_plus(a.p, b.p, a.recalled) for a, b in several])
    sums, rows = np.concatenate(of_users), []
    strata = [(fact, label) for fact in FACTS for label in _labels(fact)]
    for place, (fact, label) in enumerate(strata):
        count, mass, *gaps = sums[:, place].T
        about = float(mass.sum() / len(users)), int(count.sum()), int(np.count_nonzero(count))
        for run, gap in zip(names, gaps, strict=True):
            estimate = ratio_of_sums(gap, mass, size=1.0)
            rows.append((fact, label, *about, run, estimate.mean, *estimate.interval()))
    frame = pd.DataFrame(rows, columns=_COLUMNS).query("reviews > 0")
    frame = frame[frame.groupby("fact").label.transform("nunique") > 1]
    um = []
    for pair, values in zip(pairs, np.array(um_of_users).T, strict=True):
        mean = mean_of_users(values)
        um.append((*pair, mean.mean, *np.clip(mean.interval(), 0.0, 1.0).tolist()))
    return Strata(
        metric if metric in PER_REVIEW else "log_loss",
        "cards" if is_alone else "users",
        frame.reset_index(drop=True),
        pd.DataFrame(um, columns=["run", "other", "mean", "lo", "hi"]),
        f"{len(users):,} of {every:,} users" if len(users) < every else "",
    )


def _labels(fact: str) -> list[str]:
    """Name the strata of a fact."""
    if fact == "last_rating":
        return _RATINGS
    *_, last = edges = FACTS[fact][1]
    step = 0 if fact == "p" else 1
    several = [f"{a:,}" if b - a == step else f"{a:,}-{b - step:,}" for a, b in pairwise(edges)]
    return [*several, f"{last:,}+"]


def losses(predictions: Predictions, metric: str) -> FloatArray:
    """Score each review by log loss, or by the Brier score where that is the metric."""
    p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
    return (p - recalled) ** 2 if metric == "brier" else log_losses(p, recalled)


def _sums(
    predictions: Mapping[str, Predictions], baseline: str, metric: str, *, by_card: bool
) -> FloatArray:
    """Sum numbers, weights and weighted differences of the reviews of a user by stratum.

    [clusters, strata of all facts, 2 + runs]; clusters are the user, or cards of the only one.
    """
    reviews = predictions[baseline]
    before, size = losses(reviews, metric), len(reviews)
    gaps = [losses(each, metric) - before for each in predictions.values()]
    _, cluster = np.unique(reviews.card if by_card else reviews.user, return_inverse=True)
    sums = []
    for fact, (_, edges) in FACTS.items():
        values = np.full(size, size) if fact == "size" else getattr(reviews, fact)
        values = () if values is None else values  # where the fact was not saved
        place = np.searchsorted(edges, values, side="right") - 1
        cell = cluster[: len(values)] * len(edges) + np.maximum(place, 0)
        cells = (int(cluster.max()) + 1) * len(edges)
        count = np.bincount(cell, minlength=cells)
        of_runs = [np.bincount(cell, gap[: len(values)], cells) / size for gap in gaps]
        planes = np.stack([count, count / size, *of_runs], axis=1)
        sums.append(planes.reshape(-1, len(edges), len(planes.T)))
    return np.concatenate(sums, axis=1)
