"""How strongly the fits of groups are pulled towards the fit of all reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.fitted import FitOptions
from srs_eval.errors import FitSkipped
from srs_eval.nouns import FloatArray, IntArray, MemoryModel, Reviews

# Multiples of the algorithm's own prior, from nearly the pooled fit to a user's own strength.
WEIGHTS = (64.0, 16.0, 4.0, 1.0)
# How many standard errors the gain must exceed before groups have fits of their own.
_REQUIRED = 2.0
_PARTS = 4


@dataclass(frozen=True, slots=True)
class Pooling:
    """How much better groups are predicted by fits of their own, on held-out training reviews."""

    weight: float  # Strength of the pull with the lowest loss among those tried
    gain: float  # Mean log loss of the pooled fit, less that of the groups' fits
    standard_error: float  # Of the gain, with cards as independent units

    @property
    def helps(self) -> bool:
        """Whether the gain is more than noise."""
        return self.gain > _REQUIRED * self.standard_error


def near(
    base: FitOptions,
    reviews: Reviews,
    rows_of: Mapping[int, IntArray],
    rng: np.random.Generator,
    whole: MemoryModel,
    weight: float,
) -> dict[int, MemoryModel]:
    """Fit each group around the fit of all reviews."""
    return {
        group: base.fit_near(reviews, rows, rng, whole, weight)
        for group, rows in rows_of.items()
        if len(rows)
    }


def choose_pooling(
    base: FitOptions,
    reviews: Reviews,
    rows: IntArray,
    groups: IntArray,
    names: Sequence[int],
    rng: np.random.Generator,
) -> Pooling | None:
    """Choose how strongly groups are pulled towards the pooled fit, by cross-validation.

    The cards of the training rows are split into four parts of equal share of each group; each is
    predicted by the fits to the others. Weights are tried from strong to weak, while the loss
    falls. `groups` has the group of each row, and `names` those fitted by themselves. None if there
    are too few cards.
    """
    part = _parts(reviews.card[rows], groups, rng)
    if len(np.unique(part)) < _PARTS:
        return None
    try:
        wholes = [base.fit(reviews, rows[part != number], rng) for number in range(_PARTS)]
    except FitSkipped:
        return None
    pooled = np.empty(len(rows))
    for number, whole in enumerate(wholes):
        pooled[part == number] = _loss(whole, reviews, rows[part == number])
    best: Pooling | None = None
    for weight in WEIGHTS:
        loss = pooled.copy()
        for number, whole in enumerate(wholes):
            kept = part != number
            rows_of = {name: rows[kept & (groups == name)] for name in names}
            models = near(base, reviews, rows_of, rng, whole, weight)
            for name, model in models.items():
                held_out = ~kept & (groups == name)
                if held_out.any():
                    loss[held_out] = _loss(model, reviews, rows[held_out])
        difference = pooled - loss
        if best is not None and difference.mean() <= best.gain:
            break
        best = Pooling(
            weight, float(difference.mean()), _standard_error(difference, reviews.card[rows])
        )
    return best


def _parts(card: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw the part of each row: one part per card, of equal share of each group."""
    _, first, of_row = np.unique(card, return_index=True, return_inverse=True)
    # In order of first review, so that the names of cards do not matter.
    order = np.argsort(first)
    shuffled = order[rng.permutation(len(order))]
    by_group = shuffled[np.argsort(groups[first[shuffled]], kind="stable")]
    part = np.empty(len(first), np.int64)
    part[by_group] = np.arange(len(first)) % _PARTS
    return part[of_row]


def _loss(model: MemoryModel, reviews: Reviews, rows: IntArray) -> FloatArray:
    """Return the log loss of each row."""
    p = model.predict(reviews, rows)
    loss: FloatArray = -np.log(np.where(reviews.recalled[rows], p, 1 - p))
    return loss


def _standard_error(difference: FloatArray, card: IntArray) -> float:
    """Return the standard error of a mean over rows that are correlated within cards."""
    _, of_row = np.unique(card, return_inverse=True)
    sums = np.bincount(of_row, difference - difference.mean())
    return float(np.sqrt(np.sum(sums**2)) / len(difference))
