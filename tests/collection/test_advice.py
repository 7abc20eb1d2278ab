"""What is advised, decided from one's own reviews and other people, and the sentences of it."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.collection import advice, answer
from srs_eval.collection.advice import FITTED, SM2, Advice, Belief, People, decide, nearest
from srs_eval.collection.answer import Answer
from srs_eval.collection.intervals import Load, Models, Next, usual_maximum
from srs_eval.collection.lists import at_limits, minutes
from srs_eval.collection.study import MAY
from srs_eval.collection.words import Change
from srs_eval.metrics.means import Estimate

# Mean and standard error of a difference to a log loss of 0.4.
KINDS = {
    "better": (-0.02, 0.001),
    "worse": (0.02, 0.001),
    "noise": (-0.002, 0.001),
    "no_gain": (0.04, 0.02),
    "open": (-0.05, 0.03),
    "same": (0.0, 0.0),
    "unknown": (0.04, 0.1),  # -55 to +75 %
}


def change_of(kind):
    """Return a change of a kind."""
    change = Change.of(Estimate(*KINDS[kind], 0.0, 100.0), 0.4)
    assert change.kind == kind
    return change


def percent(share, lo, hi):
    """Return a change by its interval, all in percent."""
    return Change.of(SimpleNamespace(mean=share, is_zero=False, interval=lambda _: (lo, hi)), 100)


@pytest.mark.parametrize(
    ("own", "reviews", "kind", "action"),
    [
        # collections of real people for whom there were too few reviews to tell
        ((-5.5, -11.9, 20.6), 8000, "open", "paste"),
        ((9.0, -100, 3191.6), 60, "unknown", "paste"),
        ((-30.3, -84.5, 128.6), 110, "unknown", "paste"),
        ((10.3, -46.6, 237.3), 110, "unknown", "paste"),
        ((-1.4, -5.4, 3.0), 3000, "open", "paste"),
        # the sum of both is as likely to be better as worse
        ((1.0, -10.0, 12.0), 150, "open", "open"),
        ((2.0, -10.0, 14.0), 150, "open", "keep"),
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


def test_tables_of_other_people_are_in_order_and_in_favour():
    for table in (FITTED, SM2):
        sizes = [row.reviews for row in table]
        assert sizes == sorted(set(sizes))
        assert all(row.mean < 0 and row.better > row.people / 2 for row in table)
    assert nearest(FITTED, 24) is None
    assert [nearest(FITTED, n).reviews for n in (25, 99, 100, 10**6)] == [25, 50, 100, 1000]


def test_reviews_that_cannot_be_judged_leave_the_answer_open():
    own, others = percent(-20.0, -40.0, -1.0), nearest(FITTED, 45)
    whole, part = (Belief.of(own, others, seen=seen) for seen in (1.0, 0.05))
    assert whole.is_clear
    assert not part.is_clear
    assert 0.5 < part.chance < whole.chance
    assert Belief.of(own, None, seen=0.05).chance == Belief.of(own, None).chance  # nothing known


LIST = (*DEFAULTS[:2], 4.25, *DEFAULTS[3:])
AT_LIMIT = (*DEFAULTS[:3], 100.0, *DEFAULTS[4:])
MODELS = Models(None, None, [])
NAMES = {1: "Verbs", 2: "Nouns", 3: "Kanji"}


def study_of(*, off=False, in_sample=False, presets=(), can_learn=3666, constant="better"):
    """Return what sentences ask of a study."""
    fitted = SimpleNamespace(reason="none", predictions=None)
    return SimpleNamespace(
        log=range(5000), longest=200, stored={1: LIST} if in_sample else {}, is_off=off,
        is_in_sample=in_sample, presets=dict.fromkeys(presets, 1500), title=NAMES.get,
        yours="the parameters that you have" if in_sample else "the default parameters",
        fitted=fitted, scored=None, can_learn=can_learn, constant=change_of(constant),
    )  # fmt: skip


def cases():
    """Yield the study and the advice of every kind of evidence."""
    beliefs = (None, Belief.of(change_of("unknown"), SM2[0]), Belief.of(change_of("worse"), None))
    for kind, fsrs in product(KINDS, beliefs):
        new = Belief.of(change_of(kind), FITTED[2])
        yield study_of(off=fsrs is not None), Advice(decide(new), new, fsrs, 3666)
    for kind in KINDS:
        new = Belief.of(change_of(kind), None, 0.1)
        yield study_of(in_sample=True), Advice(decide(new), new, None, 9)
        few = Belief.of(change_of(kind), FITTED[2], seen=0.02)
        yield study_of(), Advice(decide(few), few, None, 100)
        last = Belief.of(change_of(kind), FITTED[2])
        worse, better = (Belief.of(change_of(each), None) for each in ("worse", "better"))
        of = {1: ("keep", worse), 2: ("paste", better), 3: ("paste", last)}
        yield study_of(in_sample=True, presets=(1, 2, 3)), Advice("paste", better, None, 3666, of)
    early = Belief.of(None, None)
    for can_learn, own in product((3, 300), (False, True)):
        study = study_of(can_learn=can_learn, in_sample=own)
        yield study, Advice("early", early, None, can_learn)


@pytest.fixture
def drawn(monkeypatch):
    """Lists, intervals and reviews a day that are made up."""

    def make(parameters=DEFAULTS, new=100.0):
        numbers = ", ".join(map(str, parameters))
        monkeypatch.setattr(answer, "fitted_lists", lambda _: {None: ("all", numbers)})
        shown = Next(-1, answer.SHOWN, 40.0, new, 50.0, 200.0, 36500.0)
        monkeypatch.setattr(answer, "intervals", lambda *_: [shown])
        day = Load(9, 30.0, 20.0, 17.0, 31.0, 0.93)
        monkeypatch.setattr(answer, "load", lambda *_: day)

    return make


@pytest.mark.parametrize(("study", "found"), [*cases()])
def test_ten_lines_say_what_is_advised_and_why(drawn, study, found):
    drawn()
    told = Answer(study, found, None if found.action == "early" else MODELS)
    do, lines = told.do(), told.lines(Path("page.html"))
    assert len(lines) <= 10
    assert all(len(line) <= 80 for line in lines if not line[0].isdigit())
    assert "nan" not in " ".join(lines)
    assert ("Leave FSRS off" in do) is found.leave_off
    assert ("urn FSRS on" in do) is found.turn_on
    if not found.leave_off:
        assert ("aste" in do) is found.pastes
        assert ("eep" in do) is (found.differs or not found.pastes)
    assert any(line[0].isdigit() for line in lines) is told.takes_new
    if "yours" in told.why():
        assert MAY in told.why()


CLEAR = Advice("paste", Belief.of(change_of("better"), None), None, 3666)


@pytest.mark.parametrize(
    ("constant", "parameters", "new", "maximum", "doubt"),
    [
        ("better", DEFAULTS, 300.0, None, ""),
        ("better", DEFAULTS, 900.0, 365, ""),
        ("better", AT_LIMIT, 300.0, 365, "1 of 21 parameters is at a limit"),
        ("noise", DEFAULTS, 300.0, 365, "not clearly better than always guessing your average"),
        ("noise", DEFAULTS, 100.0, None, "do not trust long intervals"),
        ("worse", DEFAULTS, 300.0, 365, "re worse than always guessing your average"),
    ],
)
def test_the_first_line_says_what_follows_from_a_doubt(
    drawn, constant, parameters, new, maximum, doubt
):
    drawn(parameters, new)
    told = Answer(study_of(constant=constant), CLEAR, MODELS)
    assert told.maximum == maximum
    assert (f"set Maximum interval to {maximum} days" in told.do()) is (maximum is not None)
    assert doubt in told.doubt()
    assert bool(doubt) is bool(told.doubt())


def test_each_preset_is_decided_by_its_own_reviews(monkeypatch):
    study, (yes, no) = study_of(), (change_of("better"), change_of("worse"))
    study.now = study.fitted
    study.group = lambda _: np.repeat([1, 2, 3], 1000)
    monkeypatch.setattr(advice, "losses", lambda *_: np.full(3000, 0.4))
    estimates = {1: yes, 2: no, 3: Change.within(0.0, -0.6, 0.6)}
    monkeypatch.setattr(advice, "difference", lambda *args: int(np.argmax(args[2])) // 1000 + 1)
    monkeypatch.setattr(Change, "of", lambda estimate, *_: estimates[estimate])
    study.presets, study.seen, study.scored = {1: 1200, 2: 1200, 3: 10}, lambda _: 1.0, ()
    found = dict(advice._of_presets(study, "keep"))
    assert {preset: action for preset, (action, _) in found.items()} == {
        1: "paste", 2: "keep", 3: "keep"
    }  # fmt: skip
    both = Advice("keep", Belief.of(no, None), None, 9, found)
    assert both.differs
    assert both.pastes
    assert [both.keeps(preset) for preset in (1, 2, 3)] == [False, True, True]
    study.presets = {1: 1200}
    assert not dict(advice._of_presets(study, "keep"))


@pytest.mark.parametrize(
    ("new", "longest", "most", "is_far", "is_beyond"),
    [
        (9000, 200, 36500, True, True),
        (9000, 1000, 36500, True, True),
        (2900, 1000, 36500, False, True),
        (500, 20, 36500, False, True),
        (9000, 200, 365, False, False),
        (900, 1000, 36500, False, False),
    ],
)
def test_a_maximum_is_for_intervals_far_beyond_what_was_reviewed(
    new, longest, most, is_far, is_beyond
):
    shown = Next(1, "Good", 40.0, float(new), math.nan, math.nan, float(most))
    assert shown.is_too_long(longest) is is_far
    assert shown.is_too_long(longest, supported=False) is is_beyond
    assert usual_maximum(longest) == max(365, longest)


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
