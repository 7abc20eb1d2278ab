"""Intervals of recall, and sentences that depend on intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.collection import in_short
from srs_eval.collection.ceiling import _explains
from srs_eval.collection.history import _needed
from srs_eval.collection.parameters import at_limits, limits_in_words
from srs_eval.collection.shares import Share, shares
from srs_eval.collection.study import OneLog, Study
from srs_eval.collection.truth import _judged
from srs_eval.collection.words import Change, between_or_not
from srs_eval.data.anki.presets import FsrsSettings, Preset
from srs_eval.nouns import BoolArray, IntArray, Predictions
from srs_eval.stats.estimate import Estimate

KINDS = {
    "better": (-0.02, 0.001),
    "worse": (0.02, 0.001),
    "noise": (-0.002, 0.001),
    "open": (-0.05, 0.03),
    "same": (0.0, 0.0),
    "unknown": (0.04, 0.1),  # -55 to +75 %
}


def predictions(recalled: BoolArray, card: IntArray, p: float = 0.9) -> Predictions:
    n = len(recalled)
    codes, rows = np.zeros(n, np.int64), np.arange(n)
    return Predictions(("a",), codes, codes, rows, card, np.full(n, p), recalled, day=rows // 20)


def share_of(recalled: BoolArray, card: IntArray) -> tuple[float, float]:
    (found,) = shares(predictions(recalled, card), [("all", np.ones(len(recalled), np.bool_))])
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


def test_intervals_of_groups_hold_together_and_where_all_was_recalled() -> None:
    lo, hi = share_of(np.ones(100, np.bool_), np.arange(100) // 2)
    # Wilson's for five days, as if there were five reviews
    assert (lo, hi) == (pytest.approx(5 / (5 + 2.5758293**2), rel=1e-6), 1.0)
    assert share_of(np.ones(1, np.bool_), np.zeros(1, np.int64))[0] < 0.2
    rng = np.random.default_rng(1)
    recalled, card = rng.random(400) < 0.9, np.arange(400) // 4
    found = predictions(recalled, card)
    alone = shares(found, [("first", card < 50)])[0]
    several = [("first", card < 50), ("second", card >= 50), ("none", card < 0)]
    first, second = shares(found, several)
    assert (first.observed, first.reviews) == (alone.observed, 200)
    assert first.lo < alone.lo < alone.hi < first.hi
    assert second.name == "second"


def change(kind: str) -> Change:
    mean, se = KINDS[kind]
    found = Change.of(Estimate(mean, se, 0.0, 100.0), 0.4)
    assert found.kind == kind
    return found


def sentences() -> Iterator[str]:
    """Yield what is said in each case."""
    for kind in KINDS:
        found = change(kind)
        yield f"{kind}: {found.size} | {found.of_error} | {found.verdict}"
        yield _needed([(100, found), (200, found)], 611, "; on all 3,055 reviews better")
    for mean, se in ((0.5, 0.04), (-0.36, 0.04), (-0.3, nan)):  # an end that is no number
        yield Change.of(Estimate(mean, se, 0.0, 100.0), 0.4).size
    for bounds in ((-0.859, 0.759), (-1.088, 0.521), (0.05, 0.1), (nan, 0.1)):
        yield between_or_not(*bounds)
    for mean, *ends in ((0.1, 0.05, 0.2), (0.0, -0.1, 0.1), (-0.2, -0.3, -0.1), (nan, nan, nan)):
        yield _explains(mean, *ends)
    yield _explains(-0.283, -1.088, 0.521)
    yield _explains(-2.5, -4.0, -0.5)
    fine, off = level("80 %", 0.79, 0.789, 0.05), level("95 %", 0.947, 0.837, 0.05)
    for half, levels, observed in product((0.02, 0.08), ([fine], [fine, off]), (0.849, 0.6, 0.98)):
        yield _judged(level("all", 0.85, observed, half), levels, "it")


def level(name: str, predicted: float, observed: float, half: float) -> Share:
    return Share(name, 500, predicted, observed, observed - half, observed + half)


def bottom_lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what is said in short for each difference, comparison with a constant, and limit."""
    now = SimpleNamespace(complete=(1,))
    study: Any = SimpleNamespace(
        settings=None, current={}, is_in_sample=False, fitted=now, now=now, has_fsrs=False
    )
    cases = product(KINDS, ((0.1, 0.2), (-0.1, 0.1), (-0.3, -0.2)), ("", "3 parameters are"))
    for kind, bounds, limits in cases:
        ways = {
            "difference": Estimate(*KINDS[kind], 0.0, 100.0),
            "log_loss": 0.4,
            "explained": (sum(bounds) / 2, *bounds),
            "fitted_lists": {},
            "limits_in_words": f"{limits} at a limit" if limits else "",
        }
        for name, value in ways.items():
            monkeypatch.setattr(in_short, name, lambda *_, value=value: value)
        section = in_short.in_short(study)
        assert section is not None
        assert ". " not in section.answer  # a terminal shows the first sentence
        yield section.answer


def whose(log: Any) -> Iterator[str]:
    own = Preset((1.0, *DEFAULTS[1:]), 0.9)
    for settings in (
        None,
        FsrsSettings(enabled=False, presets={}),
        FsrsSettings(enabled=True, presets={1: own}),
        FsrsSettings(enabled=True, presets={1: Preset((), 0.9)}),
    ):
        yield Study(OneLog("a", "a", log), settings).whose


def test_what_is_said_depends_on_intervals(
    make_log: Any, monkeypatch: pytest.MonkeyPatch, golden_text: Callable[[str, str], None]
) -> None:
    log = make_log(seed=3)
    log = replace(log, preset=np.ones(len(log), np.int64))
    lines = [*sentences(), "", *bottom_lines(monkeypatch), "", *whose(log)]
    golden_text("collection_sentences", "\n".join(lines))


def test_parameters_at_limits_are_counted_but_for_those_that_start_there() -> None:
    w = (3.2854, 15.4774, 39.38, 100.0, *DEFAULTS[4:9], 0.0, *DEFAULTS[10:20], 0.1)
    low = (0.0010004, *DEFAULTS[1:])  # as it is pasted
    assert [at_limits(each) for each in (DEFAULTS, w, low)] == [0, 3, 1]
    every, seven, one = (", ".join(map(str, each)) for each in (w, DEFAULTS, low))
    assert limits_in_words({None: ("all", every), 7: ("seven", seven)}).startswith("3 of 21")
    assert limits_in_words({None: ("seven", seven)}) == ""
    several = limits_in_words({None: ("all", one), 7: ("seven", seven)})
    assert several == "1 of 21 parameters of one list is at a limit"
