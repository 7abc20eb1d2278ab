"""The answer for a collection: what is advised and said, and that its numbers are those of runs."""

import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anki_files import Written, write
from commands import QUIET, run_here

import srs_eval as se
from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.collection import answer
from srs_eval.collection.advice import FITTED, Advice, Belief, People, decide, nearest
from srs_eval.collection.answer import Answer
from srs_eval.collection.command import Collection, report
from srs_eval.collection.intervals import Models, Next, load
from srs_eval.collection.left_out import funnel
from srs_eval.collection.page import page
from srs_eval.collection.study import MAY, Study, difference
from srs_eval.collection.truth import by_level
from srs_eval.collection.words import Change
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.runs.words import status


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
    true, errors = rng.normal(people.mean, people.sd, 4000), rng.uniform(0.05, 0.4, 4000)
    assert np.mean(true < 0) == pytest.approx(0.65, abs=0.02)
    seen = zip(true + rng.normal(0, errors), errors, strict=True)
    owns = [Change("open", own, own, own, error) for own, error in seen]
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


# Two of them, one as it is pasted
AT_LIMITS = (0.0010004, *DEFAULTS[1:3], 100.0, *DEFAULTS[4:])
BETTER, NOISE, WORSE = percent(-5, -6, -4), percent(-0.5, -1.2, 0.2), percent(5, 4, 6)


@pytest.mark.parametrize(
    ("constant", "parameters", "new", "longest", "maximum", "doubts"),
    [
        (BETTER, DEFAULTS, 300, 200, None, ""),
        (BETTER, DEFAULTS, 900, 200, 365, ""),
        (BETTER, DEFAULTS, 2900, 1000, None, ""),
        (BETTER, DEFAULTS, 9000, 1000, 1000, ""),
        (BETTER, AT_LIMITS, 300, 200, 365, "2 of 21 parameters"),
        (NOISE, DEFAULTS, 300, 200, 365, "not clearly better"),
        (WORSE, DEFAULTS, 300, 200, 365, "worse"),
    ],
)
def test_long_intervals_get_a_limit_which_the_first_line_names(
    monkeypatch, constant, parameters, new, longest, maximum, doubts
):
    """By the days after Good, the longest interval reviewed, and how well a constant predicts."""
    lists = {None: ("all", ", ".join(map(str, parameters)))}
    monkeypatch.setattr(answer, "fitted_lists", lambda _: lists)
    shown = Next(-1, answer.SHOWN, 40.0, float(new), 50.0, 200.0, 36500.0)
    monkeypatch.setattr(answer, "intervals", lambda *_: [shown])
    facts = {"longest": longest, "constant": constant, "presets": {}, "stored": {}}
    study = SimpleNamespace(**facts, scored=None)
    made = Answer(study, Advice("paste", Belief.of(BETTER, None), None, 9), Models(None, None, []))
    assert made.maximum == maximum
    assert (str(maximum) in made.do()) == (maximum is not None)
    assert doubts in made.doubt()
    assert bool(doubts) == bool(made.doubt())


NAME = "hard <script>alert('1')</script> & words"
HARD = Written(10, NAME, "<script>alert('deck')</script>::sub", (*DEFAULTS[:2], 4, *DEFAULTS[3:]))
EASY = Written(20, "easy words", "easy", (), 0.85)


