"""Any other algorithm, recalibrated from answer to answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Literal

import numba
import numpy as np
from scipy.special import expit, logit

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
    MemoryModel,
    Part,
    Reviews,
    When,
    latest,
    when_of,
)

# Tried where the half-life is chosen by evidence, and kept where there is none.
_HALF_LIVES, _USUAL = (50.0, 200.0, 1000.0), 1000.0
# Bias, slope, the three entries of what past answers say of them, and the log loss they saved:
# for reviews on a later day than the one before of their card, and for others.
_UNTOUCHED = ((0.0, 1.0, 0.0, 0.0, 0.0, 0.0),) * 2
# A slope below 0 would have recall rise with elapsed time.
_LOWEST_SLOPE = 0.05


# Each step needs the one before and none is linear, so no numpy function can take its place.
@numba.njit()
def _followed(
    state: FloatArray,
    kind: IntArray,
    given: FloatArray,
    recalled: FloatArray,
    answered: BoolArray,
    moment: IntArray,
    kept: float,
    prior: float,
) -> tuple[FloatArray, FloatArray]:
    shown = np.empty((len(given), 3))
    now, state = state.copy(), state.copy()
    for review in range(len(given)):
        if review > 0 and moment[review] != moment[review - 1]:
            now[:] = state
        seen, own = now[kind[review]], state[kind[review]]
        shown[review] = seen[0], seen[1], seen[5]
        if not answered[review]:
            continue
        z = given[review]
        sign = 1.0 - 2.0 * recalled[review]
        moved = seen[0] + seen[1] * z
        own[5] += np.logaddexp(0.0, sign * z) - np.logaddexp(0.0, sign * moved)
        bias, slope = own[0], own[1]
        p = 1.0 / (1.0 + np.exp(-(bias + slope * z)))
        spread = p * (1.0 - p)
        aa = kept * own[2] + spread
        ab = kept * own[3] + spread * z
        bb = kept * own[4] + spread * z * z
        # Where the sum of the answers' losses was flat, its prior is what has not faded.
        by_bias = p - recalled[review] + (1.0 - kept) * prior * bias
        by_slope = (p - recalled[review]) * z + (1.0 - kept) * prior * (slope - 1.0)
        area = (aa + prior) * (bb + prior) - ab * ab
        own[0] -= ((bb + prior) * by_bias - ab * by_slope) / area
        own[1] -= ((aa + prior) * by_slope - ab * by_bias) / area
        own[1] = max(own[1], _LOWEST_SLOPE)
        own[2:5] = aa, ab, bb
    return shown, state


def _kind(reviews: Reviews, rows: IntArray | slice) -> IntArray:
    """0 for reviews on a later day than the one before of their card, 1 for others."""
    found: IntArray = (reviews.elapsed_days[rows] == 0).astype(np.int64)
    return found


@dataclass(frozen=True, slots=True)
class Recalibration:
    """How log-odds are moved, and how that follows answers."""

    half_life: float  # Answers after which an answer counts half
    prior: float  # Strength of the pull towards leaving log-odds alone
    # {"day", "review"}: Whether answers count from the day after, or from the next review
    every: Literal["day", "review"]
    trust: float  # Share of moved predictions in the mixture before any evidence
    # For later-day and same-day reviews each: bias and slope, the three entries of the information
    # that answers brought, and the log loss that moving predictions has saved
    state: tuple[tuple[float, ...], ...] = _UNTOUCHED

    def follow(
        self, p: FloatArray, reviews: Reviews, rows: IntArray, answered: BoolArray
    ) -> tuple[FloatArray, Recalibration]:
        """Go through `rows` in time order, learning from those marked in `answered`.

        Returns bias, slope and the log loss saved so far at each review, before its answer [n, 3],
        and where it stands in the end.
        """
        moment = reviews.day[rows] if self.every == "day" else np.arange(len(rows))
        kind = _kind(reviews, rows)
        outcome = reviews.recalled[rows].astype(np.float64)
        kept = 0.5 ** (1.0 / self.half_life)
        shown, state = _followed(
            np.array(self.state), kind, log_odds(p), outcome, answered, moment, kept, self.prior
        )
        return shown, replace(self, state=tuple(map(tuple, state.tolist())))

    def now(self, reviews: Reviews) -> FloatArray:
        """Bias, slope and the log loss saved, for each review."""
        return np.array(self.state)[_kind(reviews, slice(None))][:, [0, 1, 5]]

    def mixed(self, z: FloatArray, shown: FloatArray) -> FloatArray:
        """Mix moved predictions with those of log-odds z [..., n] as evidence says, [..., n]."""
        bias, slope, saved = shown.T
        with np.errstate(divide="ignore"):
            share = expit(logit(self.trust) + saved)
        mixture: FloatArray = share * expit(bias + slope * z) + (1 - share) * expit(z)
        return mixture


@dataclass(frozen=True, slots=True)
class BlendModel(Combination):
    """A fitted model and where its recalibration stands after the training reviews."""

    model: MemoryModel  # What is recalibrated
    recalibration: Recalibration
    until: int  # Last row that was trained on, -1 if none
    learned: Learned = field(default_factory=Learned)  # Record of the fit of the model

    @property
    def parameters(self) -> tuple[float, ...]:
        """Bias and slope of later-day reviews after training, and the parameters of the model."""
        return (*self.recalibration.state[0][:2], *self.model.parameters)

    def made_of(self) -> tuple[MemoryModel]:
        return (self.model,)

    def answer(self, asked: Asked) -> FloatArray:
        """Recalibrate what the model predicts by all answers since training before each row.

        Those are the answers of all reviews that came some time after the one before on their
        card, whether they are among the rows or not; those on the same day have a bias and slope
        of their own.
        """
        shown = self._shown(asked.reviews, asked.rows)
        # A row of the transpose is a column of curves.
        return uncertain(self.recalibration.mixed(log_odds(asked.by(self.model)).T, shown)).T

    def _shown(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Bias, slope and the log loss saved at each of `rows`."""
        begin = self.until + 1
        shown = self.recalibration.now(reviews)
        answered = reviews.elapsed[begin:] > 0
        # Of what comes after the last of `rows`, nothing is wanted.
        answered[max(int(rows.max(initial=-1)) + 1 - begin, 0) :] = False
        since = np.arange(begin, len(reviews))
        if answered.any():
            p = np.full(len(answered), 0.5)
            p[answered] = self.model.predict(reviews, since[answered])
            shown[begin:], _ = self.recalibration.follow(p, reviews, since, answered)
        return shown[rows]


