"""How Anki's schedulers draw intervals: the random part of each version, and the lots it gives.

Versions 1 and 2 draw with a generator that nobody can repeat, for each button anew. Version 3 draws
once for all buttons: a number from 0 to 1 that follows from the card and the count of its earlier
answers, so that it can be computed again from a log.

References
----------
``pylib/anki/sched.py`` and ``schedv2.py`` of ankitects/anki at 2.1.49; ``rslib/src/scheduler``
at 2.1.41 (``V3_OLD``) and from 2.1.50 on (``V3``), there ``states/fuzz.rs`` and
``answering/mod.rs``; ``seed_from_u64`` of the crate rand_core; Bernstein (2008), ChaCha, a variant
of Salsa20.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

# What was known when answers to cards in review were given, on their day or late, [n] each:
# `rating` 2 to 4, the `interval` in days for which the card was scheduled, days `late`, the `ease`
# before the answer, such as 2.5, and of the preset factors of all intervals (`modifier`), of
# `hard` and of `easy`, and the `maximum`.
Answers = np.recarray

HARD, GOOD, EASY = 2, 3, 4
HARD_OF_V1 = 1.2
ROUNDING = 1e-9


Words = NDArray[np.uint32]

MULTIPLIER, INCREMENT = np.uint64(6364136223846793005), np.uint64(11634580027462260723)
CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
# From this many days on, the range grows by this share of what is above, up to the next.
STARTS = np.array([[2.5], [7.0], [20.0]], np.float32)
ENDS = np.array([[7.0], [20.0], [np.inf]], np.float32)
SHARES = np.array([[0.15], [0.10], [0.05]], np.float32)


def fuzz_factor(card: IntArray, answers: IntArray) -> NDArray[np.float32]:
    """Return the draw of each answer, in [0, 1), from the card and the count of its answers before.

    >>> float(fuzz_factor(np.array([1500000000000]), np.array([4]))[0])
    0.8029357194900513
    """
    first, _ = chacha12(key_of(card.astype(np.uint64) + answers.astype(np.uint64)))
    return (first >> np.uint32(9)).astype(np.float32) * np.float32(2**-23)


def chacha12(key: list[Words]) -> tuple[Words, Words]:
    """Return the first two words of the stream of each key, which is given as eight words [n]."""
    zeros = [np.zeros(len(key[0]), np.uint32)] * 4
    begin = [np.full(len(key[0]), word, np.uint32) for word in CONSTANTS] + key + zeros
    x = list(begin)
    for a, b, c, d in 6 * (*COLUMNS, *DIAGONALS):
        for first, second in ((16, 12), (8, 7)):
            x[a] = x[a] + x[b]
            x[d] = rotated(x[d] ^ x[a], first)
            x[c] = x[c] + x[d]
            x[b] = rotated(x[b] ^ x[c], second)
    return x[0] + begin[0], x[1] + begin[1]


def rotated(words: Words, bits: int) -> Words:
    """Rotate words to the left."""
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def key_of(seed: NDArray[np.uint64]) -> list[Words]:
    """Fill a key of eight words by the generator PCG32."""
    key = []
    for _ in range(8):
        seed = seed * MULTIPLIER + INCREMENT
        mixed = (((seed >> np.uint64(18)) ^ seed) >> np.uint64(27)).astype(np.uint32)
        right = (seed >> np.uint64(59)).astype(np.uint32)
        left = (np.uint32(32) - right) & np.uint32(31)
        key.append((mixed >> right) | (mixed << left))
    return key


def fuzz_bounds(
    interval: FloatArray, minimum: IntArray | float, maximum: FloatArray | float
) -> tuple[IntArray, IntArray]:
    """Return the least and the most days that fuzz makes of an interval, both [n].

    >>> low, high = fuzz_bounds(np.array([2.4, 2.5, 7.0, 20.0, 100.0]), 1, 36500)
    >>> [*zip(low.tolist(), high.tolist())]
    [(2, 2), (2, 4), (5, 9), (17, 23), (93, 107)]
    """
    least, most = np.minimum(minimum, maximum), np.asarray(maximum, np.float32)
    bounded = np.clip(np.asarray(interval, np.float32), least, most).astype(np.float32)
    first, second, third = SHARES * np.maximum(np.minimum(bounded, ENDS) - STARTS, 0)
    delta = np.where(bounded < STARTS[0], np.float32(0), 1 + first + second + third)
    half = np.float32(0.5)  # rounded as in Rust
    low = np.clip(np.floor(bounded - delta + half), least, most)
    high = np.clip(np.floor(bounded + delta + half), least, most)
    high += (high == low) & (high > 2) & (high < most)
    return low.astype(np.int64), high.astype(np.int64)


class Rule(StrEnum):
    """Which version of the scheduler drew an interval."""

    V1 = "v1"
    V2 = "v2"
    V3_OLD = "v3 before 2.1.50"
    V3 = "v3"

    @property
    def is_seeded(self) -> bool:
        """Whether draws can be computed again."""
        return self in (Rule.V3, Rule.V3_OLD)


class Lots(NamedTuple):
    """Possible intervals of n answers, ordered by answer and days."""

    n: int
    answer: IntArray  # [m]
    days: IntArray  # [m]
    probability: FloatArray  # [m]: positive; sums to 1 for each answer

    @classmethod
    def of_weights(cls, n: int, answer: IntArray, days: IntArray, weight: FloatArray) -> Lots:
        """Add the weights of the same answer and days."""
        base = 1 + int(days.max(initial=0))
        pairs, place = np.unique(answer * base + days, return_inverse=True)
        total = np.bincount(place, weight)
        answer, days = np.divmod(pairs, base)
        return cls(n, answer, days, total / np.bincount(answer, total, n)[answer])

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean for each answer, [n], of values of the possible intervals, [m]."""
        return np.bincount(self.answer, self.probability * values, self.n)

    def take(self, rows: BoolArray) -> Lots:
        """Select answers."""
        own = rows[self.answer]
        number = np.cumsum(rows) - 1
        answer = number[self.answer[own]]
        return Lots(int(rows.sum()), answer, self.days[own], self.probability[own])


