"""The last fold of `srs_benchmark`, learned from its first training reviews only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from srs_eval.nouns import Fold, Reviews, Task
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@dataclass(frozen=True, slots=True)
class FirstReviews:
    """Score the last sixth of a log with a fit to its first reviews."""

    count: int  # Number of training reviews
    version: ClassVar[str] = SrsBenchmark.version
    folds: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The name, with the number of training reviews."""
        return f"{SrsBenchmark.name}_first_{self.count}"

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter and split one user's log; raise `FitSkipped` if nothing can be scored."""
        task = SrsBenchmark()(reviews, same_day=same_day)
        last = task.folds[-1]
        return replace(task, folds=(Fold(0, last.train[: self.count], last.test),))
