"""Half-life regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from srs_eval.algorithms.options import require_choice
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.recurrent import RecurrentModel, states_before
from srs_eval.errors import FitError, FitSkipped
from srs_eval.nouns import IntArray, Reviews

_LN2 = math.log(2.0)
_METHODS = ("lbfgs", "default")


@dataclass(frozen=True, slots=True)
class HlrEquations:
    """Exponential forgetting whose half-life grows with passes and shrinks with failures."""

    state_names: ClassVar[tuple[str, ...]] = ("passes", "failures")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(2.5819, -0.8674, 2.7245), lower=(-math.inf,) * 3, upper=(math.inf,) * 3
    )

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Count the card's first review."""
        return m.where(rating > 1, 1.0, 0.0), m.where(rating > 1, 0.0, 1.0)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Exponential forgetting, at 50 % when `elapsed` equals the half-life."""
        passes, failures = state
        half_life = 2 ** (w[0] * passes**0.5 + w[1] * failures**0.5 + w[2])
        return 0.5 ** (elapsed / half_life)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Count a further review."""
        passes, failures = state
        return passes + m.where(rating > 1, 1.0, 0.0), failures + m.where(rating > 1, 0.0, 1.0)


@dataclass(frozen=True, slots=True, init=False)
class Hlr:
    """Half-life regression in the form of the public benchmark (HLR).

    After Settles & Meeder (2016), *A Trainable Spaced Repetition Model for Language
    Learning*, ACL. The benchmark keeps its half-life of square roots of counts, drops the
    indicators of single words, and trains by log loss alone, unweighted and unregularised.
    Reads elapsed time and pass or fail; 3 parameters; not online. Published row, without
    same-day reviews: log loss 0.4694, RMSE(bins) 0.1275, AUC 0.6369.

    Parameters
    ----------
    fit : {"lbfgs", "default"}
        How it learns: ``lbfgs`` minimises the mean log loss of the training reviews
        (scipy's L-BFGS-B on all of them at once, so that nothing depends on their order);
        ``default`` keeps the parameters as they are.
    parameters : sequence of 3 floats, optional
        Where the fit starts; by default the published ones.

    Raises
    ------
    ConfigError
        If an option is not one of its choices, or parameters are not 3 finite numbers.
    """

    same_day: ClassVar[bool] = False
    online: ClassVar[bool] = False
    sees_truth: ClassVar[bool] = False

    method: str
    parameters: tuple[float, ...]

    def __init__(
        self,
        *,
        fit: Literal["lbfgs", "default"] = "lbfgs",
        parameters: Sequence[float] | None = None,
    ) -> None:
        require_choice("hlr", "fit", fit, _METHODS)
        # The option is called fit, as the method that carries it out is.
        object.__setattr__(self, "method", fit)
        object.__setattr__(self, "parameters", HlrEquations.parameters.checked(parameters, "hlr"))

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        """Learn the three parameters from the outcomes of `rows`.

        Raises
        ------
        FitSkipped
            If there are no training reviews.
        FitError
            If the optimiser ends at numbers that are not finite.
        """
        equations = HlrEquations()
        if self.method == "default":
            return RecurrentModel(equations, self.parameters)
        if len(rows) == 0:
            raise FitSkipped("hlr: there are no training reviews to learn from")
        counts = states_before(equations, self.parameters, reviews, rows)
        features = np.sqrt(np.vstack([counts, np.ones(len(rows))]))
        found = minimize(
            _log_loss,
            np.asarray(self.parameters),
            args=(features, reviews.elapsed[rows], reviews.recalled[rows]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 200, "ftol": 1e-10, "gtol": 1e-7},
        )
        if not np.isfinite(found.x).all():
            raise FitError(f"hlr: user {reviews.user}: the fit ended at {found.x.tolist()}")
        return RecurrentModel(equations, tuple(found.x.tolist()))


def _log_loss(
    w: NDArray[np.float64],
    features: NDArray[np.float64],  # [3, n]
    elapsed: NDArray[np.float64],  # [n]
    recalled: NDArray[np.bool_],  # [n]
) -> tuple[float, NDArray[np.float64]]:
    """Mean log loss and its gradient, in terms of decay = -ln p.

    Written with einsum because a threaded matrix product costs more than it computes here,
    and adds in an order that depends on the machine.
    """
    exponent = np.clip(-np.einsum("i,in->n", w, features), -1000.0, 1000.0)
    # Beyond these bounds p is 0 or 1 in double precision, and its logarithm means nothing.
    decay = np.clip(_LN2 * elapsed * 2.0**exponent, 1e-15, 700.0)
    loss = np.where(recalled, decay, -np.log(-np.expm1(-decay)))
    by_decay = np.where(recalled, 1.0, -1.0 / np.expm1(decay))
    gradient = np.einsum("in,n->i", features, by_decay * decay * -_LN2) / len(elapsed)
    return float(loss.mean()), gradient
