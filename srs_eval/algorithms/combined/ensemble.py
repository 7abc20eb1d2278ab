"""Several algorithms, averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax

from srs_eval.algorithms.combined.wrapping import (
    as_part,
    as_seen_by,
    curve_of,
    fitted,
    learned_by,
    log_odds,
    require_algorithm,
)
from srs_eval.algorithms.options import require_choice
from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import (
    Algorithm,
    BoolArray,
    CurveModel,
    FloatArray,
    IntArray,
    Learned,
    MemoryModel,
    Part,
    Reviews,
    When,
    latest,
)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Of the training reviews, in time order, what decides the weights, and at least how many.
_LATEST = 0.25
_FEWEST = 30
# Pull of the weights towards being equal, against the summed log loss of that many reviews.
_PULL = 1.0


@dataclass(frozen=True, slots=True)
class EnsembleModel:
    """The weighted mean of the log-odds of several fitted models.

    Attributes
    ----------
    algorithms : tuple of Algorithm
        What the models were learned by, which says what each may see.
    models : tuple of MemoryModel
    parameters : tuple of float
        Weights, which sum to 1.
    learned : Learned
        Records of the fits of the models.
    """

    algorithms: tuple[Algorithm, ...]
    models: tuple[MemoryModel, ...]
    parameters: tuple[float, ...]
    learned: Learned = field(default_factory=Learned)

    def predict(self, reviews: Reviews, rows: IntArray) -> Vector:
        """Predict recall at each of `rows` by all models, and average their log-odds."""
        given = [
            log_odds(model.predict(*as_seen_by(algorithm, reviews, rows)))
            for algorithm, model in zip(self.algorithms, self.models, strict=True)
        ]
        return uncertain(expit(np.tensordot(self.parameters, given, axes=1)))


@dataclass(frozen=True, slots=True)
class EnsembleCurves(EnsembleModel):
    """The same of models that all have a forgetting curve."""

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> Vector:
        """Predict recall at other elapsed times, the history staying as it is."""
        given = [
            log_odds(curve_of(model, *as_seen_by(algorithm, reviews, rows), elapsed))
            for algorithm, model in zip(self.algorithms, self.models, strict=True)
        ]
        return uncertain(expit(np.tensordot(self.parameters, given, axes=1)))


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The mean of several algorithms' log-odds of recall, equal parts or weighted.

    A logarithmic opinion pool: Genest & Zidek (1986), *Combining Probability Distributions: A
    Critique and an Annotated Bibliography*, Statistical Science 1,
    https://doi.org/10.1214/ss/1177013825. Fitted weights sum to 1 and none is negative; they
    are those that predict the latest quarter of the training reviews best when all algorithms
    are fitted to the others, drawn a little towards equal parts; then all are fitted to
    everything. Each algorithm is shown what it would be shown alone. Reads what the algorithms
    read; as many parameters as there are algorithms, and theirs; not online, unless one of them
    is. No published row.

    Parameters
    ----------
    members : mapping of str to Algorithm
        The algorithms, at least one, under names of one's own.
    weights : {"fitted", "equal"}
        Whether weights are learned. With fewer than 30 reviews to learn them from they are equal.

    Raises
    ------
    ConfigError
        If a member is no algorithm, or there is none.
    """

    members: Mapping[str, Algorithm]
    weights: str = "fitted"

    def __post_init__(self) -> None:
        """Check the options."""
        require_choice("ensemble", "weights", self.weights, ("fitted", "equal"))
        if not isinstance(self.members, Mapping) or not self.members:
            raise ConfigError("ensemble: members must be named algorithms, at least one")
        unfit = [name for name in self.members if set(name) & set("/.")]
        if unfit:
            raise ConfigError(f"ensemble: members {unfit}: names must not contain / or .")
        for name, member in self.members.items():
            require_algorithm("ensemble", f"members.{name}", member)

    @property
    def same_day(self) -> bool:
        """Whether any algorithm's histories keep same-day reviews."""
        return any(member.same_day for member in self.members.values())

    @property
    def when(self) -> When:
        """When the latest of the predictions is made."""
        return latest(*(member.when for member in self.members.values()))

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return any(getattr(member, "pretrained", False) for member in self.members.values())

    @property
    def sees_truth(self) -> bool:
        """Whether any algorithm reads the truth."""
        return any(member.sees_truth for member in self.members.values())

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> EnsembleModel:
        """Fit the weights, then all algorithms, to `rows`."""
        return self._learn(reviews, np.sort(rows), rng, None)

    def refit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator, previous: EnsembleModel
    ) -> EnsembleModel:
        """Fit again, each algorithm from its own earlier fit if it can."""
        return self._learn(reviews, np.sort(rows), rng, previous.models)

    def _learn(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: tuple[MemoryModel, ...] | None,
    ) -> EnsembleModel:
        weights, note = self._weights(reviews, rows, rng)
        members = tuple(self.members.values())
        earlier = previous or (None,) * len(members)
        models = tuple(
            fitted(member, *as_seen_by(member, reviews, rows), rng, model)
            for member, model in zip(members, earlier, strict=True)
        )
        records = {name: learned_by(m) for name, m in zip(self.members, models, strict=True)}
        notes = [f"{name}: {learned.note}" for name, learned in records.items() if learned.note]
        learned = Learned(
            note="; ".join([*([note] if note else []), *notes]),
            fallback=bool(note) or any(learned.fallback for learned in records.values()),
            parts=self._parts(models, len(rows)),
            converged=all(learned.converged for learned in records.values()),
        )
        return self._averaged(models, tuple(weights.tolist()), learned)

    def _parts(self, models: tuple[MemoryModel, ...], n_train: int) -> tuple[Part, ...]:
        parts: list[Part] = []
        for name, model in zip(self.members, models, strict=True):
            parts += as_part(model, Part(name, f"members.{name}", n_train=n_train))
        return tuple(parts)

    def assembled(
        self, parameters: Sequence[float], models: Mapping[str, MemoryModel]
    ) -> EnsembleModel:
        """Build the fitted ensemble again, from its weights and the models of its members."""
        return self._averaged(tuple(models[name] for name in self.members), tuple(parameters))

    def _averaged(
        self,
        models: tuple[MemoryModel, ...],
        weights: tuple[float, ...],
        learned: Learned | None = None,
    ) -> EnsembleModel:
        kind = (
            EnsembleCurves
            if all(isinstance(model, CurveModel) for model in models)
            else EnsembleModel
        )
        return kind(tuple(self.members.values()), models, weights, learned or Learned())

    def _weights(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> tuple[Vector, str]:
        """Learn the weights, and say why not if they could not be learned."""
        equal = np.full(len(self.members), 1 / len(self.members))
        if self.weights == "equal" or len(self.members) == 1:
            return equal, ""
        later = int(len(rows) * _LATEST)
        if later < _FEWEST:
            return equal, f"weights are equal: {later} reviews are too few to learn them from"
        begin = len(rows) - later
        given = []
        for member in self.members.values():
            try:
                model = member.fit(*as_seen_by(member, reviews, rows[:begin]), rng)
            except FitSkipped as skipped:
                return equal, f"weights are equal ({skipped})"
            given.append(log_odds(model.predict(*as_seen_by(member, reviews, rows[begin:]))))
        return best_weights(np.column_stack(given), reviews.recalled[rows[begin:]]), ""


def best_weights(given: Matrix, recalled: BoolArray) -> Vector:
    """Find the weights of which the mean of log-odds has the lowest log loss.

    Parameters
    ----------
    given : float64 [reviews, members]
        Log-odds.
    recalled : bool [reviews]
        Outcomes.

    Returns
    -------
    float64 [members]
        Above 0; they sum to 1.
    """

    def loss(free: Vector) -> tuple[float, Vector]:
        weights = softmax(free)
        mean = given @ weights
        value = np.logaddexp(0.0, np.where(recalled, -mean, mean)).sum()
        slope = (expit(mean) - recalled) @ given
        by_free = weights * (slope - weights @ slope)
        return float(value + _PULL * (free @ free)), by_free + 2 * _PULL * free

    found: Vector = softmax(minimize(loss, np.zeros(given.shape[1]), jac=True).x)
    return found
