"""The options that all fitted algorithms share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_eval.algorithms.options import require_above_zero, require_choice
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.recency import RECENCIES, Recency, recency_weights
from srs_eval.engine.reference import Recipe
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm

HALF_LIFE = 0.5
NOT_CONVERGED = "the fit stopped before it had converged"


class FitOptions(Algorithm, ABC):
    """Base of algorithms whose parameters are fitted to one user by log loss.

    Parameters
    ----------
    fit : str
        How it learns. ``newton`` minimises the penalised log loss of all training reviews
        (damped Gauss-Newton, deterministic); ``lbfgs`` does so by L-BFGS-B; ``reference`` is
        the public benchmark's trainer, batch for batch; ``default`` keeps the parameters as
        they are. Some algorithms have fewer or further ones.
    parameters : sequence of float, optional
        Where the fit starts and what it is drawn to; by default the published ones.
    recency : str, optional
        How much more recent reviews count, one of `RECENCIES`; see `recency_weights`. By
        default what belongs to the algorithm and the fit.
    half_life : float
        Of ``exponential``, as a share of all training reviews.
    prior_weight : float, optional
        Strength of the pull of ``newton`` and ``lbfgs`` towards the start; by default that of
        the class. Weights have mean 1, so that it means the same whatever the recency.
    """

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]] = ("newton", "lbfgs", "reference", "default")
    recipe: ClassVar[Recipe] = Recipe()
    # How newton and lbfgs weigh recent reviews by default, and how the public trainer does.
    own_recency: ClassVar[Recency] = "mild"
    published_recency: ClassVar[Recency] = "none"
    own_prior_weight: ClassVar[float] = 1.0

    def __init__(
        self,
        *,
        fit: str = "newton",
        parameters: Sequence[float] | None = None,
        recency: Recency | None = None,
        half_life: float = HALF_LIFE,
        prior_weight: float | None = None,
    ) -> None:
        require_choice(self.name, "fit", fit, self.methods)
        if recency is not None:
            require_choice(self.name, "recency", recency, RECENCIES)
        require_above_zero(self.name, "half_life", half_life)
        if prior_weight is not None:
            require_above_zero(self.name, "prior_weight", prior_weight, or_zero=True)
        minimises = fit in ("newton", "lbfgs")
        weighs = minimises or fit == "reference"
        # What would change nothing must not be shown as if it did.
        is_idle = {
            f"prior_weight={prior_weight}": prior_weight is not None and not minimises,
            f"recency={recency}": recency is not None and not weighs,
            f"half_life={half_life}": half_life != HALF_LIFE and recency != "exponential",
        }
        idle = [option for option in is_idle if is_idle[option]]
        if idle:
            raise ConfigError(
                f"{self.name}: {', '.join(idle)} has no effect with fit={fit} and "
                f"recency={'null' if recency is None else recency}: leave it out"
            )
        space = self.widest_space()
        if fit == "lbfgs" and space.ordered:
            raise ConfigError(
                f"{self.name}: fit=lbfgs knows bounds only, and these parameters have an order: "
                "use fit=newton"
            )
        # The option is called fit, as the method that carries it out is.
        self.method = fit
        self.parameters = None if parameters is None else space.checked(parameters, self.name)
        usual: Recency = self.own_recency if minimises else self.published_recency
        self.recency: Recency = usual if recency is None else recency
        self.half_life = half_life
        self.prior_weight = self.own_prior_weight if prior_weight is None else prior_weight

    @abstractmethod
    def widest_space(self) -> ParameterSpace:
        """Return the bounds that given parameters must keep."""

    def weights(self, count: int) -> NDArray[np.float64]:
        """Weigh training reviews in time order."""
        return recency_weights(count, self.recency, self.half_life)