class Draw(NamedTuple):
    """The next draw u: whole days floor(start + width * u), bounded afterwards; [n] each."""

    start: FloatArray
    width: FloatArray
    least: IntArray
    most: FloatArray


class Pieces(NamedTuple):
    """Outcomes so far: part of the draw that leads there, its weight, and the days; [m] each."""

    answer: IntArray
    begin: FloatArray
    end: FloatArray
    weight: FloatArray
    days: IntArray


def possible(rule: Rule, before: Answers) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the possible intervals under a rule: number of the answer, days, probability.

    Computed from the parts of the unit interval that lead to each; nothing is drawn.
    """
    parts = []
    for rating in (HARD, GOOD, EASY):
        (rows,) = np.nonzero(before.rating == rating)
        zeros = np.zeros(len(rows))
        pieces = Pieces(rows, zeros, zeros + 1, zeros + 1, before.interval[rows])
        for button in [rating] if rule is Rule.V1 else range(HARD, rating + 1):
            if not rule.is_seeded:
                pieces = anew(pieces, before, button)
            pieces = split(pieces, next_draw(rule, before[pieces.answer], button, pieces.days))
        parts.append((pieces.answer, pieces.days, pieces.weight))
    answer, days, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return answer, days, weight


def drawn(rule: Rule, before: Answers, draw: FloatArray | float) -> IntArray:
    """Return the interval that a draw in [0, 1), the same for all buttons, gives each answer.

    In versions 1 and 2, where buttons have draws of their own, that is the shortest possible
    interval for 0, and the longest for nearly 1.
    """
    days, last = np.zeros(len(before), np.int64), before.interval
    draw = np.asarray(draw, np.float32)
    for button in (HARD, GOOD, EASY):
        start, width, least, most = next_draw(rule, before, button, last)
        last = np.clip(np.floor(start + width * draw), least, most).astype(np.int64)
        days = np.where(before.rating == button, last, days)
    return days


def anew(pieces: Pieces, before: Answers, button: int) -> Pieces:
    """Let the next button have a draw of its own, after whatever the button before has given.

    That matters only where it is not below the range of the next button.
    """
    low = next_draw(Rule.V2, before, button, before.interval).start[pieces.answer]
    days = np.maximum(pieces.days, low.astype(np.int64) - 1)
    lots = Lots.of_weights(len(before), pieces.answer, days, pieces.weight)
    zeros = np.zeros(len(lots.days))
    return Pieces(lots.answer, zeros, zeros + 1, lots.probability, lots.days)


def split(pieces: Pieces, draw: Draw) -> Pieces:
    """Split each piece by the days that its part of the draw gives."""
    first = np.floor(draw.start + draw.width * pieces.begin + ROUNDING)
    last = np.ceil(draw.start + draw.width * pieces.end - ROUNDING) - 1
    count = np.maximum(last - first + 1, 1).astype(np.int64)
    place = np.repeat(np.arange(len(count)), count)
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    value, start = first[place] + nth, draw.start[place]
    width = np.maximum(draw.width[place], ROUNDING)
    begin = np.where(nth == 0, pieces.begin[place], (value - start) / width)
    is_last = nth == count[place] - 1
    end = np.where(is_last, pieces.end[place], (value + 1 - start) / width)
    days = np.clip(value, draw.least[place], draw.most[place]).astype(np.int64)
    weight = pieces.weight[place] * (end - begin) / (pieces.end - pieces.begin)[place]
    return Pieces(pieces.answer[place], begin, end, weight, days)


def next_draw(rule: Rule, before: Answers, button: int, last: IntArray) -> Draw:
    """Return how a button draws, after the button before it has given `last`."""
    days, late, modifier, most = before.interval, before.late, before.modifier, before.maximum
    whole = rule in (Rule.V1, Rule.V2)
    scaled = {
        HARD: days * before.hard,
        GOOD: (days + (late // 2 if whole else late / 2)) * before.ease,
        EASY: (days + late) * before.ease * before.easy,
    }[button]
    least = last + 1
    if button == HARD:
        least = np.where(before.hard <= 1, 1, days + 1)
    elif button == GOOD:
        least = np.where(before.hard <= 1, days + 1, least)
    if rule is Rule.V3:  # in single precision
        interval = scaled.astype(np.float32) * modifier.astype(np.float32)
        low, high = fuzz_bounds(interval, least, most)
        return Draw(low.astype(np.float32), (1 + high - low).astype(np.float32), low, high)
    if rule is Rule.V1:
        interval, least = interval_of_v1(before, button), days + 1
    else:
        interval = np.floor((np.floor(scaled) if rule is Rule.V3_OLD else scaled) * modifier)
    start, end = range_of_python(interval, whole=whole)
    if rule is Rule.V3_OLD:
        return Draw(start + 0.5, end - start, np.minimum(least, most), most)
    return Draw(start, end - start, np.minimum(least, most), most)


def interval_of_v1(before: Answers, button: int) -> FloatArray:
    """Return the interval of version 1 before the draw: each button gives more than the last."""
    days, late, interval = before.interval, before.late, before.interval
    for scaled in (
        (days + late // 4) * HARD_OF_V1,
        (days + late // 2) * before.ease,
        (days + late) * before.ease * before.easy,
    )[: button - 1]:
        interval = np.floor(np.maximum(scaled * before.modifier, interval + 1))
    return interval


def range_of_python(interval: FloatArray, *, whole: bool) -> tuple[FloatArray, FloatArray]:
    """Return the range around an interval that was drawn from before 2.1.50, without its end."""
    delta = np.zeros(len(interval))
    for end, share, least in ((np.inf, 0.05, 4), (30, 0.15, 2), (7, 0.25, 1)):
        part = np.floor(interval * share) if whole else interval * share
        delta = np.where(interval < end, np.maximum(part, least), delta)
    low = np.where(interval < 2, 1, np.where(interval == 2, 2, interval - delta))
    high = np.where(interval < 2, 1, np.where(interval == 2, 3, interval + delta))
    return low, high + (1 if whole else interval > 2)
