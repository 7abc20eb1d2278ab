"""Ways to divide a user's scored reviews into training and test rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from srs_eval.data.reviews import IntArray
from srs_eval.errors import FitSkipped
from srs_eval.protocol.task import Fold, Task


def expanding_folds(targets: IntArray, folds: int, refits: int | None = None) -> tuple[Fold, ...]:
    """Split time-ordered rows into equal test blocks, each trained on all rows before it.

    With n rows, blocks hold ``n // (folds + 1)`` rows and end at the last row; what comes
    before the first block is trained on and never scored. With `refits`, the same test rows are cut
    into so many blocks instead, which differ by at most one row, the larger ones first; where there
    are fewer rows than `refits`, each is a block.

    >>> import numpy as np
    >>> for fold in expanding_folds(np.arange(7), folds=2):
    ...     print(fold.train.tolist(), fold.test.tolist())
    [0, 1, 2] [3, 4]
    [0, 1, 2, 3, 4] [5, 6]
    >>> [fold.test.tolist() for fold in expanding_folds(np.arange(7), folds=2, refits=3)]
    [[3, 4], [5], [6]]
    """
    size = len(targets) // (folds + 1)
    tested = targets[len(targets) - folds * size :]
    return trained_before(targets, np.array_split(tested, min(refits or folds, len(tested))))


def trained_before(targets: IntArray, blocks: Iterable[IntArray]) -> tuple[Fold, ...]:
    """Return the folds that are tested on each block, and trained on all rows before it."""
    return tuple(
        Fold(number, train=targets[: np.searchsorted(targets, block[0])], test=block)
        for number, block in enumerate(blocks)
    )


def on_folds(task: Task, folds: Iterable[Fold], dropped: Mapping[str, int], what: str) -> Task:
    """Return a task with those of other folds that score something, numbered anew.

    `dropped` are the counts of the task; raise `FitSkipped`, which says `what`, if no fold is left.
    """
    nonempty = [fold for fold in folds if len(fold.test)]
    if not nonempty:
        raise FitSkipped(what, dropped=dropped, unscored=task.unscored)
    numbered = [replace(fold, number=number) for number, fold in enumerate(nonempty)]
    return replace(task, folds=numbered, dropped=dropped)


def used_rows(folds: Sequence[Fold]) -> IntArray:
    """Return the rows that some fold learns from or scores, in time order."""
    return np.unique(np.concatenate([np.r_[fold.train, fold.test] for fold in folds]))
