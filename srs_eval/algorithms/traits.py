"""What most algorithms and models share: their traits, and predictions read off a curve."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from srs_eval.nouns import FloatArray, IntArray, Reviews, When


class Traits:
    """Base of algorithms that skip same-day reviews and predict at the card's previous review.

    Subclasses declare what is otherwise: see `srs_eval.nouns.Algorithm`.
    """

    __slots__ = ()
    same_day: ClassVar[bool] = False
    when: ClassVar[When] = "previous_review"
    sees_truth: ClassVar[bool] = False


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
