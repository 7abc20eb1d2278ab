"""Whether intervals were drawn at random: some add-ons choose the day instead."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, ndtr

from srs_eval.draws.trials import Assignments
from srs_eval.nouns import FloatArray, IntArray, Reviews

# Below it, draws are not taken for random.
LEAST_P = 0.001
_BINS = 10
_SEED = 2026


def doubts(reviews: Reviews, assigned: Assignments) -> str:
    """Return why the draws of a user are not random, "" if there is no sign of that."""
    if not len(assigned):
        return ""
    place = place_p_value(assigned, np.random.default_rng(_SEED))
    if place < LEAST_P:
        return f"draws are not uniform among the possible days (p = {place:.1g})"
    z = load_z(reviews.day[np.searchsorted(reviews.row, assigned.row)], assigned)
    if 2 * ndtr(-abs(z)) < LEAST_P:
        fewer = "few" if z < 0 else "many"
        return f"draws prefer days on which {fewer} cards are due already (z = {z:+.1f})"
    return ""


def place_p_value(assigned: Assignments, rng: np.random.Generator) -> float:
    """Test whether draws are spread over their lots as they should, by a chi-squared test."""
    below, exactly = assigned.lots.below(assigned.drawn)
    place = below + exactly * rng.random(len(assigned))
    counts = np.bincount(np.minimum(place * _BINS, _BINS - 1).astype(np.int64), minlength=_BINS)
    expected = len(assigned) / _BINS
    return float(chdtrc(_BINS - 1, ((counts - expected) ** 2).sum() / expected))


def load_z(day: IntArray, assigned: Assignments) -> float:
    """Return by how many standard errors the days drawn have more cards than the lots have.

    A day's cards are those that earlier draws have put there; `day` is that of each answer, [n],
    in time order. With random draws the difference has mean 0 and a known variance.
    """
    lots, n = assigned.lots, len(assigned)
    due = np.sort((day + assigned.drawn) * n + np.arange(n))
    possible = (day[lots.answer] + lots.days) * n
    before = np.searchsorted(due, possible + lots.answer) - np.searchsorted(due, possible)
    load: FloatArray = before.astype(np.float64)
    mean = lots.mean(load)
    variance = lots.mean(load * load) - mean * mean
    drawn = np.bincount(lots.answer, load * (lots.days == assigned.drawn[lots.answer]), n)
    total = float(variance.sum())
    return float((drawn - mean).sum() / np.sqrt(total)) if total > 0 else 0.0
