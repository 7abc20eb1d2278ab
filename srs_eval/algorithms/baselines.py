"""What is no model of memory: baselines, the truth, and predictions of others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, When
from srs_eval.algorithms.history import CurveOnly
from srs_eval.algorithms.options import NotNegative, Probability
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain
from srs_eval.errors import FitError, FitSkipped


@dataclass(frozen=True, slots=True)
class FlatModel(CurveOnly):
    """One probability for every review, however long ago the last one was."""

    p: float  # The probability. A 0 or 1 is predicted as the nearest number inside (0, 1)

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.p,)

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict the same at every elapsed time: this model has given up on forgetting."""
        return uncertain(np.full(np.shape(elapsed), self.p))


@dataclass(frozen=True, slots=True)
class Average(Algorithm):
    """The share of training reviews that were recalled (AVG), as it is or smoothed.

    Of the public benchmark, https://github.com/open-spaced-repetition/srs-benchmark. Reads
    outcomes only; 1 parameter, the average itself. Published row, without
    same-day reviews: log loss 0.3945, RMSE(bins) 0.1034, AUC 0.4997. Where every training review
    was recalled, it is certain of the next one, and one lapse costs 36 nats: the log loss of short
    logs is then mostly that of such certainties. With a prior it is never certain; 1/2 makes it the
    estimator of Krichevsky & Trofimov (1981), doi:10.1109/TIT.1981.1056331.

    Parameters
    ----------
    prior : float
        Recalled reviews, and as many forgotten ones, that are counted beside the training reviews:
        (recalled + prior) / (reviews + 2 prior). 0 or more.
    """

    prior: NotNegative = 0.0

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> FlatModel:
        """Average the outcomes of `rows`, and of the prior."""
        if len(rows) == 0:
            raise FitSkipped("avg: there are no training reviews to average")
        recalled = np.count_nonzero(reviews.recalled[rows])
        return FlatModel(float((recalled + self.prior) / (len(rows) + 2 * self.prior)))


@dataclass(frozen=True, slots=True)
class Constant(Algorithm):
    """The same probability for every user, fixed beforehand (90% in the public benchmark).

    Of the public benchmark, https://github.com/open-spaced-repetition/srs-benchmark. Reads
    nothing; no parameters. No published row.

    Parameters
    ----------
    p : float
        Probability of recall, above 0 and below 1.
    """

    p: Probability = 0.9

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> FlatModel:
        return FlatModel(float(self.p))


@dataclass(frozen=True, slots=True)
class Oracle(Algorithm):
    """The true probability of recall: an upper bound, not a model.

    Reads `Reviews.truth`, which only simulated users have and no real model may see; no
    parameters. No published row. What separates another row from this one is what
    could still be learned; what this one loses is chance. How users are simulated is said in
    docs/synthetic.md.
    """

    when: ClassVar[When] = "at_review"
    sees_truth: ClassVar[bool] = True

    # It is its own model.
    parameters: ClassVar[tuple[float, ...]] = ()

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Oracle:
        if reviews.truth is None:
            raise FitSkipped(
                f"oracle: user {reviews.user} has no true probabilities; "
                "only simulated users have them (data=synthetic)"
            )
        return self

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Return the true probability at each of `rows`."""
        assert reviews.truth is not None
        return uncertain(reviews.truth[rows].astype(np.float64))


@dataclass(frozen=True, slots=True)
class Recorded:
    """Predictions recorded in production: a column of the log.

    Reads `Reviews.recorded` (``data.columns.p``) and learns nothing; no parameters. No published
    row. It is the only score of a model that nobody can have tuned to it afterwards, if the
    predictions were stored before the answers: the log says so with
    ``data.columns.recorded_at``. See docs/recorded.md.

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
    parameters: ClassVar[tuple[float, ...]] = ()

    @property
    def when(self) -> When:
        return self.made

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Recorded:
        """Find the column; nothing is learned, and it is its own model."""
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
        return replace(self, column=column)

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Return the recorded prediction of each of `rows`; raise `FitError` where one is missing.

        Certain predictions become nearly certain ones, which no score shows.
        """
        assert reviews.recorded is not None
        p = reviews.recorded[rows, reviews.recorded_names.index(self.column)]
        missing = int(np.isnan(p).sum())
        if missing:
            raise FitError(
                f"{missing:,} of {len(rows):,} scored reviews have no prediction in the column "
                f"{self.column!r}: with protocol=recorded they are not scored, neither here nor "
                "for the algorithms that it is compared with"
            )
        return uncertain(p.astype(np.float64))
