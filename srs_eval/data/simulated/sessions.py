"""Random effects of a session, and of a cohort on a day: drawn or hashed, then looked up.

Given these effects cards are independent, so they can be simulated one after another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from srs_eval.nouns import FloatArray, IntArray

_FIRST, _SECOND, _THIRD = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


Keys = np.uint64 | NDArray[np.uint64]


def session_walks(days: int, cells: int, length: float, rng: np.random.Generator) -> FloatArray:
    """Draw an autoregressive process of order 1 for each day, independent from day to day.

    [days, cells], standard normal, with correlation ``exp(-k / length)`` between cells k apart.
    """
    keep = np.exp(-1 / length)
    walks = rng.standard_normal((cells, days))
    walks[1:] *= np.sqrt(1 - keep**2)
    for cell in range(1, cells):
        walks[cell] += keep * walks[cell - 1]
    return np.ascontiguousarray(walks.T)


def hashed_uniform(key: Keys, one: IntArray, other: IntArray) -> FloatArray:
    """Return random numbers between 0 and 1 that depend on keys and on pairs of integers.

    Bits are mixed by a shorter form of SplitMix64: Steele, Lea & Flood (2014), Fast splittable
    pseudorandom number generators.

    >>> hashed_uniform(np.uint64(7), np.array([1, 2, 1]), np.array([5, 5, 5])).round(3).tolist()
    [0.797, 0.161, 0.797]
    """
    mixed = one.astype(np.uint64) * _SECOND + other.astype(np.uint64) * _FIRST + key
    mixed ^= mixed >> np.uint64(32)
    mixed *= _THIRD
    uniform: FloatArray = ((mixed >> np.uint64(11)) + 0.5) * 2.0**-53
    return uniform


def hashed_normal(key: Keys, one: IntArray, other: IntArray) -> FloatArray:
    """Return standard normal numbers that depend on the key and on pairs of integers."""
    normal: FloatArray = ndtri(hashed_uniform(key, one, other))
    return normal
