"""Algorithms whose parameters are fitted to one user: a prior, Gauss-Newton steps, a record."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, Learned, MemoryModel
from srs_eval.algorithms.options import NotNegative, Switch
from srs_eval.algorithms.recurrent.model import RecurrentModel, with_binary_ratings
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.compiled import compiled
from srs_eval.engine.minimise import newton
from srs_eval.engine.objective import (
    Curved,
    LogCoordinates,
    Objective,
    PackedLoss,
    Recency,
    error_covariance,
    feasible,
    penalty_matrix,
    recency_weights,
    sample,
    standard_errors,
)
from srs_eval.engine.packing import pack
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe, train
from srs_eval.errors import ConfigError, FitError, FitSkipped

_ASYMPTOTIC = 10**9  # Reviews at which the prior's width is that of the population


@dataclass(frozen=True, slots=True)
class Problem:
    """A model to be fitted, and the log to fit it to."""

    reviews: Reviews  # The log as the model reads it
    space: ParameterSpace  # Defaults, bounds and spread of the parameters
    # Weighted log loss of ``(rows, weight)`` as a function of the parameters; unless
    # ``public=False``, as the public trainer computes it, where a model has a choice
    loss: Callable[..., Curved]
    # Model with some parameters in it, and the record of their fit
    model: Callable[[tuple[float, ...], Learned], MemoryModel]


@dataclass(kw_only=True, eq=False, repr=False)
class _Options:
    # Apart from `Fitted`, whose method `fit` has the name of an option.
    fit: InitVar[str] = "newton"
    parameters: Sequence[float] | None = None
    recency: Recency | None = None
    prior_weight: NotNegative | None = None
    binary: Switch = False

    def __post_init__(self, fit: str) -> None: ...


class Fitted(_Options, Algorithm, ABC):
    """Base of algorithms that are equations, whose parameters are fitted to one user by log loss.

    Parameters
    ----------
    fit : str
        How it learns. ``newton`` minimises the penalised log loss of all training reviews
        (damped Gauss-Newton, deterministic); ``reference`` is the public benchmark's trainer,
        batch for batch; ``default`` keeps the parameters as they are. Some algorithms have fewer
        or further ones.
    parameters : sequence of float, optional
        Where the fit starts and what it is drawn to; by default the published ones.
    recency : str, optional
        How much more recent reviews count, as `recency_weights` says. By default what belongs to
        the algorithm and the fit.
    prior_weight : float, optional
        Strength of the pull of ``newton`` towards the start; by default that of the class.
        Weights have mean 1, so that it means the same whatever the recency.
    binary : bool
        Whether Hard and Easy are taken for Good.
    """

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]] = ("newton", "reference", "default")
    kind_of_model: ClassVar[Callable[..., MemoryModel]] = RecurrentModel
    # Class of the equations, and its arguments where days have fractions.
    mathematics: ClassVar[type[Any]]
    in_fractional_days: ClassVar[tuple[float, ...]] = ()
    # Of the public trainer, which rounds parameters to so many decimals in fractional days if it
    # does in whole ones.
    recipe: ClassVar[Recipe] = Recipe()
    decimals_in_fractions: ClassVar[int] = 6
    # How `newton` weighs recent reviews by default, and how the public trainer does.
    own_recency: ClassVar[Recency] = "mild"
    published_recency: ClassVar[Recency] = "none"
    own_prior_weight: ClassVar[float] = 1.0
    # How many of the first parameters `newton` fits as logarithms, from how many starts, and the
    # gain at which it ends.
    logarithms: ClassVar[int] = 0
    starts: ClassVar[int] = 1
    tolerance: ClassVar[float] = 1e-5

    def __post_init__(self, fit: str) -> None:
        if fit not in self.methods:
            raise ConfigError(f"{self.name}: fit={fit} is not one of: {', '.join(self.methods)}")
        self.method = fit
        own = self.own_prior_weight
        self.prior_strength = own if self.prior_weight is None else self.prior_weight
        self.space(self.equations(whole_days=False)).checked(self.parameters, self.name)

    def equations(self, *, whole_days: bool) -> Any:
        """Return the model as mathematics, for a log in whole or in fractional days."""
        return self.mathematics(*(() if whole_days else self.in_fractional_days))

    def space(self, equations: Any) -> ParameterSpace:
        """Return defaults, bounds and spread of the parameters."""
        space: ParameterSpace = equations.parameters
        return space

    def problem(self, reviews: Reviews) -> Problem:
        """Return the model to be fitted to a log, in whole or in fractional days."""
        equations = self.equations(whole_days=reviews.whole_days)
        reviews = with_binary_ratings(reviews) if self.binary else reviews
        model = partial(self.kind_of_model, equations, binary=self.binary)
        return Problem(reviews, self.space(equations), self.loss(equations, reviews), model)

    def loss(self, equations: Any, reviews: Reviews) -> Callable[..., Curved]:
        """Return what is minimised: see `Problem`."""

        def loss(rows: IntArray, weight: FloatArray, *, public: bool = True) -> PackedLoss:
            packed = pack(reviews, rows, weight=weight, dtype=np.float32)
            return PackedLoss(compiled(equations), packed, public)

        return loss

    def weights(self, count: int) -> FloatArray:
        """Weigh training reviews in time order."""
        default = self.own_recency if self.method == "newton" else self.published_recency
        return recency_weights(count, self.recency or default)

    def defaults(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the published parameters."""
        return self.space(self.equations(whole_days=whole_days)).defaults

    def start(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the option `parameters`, or the published ones."""
        return tuple(map(float, self.parameters or self.defaults(whole_days=whole_days)))

    def prior_centre(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the centre of the prior of ``newton``, where it starts."""
        return self.start(whole_days=whole_days)

    def penalty(self, space: ParameterSpace, n_reviews: int, *, whole_days: bool) -> FloatArray:
        """Return the penalty matrix of the prior for a number of training reviews and a clock."""
        return penalty_matrix(space, self.prior_strength)

    def trained(self, problem: Problem, rows: IntArray, start: FloatArray) -> FloatArray | None:
        """Run the public trainer; return None where it trains on none of `rows`."""
        reviews, recipe, space = problem.reviews, self.recipe, problem.space
        mask = recipe.trains_on(reviews, rows, rows_by_card(reviews.card))
        if not mask.any():
            return None
        if recipe.decimals is not None and not reviews.whole_days:
            recipe = replace(recipe, decimals=self.decimals_in_fractions)
        weight, pull = self.weights(len(rows))[mask], penalty_matrix(space, 1.0)
        return train(problem.loss, reviews, rows[mask], weight, start, pull, space, recipe)

    def fit(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: MemoryModel | None = None,
    ) -> MemoryModel:
        """Fit to the outcomes of `rows`, going on from an earlier fit if there is one."""
        problem, start = self.problem(reviews), self.start(whole_days=reviews.whole_days)
        if self.method == "default":
            return problem.model(start, Learned())
        if len(rows) == 0:
            raise FitSkipped(f"{self.name}: there are no training reviews to learn from")
        rows = np.sort(rows)
        try:
            if self.method == "newton":
                return self._minimum(problem, rows, rng, previous)
            w = self.trained(problem, rows, np.asarray(start))
        except FitError as error:
            raise FitError(f"{self.name}: user {reviews.user}: {error}") from error
        if w is None:
            note = "the parameters were kept: the public trainer trains on none of these reviews"
            return problem.model(start, Learned(note=note, fallback=True))
        return problem.model(tuple(w.tolist()), Learned())

    refit = fit

    def objective(self, problem: Problem, rows: IntArray, centre: FloatArray) -> Objective:
        """Return what ``newton`` minimises."""
        weight = self.weights(len(rows))
        loss = problem.loss(rows, weight / weight.mean(), public=False)
        coordinates = LogCoordinates(self.logarithms)
        whole_days = problem.reviews.whole_days
        penalty = self.penalty(problem.space, len(rows), whole_days=whole_days)
        prior_centre = coordinates.encode(feasible(centre, problem.space))
        return Objective(loss, prior_centre, penalty, coordinates)

    def _minimum(
        self,
        problem: Problem,
        rows: IntArray,
        rng: np.random.Generator,
        previous: MemoryModel | None,
    ) -> MemoryModel:
        """Minimise the penalised loss, and record how."""
        space = problem.space
        centre = np.asarray(self.prior_centre(whole_days=problem.reviews.whole_days))
        objective = self.objective(problem, rows, centre)
        coordinates = objective.coordinates
        bounds, start = coordinates.space(space), objective.centre
        starts = [start]
        if previous is not None:
            starts = [coordinates.encode(feasible(np.asarray(previous.parameters), space))]
        else:  # of objectives with several minima; half a spread away
            spread = 0.5 * np.minimum(bounds.spread, np.abs(start))
            drawn = (rng.standard_normal(len(start)) for _ in range(self.starts - 1))
            starts += [start + spread * each for each in drawn]
        minima, errors = [], []
        for begin in starts:
            try:
                minima.append(newton(objective, begin, bounds, tolerance=self.tolerance))
            except FitError as error:
                errors.append(error)
        if not minima:
            raise errors[0]
        end = min(minima, key=lambda minimum: minimum.value)
        w = feasible(coordinates.decode(end.parameters), space)
        errors_of_w = standard_errors(end.information, end.parameters, bounds)
        learned = Learned(
            standard_errors=tuple((errors_of_w * coordinates.slope(w)).tolist()),
            note="" if end.converged else "the fit stopped before it had converged",
            converged=end.converged,
            information=end.information,
        )
        return problem.model(tuple(w.tolist()), learned)

    def sample(
        self,
        reviews: Reviews,
        rows: IntArray,
        model: MemoryModel,
        rng: np.random.Generator,
        count: int,
    ) -> list[MemoryModel]:
        """Draw models around one that was fitted to `rows`; none where nothing was minimised."""
        learned = getattr(model, "learned", Learned())
        if learned.information is None:
            return []
        rows, problem = np.sort(rows), self.problem(reviews)
        w = np.asarray(model.parameters)
        objective = self.objective(problem, rows, w)
        theta, weight = objective.coordinates.encode(w), self.weights(len(rows))
        penalty = self.penalty(problem.space, _ASYMPTOTIC, whole_days=reviews.whole_days)
        widest = self.own_prior_weight / self.prior_strength if self.prior_strength else 0.0
        of_data = replace(objective, penalty_matrix=np.zeros_like(penalty))
        squared = problem.loss(rows, (weight / weight.mean()) ** 2, public=False)
        covariance = error_covariance(
            learned.information,
            of_data.fisher(theta).information,
            replace(of_data, loss=squared).fisher(theta).information,
            2 * widest * penalty,
        )
        draws = sample(objective.coordinates, problem.space, w, covariance, rng, count)
        return [problem.model(tuple(each.tolist()), Learned()) for each in draws]
