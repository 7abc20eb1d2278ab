"""What a fit minimises: weighted log loss plus a quadratic penalty around a centre.

And how far the parameters that it finds may be from the true ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.engine.compiled import CompiledModel, Fisher, Gradient
from srs_eval.engine.packing import Packed
from srs_eval.engine.parameters import ParameterSpace

Recency = Literal["none", "mild", "steep", "quartic"]


def recency_weights(count: int, recency: Recency) -> FloatArray:
    """Weigh `count` training reviews by their age, oldest first.

    ``mild`` is 0.25 + 0.75 x**3 with x from 0 for the oldest to 1, published for FSRS-6; ``steep``
    is 0.0667 + 0.9333 x**11.25 with x = i / count, published for FSRS-7; ``quartic`` is 0.1 + 0.9
    x**4, published for the logistic regression; ``none`` weighs all alike.

    >>> recency_weights(3, "mild").tolist()
    [0.25, 0.34375, 1.0]
    """
    if recency == "mild":
        return 0.25 + 0.75 * np.linspace(0, 1, count) ** 3
    if recency == "steep":
        return 0.0667 + 0.9333 * (np.arange(count) / count) ** 11.25
    if recency == "quartic":
        return 0.1 + 0.9 * np.linspace(0, 1, count) ** 4
    return np.ones(count)


class Curved(Protocol):
    """A function of parameters that knows its gradient and curvature: what fits minimise."""

    def gradient(self, w: FloatArray) -> Gradient:
        """Return the value and its gradient."""

    def fisher(self, w: FloatArray) -> Fisher:
        """Return the value, its gradient, and its curvature in the sense of Fisher."""


@dataclass(frozen=True, slots=True)
class PackedLoss:
    """Summed weighted log loss of packed reviews, as a function of the parameters."""

    model: CompiledModel  # The equations
    packed: Packed  # Reviews with their weights
    public: bool = False  # Whether `gradient` takes the loss of the public trainer

    def gradient(self, w: FloatArray) -> Gradient:
        return self.model.gradient(w, self.packed, public=self.public)

    def fisher(self, w: FloatArray) -> Fisher:
        return self.model.fisher(w, self.packed)


@dataclass(frozen=True, slots=True)
class LogCoordinates:
    """Parameters of which the first are replaced by their logarithms."""

    count: int = 0  # How many are; their bounds must be above 0

    def encode(self, w: FloatArray) -> FloatArray:
        """Return the coordinates of parameters."""
        return np.concatenate([np.log(w[: self.count]), w[self.count :]])

    def decode(self, theta: FloatArray) -> FloatArray:
        """Return the parameters at some coordinates."""
        return np.concatenate([np.exp(theta[: self.count]), theta[self.count :]])

    def slope(self, w: FloatArray) -> FloatArray:
        """Return the derivative of each parameter by its coordinate."""
        return np.concatenate([w[: self.count], np.ones(len(w) - self.count)])

    def space(self, space: ParameterSpace) -> ParameterSpace:
        """Return bounds and order of the coordinates."""
        columns = (space.defaults, space.lower, space.upper)
        defaults, lower, upper = (tuple(self.encode(np.array(column))) for column in columns)
        return replace(space, defaults=defaults, lower=lower, upper=upper)


@dataclass(frozen=True, slots=True)
class Objective:
    """A loss plus (theta - centre)' penalty_matrix (theta - centre), as a function of theta."""

    loss: Curved  # As a function of the parameters
    centre: FloatArray  # [parameters]: Where the penalty is 0
    # [parameters, parameters]: Symmetric; half the precision of a normal prior. 0 where parameters
    # are free
    penalty_matrix: FloatArray
    coordinates: LogCoordinates = LogCoordinates()  # What theta is

    def gradient(self, theta: FloatArray) -> Gradient:
        w = self.coordinates.decode(theta)
        loss, gradient = self.loss.gradient(w)
        distance = theta - self.centre
        pull = self.penalty_matrix @ distance
        penalty = float((distance * pull).sum())
        return Gradient(loss + penalty, gradient * self.coordinates.slope(w) + 2 * pull)

    def fisher(self, theta: FloatArray) -> Fisher:
        w = self.coordinates.decode(theta)
        loss, gradient, information = self.loss.fisher(w)
        slope = self.coordinates.slope(w)
        distance = theta - self.centre
        pull = self.penalty_matrix @ distance
        information = information * (slope[:, None] * slope) + 2 * self.penalty_matrix
        penalty = float((distance * pull).sum())
        return Fisher(loss + penalty, gradient * slope + 2 * pull, information)


