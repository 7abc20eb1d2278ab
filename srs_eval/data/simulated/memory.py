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
_FIRST_STABILITY = np.array([0.35, 1.3, 2.6, 9.0])
_GROWTH, _RELAPSE = np.e, 8.0
# Factors of stability on the same day, by rating
_STEP_EFFECT = np.array([np.nan, 0.6, 1.3, 1.3, 1.3])


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
    shape: float  # Exponent of the stretched-exponential forgetting curve, at most 1
    # Chance to answer without remembering, and to fail although remembering
    guess: float
    slip: float
    # Log-odds of recall ten minutes after an answer, for a stability of three days
    step_level: float


def draw_memory(rng: np.random.Generator) -> Memory:
    """Draw how a person remembers."""
    level = np.exp(0.3 * rng.standard_normal())
    first = _FIRST_STABILITY * level * np.exp(0.3 * rng.standard_normal(4))
    return Memory(
        first_stability=np.sort(first),
        growth=_GROWTH * np.exp(0.3 * rng.standard_normal()),
        saturation=float(np.clip(rng.normal(0.19, 0.06), 0.05, 0.4)),
        spacing=float(np.clip(rng.normal(0.6, 0.15), 0.3, 2.0)),
        share=np.array([np.nan, 1.0, rng.uniform(0.4, 0.9), 1.0, rng.uniform(1.2, 2.2)]),
        relapse=_RELAPSE * level * np.exp(0.3 * rng.standard_normal()),
        relapse_power=float(np.clip(rng.normal(0.26, 0.06), 0.1, 0.5)),
        relapse_spacing=float(np.clip(rng.normal(1.4, 0.4), 0.3, 2.5)),
        shape=float(rng.uniform(0.8, 1.0)),
        guess=float(rng.uniform(0.001, 0.005)),
        slip=0.003 * np.exp(0.8 * rng.standard_normal()),
        step_level=rng.normal(2.7, 0.8),
    )


def remembered_odds(days: FloatArray, stability: FloatArray, shape: float) -> FloatArray:
    """Log-odds of the share remembered after some days, finite near 0 and 1.

    It falls as a stretched exponential, through 0.9 at the stability.
    """
    share = bounded(np.exp(_LOG_TARGET * (days / stability) ** shape), 1e-6, 1 - 1e-6)
    result: FloatArray = np.log(share / (1 - share))
    return result


def step_odds(memory: Memory, seconds: FloatArray, stability: FloatArray) -> FloatArray:
    """Log-odds of recall minutes after the last answer, where stability hardly matters."""
    result: FloatArray = (
        memory.step_level + 0.4 * np.log(stability / 3.0) - 0.3 * np.log(seconds / 600.0)
    )
    return result


def answer_probability(memory: Memory, odds: FloatArray) -> FloatArray:
    """Probability of a right answer, in (guess, 1 - slip): memory but for guesses and slips."""
    return memory.guess + (1 - memory.guess - memory.slip) * probability(odds)


def after_recall(
    memory: Memory,
    stability: FloatArray,
    growth: FloatArray,
    forgotten: FloatArray,
    rating: IntArray,
) -> FloatArray:
    """Stability after a recall on a later day, in days; `growth` as in `Cards`."""
    gain = growth * stability**-memory.saturation * np.expm1(memory.spacing * forgotten)
    result: FloatArray = stability * (1 + gain * memory.share[rating])
    return result


def after_forgetting(
    memory: Memory, stability: FloatArray, relapse: FloatArray, forgotten: FloatArray
) -> FloatArray:
    """Stability after forgetting on a later day, in days; `relapse` as in `Cards`."""
    left = relapse * ((stability + 1) ** memory.relapse_power - 1)
    left *= np.exp(memory.relapse_spacing * forgotten)
    return np.minimum(left, stability)


def after_step(stability: FloatArray, rating: IntArray) -> FloatArray:
    """Stability after a review on the same day, in days."""
    result: FloatArray = stability * _STEP_EFFECT[rating]
    return result


def possible(stability: FloatArray) -> FloatArray:
    """Keep stability between half an hour and a hundred years."""
    return bounded(stability, _LEAST_STABILITY, _MOST_STABILITY)


def probability(odds: FloatArray | float) -> FloatArray:
    """Probability of some log-odds."""
    result: FloatArray = 1 / (1 + np.exp(-odds))
    return result


def bounded(values: FloatArray, least: float, most: float) -> FloatArray:
    """Keep values between bounds; `numpy.clip` takes longer for few values."""
    return np.minimum(np.maximum(values, least), most)
