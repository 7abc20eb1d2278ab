"""Schedulers whose intervals imply a forgetting curve: SM-2, its variants, and SBD."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import EASY, GOOD, HARD, ExponentialForgetting, guessed_space
from srs_eval.algorithms.options import Switch
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.data.reviews import IntArray, Reviews
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_LONGEST_INTERVAL = 36500.0
_LOWEST_EASE = 1.3

# Of SBD.
_SHORTEST, _LONGEST = math.log(0.001), math.log(36500.0)
_MOST_BRITTLE = 50.0
_LEAST_P = 1e-6
_LARGEST_EXPONENT = 30.0
# In days: what stands for no time at all.
_SHORTEST_ELAPSED = 1e-9


@dataclass(frozen=True, slots=True)
class Sm2Equations(ExponentialForgetting):
    """SM-2's interval as the time after which recall has fallen to 90 %.

    Ratings 1 to 4 are its grades 2 to 5. Elapsed time never enters the state.
    """

    state_names: ClassVar[tuple[str, ...]] = ("interval", "ease", "repetitions")
    parameters: ClassVar[ParameterSpace] = ParameterSpace((), (), ())

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return self.step(m, w, (0.0, 2.5, 0.0), 0.0, rating, 1.0)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        interval, ease, repetitions = state
        passed = rating > 1
        grown = m.where(repetitions == 0, 1.0, m.where(repetitions == 1, 6.0, interval * ease))
        interval = m.rint(m.where(passed, grown, 1.0) + 0.01)
        missing = 4.0 - rating
        return (
            m.clip(interval, 1.0, _LONGEST_INTERVAL),
            m.maximum(ease + 0.1 - missing * (0.08 + missing * 0.02), _LOWEST_EASE),
            m.where(passed, repetitions + 1.0, 0.0),
        )


@dataclass(frozen=True, slots=True)
class Sm2(Algorithm):
    """SM-2 as published, nothing learned.

    Woźniak (1990), *Optimization of learning*, chapter on algorithm SM-2,
    https://super-memory.com/english/ol/sm2.htm. Reads ratings and the elapsed time of the predicted
    review; no parameters. Published row, without same-day reviews: log loss 0.722, RMSE(bins)
    0.2031, AUC 0.6026.
    """

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        return RecurrentModel(Sm2Equations(), ())


@dataclass(frozen=True, slots=True)
class Sm2TrainableEquations(ExponentialForgetting):
    """SM-2 whose interval is not rounded, and whose constants are parameters.

    `w[0]` and `w[1]` are the first two intervals, `w[2]` is the first ease; ratings move the
    ease along a parabola of width `w[3]`, summit `w[4]` (as an SM-2 grade) and height `w[5]`.
    """

    state_names: ClassVar[tuple[str, ...]] = ("interval", "ease", "repetitions")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(1.0, 6.0, 2.5, 0.02, 7.0, 0.18),
        lower=(0.01, 0.01, _LOWEST_EASE, 0.0, 5.0, -math.inf),
        upper=(100.0, 100.0, 10.0, *(math.inf,) * 3),
        # None is published. A quarter of the width of the bounds where there are two; the
        # others are guesses, without which ratings that are hardly used could go anywhere.
        spread=(25.0, 25.0, 2.2, 0.1, 1.0, 0.2),
    )

    shortest_interval: float = 0.01  # In days; 0.01 with whole days

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """State after the card's first review: the first interval, whatever the rating."""
        return self._bounded(m, w[0]), self._ease(m, w, w[2], rating), 1.0

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a further review; a failure begins again with the first interval."""
        interval, ease, old_repetitions = state
        repetitions = m.where(rating > 1, old_repetitions + 1, 1.0)
        grown = m.where(repetitions == 2, w[1], interval * ease)
        interval = self._bounded(m, m.where(repetitions == 1, w[0], grown))
        return interval, self._ease(m, w, ease, rating), repetitions

    def _bounded(self, m: Maths, interval: Value) -> Value:
        return m.clip(interval, self.shortest_interval, _LONGEST_INTERVAL)

    def _ease(self, m: Maths, w: Value, ease: Value, rating: Value) -> Value:
        # SM-2's grades are those of Anki plus one.
        return m.clip(ease - w[3] * (rating + 1 - w[4]) ** 2 + w[5], _LOWEST_EASE, 10.0)


class Sm2Trainable(Fitted):
    """SM-2 with six of its constants fitted to one user (SM-2-trainable).

    After Woźniak (1990), *Optimization of learning*, chapter on algorithm SM-2, in the form that
    the public benchmark gave it. Reads ratings, not those of same-day reviews, and the elapsed time
    of the predicted review alone; 6 parameters. Published row of the trained model, without
    same-day reviews: log loss 0.581, RMSE(bins) 0.1699, AUC 0.5970.
    """

    name = "sm2_trainable"
    mathematics = Sm2TrainableEquations
    in_fractional_days = (0.0001,)
    # From the published intervals alone a fit can get stuck far above the best one, where
    # days have fractions: of 12 simulated users, 3.
    starts = 3

    def space(self, equations: Sm2TrainableEquations) -> ParameterSpace:
        """Return the bounds, with both fixed intervals as short as any interval may be."""
        space = equations.parameters
        return replace(space, lower=(*(equations.shortest_interval,) * 2, *space.lower[2:]))


@dataclass(frozen=True, slots=True)
class AnkiSm2Equations(ExponentialForgetting):
    """Anki's interval as the time after which recall has fallen to 90 %.

    Parameters, as the deck options call them: `w[0]` graduating interval, `w[1]` easy
    interval, `w[2]` starting ease, `w[3]` easy bonus, `w[4]` hard interval, `w[5]` new
    interval, `w[6]` interval modifier.
    """

    state_names: ClassVar[tuple[str, ...]] = ("interval", "ease")
    parameters: ClassVar[ParameterSpace] = guessed_space(
        defaults=(1.0, 4.0, 2.5, 1.3, 1.2, 0.0, 1.0),
        lower=(1.0, 1.0, 1.31, 1.0, 0.5, 0.0, 0.5),
        upper=(9999.0, 9999.0, 5.0, 5.0, 1.3, 1.0, 2.0),
    )

    # Whether Good and Easy are exchanged on later reviews. That is a fault of the public benchmark
    # of 2024 to mid-2025, which its published rows come from
    published_order: bool = False

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Interval and ease after the first review."""
        return _bounded(m, m.where(rating == EASY, w[1], w[0])), w[2]

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Interval and ease after a further review; the interval reads the old ease."""
        old_interval, ease = state
        hard = _larger(m, elapsed * w[4], old_interval * w[4] / 2)
        good = _larger(m, elapsed * ease, old_interval)
        early = self._by_rating(m, rating, hard, good, good * (w[3] + 1) / 2)
        late, hard = elapsed - old_interval, old_interval * w[4]
        good = (old_interval + late / 2) * ease
        easy = (old_interval + late) * ease * w[3]
        on_time = self._by_rating(m, rating, hard, good, easy)
        passed = w[6] * m.where(elapsed < old_interval, early, on_time)
        interval = _bounded(m, m.where(rating > 1, passed, old_interval * w[5]))
        moved = m.where(rating == GOOD, 0.0, m.where(rating == EASY, 0.15, -0.15))
        moved = m.where(rating > 1, moved, -0.2)
        return interval, m.clip(ease + moved, _LOWEST_EASE, 5.5)

    def _by_rating(self, m: Maths, rating: Value, hard: Value, good: Value, easy: Value) -> Value:
        if self.published_order:
            good, easy = easy, good
        return m.where(rating == HARD, hard, m.where(rating == EASY, easy, good))


def _bounded(m: Maths, interval: Value) -> Value:
    """Interval with a floor at one day that lets a hundredth of the rest through."""
    return m.minimum(_larger(m, interval, 0.99 + 0.01 * interval), _LONGEST_INTERVAL)


def _larger(m: Maths, left: Value, right: Value) -> Value:
    """Larger of two values; of equal ones each has half of the influence.

    Intervals often are equal to a bound. PyTorch divides the slope there, and published fits
    cannot be reproduced otherwise.
    """
    return m.where(left == right, (left + right) / 2, m.maximum(left, right))


@dataclass(kw_only=True, eq=False, repr=False)
class AnkiSm2(Fitted):
    """Anki's variant of SM-2, as it is or fitted to one user (Anki-SM-2).

    The Anki manual, *What spaced repetition algorithm does Anki use?*,
    https://faqs.ankiweb.net/what-spaced-repetition-algorithm.html. Reads elapsed time and ratings,
    not those of same-day reviews; 7 parameters. Published rows, without same-day reviews: log loss
    0.5129, RMSE(bins) 0.1397, AUC 0.6179 trained, and 0.616, 0.1724, 0.6133 with Anki's own
    parameters. Both were made with Good and Easy exchanged.

    Parameters
    ----------
    published_order : bool
        Whether Good and Easy are exchanged, as in the published rows.

    Other options: see `Fitted`.
    """

    name = "anki_sm2"

    published_order: Switch = False

    def equations(self, *, whole_days: bool) -> AnkiSm2Equations:
        return AnkiSm2Equations(self.published_order)


@dataclass(frozen=True, slots=True)
class SbdEquations:
    """A power law whose exponent grows with what a card was forgotten or found hard.

    Parameters: the logarithms of the stabilities after a first Again and a first Easy (the latter
    counts as the former where it is smaller), the exponent that compresses time, logarithm and
    slope of the forgetting exponent, logarithm of what a review adds at once, and logarithm of the
    brittleness of a new card.
    """

    state_names: ClassVar[tuple[str, ...]] = ("log_stability", "last_grade", "brittleness")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(-2.803101, 1.386926, 1.739235, -1.819954, 0.529839, -0.886052, -1.393709),
        lower=(_SHORTEST, _SHORTEST, 0.5, -math.inf, 0.0, -math.inf, -math.inf),
        upper=(_LONGEST, _LONGEST, 20.0, math.inf, math.inf, math.inf, math.inf),
        spread=(1.754, 1.2339, 0.5003, 0.546, 0.0989, 1.1685, 0.7778),
    )

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Logarithm of the stability, grade from 0 to 3, and brittleness."""
        return w[0] + (rating - 1) * _log_ratio(m, w), rating - 1, m.maximum((3 - rating) / 2, 0.0)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Power law of compressed time, below 1 even at once; never within 1e-6 of 0 or 1."""
        log_stability, last_grade, brittleness = state
        log_time = m.log(m.maximum(elapsed, _SHORTEST_ELAPSED)) / w[2]
        at_once = (2 * w[5] / w[2] - last_grade * _log_ratio(m, w) + log_stability) / 2
        log_age = at_once + _softplus(m, log_time - at_once)
        decay = _softplus(m, log_age - log_stability)
        p = _exp(m, -_exponent(m, w, brittleness) * decay)
        return m.clip(p, _LEAST_P, 1 - _LEAST_P)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a further review: a pass adds to the stability, a failure divides it.

        Again adds 1 to the brittleness, Hard 0.5.
        """
        log_stability, _, brittleness = state
        passed = log_stability - m.log(p) / _exponent(m, w, brittleness)
        failed = log_stability + w[4] * m.log(1 - p)
        stability = m.clip(m.where(rating > 1, passed, failed), _SHORTEST, _LONGEST)
        brittleness = m.minimum(brittleness + m.maximum((3 - rating) / 2, 0.0), _MOST_BRITTLE)
        return stability, rating - 1, brittleness


