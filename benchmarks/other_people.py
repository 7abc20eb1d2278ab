"""Compute the tables of other people in srs_eval/collection/advice.py.

    python benchmarks/other_people.py fitted LOG…          a folder or file of logs each
    python benchmarks/other_people.py sm2 RESULTS.parquet

`fitted`: FSRS-6 fitted to the first 25, 50, … reviews that srs_benchmark scores or learns from,
against its published parameters, on the next 200. `sm2`: published FSRS-5 against published SM-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from benchmark import benchmark, table

import srs_eval as se
from srs_eval.collection.advice import FITTED, SM2
from srs_eval.data.reviews import Reviews
from srs_eval.errors import FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import Fold, Task

FEWEST, MOST = 100, 200  # reviews that are predicted


@dataclass(frozen=True)
class First:
    """Learn from the first reviews of a log, and score the next."""

    count: int
    folds: ClassVar[int] = 1
    version: ClassVar[str] = "1"

    @property
    def name(self) -> str:
        return f"first_{self.count}"

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        task = SrsBenchmark()(reviews, same_day=same_day)
        last = task.folds[-1]
        rows = np.sort(np.concatenate([last.train, last.test]))
        if len(rows) < self.count + FEWEST:
            raise FitSkipped(f"user {reviews.user}: {len(rows)} reviews")
        fold = Fold(0, train=rows[: self.count], test=rows[self.count : self.count + MOST])
        return replace(task, folds=(fold,))


def fitted(logs: Sequence[Path]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield published and fitted log loss [users, 2] by number of reviews."""
    for row in FITTED:
        pairs = []
        for path in logs:
            options = {"protocol": First(row.reviews), "progress": False}
            runs = [se.evaluate("fsrs6", path, fit=fit, **options) for fit in ("default", "newton")]
            pairs.append(pd.concat([run.scores["log_loss"] for run in runs], axis=1).dropna())
        yield row.reviews, pd.concat(pairs).to_numpy()


def sm2(path: Path) -> Iterator[tuple[int, np.ndarray]]:
    """Yield log loss of SM-2 and FSRS-5 [users, 2] by number of scored reviews."""
    table = pd.read_parquet(path)
    wide = table[table["model"].isin(["SM2", "FSRS-5"])].pivot_table(
        index=["user", "size"], columns="model", values="log_loss", observed=True
    )
    size = wide.index.get_level_values("size")
    ends = [row.reviews for row in SM2[1:]] + [np.inf]
    for row, end in zip(SM2, ends, strict=True):
        rows = wide[(size >= row.reviews) & (size < end)]
        yield row.reviews, rows[["SM2", "FSRS-5"]].dropna().to_numpy()


@benchmark()
def main(which: Literal["fitted", "sm2"], *paths: Path) -> str:
    """Return how many people are predicted better, and by how much."""
    rows = []
    for reviews, losses in fitted(paths) if which == "fitted" else sm2(paths[0]):
        before, after = losses.T
        mean = f"{after.mean() / before.mean() - 1:.3f}"
        rows.append((reviews, len(losses), int((after < before).sum()), mean))
    return table(["reviews", "people", "better", "mean change of error"], rows)
