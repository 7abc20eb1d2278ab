"""Intervals of recall, and sentences that depend on intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.collection.shares import shares
from srs_eval.collection.words import Change
from srs_eval.nouns import BoolArray, IntArray, Predictions
from srs_eval.stats.estimate import Estimate


def predictions(recalled: BoolArray, card: IntArray, p: float = 0.9) -> Predictions:
    n = len(recalled)
    codes = np.zeros(n, np.int64)
    rows = np.arange(n)
    probabilities = np.full(n, p)
    return Predictions(("a",), codes, codes, rows, card, probabilities, recalled, day=rows // 20)


def share_of(recalled: BoolArray, card: IntArray) -> tuple[float, float]:
    whole = [("all", np.ones(len(recalled), np.bool_))]
    (found,) = shares(predictions(recalled, card), whole)
    return found.lo, found.hi


def test_intervals_cover_where_cards_differ() -> None:
    rng, covered, times = np.random.default_rng(0), 0, 300
    card = np.repeat(np.arange(60), 5)
    for _ in range(times):
        # Cards are easy or hard: reviews of a card are alike, and on average 0.8 are recalled.
        chance = rng.beta(2, 0.5, 60)
        lo, hi = share_of(rng.random(300) < chance[card], card)
        covered += lo <= 0.8 <= hi
    assert covered / times >= 0.975


def test_a_group_that_was_always_recalled_has_an_interval() -> None:
    card = np.arange(100) // 2
    lo, hi = share_of(np.ones(100, np.bool_), card)
    assert hi == 1.0
    assert 0.3 < lo < 0.9  # five days, as if there were five reviews
    lo, hi = share_of(np.ones(1, np.bool_), np.zeros(1, np.int64))
    assert lo < 0.2


def test_intervals_of_more_groups_are_wider() -> None:
    rng = np.random.default_rng(1)
    recalled, card = rng.random(400) < 0.9, np.arange(400) // 4
    found = predictions(recalled, card)
    alone = shares(found, [("first", card < 50)])[0]
    several = [("first", card < 50), ("second", card >= 50), ("none", card < 0)]
    first, second = shares(found, several)
    assert (first.observed, first.reviews) == (alone.observed, 200)
    assert first.lo < alone.lo < alone.hi < first.hi
    assert second.name == "second"


@pytest.mark.parametrize(
    ("mean", "se", "kind"),
    [
        (-0.02, 0.001, "better"),
        (0.02, 0.001, "worse"),
        (-0.002, 0.001, "noise"),
        (-0.05, 0.03, "open"),
        (0.0, 0.0, "same"),
        (-0.3, math.nan, "unknown"),
    ],
)
def test_words_depend_on_intervals(mean: float, se: float, kind: str) -> None:
    change = Change.of(Estimate(mean, se, 0.0, 100.0), 0.4)
    assert change.kind == kind
    assert ("bother" in change.verdict) == (kind == "noise")
    if kind in ("better", "worse"):
        assert f"{abs(mean) / 0.004:.1f} %" in change.size


def test_an_error_is_never_smaller_by_more_than_all_of_it() -> None:
    assert Change.of(Estimate(-0.36, 0.04, 0.0, 100.0), 0.4).lo == -1.0
