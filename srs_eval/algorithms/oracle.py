"""The bound no model can pass: the true probabilities of simulated users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.engine.probability import uncertain
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Reviews, When


@dataclass(frozen=True, slots=True)
class OracleModel:
    """Predicts what the simulator drew the outcomes from."""

    @property
    def parameters(self) -> tuple[float, ...]:
        return ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Return the true probability at each of `rows`."""
        return uncertain(_truth(reviews)[rows].astype(np.float64))


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

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> OracleModel:
        _truth(reviews)
        return OracleModel()


def _truth(reviews: Reviews) -> FloatArray:
    if reviews.truth is None:
        reason = (
            f"oracle: user {reviews.user} has no true probabilities; "
            "only simulated users have them (data=synthetic)"
        )
        raise FitSkipped(reason)
    return reviews.truth
