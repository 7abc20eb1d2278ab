"""What is advised, decided from one's own reviews and other people, and the sentences of it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.collection import answer
from srs_eval.collection.advice import FITTED, SM2, Advice, Belief, People, decide, nearest
from srs_eval.collection.answer import Answer
from srs_eval.collection.intervals import Models, Next
from srs_eval.collection.lists import at_limits, minutes
from srs_eval.collection.words import Change


def percent(share, lo, hi):
    """Return a change by its interval, all in percent."""
    return Change.of(SimpleNamespace(mean=share, is_zero=False, interval=lambda _: (lo, hi)), 100)


@pytest.mark.parametrize(
    ("own", "reviews", "kind", "action"),
    [
        # too few reviews to tell: other people decide
        ((-5.5, -11.9, 20.6), 8000, "open", "paste"),
        ((10.3, -46.6, 237.3), 110, "unknown", "paste"),
        # the sum of both is as likely to be better as worse
        ((1.0, -10.0, 12.0), 150, "open", "open"),
        ((8.0, -12.0, 24.0), 600, "open", "keep"),
        # one's own reviews decide alone
        ((-10.4, -15.9, -4.8), 3000, "better", "paste"),
        ((-0.5, -1.2, 0.2), 3000, "noise", "keep"),
        ((9.6, -1.3, 27.5), 3000, "no_gain", "keep"),
        ((7.0, 2.0, 12.0), 30, "worse", "keep"),
        ((2.0, -3.0, 7.0), 3000, "no_gain", "keep"),
        ((0.3, -5.2, 6.8), 3000, "open", "open"),
    ],
)
def test_both_kinds_of_evidence_decide_together(own, reviews, kind, action):
    """By one's own change in percent, its interval, and the reviews learned from."""
    change = percent(*own)
    assert change.kind == kind
    assert decide(Belief.of(change, nearest(FITTED, reviews))) == action


def test_chances_are_those_with_which_errors_become_smaller():
    rng, people = np.random.default_rng(0), People(100, 10**9, 650_000_000, -0.06)
    true = rng.normal(people.mean, people.sd, 4000)
    assert np.mean(true < 0) == pytest.approx(0.65, abs=0.02)
    errors = rng.uniform(0.05, 0.4, 4000)
    seen = true + rng.normal(0, errors)
    owns = [Change("open", *each) for each in zip(seen, seen, seen, errors, strict=True)]
    chance = np.array([Belief.of(own, people).chance for own in owns])
    for low in (0.3, 0.5, 0.6, 0.7, 0.8):
        near = (chance >= low) & (chance < low + 0.1)
        assert np.mean(true[near] < 0) == pytest.approx(chance[near].mean(), abs=0.07)
    assert Belief.of(owns[0], None).mean == owns[0].share
    assert np.isnan(Belief.of(None, None).chance)
    assert Belief.of(None, None, 0.2).chance == 0.5
    fewer = replace(people, people=40, better=26)
    assert Belief.of(None, fewer).sd > fewer.sd


def test_reviews_that_cannot_be_judged_leave_the_answer_open():
    own, others = percent(-20.0, -40.0, -1.0), nearest(FITTED, 45)
    whole, part = (Belief.of(own, others, seen=seen) for seen in (1.0, 0.05))
    assert whole.is_clear
    assert not part.is_clear
    assert 0.5 < part.chance < whole.chance
    assert Belief.of(own, None, seen=0.05).chance == Belief.of(own, None).chance  # nothing known


AT_LIMIT = (*DEFAULTS[:3], 100.0, *DEFAULTS[4:])
BETTER, NOISE, WORSE = percent(-5, -6, -4), percent(-0.5, -1.2, 0.2), percent(5, 4, 6)


@pytest.mark.parametrize(
    ("constant", "parameters", "new", "longest", "maximum", "doubts"),
    [
        (BETTER, DEFAULTS, 300, 200, None, ""),
        (BETTER, DEFAULTS, 900, 200, 365, ""),
        (BETTER, DEFAULTS, 2900, 1000, None, ""),
        (BETTER, DEFAULTS, 9000, 1000, 1000, ""),
        (BETTER, AT_LIMIT, 300, 200, 365, "1 of 21 parameters"),
        (NOISE, DEFAULTS, 300, 200, 365, "not clearly better"),
        (NOISE, DEFAULTS, 100, 200, None, "not clearly better"),
        (WORSE, DEFAULTS, 300, 200, 365, "worse"),
    ],
)
def test_long_intervals_get_a_limit_which_the_first_line_names(
    monkeypatch, constant, parameters, new, longest, maximum, doubts
):
    """By the days after Good, the longest interval reviewed, and how well a constant predicts."""
    text = ", ".join(map(str, parameters))
    monkeypatch.setattr(answer, "fitted_lists", lambda _: {None: ("all", text)})
    shown = Next(-1, answer.SHOWN, 40.0, float(new), 50.0, 200.0, 36500.0)
    monkeypatch.setattr(answer, "intervals", lambda *_: [shown])
    study = SimpleNamespace(
        **{"longest": longest, "constant": constant, "presets": {}, "stored": {}, "scored": None}
    )
    made = Answer(
        study, Advice("paste", Belief.of(BETTER, None), None, 3666), Models(None, None, [])
    )
    assert made.maximum == maximum
    assert (str(maximum) in made.do()) == (maximum is not None)
    assert doubts in made.doubt()
    assert bool(doubts) == bool(made.doubt())


def test_lists_with_parameters_at_limits_or_stabilities_of_minutes_are_known():
    assert (at_limits(DEFAULTS), at_limits(AT_LIMIT)) == (0, 1)
    assert at_limits((0.0010004, *DEFAULTS[1:])) == 1  # as it is pasted
    assert minutes((0.0098, 0.0613, *DEFAULTS[2:])) == ["Again (14 minutes)"]
    assert not minutes(DEFAULTS)


def test_what_published_users_show_is_computed_again():
    path = Path(__file__).parents[2].parent / "shared/data/srs-benchmark-results"
    path /= "per_user_metrics.parquet"
    if not path.exists():
        pytest.skip("published results are not here")
    other_people = pytest.importorskip("other_people")
    for row, (reviews, losses) in zip(SM2, other_people.sm2(path), strict=True):
        before, after = losses.T
        assert (reviews, len(losses)) == (row.reviews, row.people)
        assert int((after < before).sum()) == row.better
        assert after.mean() / before.mean() - 1 == pytest.approx(row.mean, abs=0.0006)
