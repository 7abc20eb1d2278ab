"""Intervals of recall, and sentences that depend on intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.collection.ceiling import _explains
from srs_eval.collection.history import _needed
from srs_eval.collection.parameters import at_limits, limits_in_words
from srs_eval.collection.shares import Share, shares
from srs_eval.collection.study import MAY, OneLog, Study
from srs_eval.collection.truth import _judged
from srs_eval.collection.words import Change, between_or_not
from srs_eval.data.anki.presets import FsrsSettings, Preset
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
    # Wilson's for five days, as if there were five reviews
    assert lo == pytest.approx(5 / (5 + 2.5758293**2), rel=1e-6)
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
        (0.04, 0.1, "unknown"),  # -55 to +75 %
    ],
)
def test_words_depend_on_intervals(mean: float, se: float, kind: str) -> None:
    change = Change.of(Estimate(mean, se, 0.0, 100.0), 0.4)
    assert change.kind == kind
    assert ("bother" in change.verdict) == (kind == "noise")
    assert (change.size == "the same predictions") == (kind == "same")
    if kind in ("better", "worse"):
        assert f"{abs(mean) / 0.004:.1f} %" in change.size


def test_a_range_without_a_meaning_is_not_printed() -> None:
    for mean, word in ((0.5, "larger"), (-0.36, "smaller")):
        change = Change.of(Estimate(mean, 0.04, 0.0, 100.0), 0.4)
        near = 100 * (abs(mean) - 2.626 * 0.04) / 0.4
        assert change.size == f"{word} by {near:.1f} % or more"
    assert Change.of(Estimate(-0.36, 0.04, 0.0, 100.0), 0.4).lo == -1.0
    assert between_or_not(-0.859, 0.759) == between_or_not(-1.088, 0.521) != ""
    assert "%" not in between_or_not(-0.859, 0.759)
    assert "-28.3" not in _explains(-0.283, -1.088, 0.521)
    assert "worse" in _explains(-2.5, -4.0, -0.5)


def level(name: str, predicted: float, observed: float, half: float) -> Share:
    return Share(name, 500, predicted, observed, observed - half, observed + half)


@pytest.mark.parametrize("half", [0.02, 0.08])
def test_levels_that_are_off_are_named_however_little_is_known_of_the_average(half: float) -> None:
    off, fine = level("95 %", 0.947, 0.837, 0.05), level("80 %", 0.79, 0.789, 0.05)
    said = _judged(level("all", 0.85, 0.849, half), [fine, off], "it")
    assert "95 % (too high)" in said
    assert "80 %" not in said
    assert ("too few" in said) == (half > 0.05)
    assert "no sign that it is wrong" not in said


@pytest.mark.parametrize("kind", ["better", "noise", "unknown"])
def test_what_is_said_of_the_last_reviews_names_them_and_what_all_say(kind: str) -> None:
    mean, se = {"better": (-0.1, 0.01), "noise": (-0.001, 0.001), "unknown": (0.1, 0.5)}[kind]
    change = Change.of(Estimate(mean, se, 0.0, 100.0), 0.4)
    assert change.kind == kind
    said = _needed([(100, change), (200, change)], 611, "; on all 3,055 reviews better")
    assert "the last 611 reviews" in said
    assert "on all 3,055 reviews better" in said
    assert ("predicted better" in said) == (kind == "better")


def test_parameters_at_limits_are_counted_but_for_those_that_start_there() -> None:
    w = (3.2854, 15.4774, 39.38, 100.0, *DEFAULTS[4:9], 0.0, *DEFAULTS[10:20], 0.1)
    assert at_limits(DEFAULTS) == 0
    assert at_limits(w) == 3
    assert at_limits((0.0010004, *DEFAULTS[1:])) == 1  # as it is pasted
    lists = {None: ("all", ", ".join(map(str, w))), 7: ("seven", ", ".join(map(str, DEFAULTS)))}
    assert limits_in_words(lists).startswith("3 of 21")
    assert limits_in_words({None: lists[7]}) == ""
    one_low = ", ".join(map(str, (0.001, *DEFAULTS[1:])))
    several = limits_in_words({None: ("all", one_low), 7: lists[7]})
    assert several == "1 of 21 parameters of one list is at a limit"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (None, "default parameters"),
        (FsrsSettings(enabled=False, presets={}), "it is off"),
        (FsrsSettings(enabled=True, presets={1: Preset((1.0, *DEFAULTS[1:]), 0.9)}), MAY),
        (FsrsSettings(enabled=True, presets={1: Preset((), 0.9)}), "default parameters"),
    ],
)
def test_it_is_said_whose_parameters_are_judged(
    make_log: Any, settings: FsrsSettings | None, words: str
) -> None:
    log = make_log(seed=3)
    log = replace(log, preset=np.ones(len(log), np.int64))
    assert words in Study(OneLog("a", "a", log), settings).whose
