"""Recall that was predicted and observed, by groups of reviews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.collection.study import Study
from srs_eval.data.reviews import BoolArray
from srs_eval.metrics.means import clustered_mean
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.significance import ALPHA, exact_interval

_EDGES = (0.0, 0.65, 0.75, 0.825, 0.875, 0.925, 0.975, 1.0)
_LEVELS = ("below 65 %", "70 %", "80 %", "85 %", "90 %", "95 %", "above 97.5 %")
_DAYS = ((1, 1), (2, 3), (4, 7), (8, 14), (15, 30), (31, 90), (91, 365), (366, None))
_MOST_GROUPS = 12

Group = tuple[str, BoolArray]


@dataclass(frozen=True, slots=True)
class Share:
    """Recall in a group of reviews."""

    name: str  # The group
    reviews: int  # How many there are, at least one
    # Mean prediction, and share of recalls
    predicted: float
    observed: float
    # Interval of the true share
    lo: float
    hi: float


def average(scored: Predictions) -> Share:
    """Return all reviews."""
    return shares(scored, [("all reviews", np.ones(len(scored), np.bool_))])[0]


def groups(study: Study, scored: Predictions) -> dict[str, list[Group]]:
    """Return the reviews in groups, by what they are grouped by."""
    return {
        "predicted recall": list(by_level(scored)),
        "days since the last review": list(by_days(scored)),
        "preset": list(_by_group(study, "preset")),
        "deck": list(_by_group(study, "deck")),
    }


def by_level(scored: Predictions) -> Iterator[Group]:
    """Yield reviews by predicted recall."""
    place = np.clip(np.searchsorted(_EDGES, scored.p, side="right") - 1, 0, len(_LEVELS) - 1)
    for number, name in enumerate(_LEVELS):
        yield name, place == number


def by_days(scored: Predictions) -> Iterator[Group]:
    """Yield reviews by days since the last review of the card."""
    days = scored.elapsed_days
    assert days is not None
    for first, last in _DAYS:
        name = f"{first} to {last} days" if last else f"{first} days and more"
        name = "1 day" if last == 1 else name
        yield name, (days >= first) & (days <= (last or np.inf))


def _by_group(study: Study, group: str) -> Iterator[Group]:
    numbers = study.group(group)
    titles = study.log.titles.get(group, {})
    found, counts = np.unique(numbers[numbers >= 0], return_counts=True)
    if len(found) < 2:
        return
    largest = found[np.argsort(-counts, kind="stable")][:_MOST_GROUPS].tolist()
    for number in largest:
        yield titles.get(number, f"{group} {number}"), numbers == number
    yield f"other {group}s", (numbers >= 0) & ~np.isin(numbers, largest)
    yield "deleted cards", numbers < 0


def shares(predictions: Predictions, groups: Sequence[Group]) -> list[Share]:
    """Compute the recall of each group, a name and a mask, that has reviews.

    The intervals of all groups together hold with 99 %: each has 1 - 0.01 / groups (Bonferroni).
    Each is exact for as many independent reviews as have the variance of the sum of those within
    cards and days (Korn and Graubard, 1998, Survey Methodology 24, 193-201): of one review, it
    reaches from nearly 0 or to nearly 1. Where all
    reviews turned out alike, cards or days are counted, whichever are fewer.
    """
    nonempty = [(name, rows) for name, rows in groups if rows.any()]
    level = 1 - ALPHA / max(1, len(nonempty))
    return [_share(predictions, name, rows, level) for name, rows in nonempty]


def _share(predictions: Predictions, name: str, rows: BoolArray, level: float) -> Share:
    recalled = predictions.recalled[rows].astype(np.float64)
    clusters = [predictions.card[rows]]
    if predictions.day is not None:
        clusters.append(predictions.day[rows])
    observed = float(recalled.mean())
    effective = float(min(len(np.unique(cluster)) for cluster in clusters))
    variance = clustered_mean(recalled, *clusters).se ** 2
    if variance > 0:
        effective = min(observed * (1 - observed) / variance, float(len(recalled)))
    lo, hi = exact_interval(observed * effective, effective, level=level)
    predicted = float(np.mean(predictions.p[rows], dtype=np.float64))
    return Share(name, len(recalled), predicted, observed, lo, hi)
