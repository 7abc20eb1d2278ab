"""What a memory model has to beat: predictions that know nothing about the card."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Learned, Reviews


@dataclass(frozen=True, slots=True)
class FlatModel:
    """One probability for every review, however long ago the last one was."""

    p: float  # The probability. A 0 or 1 is predicted as the nearest number inside (0, 1)
    # Whether it took the place of another model, and why
    learned: Learned = field(default_factory=Learned)

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.p,)

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict the same for each of `rows`."""
        return uncertain(np.full(len(rows), self.p))

    def predict_at(
        self,
        reviews: Reviews,
        rows: IntArray,
        elapsed: FloatArray,
    ) -> FloatArray:
        """Predict the same at every elapsed time: this model has given up on forgetting."""
        return uncertain(np.full(np.shape(elapsed), self.p))


@dataclass(frozen=True, slots=True)
class Average(Algorithm):
    """The share of training reviews that were recalled (AVG), as it is or smoothed.

    Of the public benchmark, https://github.com/open-spaced-repetition/srs-benchmark. Reads
    outcomes only; no parameters beside the average itself. Published row, without
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

    prior: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.prior, int | float) and 0 <= self.prior < math.inf):
            raise ConfigError(f"avg: prior={self.prior} must be a finite number, 0 or more")

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

    p: float = 0.9

    def __post_init__(self) -> None:
        if not (isinstance(self.p, int | float) and 0 < self.p < 1):
            raise ConfigError(f"constant: p={self.p} must be a number above 0 and below 1")

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> FlatModel:
        return FlatModel(float(self.p))
