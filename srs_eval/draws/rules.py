"""How Anki's schedulers draw intervals: the rule of each version, and the lots that it gives.

Versions 1 and 2 draw with a generator that nobody can repeat; version 3 draws with
`srs_eval.data.anki.fuzz.fuzz_factor`, once for all buttons.

References
----------
``pylib/anki/sched.py`` and ``schedv2.py`` of ankitects/anki at 2.1.49; ``rslib/src/scheduler``
at 2.1.41 (``V3_OLD``) and from 2.1.50 on (``V3``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from srs_eval.data.anki.fuzz import fuzz_bounds, fuzzed
from srs_eval.draws.lots import Lots
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_HARD, _GOOD, _EASY = 2, 3, 4
_HARD_OF_V1 = 1.2
_ROUNDING = 1e-9


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


@dataclass(frozen=True, slots=True)
class Before:
    """What was known when answers to cards in review were given, on their day or late; [n] each."""

    rating: IntArray  # 2 Hard, 3 Good, 4 Easy
    interval: IntArray  # Days for which the card was scheduled
    late: IntArray  # Days after it was due
    ease: FloatArray  # Factor of the card before the answer, such as 2.5
    # Of the preset: factors of all intervals, of Hard and of Easy, and the longest interval
    modifier: FloatArray
    hard: FloatArray
    easy: FloatArray
    maximum: FloatArray

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.rating)

    def take(self, answers: IntArray | BoolArray) -> Before:
        """Select answers, by number or by mask."""
        return Before(*[getattr(self, field.name)[answers] for field in fields(self)])


class _Pieces(NamedTuple):
    """Outcomes so far: part of the draw that leads there, its weight, and the days; [m] each."""

    answer: IntArray
    begin: FloatArray
    end: FloatArray
    weight: FloatArray
    days: IntArray


class _Draw(NamedTuple):
    """The next draw: whole days floor(start + width * u), bounded afterwards."""

    start: FloatArray
    width: FloatArray
    least: IntArray | FloatArray
    most: IntArray | FloatArray


def lots_of(rule: Rule, before: Before) -> Lots:
    """Return the possible intervals of each answer under a rule, and their probabilities.

    Computed from the parts of the unit interval that lead to each; nothing is drawn.
    """
    found = []
    for rating in (_HARD, _GOOD, _EASY):
        (chosen,) = np.nonzero(before.rating == rating)
        if len(chosen):
            pieces = _chain(rule, before.take(chosen), rating)
            found.append((chosen[pieces.answer], pieces.days, pieces.weight))
    answer, days, weight = (np.concatenate(column) for column in zip(*found, strict=True))
    return Lots.collected(answer, days, weight, len(before))


def drawn(rule: Rule, before: Before, draw: FloatArray | float) -> IntArray:
    """Return the interval that a draw in [0, 1), the same for all buttons, gives each answer.

    In versions 1 and 2, where buttons have draws of their own, that is the shortest possible
    interval for 0, and the longest for nearly 1.

    >>> one, day = np.ones(1), np.array([10])
    >>> preset = one, 1.2 * one, 1.3 * one, 36500 * one
    >>> before = Before(np.array([3]), day, 0 * day, 2.5 * one, *preset)
    >>> drawn(Rule.V3, before, np.array([0.0])), drawn(Rule.V3, before, np.array([0.99]))
    (array([22]), array([28]))
    """
    days, last = np.zeros(len(before), np.int64), before.interval
    draw = np.asarray(draw, np.float32)
    for button in (_HARD, _GOOD, _EASY):
        if rule is Rule.V3:
            interval, least, most = _of_v3(before, button, last)
            last = fuzzed(*fuzz_bounds(interval, least, most), draw)
        else:
            step = _step(rule, before, button, last)
            exact = np.floor(step.start + step.width * draw)
            last = np.clip(exact, step.least, step.most).astype(np.int64)
        days = np.where(before.rating == button, last, days)
    return days


def _chain(rule: Rule, before: Before, rating: int) -> _Pieces:
    """Follow the draws of the buttons up to the one that was pressed."""
    n = len(before)
    zeros, ones = np.zeros(n), np.ones(n)
    pieces = _Pieces(np.arange(n), zeros, ones, ones, before.interval)
    for button in [rating] if rule is Rule.V1 else range(_HARD, rating + 1):
        if not rule.is_seeded:
            pieces = _anew(pieces, before, button)
        own = before.take(pieces.answer)
        pieces = _split(pieces, _step(rule, own, button, pieces.days))
    return pieces


def _anew(pieces: _Pieces, before: Before, button: int) -> _Pieces:
    """Let the next button have a draw of its own, after whatever the button before has given.

    That matters only where it is not below the range of the next button.
    """
    low = _step(Rule.V2, before, button, before.interval).start[pieces.answer]
    days = np.maximum(pieces.days, low.astype(np.int64) - 1)
    merged = Lots.collected(pieces.answer, days, pieces.weight, len(before))
    zeros = np.zeros(len(merged.days))
    return _Pieces(merged.answer, zeros, zeros + 1, merged.probability, merged.days)


def _split(pieces: _Pieces, draw: _Draw) -> _Pieces:
    """Split each piece by the days that its part of the draw gives."""
    first = np.floor(draw.start + draw.width * pieces.begin + _ROUNDING)
    last = np.ceil(draw.start + draw.width * pieces.end - _ROUNDING) - 1
    count = np.maximum(last - first + 1, 1).astype(np.int64)
    place = np.repeat(np.arange(len(count)), count)
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    value, start = first[place] + nth, draw.start[place]
    width = np.maximum(draw.width[place], _ROUNDING)
    begin = np.where(nth == 0, pieces.begin[place], (value - start) / width)
    is_last = nth == count[place] - 1
    end = np.where(is_last, pieces.end[place], (value + 1 - start) / width)
    length = (pieces.end - pieces.begin)[place]
    days = np.clip(value, draw.least[place], draw.most[place]).astype(np.int64)
    weight = pieces.weight[place] * (end - begin) / length
    return _Pieces(pieces.answer[place], begin, end, weight, days)


def _step(rule: Rule, before: Before, button: int, last: IntArray) -> _Draw:
    """Return how a button draws, after the button before it has given `last`."""
    if rule is Rule.V3:
        interval, least, most = _of_v3(before, button, last)
        low, high = fuzz_bounds(interval, least, most)
        return _Draw(low.astype(float), (1.0 + high - low), low, high)
    if rule is Rule.V3_OLD:
        interval = np.floor(np.floor(_scaled(before, button)) * before.modifier)
        delta = _range_of_python(interval, whole=False)
        start = np.where(interval < 2, 1.0, np.where(interval == 2, 2, interval - delta))
        end = np.where(interval < 2, 1.0, np.where(interval == 2, 3, interval + delta + 1))
        least = _least(before, button, last)
        return _Draw(start + 0.5, end - start, np.minimum(least, before.maximum), before.maximum)
    if rule is Rule.V1:
        return _step_in_python(before, _ideal_of_v1(before, button), before.interval + 1)
    interval = np.floor(_scaled(before, button, whole_late=True) * before.modifier)
    return _step_in_python(before, interval, _least(before, button, last))


def _step_in_python(before: Before, interval: FloatArray, least: IntArray) -> _Draw:
    """Return how versions 1 and 2 draw around an interval."""
    delta = _range_of_python(interval, whole=True)
    low = np.where(interval < 2, 1.0, np.where(interval == 2, 2, interval - delta))
    high = np.where(interval < 2, 1.0, np.where(interval == 2, 3, interval + delta))
    width: FloatArray = 1.0 + high - low
    return _Draw(low, width, np.minimum(least, before.maximum), before.maximum)


def _of_v3(before: Before, button: int, last: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return the interval before the draw, and its bounds, in the precision of version 3."""
    interval = _scaled(before, button).astype(np.float32) * before.modifier.astype(np.float32)
    return interval, _least(before, button, last), before.maximum


