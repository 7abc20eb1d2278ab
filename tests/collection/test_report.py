"""The report on a collection: what it says, and that its numbers are those of runs."""

import json
import re
import shlex
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from advised import contradictions, said
from anki_files import Written, write
from commands import QUIET, run_here

import srs_eval as se
from srs_eval.algorithms.fsrs.current import DEFAULTS
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.collection.advice import Belief, advise
from srs_eval.collection.command import Collection, report
from srs_eval.collection.doubts import funnel
from srs_eval.collection.in_short import in_short
from srs_eval.collection.intervals import Models, load
from srs_eval.collection.parameters import fitted_lists
from srs_eval.collection.report import facts, sections, study_of
from srs_eval.collection.section import Mark, Paste
from srs_eval.collection.study import MAY, Study, difference
from srs_eval.collection.words import Change
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.runs.words import status

NAME = "hard <script>alert('1')</script> & words"
HARD = Written(10, NAME, "<script>alert('deck')</script>::sub", (*DEFAULTS[:2], 4, *DEFAULTS[3:]))
TIMES = re.compile(r"[\d.]+ (to [\d.]+ )?(minute|hour|day|year)s?( to [\d.]+ \w+)?")
EASY = Written(20, "easy words", "easy", (), 0.85)


def simulated(user, reviews=None):
    log = SyntheticUsers(users=40, size_scale=0.1, max_reviews=3000).read(user)
    return log if reviews is None else log.take(np.arange(reviews))