def simulated(user, reviews=None):
    log = SyntheticUsers(users=40, size_scale=0.1, max_reviews=3000).read(user)
    return log if reviews is None else log.take(np.arange(reviews))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A collection with two presets whose simulated students differ."""
    logs = [simulated(38), simulated(16)]
    presets = [np.full(len(log), place) for place, log in enumerate(logs)]
    path = tmp_path_factory.mktemp("two") / "two.anki2"
    return write(path, list(zip(logs, presets, strict=True)), (HARD, EASY), late=2)


@pytest.fixture(scope="module")
def study(two):
    return Study.of(two, {})


@pytest.mark.parametrize(
    ("case", "reviews", "first"),
    [
        ("4 reviews", 4, "Keep the parameters that you have."),
        ("few", 120, "Keep the parameters that you have for now."),
        ("recalled", 500, "Paste these parameters"),
        ("off", 500, "Turn FSRS on, paste these parameters, and set Maximum interval to 365 days."),
        ("table", 60, "Keep the default parameters."),
    ],
)
def test_an_answer_has_ten_lines_and_its_page_two_pictures(tmp_path, case, reviews, first):
    log = simulated(15, reviews)
    if case == "recalled":
        log = replace(log, rating=np.full(len(log), 3))
    path, options = tmp_path / "edge.anki2", {}
    if case == "table":
        path, options = tmp_path / "log.parquet", {"day": "day"}
        columns = {name: getattr(log, name) for name in ("card", "rating", "day")}
        pq.write_table(pa.table(columns), path)
    else:
        write(path, [(log, log.card % 2)], (HARD, EASY), fsrs=case != "off")
    study = Study.of(path, options)
    answer = Answer.of(study)
    lines = answer.lines(tmp_path / "page.html")
    assert len(lines) <= 10
    assert answer.do().startswith(first)
    html = page(answer, "edge", "command")
    assert html.count("<figure>") == (study.scored is not None) + answer.takes_new
    assert not re.search(r">[^<]*\bnan\b", ">".join((html, *lines)))
    assert all(numbers in html for _, numbers in answer.lists.values())
    if case == "off":  # all cards are due after a day
        day = answer.load
        assert day.now == day.cards == len(np.unique(log.card)) > day.new


def test_reviews_a_day_are_those_of_the_lists(study):
    log, (user,) = study.log, study.final.by_user
    parts = {part.name: part.parameters for part in study.final.by_user[user].fit.parts}
    lists = {"now": {10: study.current[10], 20: study.current[20]}}
    lists["new"] = {preset: parts[f"preset {preset}"] for preset in (10, 20)}
    _, last = np.unique(log.card[::-1], return_index=True)
    last, expected = len(log) - 1 - last, dict.fromkeys(("now", "new", "at most 5"), 0.0)
    for name, (preset, wanted) in product(lists, {10: 0.9, 20: 0.85}.items()):
        w = lists[name][preset]
        stability = RecurrentModel(Fsrs6Equations(), w).states(log)["stability"]
        own = stability[last[log.preset[last] == preset]]
        days = own * (wanted ** (-1 / w[20]) - 1) / (0.9 ** (-1 / w[20]) - 1)
        expected[name] += float((1 / np.maximum(days, 1)).sum())
        expected["at most 5"] += float((1 / np.clip(days, 1, 5)).sum()) * (name == "new")
    models = Models.of(study)
    found = load(study, models)
    assert found.cards == len(last)
    assert (found.now, found.new) == pytest.approx((expected["now"], expected["new"]))
    assert found.lo <= found.new <= found.hi
    assert found.recall == pytest.approx(0.88, abs=0.03)  # as the presets ask for
    limited = load(study, models, maximum=5)
    assert limited.new == pytest.approx(expected["at most 5"])
    assert load(study, models, (10, 20)).new == pytest.approx(expected["now"])


def test_odd_parameters_are_named_where_nothing_can_be_scored(tmp_path):
    odd = Written(10, "copied", "deck", (0.0098, 0.0613, 0.0685, 3.83, *DEFAULTS[4:]))
    path = write(tmp_path / "odd.anki2", [(simulated(15, 3), np.zeros(3, int))], [odd])
    answer = Answer.of(Study.of(path, {}))
    assert answer.do() == "Go back to the default parameters: the list of copied is odd."
    assert "Again (14 minutes)" in answer.doubt()


def test_the_answer_for_two_presets_that_differ(study):
    answer = Answer.of(study)
    assert study.fitted is study.several
    assert MAY in answer.why()
    assert set(answer.lists) == {None, 10, 20}
    exported = str(se.fit("per_group", study.source, progress=False).export("anki"))
    assert all(numbers in exported for _, numbers in answer.lists.values())
    rows = list(funnel(study))
    total = rows[0][1]
    assert total == len(study.log) + sum(study.log.left_out.values())
    assert total - sum(count for _, count, _ in rows[1:]) == rows[-1][2]
    assert rows[-1][2] == study.now.reviews
    later = np.count_nonzero(study.log.elapsed_days > 0)
    assert study.seen() == len(study.learnable) / later
    entropy = study.now.metrics["normalized_entropy"].mean_users
    assert study.now.against_average.share == pytest.approx(entropy - 1)
    said = {name: study.scored.p[level] for name, level in by_level(study.scored)}
    assert sum(map(len, said.values())) == study.now.reviews
    assert 0.875 <= said["90 %"].min() <= said["90 %"].max() < 0.925


@pytest.mark.slow
def test_numbers_are_those_of_runs_and_of_their_comparison(two, study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, result, words in (
        ("default", study.default, ["algo=fsrs6", "algo.fit=default"]),
        ("new", study.fitted, ["algo=per_group"]),
        ("now", study.now, ["algo=fsrs6", "algo.parameters=current"]),
    ):
        words = [*words, "data=anki", f"data.path={two}", f"hydra.run.dir={name}"]
        assert run_here([*words, *QUIET]) == 0
        facts = se.load(name).facts
        assert facts.reviews == study.now.reviews
        assert result.log_loss == pytest.approx(facts.metrics["log_loss"].mean_users, rel=1e-12)
    ours = difference(study.fitted, study.default)
    row = se.compare(["default", "new"], baseline="fsrs6").table
    row = row[row.index.str.startswith("per_group")].iloc[0]
    theirs = (row.to_baseline_lo, row.to_baseline_hi, row.to_baseline)
    assert (*ours.interval(), ours.mean) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.slow
def test_the_page_escapes_names_and_loads_nothing(two, tmp_path):
    hostile, place = tmp_path / "<script>.anki2", tmp_path / "page.html"
    hostile.write_bytes(two.read_bytes())
    assert status(Collection, report, [str(hostile), f"out={place}", "decks=*deck*"]) == 0
    html = place.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert not re.search(r"(?:src|href)=.(?!data:|#)", html)
