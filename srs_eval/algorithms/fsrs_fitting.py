"""How the versions of FSRS are fitted: from second reviews first, then as a whole."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.fitted import Fitted, Vector
from srs_eval.algorithms.initial_stability import initial_stabilities
from srs_eval.cards import rows_by_card
from srs_eval.engine.equations import Equations
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.nouns import IntArray, Reviews

_FRACTIONAL_SHORTEST_STABILITY = 0.0001
_NO_SECOND_REVIEWS = "no card has a first later-day review among the training reviews"


class FsrsWithFirstStabilities(Fitted):
    """Base of FSRS v4 to 6, whose `w[0]` to `w[3]` are the stabilities after a first review.

    They are found from the second reviews of cards alone, and the fit of all parameters
    starts there and is drawn there. ``fit=s0`` stops after that first step.
    """

    methods: ClassVar[tuple[str, ...]] = ("newton", "lbfgs", "reference", "s0", "default")
    # Exponent of the forgetting curve in the first step.
    first_decay: ClassVar[float] = 0.5

    def space(self, equations: Equations) -> ParameterSpace:
        """Let first stabilities be as short as the equations let any stability be."""
        space = equations.parameters
        shortest = getattr(equations, "shortest_stability", space.lower[0])
        return dataclasses.replace(space, lower=(*(shortest,) * 4, *space.lower[4:]))

    def centre(
        self, reviews: Reviews, rows: IntArray, space: ParameterSpace, start: Vector
    ) -> tuple[Vector, str]:
        """Find the stabilities after first reviews."""
        by_card = rows_by_card(reviews.card)
        later_day = reviews.elapsed_days > 0
        on_later_days = by_card.earlier(later_day) + later_day
        second = rows[(on_later_days[rows] == 1) & (reviews.elapsed[rows] > 0)]
        one, two, three, four = start[:4].tolist()
        found = initial_stabilities(
            reviews.rating[by_card.first()[second]],
            reviews.elapsed[second],
            reviews.recalled[second],
            mean_recall=float(reviews.recalled[rows].mean()),
            decay=self.first_decay,
            defaults=(one, two, three, four),
            shortest=space.lower[0],
            smoothed=reviews.whole_days,
        )
        if found is None:
            return start, _NO_SECOND_REVIEWS
        return np.r_[found, start[4:]], ""


def shortest_stability(*, whole_days: bool) -> float:
    """Return the shortest stability of FSRS v1 to 5, in days."""
    return 0.01 if whole_days else _FRACTIONAL_SHORTEST_STABILITY
