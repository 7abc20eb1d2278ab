"""How far fitted parameters may be from the true ones, and draws around them."""

from __future__ import annotations

import numpy as np

from srs_eval.engine.objective import Curved, LogCoordinates, feasible
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.nouns import FloatArray


def error_covariance(
    information: FloatArray, loss: Curved, of_squares: Curved, population: FloatArray, w: FloatArray
) -> FloatArray | None:
    """Return the covariance of fitted less true parameters, over users and what they answer.

    Reviews move a fit by noise whose covariance is the curvature of `of_squares`, the `loss` with
    each weight squared. The prior, which is what `information` holds beyond the curvature of
    `loss`, moves it towards the centre by the distance of the true parameters from there, whose
    inverse covariance over users is `population`: a prior may be stronger than people are alike.
    None where some combination of parameters changes nothing.
    """
    scale = np.sqrt(np.diag(information))
    if not (scale > 0).all():
        return None
    prior = information - loss.fisher(w).information
    spread = prior @ np.linalg.pinv(population, hermitian=True) @ prior
    moved = of_squares.fisher(w).information + spread
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
    middle, bounds = coordinates.encode(w), coordinates.space(space)
    draws = rng.multivariate_normal(middle, covariance, count, check_valid="ignore")
    return [feasible(coordinates.decode(feasible(each, bounds)), space) for each in draws]
