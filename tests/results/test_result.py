"""A result in memory and the same from its folder, and what is said of misleading scores."""

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from saved import InMemory, assert_same, load_predictions, write_predictions

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.errors import ConfigError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.summary import MetricSummary
from srs_eval.nouns import Curves, Predictions
from srs_eval.nouns.predictions import concatenate, read_only, select
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import Summary, files, load, save
from srs_eval.results.coverage import Coverage, LeftOut
from srs_eval.results.remarks import at_retention, mean_of, sentences, too_few, warnings
from srs_eval.results.remarks import those_worse_than_a_constant as worse_runs
from srs_eval.results.remarks import worse_than_a_constant as worse
from srs_eval.results.run import Run
from srs_eval.run.evaluate import evaluate
from srs_eval.run.experiment import Experiment

FSRS6 = Fsrs6(fit="default")


@pytest.fixture
def result(logs_of):
    panel = Panel([LogLoss(), Brier()])
    source = logs_of(3, 1)
    return evaluate(Experiment(FSRS6, source, SrsBenchmark(), panel, curves_per_user=12))


def every_column(user, seed):
    """Predictions with a value in every field there is."""
    rng, n = np.random.default_rng(seed), 7
    kinds = {"recalled": rng.random(n) < 0.5, "row": np.arange(n)}
    floats = ("p", "elapsed_days")
    columns = {
        f.name: kinds.get(f.name, rng.random(n) if f.name in floats else rng.integers(0, 9, n))
        for f in fields(Predictions)
        if f.name not in ("users", "user", "curves")
    }
    grid = rng.random((2, 3))
    curves = Curves(np.zeros(2, int), np.zeros(2, int), np.arange(2), grid.cumsum(1), grid, grid)
    return Predictions(users=(user,), user=np.zeros(n, np.int64), curves=curves, **columns)


def test_no_column_is_forgotten_anywhere(result, tmp_path):
    parts = {user: every_column(user, user) for user in (5, 2)}
    assert not any(getattr(parts[5], f.name) is None for f in fields(Predictions))
    save(replace(result, predicted=InMemory(parts)), tmp_path)
    for user, part in parts.items():
        assert_same(load(tmp_path).predicted.read(user), part)
    together = concatenate(list(parts.values()))
    assert_same(load_predictions(tmp_path), together)
    assert_same(read_only(select(together, slice(None))), together)
    for f in fields(Predictions):
        if isinstance(getattr(together, f.name), np.ndarray):
            assert len(getattr(select(together, slice(3)), f.name)) == 3


def test_no_field_of_a_summary_is_forgotten(tmp_path):
    row = MetricSummary(0.5, 1.0, 2.0, 0.1, 0.9, 3, 2.5, np.nan, 1.0)
    changed = {
        f.name: {"str": "x", "int": 7, "Count": 7, "Told": 7, "bool": True, "float": 0.5}[f.type]
        for f in fields(Summary)
        if f.default is not MISSING and f.type in ("str", "int", "Count", "Told", "bool", "float")
    }
    failed = LeftOut("failed", "no", 6, 60, {"x": 3}, {"y": {"users": 1, "reviews": 2}})
    summary = Summary(
        **changed | {"when": "at_review"},
        metrics={"log_loss": row},
        thresholds=({"threshold": 0.9, "tp": np.nan},),
        left_out={"manual": 2},
        coverage=Coverage(9, 90, 3, 30, (failed,), {"x": 1}, {"y": 2}),
        notes=("a",),
        fit_notes=("b",),
        tags={"config_hash": "c"},
    )
    assert not any(getattr(summary, f.name) == getattr(Summary(), f.name) for f in fields(Summary))
    files.write_json(tmp_path / files.SUMMARY, summary.as_json())
    again = Summary.from_json(files.read_json(tmp_path / files.SUMMARY))
    assert repr(again) == repr(summary)


def test_users_who_failed_for_several_reasons_are_counted_together():
    failed = [LeftOut("failed", f"{n}", n, 0) for n in (1, 2)]
    failed += [LeftOut("failed", f"{n} known", n, 10 * n) for n in (4, 8)]
    told = Coverage(15, 120, 0, 0, tuple(failed)).sentences(bare=("failed",))[1]
    assert told == "Failed: 3 users whose reviews are not counted, and 12 users with 120 reviews"


def test_a_pipe_is_written_into_and_stays_one(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text)
        files.write_text(pipe, "x")
        assert read.result() == "x"
    assert pipe.is_fifo()


