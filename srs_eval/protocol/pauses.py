"""The pause between an answer and the next question, which can tell whether that is recalled.

Logs have the seconds between two answers to the same card and the time that each answer took.
Together they give the time of each answer, up to an unknown pause before each new card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.cards import rows_by_card
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Reviews

# A longer pause ends a session.
SESSION_ENDS = 1800.0
_AT_ONCE = 2.0
_ENDS = (_AT_ONCE, 30.0, SESSION_ENDS)
_NAMES = ("under 2 s", "2 to 30 s", "30 s to 30 min", "longer")
# Standard errors between observed and expected lapses that make a warning.
_CLEARLY = 3.0


@dataclass(frozen=True, slots=True)
class PauseRow:
    """Repeated reviews whose question was shown after a pause of some length."""

    pause: str  # between the previous answer, to any card, and the question
    reviews: int
    failed: int  # how many of them were not recalled
    # Lapses expected from the share among all reviews of the same kind: on the same day as the
    # card's previous review or later, after the same rating
    expected: float


def answer_times(reviews: Reviews) -> FloatArray:
    """Reconstruct the time of each answer, in seconds, from this review and earlier ones.

    The times are float64 [n] and never decrease. The question of a new card is assumed to follow
    the previous answer at once. Where a later review shows that this is too early, the card is
    moved. Raise `ValueError` without `elapsed_seconds`.
    """
    if reviews.elapsed_seconds is None:
        raise ValueError("answer_times needs elapsed_seconds")
    columns = (reviews.card, reviews.elapsed_seconds, _seconds_of_answer(reviews))
    answered: dict[int, float] = {}
    now, times = 0.0, []
    for card, since, took in zip(*(column.tolist() for column in columns), strict=True):
        earliest = now + took
        now = earliest if since < 0 else max(answered[card] + since, earliest)
        answered[card] = now
        times.append(now)
    return np.array(times)


def until_previous_answer(reviews: Reviews) -> tuple[FloatArray, BoolArray]:
    """Return the seconds from the card's previous answer to the previous answer to any card.

    They are float64 [n], and meaningless at the first review of a card. Also return whether a
    session goes on, bool [n]: the previous answer was less than 30 minutes before the question.
    """
    times = answer_times(reviews)
    before = np.r_[-math.inf, times[:-1]]
    goes_on = times - _seconds_of_answer(reviews) - before < SESSION_ENDS
    return before - times[rows_by_card(reviews.card).previous()], goes_on


def pause_table(reviews: Reviews) -> tuple[PauseRow, ...]:
    """Count the repeated reviews and their lapses by the pause before the question.

    The pause after a new card is not known, so the reviews that follow one are left out. The table
    is empty for a log without seconds or without answer times.
    """
    if reviews.elapsed_seconds is None or reviews.duration_ms is None:
        return ()
    length, known = _pauses(reviews)
    kind = 5 * (reviews.elapsed_days == 0) + rows_by_card(reviews.card).last(reviews.rating)
    length, kind, failed = length[known], kind[known], ~reviews.recalled[known]
    share = np.bincount(kind, failed) / np.maximum(np.bincount(kind), 1)
    return tuple(
        PauseRow(
            name,
            int(np.count_nonzero(length == number)),
            int(np.count_nonzero(failed[length == number])),
            float(share[kind[length == number]].sum()),
        )
        for number, name in enumerate(_NAMES)
    )


def pause_warning(reviews: Reviews) -> str:
    """Return a warning if the pause within a session tells the outcome; "" otherwise.

    The test is that of Mantel and Haenszel, by previous rating, state and interval. Repetitions on
    the same day are left out: they are waited for, so that their pause is most of the interval,
    after which more is forgotten.
    """
    if reviews.elapsed_seconds is None or reviews.duration_ms is None:
        return ""
    length, known = _pauses(reviews)
    within = known & (length < len(_ENDS)) & (reviews.elapsed_days > 0)
    paused, failed = length[within] > 0, ~reviews.recalled[within]
    kind = np.unique(_kinds_by_interval(reviews)[within], return_inverse=True)[1]
    kinds = kind.max(initial=0) + 1
    n, n_paused = np.bincount(kind, minlength=kinds), np.bincount(kind, paused, minlength=kinds)
    n_failed = np.bincount(kind, failed, minlength=kinds)
    expected = (n_failed * n_paused / np.maximum(n, 1)).sum()
    chance = n_failed * (n - n_failed) * n_paused * (n - n_paused)
    variance = (chance / (np.maximum(n, 1) ** 2 * np.maximum(n - 1, 1))).sum()
    observed = np.count_nonzero(failed & paused)
    if (observed - expected) ** 2 <= _CLEARLY**2 * variance:
        return ""
    return (
        f"the pause before a question tells its outcome: of {np.count_nonzero(paused):,} reviews "
        f"on a later day, after a pause of 2 s to 30 min, {observed:,} failed, {expected:,.0f} "
        "expected from other reviews of the same kind; intervals in seconds contain the pause, and "
        "protocol.previous_answer=true leaves it out"
    )


def _kinds_by_interval(reviews: Reviews) -> IntArray:
    """Return one number for reviews of like interval (by half octaves), state and last rating."""
    assert reviews.elapsed_seconds is not None
    until_asked = np.maximum(reviews.elapsed_seconds - _seconds_of_answer(reviews), 1)
    kind: IntArray = np.floor(2 * np.log2(until_asked)).astype(np.int64)
    if reviews.state is not None:
        kind = 5 * kind + reviews.state
    return 5 * kind + rows_by_card(reviews.card).last(reviews.rating)


def _pauses(reviews: Reviews) -> tuple[IntArray, BoolArray]:
    """Return the length of the pause before each review, and whether it is a known one."""
    assert reviews.elapsed_seconds is not None
    times = answer_times(reviews)
    pause = np.diff(times, prepend=-math.inf) - _seconds_of_answer(reviews)
    new = reviews.elapsed_seconds < 0
    known = ~new & ~np.r_[False, new[:-1]]
    return np.searchsorted(_ENDS, pause, side="right"), known


def _seconds_of_answer(reviews: Reviews) -> FloatArray:
    if reviews.duration_ms is None:
        return np.zeros(len(reviews))
    return reviews.duration_ms / 1000
