"""Several algorithms, averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import LinearConstraint, minimize
from scipy.special import expit

from srs_eval.algorithms.combined.wrapping import (
    Asked,
    Combination,
    Combined,
    as_part,
    as_seen_by,
    fitted,
    learned_together,
    log_odds,
    require_algorithm,
)
from srs_eval.algorithms.options import require_above_zero, require_choice
from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import (
    Algorithm,
    BoolArray,
    FloatArray,
    IntArray,
    Learned,
    MemoryModel,
    Part,
    Reviews,
)

# Of the training reviews, in time order, what decides the weights, and at least how many.
_LATEST = 0.25
_FEWEST = 30
# Pull of fitted weights, against the summed log loss of these reviews: towards shares that were
# given for a reason, and towards equal parts.
_TO_SHARES, _TO_EQUAL = 300.0, 1.0


@dataclass(frozen=True, slots=True)
class EnsembleModel(Combination):
    """The weighted mean of the log-odds of several fitted models."""

    # What the models were learned by, which says what each may see
    algorithms: tuple[Algorithm, ...]
    models: tuple[MemoryModel, ...]
    parameters: tuple[float, ...]  # Weights, which sum to 1
    learned: Learned = field(default_factory=Learned)  # Records of the fits of the models

    def made_of(self) -> tuple[MemoryModel, ...]:
        return self.models

    def answer(self, asked: Asked) -> FloatArray:
        """Ask all models, and average their log-odds."""
        given = [
            log_odds(asked.seen_by(algorithm).by(model))
            for algorithm, model in zip(self.algorithms, self.models, strict=True)
        ]
        return uncertain(expit(np.tensordot(self.parameters, given, axes=1)))


@dataclass(frozen=True, slots=True)
class Ensemble(Combined):
    """The mean of several algorithms' log-odds of recall, weighted by fixed or fitted shares.

    A logarithmic opinion pool: Genest & Zidek (1986), *Combining Probability Distributions: A
    Critique and an Annotated Bibliography*, Statistical Science 1,
    https://doi.org/10.1214/ss/1177013825. Fitted weights sum to 1 and none is negative; they
    are those that predict the latest quarter of the training reviews best when all algorithms
    are fitted to the others, drawn strongly towards the given shares, or a little
    towards equal parts; then all are fitted to
    everything. Each algorithm is shown what it would be shown alone. Reads what the algorithms
    read; as many parameters as there are algorithms, and theirs. No published row.

    Parameters
    ----------
    members : mapping of str to Algorithm
        The algorithms, at least one, under names of one's own.
    weights : {"fitted", "fixed", "equal"}
        Whether weights are learned, are the shares, or are all the same. With fewer than 30
        reviews to learn them from they are the shares.
    shares : mapping of str to float
        Share of each member, above 0; they are scaled to a sum of 1. Empty: equal parts.
    """

    members: Mapping[str, Algorithm]
    weights: str = "fitted"
    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_choice("ensemble", "weights", self.weights, ("fitted", "fixed", "equal"))
        if not isinstance(self.members, Mapping) or not self.members:
            raise ConfigError("ensemble: members must be named algorithms, at least one")
        unfit = [name for name in self.members if set(name) & set("/.")]
        if unfit:
            raise ConfigError(f"ensemble: members {unfit}: names must not contain / or .")
        for name, member in self.members.items():
            require_algorithm("ensemble", f"members.{name}", member)
        if self.shares and (set(self.shares) != set(self.members) or self.weights == "equal"):
            raise ConfigError(
                f"ensemble: shares={dict(self.shares)} must name each member once, and cannot be "
                f"combined with weights=equal; members: {', '.join(self.members)}"
            )
        for name, share in self.shares.items():
            require_above_zero("ensemble", f"shares.{name}", share)

    @property
    def combined(self) -> tuple[Algorithm, ...]:
        return tuple(self.members.values())

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> EnsembleModel:
        """Fit the weights, then all algorithms, to `rows`."""
        return self.refit(reviews, rows, rng, None)

    def refit(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: EnsembleModel | None,
    ) -> EnsembleModel:
        """Fit again, each algorithm from its own earlier fit if it can."""
        rows, members = np.sort(rows), self.combined
        weights, note = self._weights(reviews, rows, rng)
        earlier = (None,) * len(members) if previous is None else previous.models
        models = tuple(
            fitted(member, *as_seen_by(member, reviews, rows), rng, model)
            for member, model in zip(members, earlier, strict=True)
        )
        parts = [
            part
            for name, model in zip(self.members, models, strict=True)
            for part in as_part(model, Part(name, f"members.{name}", n_train=len(rows)))
        ]
        named = dict(zip(self.members, models, strict=True))
        learned = learned_together(named, tuple(parts), note, fallback=bool(note))
        return EnsembleModel(members, models, tuple(weights.tolist()), learned)

    def assembled(
        self, parameters: Sequence[float], models: Mapping[str, MemoryModel]
    ) -> EnsembleModel:
        """Build the fitted ensemble again, from its weights and the models of its members."""
        fits = tuple(models[name] for name in self.members)
        return EnsembleModel(self.combined, fits, tuple(parameters))

    def _weights(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, str]:
        """Learn the weights, and say why not if they could not be learned."""
        shares = np.array([float(self.shares.get(name, 1.0)) for name in self.members])
        shares /= shares.sum()
        if self.weights != "fitted" or len(self.members) == 1:
            return shares, ""
        later = int(len(rows) * _LATEST)
        if later < _FEWEST:
            return shares, f"weights were kept: {later} reviews are too few to learn them from"
        begin = len(rows) - later
        given = []
        for member in self.members.values():
            try:
                model = member.fit(*as_seen_by(member, reviews, rows[:begin]), rng)
            except FitSkipped as skipped:
                return shares, f"weights were kept ({skipped})"
            given.append(log_odds(model.predict(*as_seen_by(member, reviews, rows[begin:]))))
        pull = _TO_SHARES if self.shares else _TO_EQUAL
        recalled = reviews.recalled[rows[begin:]]
        return best_weights(np.column_stack(given), recalled, shares, pull), ""


def best_weights(
    given: FloatArray, recalled: BoolArray, shares: FloatArray, pull: float
) -> FloatArray:
    """Find the weights of which the mean of log-odds [reviews, members] has the lowest log loss.

    To the summed loss, half the pull times the squared distance to the shares is added.
    """

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        mean, away = given @ weights, weights - shares
        value = np.logaddexp(0.0, np.where(recalled, -mean, mean)).sum()
        slope = (expit(mean) - recalled) @ given + pull * away
        return float(value + pull / 2 * (away @ away)) / len(given), slope / len(given)

    # The loss is convex in the weights, and not in their softmax, which is flat far out.
    whole = LinearConstraint(np.ones(len(shares)), 1.0, 1.0)
    found = minimize(
        loss,
        shares,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(shares),
        constraints=[whole],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    kept = np.clip(found.x, 0.0, 1.0)
    weights: FloatArray = kept / kept.sum()
    return weights
