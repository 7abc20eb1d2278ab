"""What the report on a collection advises, and that no sentence contradicts another."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from advised import KINDS, change_of, contradictions

from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.collection import in_short, parameters
from srs_eval.collection.advice import FITTED, SM2, Advice, Belief, People, decide, nearest
from srs_eval.collection.study import MAY, Study
from srs_eval.collection.words import Change

REFIT = Belief.of(None, None, 0.2)


def percent(share, lo, hi):
    """Return a change by its interval, all in percent."""
    return Change.of(SimpleNamespace(mean=share, is_zero=False, interval=lambda _: (lo, hi)), 100)


@pytest.mark.parametrize(
    ("own", "reviews", "action"),
    [
        # collections of real people for whom there were "too few reviews to tell"
        ((-5.5, -11.9, 20.6), 8000, "paste"),
        ((9.0, -100, 3191.6), 60, "paste"),
        ((-30.3, -84.5, 128.6), 110, "paste"),
        ((10.3, -46.6, 237.3), 110, "paste"),
        ((-1.4, -5.4, 3.0), 3000, "paste"),
        # the sum of both is as likely to be better as worse
        ((1.0, -10.0, 12.0), 150, "open"),
        ((2.0, -10.0, 14.0), 150, "keep"),
        ((8.0, -12.0, 24.0), 600, "keep"),
        # one's own reviews decide alone
        ((-10.4, -15.9, -4.8), 3000, "paste"),
        ((-0.5, -1.2, 0.2), 3000, "keep"),
        ((9.6, -1.3, 27.5), 3000, "keep"),
        ((7.0, 2.0, 12.0), 30, "keep"),
    ],
)
def test_both_kinds_of_evidence_decide_together(own, reviews, action):
    assert decide(Belief.of(percent(*own), nearest(FITTED, reviews))) == action


def test_a_gain_that_is_excluded_is_not_called_too_few_reviews():
    assert percent(9.6, -1.3, 27.5).kind == "no_gain"
    assert percent(2.0, -3.0, 7.0).kind == "no_gain"
    assert percent(0.3, -5.2, 6.8).kind == "open"
    assert percent(9.0, -100, 3191.6).kind == percent(-3.7, -100, 98).kind == "unknown"


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
    ("now", "new", "told"), [(0.9, 0.82, True), (0.82, 0.7, False), (None, 0.8, False)]
)
def test_what_new_parameters_say_is_told_where_it_is_nearer(monkeypatch, now, new, told):
    monkeypatch.setattr(
        in_short, "average", lambda p: SimpleNamespace(predicted=p, observed=0.8, reviews=9)
    )
    monkeypatch.setattr(in_short, "predictions_of", lambda _: new)
    study = SimpleNamespace(scored=now, fitted=None, whose="FSRS")
    assert bool([*in_short._recall(study)]) is told


def study_of(*, off=False, in_sample=False, current=False):
    """Return what sentences ask of a study with 3,055 scored reviews."""
    now = SimpleNamespace(complete=(1,), facts=SimpleNamespace(reviews=3055), fitted=())
    caution = f" ({MAY})" * in_sample
    return SimpleNamespace(
        several=None,
        settings=object(), has_fsrs=not off, current={1: ()} if current or in_sample else {},
        is_in_sample=in_sample, caution=caution, fitted=now, now=now, scored=None,
        whose=Study.whose,
    )  # fmt: skip


def advised(monkeypatch):
    """Yield a name, the study and the advice of every kind of evidence."""
    monkeypatch.setattr(in_short, "predictions_of", lambda _: None)
    monkeypatch.setattr(in_short, "explained", lambda _: (0.1, 0.05, 0.2))
    monkeypatch.setattr(in_short, "doubtful_lists", lambda _: ["3 parameters are at a limit"])
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
    early = Belief.of(None, None)
    for learnable in (3, 300):
        yield f"early, {learnable}", study_of(), Advice("early", early, None, learnable)


def test_one_record_makes_all_sentences_on_what_to_do(monkeypatch, golden_text):
    lines = []
    for name, study, advice in advised(monkeypatch):
        section = in_short.in_short(study, advice)
        which = "" if advice.new.own is None else parameters._which(study, advice)
        said = " ".join([section.answer, *section.notes, which])
        assert not contradictions([section.answer, which]), name
        for sentence in said.split(". "):
            if study.is_in_sample and "those you have" in sentence:
                assert MAY in sentence
        lines.append(f"== {name}\n{section.answer}\n{which}")
    golden_text("collection_advice", "\n".join(lines))


def test_lists_with_parameters_at_limits_or_stabilities_of_minutes_are_named(monkeypatch):
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
        titled = {key: ("all", ", ".join(map(str, w))) for key, w in each.items()}
        monkeypatch.setattr(parameters, "fitted_lists", lambda _, titled=titled: titled)
        found[name] = list(parameters.doubtful_lists(None))
    assert [len(each) for each in found.values()] == [0, 1, 1, 2]
    assert "1 of 21 parameters is at a limit in 1 of 2 lists" in found["limit"][0]
    assert "Again (14 minutes)" in found["minutes"][0]


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
