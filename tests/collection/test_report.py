"""The report on a collection: its sentences are true, and its numbers are those of runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anki_presets import Written, write
from commands import QUIET, run_here

import srs_eval as se
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.collection.ceiling import ceiling
from srs_eval.collection.command import command
from srs_eval.collection.doubts import funnel
from srs_eval.collection.history import history
from srs_eval.collection.in_short import in_short
from srs_eval.collection.others import others
from srs_eval.collection.parameters import fitted_lists
from srs_eval.collection.report import sections, study_of
from srs_eval.collection.section import Paste, Section
from srs_eval.collection.study import MAY, OTHERS, Study, difference
from srs_eval.collection.words import Change, log_loss
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FitError
from srs_eval.nouns import Algorithm, IntArray, Reviews
from srs_eval.stats.estimate import Estimate
from srs_eval.text.table import Table

NAME = "hard <script>alert('1')</script> & words"
HARD = Written(10, NAME, "<script>alert('deck')</script>::sub", (*DEFAULTS[:2], 4, *DEFAULTS[3:]))
EASY = Written(20, "easy words", "easy", (), 0.85)


def simulated(user: int, reviews: int | None = None) -> Reviews:
    log = SyntheticUsers(users=40, size_scale=0.1, max_reviews=3000, version=1).read(user)
    return log if reviews is None else log.take(np.arange(reviews))


def by_question(found: list[Section], word: str) -> Section:
    (section,) = [each for each in found if word in each.question]
    return section


def text_of(found: list[Section]) -> str:
    return "\n".join(part for each in found for part in (each.answer, *each.notes))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with two presets whose simulated students differ."""
    logs = [simulated(15), simulated(16)]
    presets = [np.full(len(log), place) for place, log in enumerate(logs)]
    path = tmp_path_factory.mktemp("two") / "two.anki2"
    return write(path, list(zip(logs, presets, strict=True)), (HARD, EASY), late=2)


@pytest.fixture(scope="module")
def study(two: Path) -> Study:
    return study_of(two, {})


@pytest.fixture(scope="module")
def found(study: Study) -> list[Section]:
    return sections(study)


@pytest.mark.slow
def test_the_first_sentence_is_true_of_all_presets(study: Study, found: list[Section]) -> None:
    scored = study.scored
    assert scored is not None
    near = np.abs(scored.p - 0.9) <= 0.025  # what is wanted of most reviews
    said, recalled = (100 * float(each[near].mean()) for each in (scored.p, scored.recalled))
    assert len(np.unique(study.group("preset")[near])) == 2
    answer = by_question(found, "true").answer
    assert f"says about {said:.1f} %, you recall {recalled:.1f} %" in answer
    assert MAY in answer


@pytest.mark.slow
def test_presets_that_differ_are_found(study: Study, found: list[Section]) -> None:
    assert study.presets_differ
    assert study.fitted is study.several
    section = by_question(found, "parameters should")
    assert "presets differ" in section.answer
    lists = fitted_lists(study)
    assert set(lists) == {None, 10, 20}
    pasted = [part.numbers for part in section.parts if isinstance(part, Paste)]
    exported = str(se.fit("per_group", study.source, progress=False).export("anki"))
    for _, numbers in lists.values():
        assert numbers in pasted
        assert numbers in exported


@pytest.mark.slow
def test_numbers_are_those_of_runs_and_of_their_comparison(
    two: Path, study: Study, found: list[Section], tmp_path: Path
) -> None:
    table = next(p for p in by_question(found, "stand").parts if isinstance(p, Table))
    shown = {row[0]: row for row in table.texts()}
    runs = {
        "default parameters": ["algo=fsrs6", "algo.fit=default"],
        "new": ["algo=per_group"],
        "now": ["algo=fsrs6", "algo.parameters=current"],
    }
    summaries = {}
    for name, words in runs.items():
        folder = tmp_path / name.split()[0]
        data = ["data=anki", f"data.path={two}"]
        assert run_here([*words, *data, *QUIET, f"hydra.run.dir={folder}"]) == 0
        summary = summaries[name] = json.loads((folder / "summary.json").read_text())
        assert summary["reviews"] == study.now.facts.reviews
    losses = {name: each["metrics"]["log_loss"]["mean_users"] for name, each in summaries.items()}
    for name in ("default parameters", "new"):
        (row,) = [row for key, row in shown.items() if key.startswith(name)]
        entropy = summaries[name]["metrics"]["normalized_entropy"]
        mean, low, high = (100 * (1 - entropy[key]) for key in ("mean_users", "hi", "lo"))
        bounds = f"{low:.1f} to {high:.1f} %"
        assert row[1:4] == [f"{losses[name]:.4f}", f"{mean:.1f} %", bounds]
    assert losses["now"] == pytest.approx(log_loss(study.now), rel=1e-12)
    assert "own parameters for 2 of 2 presets" in summaries["new"]["fit_notes"][0]
    verdict = se.compare([tmp_path / "default", tmp_path / "new"]).verdict
    names = [run.place.name for run in verdict.runs]
    pair = verdict.leaderboard.pairs[names.index("new")][names.index("default")]
    ours = difference(study.fitted, study.default)
    assert (*ours.interval(), ours.mean) == pytest.approx((*pair.interval(), pair.mean), rel=1e-9)


