"""Any algorithm, corrected by what a session says: at the review, or ahead of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Literal, cast

import numpy as np
from scipy.special import expit, softmax

from srs_eval.algorithms.algorithm import Algorithm, Learned, MemoryModel, Part, When
from srs_eval.algorithms.combined import (
    Combination,
    Combined,
    Query,
    fitted,
    learned_together,
    log_odds,
)
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.options import NotNegative, Positive, Share
from srs_eval.algorithms.schedulers import Sbd
from srs_eval.algorithms.sessions.features import CARD, FORMULAS, LEVEL, SESSION, SETS, SIBLINGS
from srs_eval.algorithms.sessions.walk import Filter, Walk, contributions
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain

# Filters are too extreme by a seventh (log-odds about the usual ones), or not at all.
_USUAL_LOG_ODDS, _PULLED = 2.0, 0.85
# Days for which learning steps go on, of which weights of later-day answers know nothing.
_SAME_DAY = 0.5
_LEVEL_OF_CARD = ("bias", "deviation")
# Of the parts of the mixture.
SHARES = {"fsrs7": 0.5, "logistic": 0.25, "sbd": 0.25}


@dataclass(frozen=True, slots=True)
class SessionModel:
    """A filter whose base is fitted, which predicts from a whole log."""

    filter: Filter
    trust: float
    # Weights after the training reviews, of which predictions make no use
    parameters: tuple[float, ...]
    # Record of the last fit, and standard errors of the weights
    learned: Learned = field(default_factory=Learned)

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict later-day reviews, having learned from all answers before; the base others."""
        walked = self.filter.walk(reviews, int(rows.max(initial=-1)) + 1)
        z = walked.z + walked.terms.sum(axis=1)
        p, filtered = np.asarray(expit(walked.answers.z)), expit(z)
        if self.trust < 1:
            pulled = _USUAL_LOG_ODDS + _PULLED * (z - _USUAL_LOG_ODDS)
            mixed = np.stack([walked.z, z, pulled])
            filtered = (softmax(self._evidence(walked, mixed), axis=0) * expit(mixed)).sum(axis=0)
        p[walked.rows] = filtered
        return uncertain(p[rows])

    def _evidence(self, walked: Walk, z: FloatArray) -> FloatArray:
        """Return log weights, before each answer, of base, filter and filter pulled together.

        At each new fit of the base, half of the evidence on the fit before is dropped.
        """
        loss = np.logaddexp(0.0, walked.sign * z)
        gain = loss[0] - loss
        gain[:, : walked.first] = 0.0
        evidence, total = np.empty_like(gain), np.zeros((len(z), 1))
        begins = np.searchsorted(walked.rows, self.filter.begins[1:]).tolist()
        for begin, end in pairwise([0, *begins, len(walked.rows)]):
            after = np.cumsum(np.hstack([total, gain[:, begin:end]]), axis=1)
            evidence[:, begin:end] = after[:, :-1]
            total = after[:, -1:] / 2
        start = np.log([1 - self.trust, self.trust / 2, self.trust / 2])
        return np.asarray(evidence + start[:, np.newaxis])


