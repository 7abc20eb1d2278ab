"""What the benchmarks train on: the last fold of a real user and of simulated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark

JOSH = Path(__file__).parents[2] / "shared/data/py-fsrs-josh/revlogs_benchmark_schema.csv"
SYNTHETIC_SIZES = (10_000, 30_000, 100_000)


@dataclass(frozen=True, slots=True)
class Workload:
    """The last fold of one user under the public protocol, same-day reviews included.

    Attributes
    ----------
    reviews : Reviews
        Whole days in `elapsed_days`, -1 at a card's first review.
    train, test : int64
        Row numbers into `reviews`.
    nth_review : int64 [len(reviews)]
        1 + reviews of the card on later days, up to and including this one.
    """

    name: str
    reviews: Reviews
    train: IntArray
    test: IntArray
    nth_review: IntArray

    @property
    def recency(self) -> FloatArray:
        """Weight of each training review: the public curve, 0.25 at the first, 1 at the last."""
        weights: FloatArray = 0.25 + 0.75 * np.linspace(0, 1, len(self.train)) ** 3
        return weights


def standard_workloads(log: Path = JOSH) -> Iterator[Workload]:
    """Yield the workload of a real log, if it is there, and of simulated ones."""
    if log.exists():
        yield of_reviews("josh" if log == JOSH else log.stem, read_log(log))
    for size in SYNTHETIC_SIZES:
        yield synthetic_workload(size)


def synthetic_workload(size: int) -> Workload:
    """Make the workload of the first simulated user who fills a log of so many reviews."""
    source = SyntheticUsers(users=1000, seed=2026, size_scale=1.0, max_reviews=size)
    logs = (source.read(user) for user in source.users())
    full = next(reviews for reviews in logs if len(reviews) == size)
    return of_reviews(f"synthetic {size // 1000}k", full)


def of_reviews(name: str, reviews: Reviews) -> Workload:
    """Split a log, and take its last fold."""
    task = SrsBenchmark()(reviews, same_day=True)
    fold = task.folds[-1]
    return Workload(name, task.reviews, fold.train, fold.test, task.nth_review)


def read_log(path: Path) -> Reviews:
    """Read one user's log in the columns of the public benchmark."""
    table = pd.read_csv(path)
    return reviews_from_columns(
        user=path.stem,
        source=path.name,
        card=table["card_id"],
        rating=table["rating"],
        day=table["day_offset"],
        elapsed_days=table["elapsed_days"],
    )
