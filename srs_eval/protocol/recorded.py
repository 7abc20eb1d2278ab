"""Score only reviews whose recall was predicted before the answer, by every program in question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.data.reviews import BoolArray, Reviews
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.protocol.split import on_folds
from srs_eval.protocol.srs_benchmark import AroundAnother
from srs_eval.protocol.task import Task

_MISSING = "without a recorded prediction"


@dataclass(frozen=True)
class RecordedRows(AroundAnother):
    """Score the reviews of another protocol that have a recorded prediction.

    Whatever algorithm is evaluated: recorded predictions and fits of our own are scored on the
    same reviews. Those that are left out are counted, and still learned from.

    Parameters
    ----------
    base : EvaluationProtocol
        What else is scored and learned from.
    columns : str or sequence of str, optional
        Recorded columns that a review needs a prediction in; all of them if None.
    """

    columns: str | Sequence[str] | None = None

    @property
    def name(self) -> str:
        """The name of the base, and that of the columns if they are not all."""
        return "_".join([self.base.name, "recorded", *self._columns()])

    def _columns(self) -> tuple[str, ...]:
        return (self.columns,) if isinstance(self.columns, str) else tuple(self.columns or ())

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Split one user's log as the base does, and score what was predicted."""
        task = self.base(reviews, same_day=same_day)
        recorded, names = task.reviews.recorded, task.reviews.recorded_names
        if recorded is None:
            raise FitSkipped(f"user {reviews.user}: the log has no recorded predictions")
        if unknown := [name for name in self._columns() if name not in names]:
            listed = f"{', '.join(unknown)}; recorded are {', '.join(names)}"
            raise ConfigError(f"protocol.columns: there is no column {listed}")
        columns = [names.index(name) for name in self._columns() or names]
        has: BoolArray = np.isfinite(recorded[:, columns]).sum(axis=1) == len(columns)
        scored = np.unique(np.concatenate([fold.test for fold in task.folds]))
        dropped = {**task.dropped, _MISSING: int(np.count_nonzero(~has[scored]))}
        folds = [replace(fold, test=fold.test[has[fold.test]]) for fold in task.folds]
        what = f"user {reviews.user}: none of {len(scored):,} reviews has a recorded prediction"
        return on_folds(task, folds, dropped, what)
