"""How the versions of FSRS are fitted, and the prior of their fits."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.fitted import Fitted, Problem
from srs_eval.algorithms.fsrs.initial_stability import initial_stabilities
from srs_eval.cards import rows_by_card
from srs_eval.engine.equations import Equations
from srs_eval.engine.objective import penalty_matrix
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.nouns import FloatArray, IntArray

# The shortest stability of FSRS v1 to 5 where days have fractions: the argument of their equations.
SHORTEST_IN_FRACTIONAL_DAYS = (0.0001,)
_NO_SECOND_REVIEWS = "no card has a first later-day review among the training reviews"


# Prior of the logarithms of first stabilities: standard deviations of a shift they share and
# of what each adds. Empirical Bayes on 47 users, rounded.
_SHIFT, _DEVIATION = 1.5, 0.75


def later_prior_weight(n_reviews: int) -> float:
    """Return the prior weight of the parameters that act from a second review on.

    4.5 without training reviews, 2.5 at 500, 0.9 at 5,000. A short log holds only the first
    reviews of most cards, which say little of how stability grows later.
    """
    return 0.5 + 2000 / (n_reviews + 500)


class FsrsFitted(Fitted):
    """Base of FSRS v4 to 7, whose `w[0]` to `w[3]` are the stabilities after a first review.

    ``newton`` and ``lbfgs`` fit the logarithms of these. Their prior is normal around those of
    the start, with one shift for all four (standard deviation 1.5) and a deviation for each
    (0.75). The other parameters have their spread, and a weight that falls with the number of
    training reviews; see `later_prior_weight`. The option `prior_weight` multiplies both.
    """

    logarithms: ClassVar[int] = 4
    # What multiplies the weight of the other parameters in whole and in fractional days. It is
    # below 1 where the published parameters are known to lie off: those of another clock, or of a
    # version whose spread is that of a later one
    later_prior: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def space(self, equations: Equations) -> ParameterSpace:
        """Return the bounds, with first stabilities as short as any stability may be."""
        space = equations.parameters
        shortest = getattr(equations, "shortest_stability", space.lower[0])
        return dataclasses.replace(space, lower=(*(shortest,) * 4, *space.lower[4:]))

    def penalty(self, space: ParameterSpace, n_reviews: int, *, whole_days: bool) -> FloatArray:
        """Return the penalty matrix of the prior for a number of training reviews and a clock."""
        in_days, in_fractions = self.later_prior
        weight = (in_days if whole_days else in_fractions) * later_prior_weight(n_reviews)
        penalty = penalty_matrix(space, weight)
        covariance = _DEVIATION**2 * np.eye(4) + _SHIFT**2
        penalty[:4, :4] = np.linalg.inv(covariance) / 2
        return self.prior_weight * penalty


class FsrsWithFirstStabilities(FsrsFitted):
    """Base of FSRS v4 to 6, whose first stabilities can be found from second reviews alone.

    ``fit=s0`` stops there; ``reference`` starts there.
    """

    # Published parameters, and how reviews of one day count, are those of whole days.
    for_whole_days: ClassVar[bool] = True

    methods: ClassVar[tuple[str, ...]] = ("newton", "lbfgs", "reference", "s0", "default")
    # Exponent of the forgetting curve in the first step.
    first_decay: ClassVar[float] = 0.5

    def trained(
        self, problem: Problem, rows: IntArray, start: FloatArray
    ) -> tuple[FloatArray, str]:
        """Find the stabilities after first reviews, and train from there if the method does."""
        reviews = problem.reviews
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
            shortest=problem.space.lower[0],
            smoothed=reviews.whole_days,
        )
        if found is None:
            return start, _NO_SECOND_REVIEWS
        begun = np.r_[found, start[4:]]
        return (begun, "") if self.method == "s0" else super().trained(problem, rows, begun)
