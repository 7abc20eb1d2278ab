"""Models whose predictions are read off their forgetting curve."""

from __future__ import annotations

from abc import ABC, abstractmethod

from srs_eval.data.reviews import FloatArray, IntArray, Reviews


class CurveOnly(ABC):
    """Base of models that predict a review by their forgetting curve at its elapsed time."""

    __slots__ = ()

    @abstractmethod
    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k].

        NaN at a card's first review, if the model says nothing there.
        """

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows` from the card's reviews before it."""
        return self.predict_at(reviews, rows, reviews.elapsed[rows, None])[:, 0]
