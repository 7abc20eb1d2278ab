"""Anki's fuzz: the random part of an interval, and the generator it is drawn with.

Since version 2.1.50 the draw is a number from 0 to 1 that follows from the card and the count of
its earlier answers, so that it can be computed again from a log.

References
----------
``rslib/src/scheduler/states/fuzz.rs`` and ``rslib/src/scheduler/answering/mod.rs`` of
ankitects/anki; ``seed_from_u64`` of the crate rand_core; Bernstein (2008), ChaCha, a variant of
Salsa20.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from srs_eval.nouns import FloatArray, IntArray

_Words = NDArray[np.uint32]

_MULTIPLIER, _INCREMENT = np.uint64(6364136223846793005), np.uint64(11634580027462260723)
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_KEY_WORDS, _OTHER_WORDS = 8, 4
_DOUBLE_ROUNDS = 6
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_UNUSED_BITS, _UNIT = np.uint32(9), np.float32(2**-23)
# From this many days on, the range grows by this share of what is above, up to the next.
_STARTS = np.array([[2.5], [7.0], [20.0]], np.float32)
_ENDS = np.array([[7.0], [20.0], [np.inf]], np.float32)
_SHARES = np.array([[0.15], [0.10], [0.05]], np.float32)


def fuzz_factor(card: IntArray, answers: IntArray) -> NDArray[np.float32]:
    """Return the draw of each answer, in [0, 1), from the card and the count of its answers before.

    >>> float(fuzz_factor(np.array([1500000000000]), np.array([4]))[0])
    0.8029357194900513
    """
    seed = card.astype(np.uint64) + answers.astype(np.uint64)
    first, _ = chacha12(_expanded(seed))
    return (first >> _UNUSED_BITS).astype(np.float32) * _UNIT


def chacha12(key: list[_Words]) -> tuple[_Words, _Words]:
    """Return the first two words of the stream of each key, which is given as eight words [n]."""
    zeros = [np.zeros(len(key[0]), np.uint32) for _ in range(_OTHER_WORDS)]
    begin = [np.full(len(key[0]), word, np.uint32) for word in _CONSTANTS] + key + zeros
    state = [words.copy() for words in begin]
    for _ in range(_DOUBLE_ROUNDS):
        for places in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *places)
    return state[0] + begin[0], state[1] + begin[1]


def _quarter_round(x: list[_Words], a: int, b: int, c: int, d: int) -> None:
    for first, second in ((16, 12), (8, 7)):
        x[a] = x[a] + x[b]
        x[d] = _rotated(x[d] ^ x[a], first)
        x[c] = x[c] + x[d]
        x[b] = _rotated(x[b] ^ x[c], second)


def _rotated(words: _Words, bits: int) -> _Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _expanded(seed: NDArray[np.uint64]) -> list[_Words]:
    """Fill a key of eight words by the generator PCG32."""
    key = []
    for _ in range(_KEY_WORDS):
        seed = seed * _MULTIPLIER + _INCREMENT
        mixed = (((seed >> np.uint64(18)) ^ seed) >> np.uint64(27)).astype(np.uint32)
        right = (seed >> np.uint64(59)).astype(np.uint32)
        left = (np.uint32(32) - right) & np.uint32(31)
        key.append((mixed >> right) | (mixed << left))
    return key


def fuzz_bounds(
    interval: FloatArray,
    minimum: IntArray | FloatArray | float,
    maximum: IntArray | FloatArray | float,
) -> tuple[IntArray, IntArray]:
    """Return the least and the most days that fuzz makes of an interval, both [n].

    >>> low, high = fuzz_bounds(np.array([2.4, 2.5, 7.0, 20.0, 100.0]), 1, 36500)
    >>> [*zip(low.tolist(), high.tolist())]
    [(2, 2), (2, 4), (5, 9), (17, 23), (93, 107)]
    """
    least, most = np.minimum(minimum, maximum), np.asarray(maximum, np.float32)
    bounded = _within(np.asarray(interval, np.float32), least, most).astype(np.float32)
    above = np.maximum(np.minimum(bounded, _ENDS) - _STARTS, 0)
    first, second, third = _SHARES * above
    delta = 1 + first + second + third
    delta[bounded < _STARTS[0]] = 0
    low = _within(_half_up(bounded - delta), least, most)
    high = _within(_half_up(bounded + delta), least, most)
    widened = (high == low) & (high > 2) & (high < most)
    return low.astype(np.int64), (high + widened).astype(np.int64)


def fuzzed(low: IntArray, high: IntArray, draw: FloatArray | float) -> IntArray:
    """Return the days between the bounds, [n], that draws in [0, 1) stand for.

    >>> fuzzed(np.array([5, 5, 5]), np.array([9, 9, 9]), np.array([0, 0.5, 0.99])).tolist()
    [5, 7, 9]
    """
    width = (1 + high - low).astype(np.float32)
    days = np.floor(low.astype(np.float32) + np.asarray(draw, np.float32) * width)
    return np.minimum(days, high).astype(np.int64)


def _within(values: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """Keep values between bounds; `numpy.clip` takes longer for few values."""
    return np.minimum(np.maximum(values, least), most)


def _half_up(values: FloatArray) -> FloatArray:
    """Round as Rust does, where values are not negative."""
    return np.floor(values + np.asarray(0.5, values.dtype))
