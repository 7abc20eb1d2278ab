"""Predictions that another program stored before the answers came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.nouns import FloatArray, IntArray, Reviews, When
from srs_eval.nouns.when import WHEN


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """Repeats what one column of the log says."""

    number: int  # of the column of `Reviews.recorded`

    @property
    def parameters(self) -> tuple[float, ...]:
        return ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Return the recorded prediction of each of `rows`; raise `FitError` where one is missing.

        Certain predictions become nearly certain ones, which no score shows.
        """
        assert reviews.recorded is not None
        p = reviews.recorded[rows, self.number]
        missing = int(np.isnan(p).sum())
        if missing:
            raise FitError(
                f"{missing:,} of {len(rows):,} scored reviews have no prediction in the column "
                f"{reviews.recorded_names[self.number]!r}: with protocol=recorded they are not "
                "scored, neither here nor for the algorithms that it is compared with"
            )
        return uncertain(p.astype(np.float64))


@dataclass(frozen=True, slots=True)
class Recorded:
    """Predictions recorded in production: a column of the log, or a file of Clanki's.

    Reads `Reviews.recorded` (``data.columns.p``, or ``data.predictions`` of ``data=anki``) and
    learns nothing; no parameters. No published row. It is the only score of a model that nobody can
    have tuned to it afterwards, if the predictions were stored before the answers: the log says so
    with ``data.columns.recorded_at``. See docs/watch.md.

    Parameters
    ----------
    column : str, optional
        Which of the recorded columns; the only one if None.
    made : {"at_review", "day_before", "previous_review"}
        When the program made its predictions: tables are grouped by it.
    """

    column: str | None = None
    made: When = "at_review"
    same_day: ClassVar[bool] = False
    sees_truth: ClassVar[bool] = False
    reads_recorded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the time of prediction."""
        if self.made not in WHEN:
            raise ConfigError(f"algo.made={self.made}; expected {', '.join(WHEN)}")

    @property
    def when(self) -> When:
        return self.made

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecordedModel:
        """Find the column; nothing is learned."""
        names = [*reviews.recorded_names]
        if reviews.recorded is None:
            raise FitSkipped(
                f"recorded: the log of user {reviews.user} has no recorded predictions; name their "
                "column as data.columns.p=COLUMN"
            )
        column = self.column if self.column is not None or len(names) > 1 else names[0]
        if column not in names:
            what = "algo.column is not set" if column is None else f"there is no column {column!r}"
            raise FitError(f"recorded: {what}; recorded are {', '.join(names)}")
        return RecordedModel(names.index(column))
