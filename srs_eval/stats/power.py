"""Power of the paired comparison of two models over users: how many users settle a difference.

By Student's test in closed form, and by simulating what is decided from the product's intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, nctdtr, stdtrit

from srs_eval.nouns import FloatArray
from srs_eval.stats.estimate import hall
from srs_eval.stats.significance import ALPHA, LEVEL

_MOST = 10**9
_FAR = 1e6
# Simulated studies, and numbers in memory together. Below _FEW normal users, or _MANY of a pilot,
# users are drawn, and above moments of their scores.
_STUDIES, _TOGETHER, _FEW, _MANY = 4_000, 2_000_000, 300, 3_000
# The upper end of a standard deviation is passed by the true one in a tenth of pilots.
_UPPER = 0.9


def power_of(difference: float, sd: float, users: int, *, alpha: float = ALPHA) -> float:
    """Return the chance that a paired test finds a true difference, in its right direction.

    `difference` is the true mean difference between two models' scores of a user, `sd` its standard
    deviation among users, above 0, and `alpha` the level of the two-sided test. The chance is 0
    with fewer than two users.

    >>> round(power_of(0.001, 0.01, 1172), 2)
    0.8
    """
    if users < 2:
        return 0.0
    t = -float(stdtrit(users - 1, alpha / 2))
    shift = abs(difference) / sd * math.sqrt(users)
    # SciPy has no distribution that is shifted as far as that.
    return 1 - float(nctdtr(users - 1, shift, t)) if shift < _FAR else 1.0


def users_needed(difference: float, sd: float, *, power: float = 0.8) -> int | None:
    """Return the fewest users with the wanted power; None if a billion do not suffice.

    >>> users_needed(0.001, 0.01)
    1172
    """
    return _fewest(lambda users: power_of(difference, sd, users) >= power)


@dataclass(frozen=True)
class Study:
    """A comparison of two models that is decided by the interval of their mean difference.

    The decision is that of `compare` and of pre-registrations: the interval, the wider of Student's
    and Hall's on each side, lies in a region.
    """

    # The region, less the true mean: a region from -0.1 to 0.3 holds the true mean
    least: float
    most: float
    sd: float  # Standard deviation of the differences among users, above 0
    # [n_users]: Differences whose distribution, but for mean and standard deviation, users are
    # drawn from; they are normal without
    pilot: FloatArray | None = None
    level: float = LEVEL  # Of the interval

    def power(self, users: int) -> float:
        """Return the share of studies with so many users that find the mean in the region.

        Simulated, always with the same random numbers: the standard error is below 0.008.

        >>> Study(-0.001, math.inf, 0.01).power(1200) > 0.78
        True
        """
        if users < 2:
            return 0.0
        kept = [
            (self.least / self.sd <= low) & (high <= self.most / self.sd)
            for low, high in map(self._interval, self._studies(users))
        ]
        return float(np.concatenate(kept).mean())

    def users_for(self, power: float) -> int | None:
        """Return the fewest users with the wanted power, to 1 %; None if a billion do not suffice.

        None too where no number of users suffices: where the true mean is not within the region.
        """
        if self.least >= 0 or self.most <= 0:
            return None
        return _fewest(lambda users: self.power(users) >= power, close=0.01)

    def _studies(self, users: int) -> Iterator[tuple[int, FloatArray, FloatArray, FloatArray]]:
        """Yield mean, deviation and skewness of simulated studies, in units of the deviation."""
        rng = np.random.default_rng(users if self.pilot is not None else 0)
        if self.pilot is None:
            yield users, *(_few_normal(users, rng) if users < _FEW else _many_normal(users, rng))
            return
        values = (self.pilot - self.pilot.mean()) / self.pilot.std()
        if users >= _MANY:
            yield users, *_many(users, values, rng)
            return
        powers = values, values**2, values**3
        of_each = np.full(len(values), 1 / len(values))
        size = max(_TOGETHER // min(users, len(values)), 1)
        for begin in range(0, _STUDIES, size):
            studies = min(size, _STUDIES - begin)
            if users < len(values):
                row = rng.integers(0, len(values), (studies, users))
                yield users, *_moments(*(each[row].mean(axis=1) for each in powers))
            else:
                counts = rng.multinomial(users, of_each, studies)
                yield users, *_moments(*(counts @ each / users for each in powers))

    def _interval(
        self, study: tuple[int, FloatArray, FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Compute what `Estimate.interval` does, for many studies."""
        users, mean, sd, skewness = study
        t = -float(stdtrit(users - 1, (1 - self.level) / 2))
        se, a = sd / math.sqrt(users - 1), skewness / math.sqrt(users)
        return mean - np.maximum(t, hall(t, a)) * se, mean + np.maximum(t, -hall(-t, a)) * se


def upper_deviation(pilot: FloatArray) -> float:
    """Return the upper end of the standard deviation among users, by a pilot.

    The one-sided 90 % bound of its logarithm, whose error grows with the kurtosis: of few users, or
    of differences that a few users dominate, the standard deviation is hardly known. See Browne
    (1995), On the use of a pilot sample for sample size determination, Statistics in Medicine 14,
    1933-1940.
    """
    n, centred = len(pilot), pilot - pilot.mean()
    variance = float((centred**2).mean())
    kurtosis = max(float((centred**4).mean()) / variance**2, 3.0) if variance else 3.0
    t = float(stdtrit(n - 1, _UPPER))
    return float(pilot.std(ddof=1)) * math.exp(t * math.sqrt((kurtosis - 1) / n) / 2)


def _few_normal(users: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    drawn = rng.standard_normal((users, _STUDIES))  # of more users, the first ones are the same
    squares = drawn * drawn
    return _moments(drawn.mean(axis=0), squares.mean(axis=0), (squares * drawn).mean(axis=0))


def _many_normal(users: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw the moments, which are independent; that of skewness is nearly normal."""
    mean = rng.standard_normal(_STUDIES) / math.sqrt(users)
    sd: FloatArray = np.sqrt(chdtri(users - 1, rng.random(_STUDIES)) / users)
    return mean, sd, rng.standard_normal(_STUDIES) * math.sqrt(6 / users)


def _many(
    users: int, values: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw mean and variance of many users, which are normal and correlated by the skewness."""
    third, fourth = float((values**3).mean()), float((values**4).mean())
    first, other = rng.standard_normal((2, _STUDIES)) / math.sqrt(users)
    variance = 1 + third * first + math.sqrt(max(fourth - 1 - third**2, 0)) * other
    return first, np.sqrt(np.maximum(variance, 0)), np.full(_STUDIES, third)


def _moments(
    first: FloatArray, second: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard deviation (by n) and skewness from the moments around 0."""
    variance = np.maximum(second - first**2, 0)
    sd = np.sqrt(variance)
    central = third - 3 * first * second + 2 * first**3
    return first, sd, np.divide(central, sd**3, out=np.zeros_like(sd), where=sd > 1e-6)


def _fewest(is_enough: Callable[[int], bool], close: float = 0.0) -> int | None:
    """Return the fewest users that are enough, or up to a share `close` more."""
    few, many = 1, 2
    while not is_enough(many):
        if many == _MOST:
            return None
        few, many = many, min(2 * many, _MOST)
    while many - few > max(1, close * few):
        middle = (few + many) // 2
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return many
