"""Predict, learn, predict: every review from some first fit on, by models that are kept fresh.

The refits of `SrsBenchmark` are spread over the last five sixths of a log, however long it is.
Here a fit is due after so many reviews, as in an app, and everything from the first fit on is
scored: also how a model does while there is little to learn from. The scored reviews are other
ones, so numbers of the two cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge
from pydantic import Strict

from srs_eval.data.reviews import IntArray, Reviews
from srs_eval.errors import FitSkipped
from srs_eval.protocol.candidates import in_whole_days
from srs_eval.protocol.split import trained_before
from srs_eval.protocol.task import Flag, Fold, Task

Count = Annotated[int, Strict(), Ge(1)]


def prequential_folds(targets: IntArray, first: int, every: int, most: int) -> tuple[Fold, ...]:
    """Cut what comes after the `first` rows into blocks of `every`, the last one shorter.

    Where that would be more than `most` blocks, there are so many, which differ by one row at
    most, the larger ones first. What is trained on is everything before a block.

    >>> import numpy as np
    >>> for fold in prequential_folds(np.arange(7), first=2, every=3, most=10):
    ...     print(fold.train.tolist(), fold.test.tolist())
    [0, 1] [2, 3, 4]
    [0, 1, 2, 3, 4] [5, 6]
    """
    tested = targets[first:]
    begins = range(every, len(tested), every)
    blocks = np.split(tested, begins) if len(begins) < most else np.array_split(tested, most)
    return trained_before(targets, blocks)


@dataclass(frozen=True)
class Prequential:
    """Score the candidates of `SrsBenchmark` from a first fit on, refitting after every few.

    After Dawid (1984), *Present Position and Potential Developments: Some Personal Views:
    Statistical Theory: The Prequential Approach*, Journal of the Royal Statistical Society A 147,
    https://doi.org/10.2307/2981683.

    Parameters
    ----------
    first : int
        Reviews that are only learned from, 1 or more.
    every : int
        Reviews that are predicted by one fit, 1 or more.
    most : int
        Fits per user at most, 1 or more. Users with so many reviews that more would be due are
        refitted less often instead.
    warm_start : bool
        Whether algorithms that can (`WarmStarting`) start each fit from the one before.
    """

    version: ClassVar[str] = "1"
    first: Count = 100
    every: Count = 100
    most: Count = 100
    warm_start: Flag = True

    @property
    def name(self) -> str:
        """The name, with all numbers that decide what is scored by which fit."""
        schedule = f"from{self.first}_every{self.every}_most{self.most}"
        return f"prequential_{schedule}" + ("" if self.warm_start else "_cold")

    @property
    def folds(self) -> int:
        """Fits per user at most."""
        return self.most

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        task, targets = in_whole_days(reviews, same_day=same_day)
        if len(targets) <= self.first:
            raise FitSkipped(
                f"user {reviews.user}: {len(targets)} reviews can be learned from or scored, "
                f"and the first {self.first} are only learned from"
            )
        folds = prequential_folds(targets, self.first, self.every, self.most)
        return replace(task, folds=folds, warm_start=self.warm_start)