WRONG = {
    **dict.fromkeys(["fits", "metrics", "tags", "notes", "protocol", "sees_truth", "when"], -1),
    **{"is_validation": "yes", "pretrained": 1, "seed": "3", "left_out": {"x": 2.5}},
    "thresholds": [{"tp": "1"}],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_summary_that_is_something_else_is_refused(name, tmp_path):
    wrong = {"label": "x", name: WRONG[name]}
    for content in ([], 3, {}, wrong):
        (tmp_path / files.SUMMARY).write_text(json.dumps(content))
        with pytest.raises(ConfigError):
            load(tmp_path)
    written = {"label": "x", "tags": {"protocol_version": 2}}  # by an earlier release
    assert Summary.from_json(written).tags == {"protocol_version": "2"}
    for content in ({}, wrong):  # also where all other files are as they should be
        with pytest.raises((LookupError, TypeError, ValueError)):
            Summary.from_json(content)


def test_data_frames_show_what_the_values_are(result):
    assert result.scores.index.tolist() == [3, 1]
    assert result.scores["log_loss"].tolist() == result.by_user.values[:, 0].tolist()
    assert result.summary.loc["brier", "mean_users"] == result.facts.metrics["brier"].mean_users
    assert len(result.fits) == len(result.fitted) == 10
    assert len(result.predictions) == result.facts.reviews
    assert set(result.predictions["user"]) == {3, 1}
    parts = {user: every_column(user, 1) for user in (5, "ann")}
    shown = replace(result, predicted=InMemory(parts)).predictions
    assert shown["user"].unique().tolist() == ["5", "ann"]  # of both kinds: as text


def test_a_result_of_nothing_can_be_shown_and_saved(make_log, logs_of, tmp_path):
    source = logs_of(make_log(cards=1))
    nothing = evaluate(Experiment(Average(), source, SrsBenchmark(), default_panel()))
    assert nothing.facts.users == 0
    assert len(nothing.predictions) == len(nothing.scores) == 0
    assert len(replace(nothing, facts=Summary()).summary) == 0
    again = load(save(nothing, tmp_path).folder)
    assert again.facts.skipped == 1
    assert list(again.predicted) == []


def test_anybody_can_read_predictions_and_what_is_missing_comes_back(logs_of, tmp_path):
    work = EvaluateUser(logs_of("ann"), Average(), SrsBenchmark(), seed=0, curves=0)
    predictions = work("ann").predictions
    single = replace(predictions, p=predictions.p.astype(np.float32))
    write_predictions(tmp_path, single)
    columns = pq.read_table(tmp_path / files.PREDICTIONS)
    assert columns.column_names == [
        *("user", "fold", "row", "card", "p", "recalled"),
        *("day", "elapsed_days", "nth_review", "lapses", "last_rating", "recalls"),
    ]
    assert set(columns["user"].to_pylist()) == {"ann"}
    bare = replace(single, curves=None, elapsed_days=None, nth_review=None, lapses=None)
    write_predictions(tmp_path, bare)
    assert not (tmp_path / files.CURVES).exists()
    assert_same(load_predictions(tmp_path), bare)


def test_json_has_null_for_what_is_no_number(tmp_path):
    content = {"a": math.nan, "b": [math.inf, 1.5, {"c": -math.inf}], 3: (1, "ä"), "d": None}
    files.write_json(tmp_path / "it.json", content)
    text = (tmp_path / "it.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert json.loads(text) == {"a": None, "b": [None, 1.5, {"c": None}], "3": [1, "ä"], "d": None}
    assert files.read_json(tmp_path / "it.json") == json.loads(text)


NAN = math.nan


def run_with(name="ours", reviews=200, **scores):
    users = range(len(next(iter(scores.values()))))
    return Run(
        name=name,
        place=Path("nowhere"),
        rows=dict.fromkeys(users, "digest"),
        reviews=dict.fromkeys(users, reviews),
        scores={key: np.array(values, np.float64) for key, values in scores.items()},
        facts=Summary(forgotten=40),
    )


CHEAT = run_with("cheat", auc=[1.0])
METRIC = MetricSummary(1.2, NAN, NAN, 1.1, 1.3, 1, NAN)
OF_ONE = replace(
    run_with(reviews=300, normalized_entropy=[1.2]),
    facts=Summary(metrics={"normalized_entropy": METRIC}),
)
SEVERAL = [
    run_with(name, normalized_entropy=ratios)
    for name, ratios in [("good", [0.9, 0.9]), ("bad", [1.5, 0.7]), ("worse", [2.0, 3.34])]
]
SAID = {
    "reads the outcome": lambda: warnings(CHEAT),
    "worse, of one user with an interval": lambda: sentences(OF_ONE),
    "several runs": lambda: worse_runs(SEVERAL, [0, 1]),
    "one user of several runs": lambda: worse_runs(SEVERAL, [1]),
}


def test_what_is_said_of_runs(golden_text):
    lines = [line for name, said in SAID.items() for line in (f"{name}:", *said(), "")]
    golden_text("remarks", "\n".join(lines))


def test_what_is_said_of_scores_and_from_which_on(transcript):
    def told_by(*words):
        scores = {name: json.loads(value) for name, value in (word.split("=") for word in words)}
        users, reviews = (scores.pop(name, None) for name in ("users", "reviews"))
        run = run_with(**scores)
        run = replace(run, reviews=dict(enumerate(reviews))) if reviews else run
        users = range(len(run.rows)) if users is None else users
        said = [*sentences(run), worse(run, users), *worse_runs([run], users)]
        said += [*at_retention(run, users), *warnings(run, users)]
        return "\n".join([*filter(None, said), ""])

    transcript("remarks_on_scores", told_by)


def test_a_model_that_reads_the_outcome_is_asked_whether_it_does():
    assert warnings(replace(CHEAT, facts=replace(CHEAT.facts, sees_truth=True))) == []
    for forgotten, is_said in ((9, False), (10, True), (0, True)):
        assert bool(warnings(replace(CHEAT, facts=Summary(forgotten=forgotten)))) == is_said
    for reviews, is_said in ((99, False), (100, True)):
        assert bool(warnings(replace(CHEAT, reviews={0: reviews}))) == is_said


def test_scores_of_a_handful_of_reviews_come_with_a_warning():
    counts = [(100, 10), (100, 90), (99, 50), (500, 9), (500, 491)]
    assert [too_few(*each) == [] for each in counts] == [True, True, False, False, False]


def test_of_a_single_user_the_interval_of_the_run_counts_if_it_is_of_these_reviews():
    assert mean_of(OF_ONE, "normalized_entropy", [0]).lo == 1.1
    restricted = replace(OF_ONE, scores={"normalized_entropy": np.array([1.25])})
    assert math.isnan(mean_of(restricted, "normalized_entropy", [0]).lo)
