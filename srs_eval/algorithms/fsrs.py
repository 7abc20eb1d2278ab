"""What the versions of FSRS share.

FSRS describes a card by its stability (days after which recall is 90 %) and its difficulty
(1 to 10). Ye, Su & Cao (2022), *A Stochastic Shortest Path Algorithm for Optimizing Spaced
Repetition Scheduling*, KDD; Ye, *The Algorithm*, wiki of fsrs4anki, 2022 to 2026.
"""

from __future__ import annotations

from srs_eval.engine.equations import Maths, Value

LONGEST_STABILITY = 36500.0
LONGEST_FIRST_STABILITY = 100.0
EASIEST, HARDEST = 1.0, 10.0

HARD, GOOD, EASY = 2, 3, 4


def first_stability(m: Maths, w: Value, rating: Value) -> Value:
    """Stability after the first review: one parameter for each rating, `w[0]` to `w[3]`."""
    passed = m.where(rating == HARD, w[1], m.where(rating == GOOD, w[2], w[3]))
    return m.where(rating < HARD, w[0], passed)


def stability_after_pass(
    m: Maths, w: Value, stability: Value, difficulty: Value, rating: Value, p: Value
) -> Value:
    """Stability after a pass on a later day: the easier and the less likely, the more.

    Uses `w[8]` to `w[10]`, `w[15]` (Hard) and `w[16]` (Easy).
    """
    bonus = m.where(rating == HARD, w[15], m.where(rating == EASY, w[16], 1.0))
    surprise = m.exp((1 - p) * w[10]) - 1
    growth = m.exp(w[8]) * (11 - difficulty) * stability ** (-w[9]) * surprise * bonus
    return stability * (1 + growth)


def stability_after_failure(
    m: Maths, w: Value, stability: Value, difficulty: Value, p: Value
) -> Value:
    """Stability after a failure on a later day; uses `w[11]` to `w[14]`."""
    kept = (stability + 1) ** w[13] - 1
    return w[11] * difficulty ** (-w[12]) * kept * m.exp((1 - p) * w[14])
