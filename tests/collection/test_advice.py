"""What the report on a collection advises, and that no sentence contradicts another."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from advised import KINDS, change_of, contradictions, said

from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.collection import advice, in_short, parameters
from srs_eval.collection.advice import FITTED, SM2, Advice, Belief, People, decide, nearest
from srs_eval.collection.intervals import Next
from srs_eval.collection.study import MAY, Study
from srs_eval.collection.words import Change

PASTE = Advice("paste", Belief.of(None, None), None, 9)
REFIT = Belief.of(None, None, 0.2)


def percent(share, lo, hi):
    """Return a change by its interval, all in percent."""
    return Change.of(SimpleNamespace(mean=share, is_zero=False, interval=lambda _: (lo, hi)), 100)


def test_both_kinds_of_evidence_decide_together(transcript):
    """By one's own change in percent, its interval, and the reviews learned from."""

    def told_by(*numbers):
        *own, reviews = map(float, numbers)
        change = percent(*own)
        return f"{change.kind}: {decide(Belief.of(change, nearest(FITTED, reviews)))}\n"

    transcript("decisions", told_by)


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
    assert REFIT.chance == 0.5
    fewer = replace(people, people=40, better=26)
    assert Belief.of(None, fewer).sd > fewer.sd


def test_tables_of_other_people_are_in_order_and_in_favour():
    for table in (FITTED, SM2):
        sizes = [row.reviews for row in table]
        assert sizes == sorted(set(sizes))
        assert all(row.mean < 0 and row.better > row.people / 2 for row in table)
    assert nearest(FITTED, 24) is None
    assert [nearest(FITTED, n).reviews for n in (25, 99, 100, 10**6)] == [25, 50, 100, 1000]


def test_what_would_settle_it_follows_from_the_width():
    def needed(*own):
        return Advice("open", Belief.of(percent(*own), None), None, 1000).still_needed

    assert needed(-5.0, -15.0, 5.0) == pytest.approx(3000, rel=1e-3)  # half the width: four times
    assert needed(-0.1, -15.0, 15.0) is None
    assert Advice("early", Belief.of(None, None), None, 3).still_needed is None


@pytest.mark.parametrize(
    ("now", "new", "told"), [(0.9, 0.82, True), (0.82, 0.7, True), (None, 0.8, False)]
)
def test_what_new_parameters_say_is_told_also_where_it_is_farther(monkeypatch, now, new, told):
    monkeypatch.setattr(
        in_short, "average", lambda p: SimpleNamespace(predicted=p, observed=0.8, reviews=9)
    )
    fitted = SimpleNamespace(predictions=new)
    study = SimpleNamespace(scored=now, fitted=fitted, whose="FSRS")
    assert bool([*in_short._recall(study, PASTE)]) is told


LIST = (*DEFAULTS[:2], 4.25, *DEFAULTS[3:])


def study_of(*, off=False, in_sample=False, presets=(), can_learn=3666):
    """Return what sentences ask of a study with 3,055 scored reviews."""
    nobody = SimpleNamespace(fits=())
    now = SimpleNamespace(complete=True, predictions=None, reviews=3055, user=nobody)
    return SimpleNamespace(
        first_ratings=[1, 1, 1, 1],
        log=range(5000), current={}, stored={1: LIST} if in_sample else {},
        is_off=off, is_in_sample=in_sample, caution=f" ({MAY})" * in_sample, fitted=now, now=now,
        scored=None, whose=Study.whose, presets=dict.fromkeys(presets, 1500), title=NAMES.get,
        skipped=None, group=lambda _: np.repeat([1, 2, 3], 1000), can_learn=can_learn,
    )  # fmt: skip


NAMES = {1: "Verbs", 2: "Nouns", 3: "Kanji"}


