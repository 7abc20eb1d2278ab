"""Algorithms that are equations plus a way to fit their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from srs_eval.algorithms.fit_options import HALF_LIFE, NOT_CONVERGED, FitOptions
from srs_eval.algorithms.options import require_bool
from srs_eval.cards import rows_by_card
from srs_eval.engine.binary_ratings import BinaryRatings, with_binary_ratings
from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import Equations
from srs_eval.engine.lbfgs import lbfgs
from srs_eval.engine.newton import Minimum, newton
from srs_eval.engine.objective import (
    LogCoordinates,
    Objective,
    error_covariance,
    feasible,
    penalty_matrix,
    standard_errors,
)
from srs_eval.engine.packing import pack
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.recency import Recency
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.engine.reference import train
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.nouns import IntArray, Learned, MemoryModel, Reviews, Vector

# So many training reviews that a prior whose strength falls with their number is as wide as people
# differ.
_MANY = 10**9


class Fitted(FitOptions):
    """Base of algorithms that are equations: the options of `FitOptions`, and one more.

    Parameters
    ----------
    binary : bool
        Whether Hard and Easy are taken for Good.
    """

    # Class of the equations, and its arguments where days have fractions.
    mathematics: ClassVar[type[Any]]
    in_fractional_days: ClassVar[tuple[float, ...]] = ()
    # How many of the first parameters `newton` and `lbfgs` fit as logarithms.
    logarithms: ClassVar[int] = 0
    starts: ClassVar[int] = 1

    def __init__(
        self,
        *,
        fit: str = "newton",
        parameters: Sequence[float] | None = None,
        recency: Recency | None = None,
        half_life: float = HALF_LIFE,
        prior_weight: float | None = None,
        binary: bool = False,
    ) -> None:
        super().__init__(
            fit=fit,
            parameters=parameters,
            recency=recency,
            half_life=half_life,
            prior_weight=prior_weight,
        )
        require_bool(self.name, "binary", binary)
        self.binary = binary

    def equations(self, *, whole_days: bool) -> Equations:
        """Return the model as mathematics, for a log in whole or in fractional days."""
        equations: Equations = self.mathematics(*(() if whole_days else self.in_fractional_days))
        return equations

    def defaults(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the published parameters."""
        return self.equations(whole_days=whole_days).parameters.defaults

    def prior_centre(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the centre of the prior of ``newton`` and ``lbfgs``, where these start."""
        return self.parameters or self.defaults(whole_days=whole_days)

    def space(self, equations: Equations) -> ParameterSpace:
        """Return defaults, bounds and spread of the parameters."""
        return equations.parameters

    def widest_space(self) -> ParameterSpace:
        return self.space(self.equations(whole_days=False))

    def centre(
        self, reviews: Reviews, rows: IntArray, space: ParameterSpace, start: Vector
    ) -> tuple[Vector, str]:
        """Improve on the start by what needs no fit of the whole model: where training starts.

        For methods other than ``newton`` and ``lbfgs``. Returns also what the log lacks for that,
        or "".
        """
        return start, ""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        return self._learn(reviews, rows, rng, None)

    def refit(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: MemoryModel,
    ) -> MemoryModel:
        return self._learn(reviews, rows, rng, np.asarray(previous.parameters))

    @property
    def can_fit_near(self) -> bool:
        """Whether `fit_near` is possible: the fit has a prior, and minimises."""
        return self.method in ("newton", "lbfgs") and self.prior_weight > 0

    def fit_near(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        model: MemoryModel,
        weight: float,
    ) -> MemoryModel:
        """Learn from the outcomes of `rows`, starting at and pulled towards another fit, `model`.

        `weight` is the strength of the pull, as a multiple of the prior of `fit`.
        """
        if not self.can_fit_near:
            raise ConfigError(
                f"{self.name}: fit={self.method} with prior_weight={self.prior_weight} has no "
                "prior to pull it to another fit: use fit=newton and a prior_weight above 0"
            )
        equations, space, reviews = self._prepared(reviews)
        centre = np.asarray(model.parameters)
        try:
            w, learned = self._minimise(
                equations, space, reviews, rows, centre, centre, rng, weight=weight
            )
        except FitError as error:
            raise FitError(f"{self.name}: user {reviews.user}: {error}") from error
        return RecurrentModel(equations, _tuple(w), learned)

    def _prepared(self, reviews: Reviews) -> tuple[Equations, ParameterSpace, Reviews]:
        """Return the equations and bounds for a log, and the log as they read it."""
        equations = self.equations(whole_days=reviews.whole_days)
        space = self.space(equations)
        if self.binary:
            return BinaryRatings(equations), space, with_binary_ratings(reviews)
        return equations, space, reviews

    def _learn(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: Vector | None,
    ) -> RecurrentModel:
        given = np.asarray(self.parameters or self.defaults(whole_days=reviews.whole_days))
        equations, space, reviews = self._prepared(reviews)
        if self.method == "default":
            return RecurrentModel(equations, _tuple(given))
        if len(rows) == 0:
            raise FitSkipped(f"{self.name}: there are no training reviews to learn from")
        try:
            if self.method == "newton" or self.method == "lbfgs":
                middle = np.asarray(self.prior_centre(whole_days=reviews.whole_days))
                w, learned = self._minimise(equations, space, reviews, rows, middle, previous, rng)
                return RecurrentModel(equations, _tuple(w), learned)
            centre, missing = self.centre(reviews, rows, space, given)
            missing = missing or self._untrainable(reviews, rows)
            if missing:
                learned = Learned(note=f"{missing}: the parameters were kept", fallback=True)
                return RecurrentModel(equations, _tuple(given), learned)
            w = self.trained(equations, space, reviews, rows, centre)
            return RecurrentModel(equations, _tuple(w))
        except FitError as error:
            raise FitError(f"{self.name}: user {reviews.user}: {error}") from error

    def _untrainable(self, reviews: Reviews, rows: IntArray) -> str:
        """Return the reason why the public trainer has nothing to train on, "" if it has."""
        if self.method != "reference":
            return ""
        if self.recipe.trains_on(reviews, rows, rows_by_card(reviews.card)).any():
            return ""
        return f"none of the {len(rows)} training reviews is one that the public trainer trains on"

    def _minimise(
        self,
        equations: Equations,
        space: ParameterSpace,
        reviews: Reviews,
        rows: IntArray,
        centre: Vector,
        previous: Vector | None,
        rng: np.random.Generator,
        *,
        weight: float = 1.0,
    ) -> tuple[Vector, Learned]:
        minimise = newton if self.method == "newton" else lbfgs
        coordinates = self.coordinates(equations)
        bounds = coordinates.space(space)
        objective = self.objective(equations, space, reviews, rows, centre)
        objective = replace(objective, penalty_matrix=weight * objective.penalty_matrix)
        first = coordinates.encode(feasible(centre if previous is None else previous, space))
        starts = [first] if previous is not None else self._starts(first, bounds, rng)
        found = _best(lambda start: minimise(objective, start, bounds), starts)
        w = feasible(coordinates.decode(found.parameters), space)
        errors = standard_errors(found.information, found.parameters, bounds) * coordinates.slope(w)
        note = "" if found.converged else NOT_CONVERGED
        about = found.information
        return w, Learned(_tuple(errors), note, converged=found.converged, information=about)

    def sample(
        self,
        reviews: Reviews,
        rows: IntArray,
        model: RecurrentModel,
        rng: np.random.Generator,
        count: int,
    ) -> list[MemoryModel]:
        """Draw models around one that was fitted to `rows`, by a normal approximation.

        Parameters beyond their bounds or out of order are moved there. Empty where nothing was
        minimised, or some combination of parameters changes nothing.
        """
        information = model.learned.information
        if information is None:
            return []
        equations, space, reviews = self._prepared(reviews)
        coordinates = self.coordinates(equations)
        bounds = coordinates.space(space)
        found = np.asarray(model.parameters)
        middle = coordinates.encode(found)
        weight = self.weights(len(rows))
        packed = self.objective(equations, space, reviews, rows, found).packed
        dtype = np.float32 if packed.reviews.dtype == np.float32 else np.float64
        squares = pack(reviews, rows, weight=(weight / weight.mean()) ** 2, dtype=dtype)
        of_data, of_squares = (coordinates.fisher(middle, each) for each in (packed, squares))
        usual = self.own_prior_weight / self.prior_weight if self.prior_weight else 0.0
        population = usual * self.penalty(space, _MANY, whole_days=reviews.whole_days)
        covariance = error_covariance(
            information, of_data.information, of_squares.information, 2 * population
        )
        if covariance is None:
            return []
        draws = rng.multivariate_normal(middle, covariance, count, check_valid="ignore")
        within = (feasible(coordinates.decode(feasible(each, bounds)), space) for each in draws)
        return [replace(model, parameters=_tuple(w)) for w in within]

    def coordinates(self, equations: Equations) -> LogCoordinates:
        """Return the model in the coordinates that ``newton`` and ``lbfgs`` work in."""
        return LogCoordinates(compiled(equations), self.logarithms)

    def objective(
        self,
        equations: Equations,
        space: ParameterSpace,
        reviews: Reviews,
        rows: IntArray,
        centre: Vector,
    ) -> Objective:
        """Return what ``newton`` and ``lbfgs`` minimise, as a function of the coordinates."""
        coordinates = self.coordinates(equations)
        weight = self.weights(len(rows))
        dtype = np.float32 if self.method == "newton" else np.float64
        packed = pack(reviews, rows, weight=weight / weight.mean(), dtype=dtype)
        middle = coordinates.encode(feasible(centre, space))
        penalty = self.penalty(space, len(rows), whole_days=reviews.whole_days)
        return Objective(coordinates, packed, middle, penalty)

    def _starts(
        self, first: Vector, space: ParameterSpace, rng: np.random.Generator
    ) -> list[Vector]:
        """Add starts around the first, half a spread away, for objectives with several minima."""
        spread = np.minimum(space.spread, np.abs(first))
        return [first] + [
            first + 0.5 * spread * rng.standard_normal(len(first)) for _ in range(self.starts - 1)
        ]

    def penalty(self, space: ParameterSpace, n_reviews: int, *, whole_days: bool) -> Vector:
        """Return the penalty matrix of the prior for a number of training reviews and a clock."""
        return penalty_matrix(space, self.prior_weight)

    def trained(
        self,
        equations: Equations,
        space: ParameterSpace,
        reviews: Reviews,
        rows: IntArray,
        centre: Vector,
    ) -> Vector:
        """Return what a method that minimises nothing makes of the centre."""
        if self.method != "reference":
            return centre
        recipe = self.recipe
        if recipe.decimals is not None and not reviews.whole_days:
            recipe = replace(recipe, decimals=6)
        weight = self.weights(len(rows))
        pull = penalty_matrix(space, 1.0)
        return train(compiled(equations), reviews, rows, weight, centre, pull, space, recipe)


def _best(minimise: Callable[[Vector], Minimum], starts: Sequence[Vector]) -> Minimum:
    """Minimise from every start; the error of the first counts if all of them fail."""
    ends: list[Minimum] = []
    errors: list[FitError] = []
    for start in starts:
        try:
            ends.append(minimise(start))
        except FitError as error:
            errors.append(error)
    if not ends:
        raise errors[0]
    return min(ends, key=lambda end: end.value)


def _tuple(values: Vector) -> tuple[float, ...]:
    return tuple(values.tolist())
