"""Validation rows for choosing options: all of them before any row that the final score is of.

Options that were chosen by test rows are scored too well on them. The folds of the public
protocol grow, so that what is trained on in a later fold was scored in an earlier one: the
training rows of every fold but the first contain test rows. What is left of them are the rows
before the first test row, and these are the same in each fold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from annotated_types import Gt, Lt
from pydantic import Strict

from srs_eval.data.reviews import Reviews
from srs_eval.protocol.split import on_folds
from srs_eval.protocol.srs_benchmark import AroundAnother
from srs_eval.protocol.task import Task


@dataclass(frozen=True)
class Validation(AroundAnother):
    """Learn from the first part of another protocol's training rows, and score the rest.

    Of each fold of `base`, the training rows before the first row that any fold scores are
    divided in time; of folds that would score the same rows, the first is kept. Algorithms are
    given nothing later, not even as history, so that no scored row of `base` is among what is seen.

    Parameters
    ----------
    base : EvaluationProtocol
        The protocol that the final score is of.
    share : float
        Share of the rows that is learned from, between 0 and 1.
    """

    share: Annotated[float, Strict(), Gt(0), Lt(1)] = 0.8

    # For sweeps, which refuse to choose by anything else.
    is_validation = True

    @property
    def name(self) -> str:
        """The name, with the share that is learned from, and the protocol it prepares for."""
        return f"validation{100 * self.share:g}_of_{self.base.name}"

    @property
    def folds(self) -> int:
        """Fits per user: one, for a base whose folds grow."""
        return 1

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter one user's log as the base does, cut it off, and split what is left."""
        task = self.base(reviews, same_day=same_day)
        tested = np.unique(np.concatenate([fold.test for fold in task.folds]))
        first_scored = int(tested[0])
        folds, scored = [], np.zeros(first_scored, np.bool_)
        for each in task.folds:
            rows = each.train[each.train < first_scored]
            # at least one on each side
            count = min(max(round(self.share * len(rows)), 1), len(rows) - 1)
            fold = replace(each, train=rows[:count], test=rows[count:])
            if len(rows) > 1 and not scored[fold.test].any():  # no row is scored twice
                folds.append(fold)
                scored[fold.test] = True
        task = task.take(np.arange(first_scored))
        unscored = {**task.unscored, "kept for the final score": len(tested)}
        return on_folds(
            replace(task, warm_start=False, unscored=unscored),
            folds,
            task.dropped,
            f"user {reviews.user}: fewer than 2 reviews to learn from come before the first "
            "scored one, too few to validate on",
        )
