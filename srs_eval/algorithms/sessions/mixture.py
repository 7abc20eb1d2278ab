"""FSRS-7, logistic regression and SBD, averaged in fixed shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from scipy.special import expit

from srs_eval.algorithms.algorithm import Algorithm, Learned, MemoryModel, Part
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
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.schedulers.sbd import Sbd
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain

SHARES = {"fsrs7": 0.5, "logistic": 0.25, "sbd": 0.25}


@dataclass(frozen=True, slots=True)
class MixtureModel(Combination):
    """The weighted mean of the log-odds of three fitted models."""

    # What the models were learned by, which says what each may see
    algorithms: tuple[Algorithm, ...]
    models: tuple[MemoryModel, ...]
    parameters: tuple[float, ...] = tuple(SHARES.values())
    learned: Learned = field(default_factory=Learned)  # Records of the fits of the models

    def made_of(self) -> tuple[MemoryModel, ...]:
        return self.models

    def answer(self, asked: Asked) -> FloatArray:
        """Ask all models, and average their log-odds."""
        z = [
            log_odds(asked.seen_by(algorithm).by(model))
            for algorithm, model in zip(self.algorithms, self.models, strict=True)
        ]
        return uncertain(expit(np.tensordot(self.parameters, z, axes=1)))


@dataclass(frozen=True, slots=True)
class Mixture(Combined):
    """The mean log-odds of FSRS-7 (a half), the logistic regression and SBD (a quarter each).

    A logarithmic opinion pool: Genest & Zidek (1986), *Combining Probability Distributions: A
    Critique and an Annotated Bibliography*, Statistical Science 1,
    https://doi.org/10.1214/ss/1177013825. Each algorithm is shown what it would be shown alone.
    Reads what the algorithms read; 3 fixed shares, and their parameters. No published row.

    Parameters
    ----------
    fsrs7, logistic, sbd : Algorithm
        The three algorithms.
    """

    fsrs7: Algorithm = field(default_factory=Fsrs7)
    logistic: Algorithm = field(default_factory=Logistic)
    sbd: Algorithm = field(default_factory=Sbd)

    def __post_init__(self) -> None:
        for name, algorithm in zip(SHARES, self.combined, strict=True):
            require_algorithm("mixture", name, algorithm)

    @property
    def combined(self) -> tuple[Algorithm, ...]:
        return (self.fsrs7, self.logistic, self.sbd)

    def fit(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: MixtureModel | None = None,
    ) -> MixtureModel:
        """Fit the three algorithms to `rows`, each from its own earlier fit if it can."""
        rows = np.sort(rows)
        earlier = (None,) * len(SHARES) if previous is None else previous.models
        models = tuple(
            fitted(algorithm, *as_seen_by(algorithm, reviews, rows), rng, model)
            for algorithm, model in zip(self.combined, earlier, strict=True)
        )
        named = dict(zip(SHARES, models, strict=True))
        parts = chain.from_iterable(
            as_part(model, Part(name, name, n_train=len(rows))) for name, model in named.items()
        )
        return MixtureModel(self.combined, models, learned=learned_together(named, parts))

    refit = fit
