"""A forgetting curve, corrected by the card's history without what its session did to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
from scipy.special import expit

from srs_eval.algorithms.algorithm import Algorithm, Learned, MemoryModel
from srs_eval.algorithms.combined.wrapping import Asked, Combination, Wrapper, require_algorithm
from srs_eval.algorithms.options import require_above_zero
from srs_eval.algorithms.sessions.features import CARD, LEVEL_OF_CARD, SESSION
from srs_eval.algorithms.sessions.mixture import Mixture
from srs_eval.algorithms.sessions.walk import Prior, Stages, walk, walk_through
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain

# What predictions use; the session's features are only there to learn these weights well.
_SHOWN = {**LEVEL_OF_CARD, **CARD}
# Days for which learning steps go on, of which weights of later-day answers know nothing.
_SAME_DAY = 0.5


@dataclass(frozen=True, slots=True)
class ForecastModel(Combination):
    """Fits of the base algorithm and the prior of the correction."""

    stages: Stages  # Fits of the base algorithm
    prior: Prior
    parameters: tuple[float, ...]  # Weights after the training reviews
    # Record of the last fit, and standard errors of the weights
    learned: Learned = field(default_factory=Learned)

    def made_of(self) -> tuple[MemoryModel, ...]:
        return self.stages.models

    def answer(self, asked: Asked) -> FloatArray:
        """Correct the base by what was known at the end of the previous review of each card.

        Less than half a day after it, predictions are those of the base model.
        """
        reviews, rows = asked.reviews, asked.rows
        if not len(rows):
            return asked.by_rows(())
        walked = walk(self.stages, self.prior, reviews, int(rows.max()) + 1)
        if asked.elapsed is None:
            elapsed, z = reviews.elapsed[rows], walked.answers.z[rows]
        else:
            elapsed, z = asked.elapsed.T, self.stages.log_odds_of(asked).T
        # Training reviews before it have taught the base as well.
        until = np.minimum(self.stages.begins[-1], rows)
        entry = np.searchsorted(walked.rows, np.maximum(walked.answers.previous[rows] + 1, until))
        weights = walked.path[np.maximum(entry - walked.first, 0)]
        moved, slope = weights[:, 0].copy(), weights[:, 1]
        for number, feature in enumerate(CARD.values(), start=len(LEVEL_OF_CARD)):
            moved += weights[:, number] * feature(walked.answers)[rows]
        # A curve that falls goes on falling.
        corrected = z + np.maximum(slope, -1.0) * (z - 2) + moved
        return uncertain(expit(np.where(elapsed < _SAME_DAY, z, corrected))).T


@dataclass(frozen=True)
class Forecast(Wrapper):
    """A forgetting curve, fixed at the card's previous review, that knows the card's history.

    Log-odds of another algorithm, by default of a fixed mixture of three, are moved by a weighted
    sum of the card's answer times, last ratings and numbers of reviews. The weights follow every
    later-day answer by an extended Kalman filter (as in `SessionFilter`; Fahrmeir, 1992,
    https://doi.org/10.1080/01621459.1992.10475232) in which the features of the session are
    nuisances: the filter has them while it learns, because a bad session is not thirty facts
    about cards, and predictions have not. A prediction uses the weights there were when the
    card's previous review ended, or the training reviews, if these are later. The correction
    begins half a day after that review, and from then on does not depend on elapsed time, so that
    a curve which falls goes on falling. Reads ratings, elapsed time, days, decks and answer times;
    30 parameters and the other's. No published row.

    Parameters
    ----------
    base : Algorithm
        The other algorithm.
    width : float
        Variance of the weights of a card's features before the first answer, above 0.
    session_width, level_width : float
        The same for the features of a session, and for a bias and the log-odds themselves.
    drift : float
        Share of the variance by which a weight may wander after each answer, 0 or more.
    """

    # Features count same-day reviews, whatever the other algorithm reads.
    same_day: ClassVar[bool] = True

    # Declarations of the mixture are properties, which mypy takes for less than attributes.
    base: Algorithm = field(default_factory=lambda: cast(Algorithm, Mixture()))
    width: float = 0.01
    session_width: float = 0.01
    level_width: float = 0.001
    drift: float = 3e-4

    def __post_init__(self) -> None:
        """Check the options."""
        require_algorithm("forecast", "base", self.base)
        for name in ("width", "session_width", "level_width"):
            require_above_zero("forecast", name, getattr(self, name))
        require_above_zero("forecast", "drift", self.drift, or_zero=True)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> ForecastModel:
        """Fit the other algorithm in stages, and learn the weights from `rows` on the way."""
        widths = (self.level_width, self.width, self.session_width)
        sizes = (len(LEVEL_OF_CARD), len(CARD), len(SESSION))
        width = np.repeat(np.array(widths, np.float64), sizes)
        prior = Prior({**_SHOWN, **SESSION}, width, float(self.drift))
        stages, walked, learned = walk_through(self.base, prior, reviews, rows, rng)
        return ForecastModel(stages, prior, walked.weights, learned)