def advised(monkeypatch):
    """Yield a name, the study and the advice of every kind of evidence."""
    monkeypatch.setattr(in_short, "fitted_lists", lambda _: {None: ("all", "1.0, " * 20 + "1.0")})
    monkeypatch.setattr(in_short, "doubtful", lambda lists, *_: ["the list is odd"] * bool(lists))
    beliefs = {
        "on": None,
        "off": Belief.of(change_of("unknown"), SM2[0]),
        "better off": Belief.of(change_of("worse"), None),
    }
    for kind, (scheduler, fsrs) in product(KINDS, beliefs.items()):
        new = Belief.of(change_of(kind), FITTED[2])
        study = study_of(off=fsrs is not None)
        yield f"{kind}, FSRS {scheduler}", study, Advice(decide(new), new, fsrs, 3666)
    for kind in KINDS:
        new = Belief.of(change_of(kind), None, 0.1)
        yield f"{kind}, own parameters", study_of(in_sample=True), Advice(decide(new), new, None, 9)
        few = Belief.of(change_of(kind), FITTED[2], seen=0.02)
        yield f"{kind}, few can be judged", study_of(), Advice(decide(few), few, None, 100)
        last = Belief.of(change_of(kind), FITTED[2])
        worse, better = (Belief.of(change_of(each), None) for each in ("worse", "better"))
        of = {1: ("keep", worse), 2: ("paste", better), 3: ("paste", last)}
        study = study_of(in_sample=True, presets=(1, 2, 3))
        yield f"{kind}, presets", study, Advice("paste", better, None, 3666, of)
    early = Belief.of(None, None)
    for can_learn, own in product((3, 300), (False, True)):
        study = study_of(can_learn=can_learn, in_sample=own)
        yield f"early, {can_learn}, {own}", study, Advice("early", early, None, can_learn)


def test_one_record_makes_all_sentences_on_what_to_do(monkeypatch, golden_text):
    lines = []
    for name, study, found in advised(monkeypatch):
        section = in_short.in_short(study, found)
        which = "" if found.new.own is None else parameters._which(study, found)
        assert not contradictions([*said(section), which]), name
        for sentence in " ".join([*said(section), which]).split(". "):
            if study.is_in_sample and "those you have" in sentence:
                assert MAY in sentence
        told = [f"* {line}" for line in section.lines]
        lines.append("\n".join([f"== {name}", section.answer, *told, which]))
    golden_text("collection_advice", "\n".join(lines))


def test_reviews_that_cannot_be_judged_leave_the_answer_open():
    own, others = percent(-20.0, -40.0, -1.0), nearest(FITTED, 45)
    whole, part = (Belief.of(own, others, seen=seen) for seen in (1.0, 0.05))
    assert whole.is_clear
    assert not part.is_clear
    assert 0.5 < part.chance < whole.chance
    assert Belief.of(own, None, seen=0.05).chance == Belief.of(own, None).chance  # nothing known


def test_each_preset_is_decided_by_its_own_reviews(monkeypatch):
    study, (yes, no) = study_of(), (change_of("better"), change_of("worse"))
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


def test_a_maximum_is_suggested_for_intervals_far_beyond_what_was_reviewed(transcript):
    """By the new interval, the longest that was reviewed, and the maximum that there is."""

    def told_by(new, reviewed, most="36500"):
        longest = Next(1, 40.0, float(new), math.nan, math.nan, float(most))
        return f"{longest.too_long(int(reviewed))}\n"

    transcript("too_long_intervals", told_by)


def test_lists_with_parameters_at_limits_or_stabilities_of_minutes_are_named():
    low = (0.0010004, *DEFAULTS[1:])
    minutes = (0.0098, 0.0613, 0.0685, 3.83, *DEFAULTS[4:])
    lists = {
        "fine": {7: DEFAULTS},
        "limit": {7: DEFAULTS, None: (*DEFAULTS[:3], 100.0, *DEFAULTS[4:])},
        "minutes": {None: minutes},
        "both": {None: low},
    }
    found = {}
    for name, each in lists.items():
        titled = {
            key: (f"{key}, from 9 reviews", ", ".join(map(str, w))) for key, w in each.items()
        }
        found[name] = list(parameters.doubtful(parameters.numbers_of(titled)))
    assert [len(each) for each in found.values()] == [0, 1, 1, 2]
    assert "1 of 21 in the new list of None" in found["limit"][0]
    assert "Again (14 minutes) in the new list" in found["minutes"][0]
    # no card's first answer was Again, so nothing can be checked
    assert not list(parameters.doubtful({"the new list": minutes}, [0, 1, 1, 1]))


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