def penalty_matrix(space: ParameterSpace, prior_weight: float) -> FloatArray:
    """Turn the spread of independent parameters into the matrix of the penalty."""
    return np.diag(prior_weight / np.square(space.spread))


def feasible(w: FloatArray, space: ParameterSpace) -> FloatArray:
    """Move parameters into their bounds and their order, in the order of `space.ordered`."""
    moved = np.clip(w, space.lower, space.upper)
    for low, high in space.ordered:
        moved[high] = max(moved[low], moved[high])
    return moved


def standard_errors(information: FloatArray, w: FloatArray, space: ParameterSpace) -> FloatArray:
    """Return the standard error of each parameter (Laplace's approximation).

    `information` is the curvature of the objective at its minimum in the sense of Fisher, prior
    included. A parameter that the data say nothing of has the prior's standard deviation. NaN for a
    parameter at a bound, and where some combination changes nothing.
    """
    free = (w > np.asarray(space.lower)) & (w < np.asarray(space.upper))
    errors = np.full(len(w), np.nan)
    if free.any():
        scale = np.sqrt(np.diag(information))
        free &= scale > 0
        scaled = information[np.ix_(free, free)] / np.outer(scale[free], scale[free])
        try:
            variances = np.diag(np.linalg.inv(scaled))
        except np.linalg.LinAlgError:  # some combination of parameters changes nothing
            return errors
        with np.errstate(invalid="ignore"):
            errors[free] = np.sqrt(variances) / scale[free]
    return errors


def error_covariance(
    information: FloatArray, of_data: FloatArray, of_squares: FloatArray, population: FloatArray
) -> FloatArray | None:
    """Return the covariance of fitted less true parameters, over users and what they answer.

    Reviews move a fit by noise whose covariance is `of_squares`, the curvature of the loss with
    each weight squared. The prior, which is what `information` holds beyond the curvature of the
    loss, `of_data`, moves it towards the centre by the distance of the true parameters from there,
    whose inverse covariance over users is `population`: a prior may be stronger than people are
    alike. None where some combination of parameters changes nothing.
    """
    scale = np.sqrt(np.diag(information))
    if not (scale > 0).all():
        return None
    prior = information - of_data
    spread = prior @ np.linalg.pinv(population, hermitian=True) @ prior
    moved = of_squares + spread
    units = np.outer(scale, scale)
    try:
        inverse = np.linalg.inv(information / units)
    except np.linalg.LinAlgError:
        return None
    covariance: FloatArray = inverse @ (moved / units) @ inverse / units
    return covariance


def sample(
    coordinates: LogCoordinates,
    space: ParameterSpace,
    w: FloatArray,
    covariance: FloatArray | None,
    rng: np.random.Generator,
    count: int,
) -> list[FloatArray]:
    """Draw parameters around `w` with a covariance of their coordinates; none where it is None.

    Those that are beyond their bounds or out of order are moved there.
    """
    if covariance is None:
        return []
    centre, bounds = coordinates.encode(w), coordinates.space(space)
    draws = rng.multivariate_normal(centre, covariance, count, check_valid="ignore")
    return [feasible(coordinates.decode(feasible(each, bounds)), space) for each in draws]
