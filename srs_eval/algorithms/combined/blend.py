"""Any other algorithm, recalibrated from answer to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Literal

import numba
import numpy as np
from scipy.special import expit

from srs_eval.algorithms.combined.wrapping import (
    Asked,
    Combination,
    Wrapper,
    as_part,
    fitted,
    learned_by,
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
    Matrix,
    MemoryModel,
    Part,
    Reviews,
    Vector,
    When,
    latest,
    when_of,
)

# Tried where the half-life is chosen by evidence, and kept where there is none.
_HALF_LIVES, _USUAL = (50.0, 200.0, 1000.0), 1000.0
# Bias, slope, and the three entries of what past answers say of them.
_UNTOUCHED = (0.0, 1.0, 0.0, 0.0, 0.0)
# A slope below 0 would have recall rise with elapsed time.
_LOWEST_SLOPE = 0.05


def _follow(
    state: Vector,
    given: Vector,
    recalled: Vector,
    answered: BoolArray,
    moment: IntArray,
    kept: float,
    prior: float,
) -> tuple[Matrix, Vector]:
    shown = np.empty((len(given), 2))
    bias, slope, aa, ab, bb = state[0], state[1], state[2], state[3], state[4]
    shown_bias, shown_slope = bias, slope
    for review in range(len(given)):
        if review > 0 and moment[review] != moment[review - 1]:
            shown_bias, shown_slope = bias, slope
        shown[review, 0] = shown_bias
        shown[review, 1] = shown_slope
        if not answered[review]:
            continue
        z = given[review]
        p = 1.0 / (1.0 + np.exp(-(bias + slope * z)))
        spread = p * (1.0 - p)
        aa = kept * aa + spread
        ab = kept * ab + spread * z
        bb = kept * bb + spread * z * z
        # Where the sum of the answers' losses was flat, its prior is what has not faded.
        by_bias = p - recalled[review] + (1.0 - kept) * prior * bias
        by_slope = (p - recalled[review]) * z + (1.0 - kept) * prior * (slope - 1.0)
        area = (aa + prior) * (bb + prior) - ab * ab
        bias -= ((bb + prior) * by_bias - ab * by_slope) / area
        slope -= ((aa + prior) * by_slope - ab * by_bias) / area
        slope = max(slope, _LOWEST_SLOPE)
    return shown, np.array([bias, slope, aa, ab, bb])


# Each step needs the one before and none is linear, so no numpy function can take its place.
_Sequential = Callable[
    [Vector, Vector, Vector, BoolArray, IntArray, float, float], tuple[Matrix, Vector]
]
_followed: _Sequential = numba.njit()(_follow)


@dataclass(frozen=True, slots=True)
class Recalibration:
    """How log-odds are moved, and how that follows answers."""

    half_life: float  # Answers after which an answer counts half
    prior: float  # Strength of the pull towards leaving log-odds alone
    # {"day", "review"}: Whether answers count from the day after, or from the next review
    every: Literal["day", "review"]
    # Bias and slope, and the three entries of the information that answers brought
    state: tuple[float, ...] = _UNTOUCHED

    def follow(
        self, p: FloatArray, recalled: BoolArray, answered: BoolArray, day: IntArray
    ) -> tuple[Matrix, Recalibration]:
        """Go through reviews in time order, learning from those marked in `answered`.

        Returns bias and slope at each review, before its answer [n, 2], and where it stands in the
        end.
        """
        moment = day if self.every == "day" else np.arange(len(day))
        outcome = recalled.astype(np.float64)
        kept = 0.5 ** (1.0 / self.half_life)
        shown, state = _followed(
            np.array(self.state), log_odds(p), outcome, answered, moment, kept, self.prior
        )
        after = Recalibration(self.half_life, self.prior, self.every, tuple(state.tolist()))
        return shown, after


@dataclass(frozen=True, slots=True)
class BlendModel(Combination):
    """A fitted model and where its recalibration stands after the training reviews."""

    model: MemoryModel  # What is recalibrated
    recalibration: Recalibration
    until: int  # Last row that was trained on, -1 if none
    learned: Learned = field(default_factory=Learned)  # Record of the fit of the model

    @property
    def parameters(self) -> tuple[float, ...]:
        """Bias and slope after training, and the parameters of the model."""
        return (*self.recalibration.state[:2], *self.model.parameters)

    def made_of(self) -> tuple[MemoryModel]:
        return (self.model,)

    def answer(self, asked: Asked) -> Vector:
        """Recalibrate what the model predicts by all answers since training before each row.

        Those are the answers of all reviews that came some time after the one before on their
        card, whether they are among the rows or not.
        """
        bias, slope = self._moved(asked.reviews, asked.rows).T
        # A row of the transpose is a column of curves.
        return uncertain(expit(bias + slope * log_odds(asked.by(self.model)).T)).T

    def _moved(self, reviews: Reviews, rows: IntArray) -> Matrix:
        """Bias and slope at each of `rows`."""
        begin = self.until + 1
        moved = np.tile(self.recalibration.state[:2], (len(reviews), 1))
        answered = reviews.elapsed[begin:] > 0
        # Of what comes after the last of `rows`, nothing is wanted.
        answered[max(int(rows.max(initial=-1)) + 1 - begin, 0) :] = False
        since = begin + np.flatnonzero(answered)
        if len(since):
            p = np.full(len(answered), 0.5)
            p[since - begin] = self.model.predict(reviews, since)
            moved[begin:], _ = self.recalibration.follow(
                p, reviews.recalled[begin:], answered, reviews.day[begin:]
            )
        return moved[rows]


@dataclass(frozen=True, slots=True)
class Blend(Wrapper):
    """Another algorithm whose log-odds of recall are recalibrated online by a bias and a slope.

    The logistic regression of Platt (1999), *Probabilistic Outputs for Support Vector
    Machines*, kept up to date by exponential forgetting, with one step of Newton's method after
    each answer: after each day or review, bias and slope nearly minimise the log loss of the
    answers so far, older ones fading, plus a pull towards leaving predictions alone. It begins
    with reviews on which the algorithm was not trained: the latest of the training reviews,
    predicted by a fit to the others. Reads what the other algorithm reads, and outcomes; 2
    parameters and the other's. No published row.

    Parameters
    ----------
    base : Algorithm
        The other algorithm.
    half_life : float, optional
        Answers after which an answer counts half, above 0. By default 50, 200 or 1,000, whichever
        predicts the held-out training reviews best; 1,000 where there are none.
    prior : float
        Strength of the pull towards leaving predictions alone, above 0: 20 weighs as much as 80
        answers that could as well have gone the other way.
    every : {"day", "review"}
        Whether answers count from the day after, so that no prediction of a day depends on its
        answers (training rows of that day apart), or from the next review.
    held_out : float
        Share of the training reviews with which recalibration begins; 0: it begins with the test.
    """

    base: Algorithm
    half_life: float | None = None
    prior: float = 20.0
    every: Literal["day", "review"] = "day"
    held_out: float = 0.25

    def __post_init__(self) -> None:
        require_algorithm("blend", "base", self.base)
        if self.half_life is not None:
            require_above_zero("blend", "half_life", self.half_life)
        require_above_zero("blend", "prior", self.prior)
        require_choice("blend", "every", self.every, ("day", "review"))
        if not (isinstance(self.held_out, int | float) and 0 <= self.held_out < 1):
            raise ConfigError(f"blend: held_out={self.held_out} must be at least 0 and below 1")

    @property
    def when(self) -> When:
        """When the later of base and recalibration is known."""
        return latest(when_of(self.base), "day_before" if self.every == "day" else "at_review")

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> BlendModel:
        """Fit the other algorithm, and recalibrate a fit to the earlier of `rows` by the later."""
        rows = np.sort(rows)
        usual = _USUAL if self.half_life is None else float(self.half_life)
        recalibration = Recalibration(usual, float(self.prior), self.every)
        begin = len(rows) - int(len(rows) * self.held_out)
        if 0 < begin < len(rows):
            try:
                earlier = self.base.fit(reviews, rows[:begin], rng)
            except FitSkipped:
                pass  # too few of them: recalibration begins with the test
            else:
                tried = _HALF_LIVES if self.half_life is None else (usual,)
                starts = (replace(recalibration, half_life=half_life) for half_life in tried)
                followed = [_followed_on(start, earlier, reviews, rows[begin:]) for start in starts]
                recalibration, _ = min(followed, key=itemgetter(1))
        return _blended(self.base.fit(reviews, rows, rng), recalibration, rows)

    def refit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator, previous: BlendModel
    ) -> BlendModel:
        """Fit again; recalibration goes on by the reviews that came since the fit before."""
        rows = np.sort(rows)
        later = rows[rows > previous.until]
        recalibration = previous.recalibration
        if len(later):
            recalibration, _ = _followed_on(recalibration, previous.model, reviews, later)
        model = fitted(self.base, reviews, rows, rng, previous.model)
        return _blended(model, recalibration, rows)


def _followed_on(
    recalibration: Recalibration, model: MemoryModel, reviews: Reviews, rows: IntArray
) -> tuple[Recalibration, float]:
    """Return where recalibration stands after `rows`, and the sum of their losses on the way."""
    p, recalled = model.predict(reviews, rows), reviews.recalled[rows]
    everything = np.ones(len(rows), bool)
    shown, after = recalibration.follow(p, recalled, everything, reviews.day[rows])
    z = shown[:, 0] + shown[:, 1] * log_odds(p)
    return after, float(np.logaddexp(0.0, np.where(recalled, -z, z)).sum())


def _blended(model: MemoryModel, recalibration: Recalibration, rows: IntArray) -> BlendModel:
    record = learned_by(model)
    errors = (np.nan, np.nan, *record.standard_errors) if record.standard_errors else ()
    # the parameters of the model itself follow bias and slope
    _, *parts = as_part(model, Part("base", "base"))
    learned = replace(record, standard_errors=errors, parts=tuple(parts))
    return BlendModel(model, recalibration, int(rows.max(initial=-1)), learned)