@dataclass(frozen=True)
class SessionFilter(Combined):
    """Another algorithm, corrected review by review by an extended Kalman filter on the session.

    Log-odds of the other algorithm are moved by a weighted sum of features that are known when
    the card is shown: how much better or worse recent answers were than predicted, in windows
    from two answers to the whole day, by deck, and of cards that were introduced together; answer
    times, history and interval of the card. The filter (Fahrmeir, 1992, *Posterior Mode
    Estimation by Extended Kalman Filtering for Multivariate Dynamic Generalized Linear Models*,
    https://doi.org/10.1080/01621459.1992.10475232) takes one step after each later-day answer.
    Training reviews are predicted by fits to earlier ones, so that the filter learns from
    predictions out of sample. What is predicted is a mixture of the other algorithm, the filter,
    and the filter with log-odds that are less extreme by a seventh (2 + 0.85 (z - 2)), in the
    shares that the evidence so far gives them: with one fit of the other algorithm, it cannot lose
    more than -log(1 - trust) in total against that fit, and each further fit can add as much. Reads
    ratings, elapsed time, days, decks, notes and answer times;
    32 parameters and the other's, and 4 more where the log has notes: whether another card of the
    note was seen on the same day, or how many days ago, and its answer. Its predictions are of no
    use to plan a review, because they are made when it comes. No published row.

    Parameters
    ----------
    base : Algorithm
        The other algorithm.
    features : {"full", "small"}
        The 32 features, or 12 that do nearly as well, and in both those of siblings.
    width : float
        Variance of the weights before the first answer, above 0.
    level_width : float
        The same for the weights of a bias and of the log-odds themselves.
    drift : float
        Share of the variance by which a weight may wander after each answer, 0 or more.
    trust : float
        Share of the two filters before any evidence, above 0; 1: the first of them alone.
    """

    # Features count same-day reviews, whatever the other algorithm reads.
    same_day: ClassVar[bool] = True
    when: ClassVar[When] = "at_review"

    base: Algorithm = field(default_factory=Fsrs7)
    features: Literal["full", "small"] = "full"
    width: Positive = 0.015
    level_width: Positive = 0.02
    drift: NotNegative = 3e-4
    trust: Share = 0.1

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> SessionModel:
        """Fit the other algorithm in stages, and learn the weights from `rows` on the way."""
        features = SETS[self.features] + (SIBLINGS if reviews.note is not None else ())
        width = np.where(np.isin(features, LEVEL), float(self.level_width), float(self.width))
        prior = Filter(self.base, features, width, float(self.drift))
        own, walked, learned = prior.fit(reviews, rows, rng)
        learned = replace(learned, contributions=contributions(walked, features))
        return SessionModel(own, float(self.trust), tuple(walked.path[-1].tolist()), learned)


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

    def answer(self, query: Query) -> FloatArray:
        """Ask all models, and average their log-odds."""
        z = [
            log_odds(query.seen_by(algorithm).by(model))
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

    options: ClassVar[tuple[str, ...]] = tuple(SHARES)
    fsrs7: Algorithm = field(default_factory=Fsrs7)
    logistic: Algorithm = field(default_factory=Logistic)
    sbd: Algorithm = field(default_factory=Sbd)

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
            fitted(algorithm, reviews, rows, rng, model)
            for algorithm, model in zip(self.combined, earlier, strict=True)
        )
        parts = [Part(name, name, n_train=len(rows)) for name in self.options]
        learned = learned_together(zip(models, parts, strict=True))
        return MixtureModel(self.combined, models, learned=learned)

    refit = fit


@dataclass(frozen=True, slots=True)
class ForecastModel(Combination):
    """A filter whose base is fitted, with the weights that a card's previous review leaves."""

    filter: Filter
    parameters: tuple[float, ...]  # Weights after the training reviews
    # Record of the last fit, and standard errors of the weights
    learned: Learned = field(default_factory=Learned)

    def made_of(self) -> tuple[MemoryModel, ...]:
        return self.filter.models

    def answer(self, query: Query) -> FloatArray:
        """Correct the base, half a day after the previous review on, by what was known there."""
        reviews, rows = query.reviews, query.rows
        walked = self.filter.walk(reviews, int(rows.max(initial=-1)) + 1)
        if query.elapsed is None:
            elapsed, z = reviews.elapsed[rows], walked.answers.z[rows]
        else:
            elapsed, z = query.elapsed.T, self.filter.log_odds(query).T
        # Training reviews before it have taught the base as well.
        until = np.minimum(self.filter.begins[-1], rows)
        entry = np.searchsorted(walked.rows, np.maximum(walked.answers.previous[rows] + 1, until))
        weights = walked.path[np.maximum(entry - walked.first, 0)]
        moved, slope = weights[:, 0].copy(), weights[:, 1]
        for number, name in enumerate(CARD, start=len(_LEVEL_OF_CARD)):
            moved += weights[:, number] * FORMULAS[name](walked.answers)[rows]
        # A curve that falls goes on falling.
        corrected = z + np.maximum(slope, -1.0) * (z - 2) + moved
        return uncertain(expit(np.where(elapsed < _SAME_DAY, z, corrected))).T


@dataclass(frozen=True)
class Forecast(Combined):
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
    width: Positive = 0.01
    session_width: Positive = 0.01
    level_width: Positive = 0.001
    drift: NotNegative = 3e-4

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> ForecastModel:
        """Fit the other algorithm in stages, and learn the weights from `rows` on the way."""
        widths = (self.level_width, self.width, self.session_width)
        sizes = (len(_LEVEL_OF_CARD), len(CARD), len(SESSION))
        width = np.repeat(np.array(widths, np.float64), sizes)
        # The session's features are only there to learn the other weights well.
        names = (*_LEVEL_OF_CARD, *CARD, *SESSION)
        prior = Filter(self.base, names, width, float(self.drift))
        own, walked, learned = prior.fit(reviews, rows, rng)
        return ForecastModel(own, tuple(walked.path[-1].tolist()), learned)