def told(study, found):
    """Return a report as text, without the numbers that fits decide."""

    def lines():
        yield facts(study)
        for each in found:
            answer = TIMES.sub("so long", each.answer)
            yield f"\n== {each.label}: {each.question}\n{answer}"
            yield from (f"* {TIMES.sub('so long', line)}" for line in each.lines)
            yield from (f"- {note}" for note in each.notes)
            for picture in each.pictures:
                named = (mark.name + " !" * mark.stands_out for mark in picture.marks)
                yield f"[{picture.title}: {', '.join(named)}]"
            for part in each.parts:
                text = part.numbers if isinstance(part, Paste) else part.write()
                text = TIMES.sub("so long", text) if "interval" in part.title else text
                yield f"[{part.title}]\n{text}"

    text = "\n".join(lines()).replace(study.source.location, study.source.name)
    text = re.sub(r"\d+\.\d+|\d+(?= %\))", "0.0", text)
    text = re.sub(r"(?<=0\.0 % )(smaller|larger|fewer|more)", "so", text)
    return re.sub(r"number \d+|\d+(?= of \d\d par)|first [\d,]+(?= or)|-{2,}|  +", " ", text)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A collection with two presets whose simulated students differ."""
    logs = [simulated(38), simulated(16)]
    presets = [np.full(len(log), place) for place, log in enumerate(logs)]
    path = tmp_path_factory.mktemp("two") / "two.anki2"
    return write(path, list(zip(logs, presets, strict=True)), (HARD, EASY), late=2)


@pytest.fixture(scope="module")
def study(two):
    return study_of(two, {})


@pytest.fixture(scope="module")
def found(study):
    return {section.label: section for section in sections(study)}


@pytest.mark.parametrize(
    "case",
    ["4 reviews", "60 reviews", "few", "recalled", "off", "filtered", "no presets", "table"],
)
def test_a_report_says_what_its_text_says(tmp_path, case, golden_text):
    sizes = {"few": 120, "4 reviews": 4, "60 reviews": 60, "table": 60}
    log = simulated(15, sizes.get(case, 500))
    if case == "recalled":
        log = replace(log, rating=np.full(len(log), 3))
    path, options = tmp_path / "edge.anki2", {}
    if case == "table":
        path, options = tmp_path / "log.parquet", {"day": "day"}
        columns = {name: getattr(log, name) for name in ("card", "rating", "day")}
        pq.write_table(pa.table(columns), path)
    else:
        kind = 3 if case == "filtered" else 1
        write(path, [(log, log.card % 2)], (HARD, EASY), fsrs=case != "off", kind=kind)
    study = study_of(path, options)
    if case == "no presets":
        study = Study(replace(study.source, log=replace(study.log, preset=None, deck=None)))
    found = sections(study)
    assert not contradictions([text for section in found for text in said(section)])
    text = told(study, found)
    assert "nan" not in text
    golden_text(f"collection_{case.replace(' ', '_')}", text)


@pytest.mark.slow
def test_reviews_a_day_are_those_of_the_lists(study):
    log, (user,) = study.log, study.final.users
    parts = {part.name: part.parameters for part in study.final.by_user[user].fit.parts}
    lists = {"now": {10: study.current[10], 20: study.current[20]}}
    lists["new"] = {preset: parts[f"preset {preset}"] for preset in (10, 20)}
    _, last = np.unique(log.card[::-1], return_index=True)
    last, expected = len(log) - 1 - last, {"now": 0.0, "new": 0.0}
    for name, (preset, wanted) in product(lists, {10: 0.9, 20: 0.85}.items()):
        w = lists[name][preset]
        stability = RecurrentModel(Fsrs6Equations(), w).states(log)["stability"]
        own = stability[last[log.preset[last] == preset]]
        days = own * (wanted ** (-1 / w[20]) - 1) / (0.9 ** (-1 / w[20]) - 1)
        expected[name] += float((1 / np.maximum(days, 1)).sum())
    found = load(study, Models.of(study), set())
    assert found.cards == len(last)
    assert (found.now, found.new) == pytest.approx((expected["now"], expected["new"]))
    assert found.change == pytest.approx(expected["new"] / expected["now"] - 1)
    assert found.lo <= found.change <= found.hi
    assert 0 < found.hi - found.lo < 1.2


def test_odd_parameters_are_named_where_nothing_can_be_scored(tmp_path):
    odd = Written(10, "copied", "deck", (0.0098, 0.0613, 0.0685, 3.83, *DEFAULTS[4:]))
    study = study_of(
        write(tmp_path / "odd.anki2", [(simulated(15, 3), np.zeros(3, int))], [odd]), {}
    )
    found = {section.label: section for section in sections(study)}
    first = found["in short"]
    assert first.answer.startswith("Go back to the default parameters: the list of copied is odd")
    assert any("Again (14 minutes)" in line for line in first.lines)
    assert [part.title for part in found["parameters"].parts] == ["Now: copied"]
    assert found["parameters"].parts[0].numbers.startswith("0.0098, 0.0613")


def test_a_backlog_of_which_few_reviews_can_be_judged_makes_no_sure_advice(tmp_path):
    rng, cards = np.random.default_rng(0), np.arange(480)
    first, usual = rng.integers(0, 60, 480), cards < 80
    gap = np.where(usual, rng.integers(1, 4, 480), rng.integers(150, 900, 480))
    recalled = rng.random(480) < np.where(usual, 0.6, 0.5)
    columns = {
        "card": np.tile(cards, 2),
        "day": np.concatenate([first, first + gap]),
        "rating": np.concatenate([np.full(480, 3), np.where(recalled, 3, 1)]),
    }
    order = np.argsort(columns["day"], kind="stable")
    table = pa.table({name: values[order] for name, values in columns.items()})
    pq.write_table(table, tmp_path / "log.parquet")
    study = study_of(tmp_path / "log.parquet", {"day": "day"})
    advice = advise(study)
    assert advice.learnable < 100
    assert study.seen() == advice.learnable / 480
    assert not advice.new.is_clear
    assert abs(advice.new.chance - 0.5) < abs(
        Belief.of(advice.new.own, advice.new.others).chance - 0.5
    )
    section = in_short(study, advice)
    said_of = f"only {advice.learnable} of your 480 reviews on later days can be judged"
    assert any(said_of in line for line in section.lines)


def test_reviews_a_day_without_fsrs_are_those_that_are_scheduled(tmp_path):
    log = simulated(15, 120)
    path = write(tmp_path / "off.anki2", [(log, log.card % 2)], (HARD, EASY), fsrs=False)
    study = study_of(path, {})
    found = load(study, Models.of(study), set())
    assert found.now == found.cards == len(np.unique(log.card))  # all are due after a day
    assert found.new < found.now
    assert 0.5 < found.recall < 1
    assert np.isnan(load(replace(study, settings=None), Models.of(study), set()).recall)


@pytest.mark.slow
def test_a_log_too_small_for_whole_days_names_a_run_that_scores_it(tmp_path):
    log = simulated(15, 60)
    path = write(tmp_path / "small.anki2", [(log, log.card % 2)], (HARD, EASY))
    (section,) = [each for each in sections(study_of(path, {})) if each.label == "parameters"]
    (note,) = section.notes
    count, words = re.fullmatch(r"(\d+) reviews .*?: python -m srs_eval (.+)", note).groups()
    out = tmp_path / "run"
    assert run_here([*shlex.split(words), *QUIET, f"hydra.run.dir={out}"]) == 0
    assert json.loads((out / "summary.json").read_text())["reviews"] == int(count)


@pytest.mark.slow
def test_the_report_on_two_presets_that_differ(study, found, golden_text):
    golden_text("collection_two", told(study, [*found.values()]))
    texts = [text for section in found.values() for text in said(section)]
    assert not contradictions(texts)
    sentences = [each for text in texts for each in text.split(". ")]
    resting = [each for each in sentences if "those you have" in each or "our parameters" in each]
    assert len(resting) > 3
    assert all(MAY in each for each in resting)
    assert study.fitted is study.several
    lists = fitted_lists(study)
    assert set(lists) == {None, 10, 20}
    exported = str(se.fit("per_group", study.source, progress=False).export("anki"))
    pasted = [part.numbers for part in found["parameters"].parts if isinstance(part, Paste)]
    assert all(numbers in pasted and numbers in exported for _, numbers in lists.values())
    scored = study.scored
    near = np.abs(scored.p - 0.9) <= 0.025  # what is wanted of most reviews, of either preset
    told_share, recalled = (100 * float(each[near].mean()) for each in (scored.p, scored.recalled))
    where = f"says about {told_share:.1f} % ({near.sum()} reviews), you recall {recalled:.1f} %"
    assert where in found["recall"].answer
    rows = list(funnel(study))
    total = rows[0][1]
    assert total == len(study.log) + sum(study.log.left_out.values())
    assert total - sum(count for _, count, _ in rows[1:]) == rows[-1][2]
    assert rows[-1][2] == study.now.reviews


@pytest.mark.slow
def test_numbers_are_those_of_runs_and_of_their_comparison(two, study, found, tmp_path):
    (table,) = found["yours now"].parts
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
        assert summary["reviews"] == study.now.reviews
    losses = {name: each["metrics"]["log_loss"]["mean_users"] for name, each in summaries.items()}
    for name in ("default parameters", "new"):
        (row,) = [row for key, row in shown.items() if key.startswith(name)]
        entropy = summaries[name]["metrics"]["normalized_entropy"]
        average = Change.within(*(entropy[key] - 1 for key in ("mean_users", "lo", "hi")))
        assert row[1:3] == [f"{losses[name]:.4f}", average.size]
    assert losses["now"] == pytest.approx(study.now.log_loss, rel=1e-12)
    verdict = se.compare([tmp_path / "default", tmp_path / "new"]).standings
    names = [run.place.name for run in verdict.runs]
    pair = verdict.board.difference(names.index("new"), names.index("default"))
    ours = difference(study.fitted, study.default)
    assert (*ours.interval(), ours.mean) == pytest.approx((*pair.interval(), pair.mean), rel=1e-9)


@pytest.mark.slow
def test_the_page_escapes_names_and_loads_nothing(two, tmp_path):
    page = tmp_path / "page.html"
    assert status(Collection, report, [str(two), f"out={page}", "decks=*deck*"]) == 0
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert not re.search(r"(?:src|href)=.(?!data:)", html)
    assert "prefers-color-scheme: dark" in html


@pytest.mark.slow
def test_presets_that_do_not_differ_need_one_list(tmp_path):
    log = simulated(15)
    preset = np.random.default_rng(0).integers(0, 2, log.card.max() + 1)[log.card]
    study = study_of(write(tmp_path / "one.anki2", [(log, preset)], (HARD, EASY)), {})
    assert study.several is not study.fitted is study.one
    assert set(fitted_lists(study)) == {None}


def test_names_that_differ_at_their_end_have_labels_that_do():
    one, other = (
        Mark(
            f"AP Biology--Previous::Chapter {n}", 0.9, 0.8, 1.0, 0.9, stands_out=False, reviews=66
        ).label
        for n in (1, 2)
    )
    assert one != other
    assert len(one) == len(other) == 25
