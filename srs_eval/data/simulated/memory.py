"""How a simulated user really remembers: the truth no model is shown.

Stability grows and shrinks much as in FSRS-6, so that models of that family have something to
learn. The rest departs from it on purpose: `docs/synthetic.md` lists what and why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.nouns import FloatArray, IntArray

_LOG_TARGET = np.log(0.9)
_LEAST_STABILITY, _MOST_STABILITY = 0.02, 36500.0
_SHORTEST_DAYS = 1e-6


@dataclass(frozen=True, slots=True)
class Memory:
    """How one person remembers; the same for all of their cards."""

    # [4]: Days until recall falls to 0.9, after a first Again, Hard, Good, Easy
    first_stability: FloatArray
    # How much a recall lengthens stability, how that falls off as stability grows, and how it gains
    # from waiting
    growth: float
    saturation: float
    spacing: float
    share: FloatArray  # [5]: Share of the usual growth, by rating: Hard below 1, Easy above
    # Size of stability after forgetting, its power of the stability lost, and its gain from waiting
    relapse: float
    relapse_power: float
    relapse_spacing: float
    shape: float  # Exponent of the stretched-exponential forgetting curve, below 1
    # Chance to answer without remembering, and to fail although remembering
    guess: float
    slip: float
    # Log-odds of recall ten minutes after an answer, for a stability of three days
    step_level: float


def retrievability(days: FloatArray, stability: FloatArray, shape: float) -> FloatArray:
    """Remembered share after some days: a stretched exponential through 0.9 at stability."""
    result: FloatArray = np.exp(_LOG_TARGET * (days / stability) ** shape)
    return result


def log_odds(probability: FloatArray) -> FloatArray:
    """Log-odds of a probability, kept finite near 0 and 1."""
    inside = bounded(probability, 1e-6, 1 - 1e-6)
    result: FloatArray = np.log(inside / (1 - inside))
    return result


def step_odds(memory: Memory, seconds: FloatArray, stability: FloatArray) -> FloatArray:
    """Log-odds of recall minutes after the last answer, where stability hardly matters."""
    result: FloatArray = (
        memory.step_level + 0.4 * np.log(stability / 3.0) - 0.3 * np.log(seconds / 600.0)
    )
    return result


def answer_probability(memory: Memory, odds: FloatArray) -> FloatArray:
    """Probability of a right answer, in (guess, 1 - slip): memory but for guesses and slips."""
    result: FloatArray = memory.guess + (1 - memory.guess - memory.slip) / (1 + np.exp(-odds))
    return result


def after_recall(
    memory: Memory,
    stability: FloatArray,
    growth: FloatArray,
    remembered: FloatArray,
    rating: IntArray,
) -> FloatArray:
    """Stability after a recall on a later day, in days; `growth` as in `Cards`."""
    waited = np.expm1(memory.spacing * (1 - remembered))
    gain = growth * stability**-memory.saturation
    result: FloatArray = stability * (1 + gain * waited * memory.share[rating])
    return result


def after_forgetting(
    memory: Memory, stability: FloatArray, relapse: FloatArray, remembered: FloatArray
) -> FloatArray:
    """Stability after forgetting on a later day, in days; `relapse` as in `Cards`."""
    left = relapse * ((stability + 1) ** memory.relapse_power - 1)
    left *= np.exp(memory.relapse_spacing * (1 - remembered))
    return np.minimum(left, stability)


def possible(stability: FloatArray) -> FloatArray:
    """Keep stability between half an hour and a hundred years."""
    return bounded(stability, _LEAST_STABILITY, _MOST_STABILITY)


def bounded(values: FloatArray, least: float, most: float) -> FloatArray:
    """Keep values between bounds; `numpy.clip` takes longer for few values."""
    return np.minimum(np.maximum(values, least), most)