def _least(before: Before, button: int, last: IntArray) -> IntArray:
    """Return the shortest interval that a button may give."""
    at_least = last + 1
    if button == _HARD:
        return np.where(before.hard <= 1, 1, before.interval + 1)
    if button == _GOOD:
        return np.where(before.hard <= 1, before.interval + 1, at_least)
    return at_least


def _scaled(before: Before, button: int, *, whole_late: bool = False) -> FloatArray:
    """Return the interval before the modifier, in days."""
    if button == _HARD:
        return before.interval * before.hard
    if button == _GOOD:
        late = before.late // 2 if whole_late else before.late / 2
        return (before.interval + late) * before.ease
    return (before.interval + before.late) * before.ease * before.easy


def _ideal_of_v1(before: Before, button: int) -> FloatArray:
    days, late, factor = before.interval, before.late, before.modifier
    ideal = np.maximum((days + late // 4) * _HARD_OF_V1 * factor, days + 1)
    ideal = np.floor(ideal)
    if button >= _GOOD:
        ideal = np.maximum((days + late // 2) * before.ease * factor, ideal + 1)
        ideal = np.floor(ideal)
    if button == _EASY:
        ideal = np.maximum((days + late) * before.ease * before.easy * factor, ideal + 1)
        ideal = np.floor(ideal)
    return ideal


def _range_of_python(interval: FloatArray, *, whole: bool) -> FloatArray:
    """Return the days around an interval that versions 1 and 2 draw from, on either side."""
    shares = [(7, 0.25, 1), (30, 0.15, 2), (np.inf, 0.05, 4)]
    delta = np.zeros(len(interval))
    for end, share, least in reversed(shares):
        part = interval * share
        delta = np.where(
            interval < end, np.maximum(np.floor(part) if whole else part, least), delta
        )
    return delta