def _log_ratio(m: Maths, w: Value) -> Value:
    """Logarithm of the ratio of the stabilities after first ratings that follow each other."""
    return (m.maximum(w[0], w[1]) - w[0]) / 3


def _exponent(m: Maths, w: Value, brittleness: Value) -> Value:
    """Exponent of the power law."""
    return _exp(m, w[3] + w[4] * m.log(_exp(m, w[6]) + brittleness))


def _exp(m: Maths, value: Value) -> Value:
    return m.exp(m.clip(value, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


def _softplus(m: Maths, value: Value) -> Value:
    """Logarithm of 1 + e to the power of `value`, which never overflows."""
    return m.maximum(value, 0.0) + m.log(1 + m.exp(-m.maximum(value, -value)))


class Sbd(Fitted):
    """SBD, fitted to one user.

    Stability, brittleness and difficulty: andersschill (2026),
    https://doi.org/10.5281/zenodo.22727105, repository
    ``andersschill/memory-model-benchmark-for-spaced-repetition``. Reads elapsed time in fractional
    days and ratings, those of same-day reviews included; 7 parameters. Published row, without
    same-day reviews: log loss 0.3410, RMSE(bins) 0.06018, AUC 0.7152. Its own training is
    full-batch L-BFGS with ``steep`` recency and a prior of weight 2, whose minimum ``newton``
    finds.
    """

    name = "sbd"
    mathematics = SbdEquations
    same_day = True
    methods = ("newton", "default")
    own_recency = "steep"
    own_prior_weight = 2.0