def test_rows_of_the_funnel_add_up(study: Study) -> None:
    rows = list(funnel(study))
    total = rows[0][1]
    assert total == len(study.log) + sum(study.log.left_out.values())
    assert total - sum(count for _, count, _ in rows[1:]) == rows[-1][2]
    assert rows[-1][2] == study.now.facts.reviews
    assert all(count >= 0 for _, count, _ in rows)


@pytest.mark.slow
def test_the_page_escapes_names_and_loads_nothing(two: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = [str(two), f"out={page}", "decks=*deck*"]
    assert command(words) == 0
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert not re.search(r"(?:src|href)=.(?!data:)", html)
    assert "prefers-color-scheme: dark" in html


@pytest.mark.slow
def test_presets_that_do_not_differ_need_one_list(tmp_path: Path) -> None:
    log = simulated(15)
    preset = np.random.default_rng(0).integers(0, 2, log.card.max() + 1)[log.card]
    study = study_of(write(tmp_path / "one.anki2", [(log, preset)], (HARD, EASY)), {})
    found = sections(study)
    assert not study.presets_differ
    assert study.fitted is study.one
    assert "One preset would do" in by_question(found, "parameters should").answer
    assert set(fitted_lists(study)) == {None}


@pytest.mark.parametrize("name", OTHERS)
def test_other_algorithms_are_those_of_the_options(name: str) -> None:
    ours, named = OTHERS[name][0](), se.algorithm(name)
    assert type(ours) is type(named)
    assert ours == named or vars(ours) == vars(named)


@pytest.mark.parametrize("reviews", [4, 60])
def test_nothing_is_judged_where_nothing_is_scored(tmp_path: Path, reviews: int) -> None:
    log = simulated(15, reviews)
    path = write(tmp_path / "few.anki2", [(log, np.zeros(len(log), np.int64))], (HARD,))
    study = study_of(path, {})
    found = sections(study)
    assert study.task is None
    shown = [each.question for each in found if each.parts or each.pictures]
    assert shown == ["What should I doubt?"]
    assert list(funnel(study))[-1][2] == 0
    assert "nan" not in text_of(found)


def test_a_table_has_no_settings_and_as_many_reviews(tmp_path: Path) -> None:
    log = simulated(15, 60)
    table = {name: getattr(log, name) for name in ("card", "rating", "day")}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    study = study_of(tmp_path / "log.parquet", {"day": "day"})
    assert study.settings is None
    assert study.log.rating.tolist() == log.rating.tolist()
    assert next(iter(funnel(study)))[1] == 60


@pytest.mark.parametrize("case", ["few", "recalled", "off", "filtered", "no presets"])
def test_sentences_hold_in_edge_cases(tmp_path: Path, case: str) -> None:
    log = simulated(15, 120 if case == "few" else 500)
    if case == "recalled":
        log = replace(log, rating=np.full(len(log), 3))
    path = tmp_path / "edge.anki2"
    kind = 3 if case == "filtered" else 1
    write(path, [(log, log.card % 2)], (HARD, EASY), fsrs=case != "off", kind=kind)
    study = study_of(path, {})
    if case == "no presets":
        study = Study(replace(study.source, log=replace(study.log, preset=None, deck=None)))
    found = sections(study)
    text = text_of(found)
    assert "nan" not in text
    assert study.now.facts.reviews > 0
    doubts, true = (by_question(found, word) for word in ("doubt", "true"))
    assert any("filtered decks" in note for note in doubts.notes) == (case == "filtered")
    assert any("stand" in each.question for each in found) == (case not in ("off", "no presets"))
    assert ("FSRS is off" in text) == ("it is off" in true.answer) == (case == "off")
    assert (MAY in text) == (case in ("few", "recalled", "filtered"))
    assert case != "few" or "too few" in by_question(found, "parameters should").answer
    assert ("too few" in true.answer) == (case == "few")
    assert case != "recalled" or "cannot be said" in by_question(found, "good").answer
    assert case != "recalled" or "too little" in true.answer
    short = found[0].answer
    change = Change.of(difference(study.fitted, study.now), 1.0)
    assert ("use the new" in short.lower()) == (change.kind == "better")
    assert ("keep" in short.lower()) == (change.kind != "better")
    assert short.startswith("If you turn FSRS on, ") == (case == "off")
    assert ("your average alone" in short) == (case != "recalled")
    assert (MAY in short) == (MAY in text)


@pytest.mark.parametrize(
    ("change", "bounds", "limits", "words"),
    [
        (-0.1, (0.1, 0.2), "", ["use the new", "fsrs predicts better than your"]),
        (-0.1, (-0.1, 0.1), "3 of", ["use the new", "not clearly predict", "3 of 21", "too long"]),
        (0.1, (-0.3, -0.2), "3 of", ["keep the default", "predict worse", "fsrs predicts worse"]),
        (0.0, (-0.3, -0.2), "3 of", ["keep the default", "no better by more than chance"]),
    ],
)
def test_the_bottom_line_agrees_with_the_answers_it_sums_up(
    monkeypatch: pytest.MonkeyPatch,
    change: float,
    bounds: tuple[float, float],
    limits: str,
    words: list[str],
) -> None:
    now = SimpleNamespace(complete=(1,))
    study: Any = SimpleNamespace(
        settings=None, current={}, is_in_sample=False, fitted=now, now=now, has_fsrs=False
    )
    ways = {
        "difference": lambda *_: Estimate(change, 0.0001, 0.0001, 100.0),
        "log_loss": lambda _: 1.0,
        "explained": lambda _: (sum(bounds) / 2, *bounds),
        "fitted_lists": lambda _: {},
        "limits_in_words": lambda _: f"{limits} 21 parameters are at a limit" if limits else "",
    }
    for name, made in ways.items():
        monkeypatch.setattr(f"srs_eval.collection.in_short.{name}", made)
    section = in_short(study)
    assert section is not None
    assert all(word in section.answer.lower() for word in words)
    assert ("at a limit" in section.answer) == ("3 of 21" in words)
    assert ". " not in section.answer  # a terminal shows the first sentence


class Fails(Algorithm):
    """Fit nothing."""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Any:
        raise FitError("never")


@pytest.mark.slow
def test_fits_that_fail_are_named(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = study.evaluated("hlr", Fails())
    others = {"avg": study.evaluated("avg", Average()), "hlr": failing}
    monkeypatch.setitem(vars(study), "others", others)
    last = study.curve[-1]
    monkeypatch.setitem(vars(study), "curve", [(100, failing), last])
    good = ceiling(study)
    assert good is not None
    assert "None of 1 other" in good.answer
    assert any("hlr" in note and "failed" in note for note in good.notes)
    curve = history(study)
    assert curve is not None
    assert any("100" in note and "failed" in note for note in curve.notes)


@pytest.mark.slow
def test_several_algorithms_need_more_than_one_that_stands_out_alone(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Estimate(-0.01, 0.0034, 0.0, 1000.0)
    assert 0.002 < alone.p_value < 0.01
    monkeypatch.setattr("srs_eval.collection.ceiling.difference", lambda *_: alone)
    section = ceiling(study)
    assert section is not None
    assert "None of 5 other algorithms" in section.answer


@pytest.mark.slow
def test_a_person_is_compared_with_users_of_like_retention_and_size(
    study: Study, tmp_path: Path
) -> None:
    size, constant = study.now.facts.reviews, log_loss(study.others["avg"])
    ours = log_loss(study.evaluated("FSRS-6", Fsrs6(fit="reference")))
    alike = [(size, constant, ours + (0.1 if n < 45 else -0.1)) for n in range(60)]
    unlike = [(9 * size, constant, ours + 1), (size, 2 * constant, ours + 1)]
    users = [*alike, *unlike]
    published = {
        "model": ["AVG"] * len(users) + ["FSRS-6"] * len(users),
        "user": [*range(len(users))] * 2,
        "size": [each[0] for each in users] * 2,
        "log_loss": [each[1] for each in users] + [each[2] for each in users],
    }
    pq.write_table(pa.table(published), tmp_path / "users.parquet")
    assert "75 % of 60 published users" in others(study, tmp_path / "users.parquet").answer