@dataclass(frozen=True, slots=True)
class Blend(Wrapper):
    """Another algorithm whose log-odds of recall are recalibrated online by a bias and a slope.

    The logistic regression of Platt (1999), *Probabilistic Outputs for Support Vector
    Machines*, kept up to date by exponential forgetting, with one step of Newton's method after
    each answer: after each day or review, bias and slope nearly minimise the log loss of the
    answers so far, older ones fading, plus a pull towards leaving predictions alone. It begins
    with reviews on which the algorithm was not trained: the latest of the training reviews,
    predicted by a fit to the others. What is predicted is a mixture with the other algorithm, in
    the shares that the evidence so far gives them. Reads what the other algorithm reads, and
    outcomes; 2 parameters and the other's. No published row.

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
    trust : float
        Share of the recalibrated predictions before any evidence, above 0; 1: those alone.
    """

    base: Algorithm
    half_life: float | None = None
    prior: float = 20.0
    every: Literal["day", "review"] = "day"
    held_out: float = 0.25
    trust: float = 0.1

    def __post_init__(self) -> None:
        require_algorithm("blend", "base", self.base)
        if self.half_life is not None:
            require_above_zero("blend", "half_life", self.half_life)
        require_above_zero("blend", "prior", self.prior)
        require_choice("blend", "every", self.every, ("day", "review"))
        if not (isinstance(self.held_out, int | float) and 0 <= self.held_out < 1):
            raise ConfigError(f"blend: held_out={self.held_out} must be at least 0 and below 1")
        require_above_zero("blend", "trust", self.trust)
        if self.trust > 1:
            raise ConfigError(f"blend: trust={self.trust} must be at most 1")

    @property
    def when(self) -> When:
        """When the later of base and recalibration is known."""
        return latest(when_of(self.base), "day_before" if self.every == "day" else "at_review")

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> BlendModel:
        """Fit the other algorithm, and recalibrate a fit to the earlier of `rows` by the later."""
        rows = np.sort(rows)
        usual = _USUAL if self.half_life is None else float(self.half_life)
        recalibration = Recalibration(usual, float(self.prior), self.every, float(self.trust))
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
    shown, after = recalibration.follow(p, reviews, rows, np.ones(len(rows), bool))
    mixture = recalibration.mixed(log_odds(p), shown)
    return after, -float(np.log(np.where(recalled, mixture, 1 - mixture)).sum())


def _blended(model: MemoryModel, recalibration: Recalibration, rows: IntArray) -> BlendModel:
    record = learned_by(model)
    errors = (np.nan, np.nan, *record.standard_errors) if record.standard_errors else ()
    # the parameters of the model itself follow bias and slope
    _, *parts = as_part(model, Part("base", "base"))
    learned = replace(record, standard_errors=errors, parts=tuple(parts))
    return BlendModel(model, recalibration, int(rows.max(initial=-1)), learned)
