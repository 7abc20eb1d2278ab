"""A result in memory and the same from its folder; half a file is never one."""

import json
import math
from dataclasses import MISSING, fields, replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from same import assert_same
from saved import InMemory, load_predictions, write_predictions

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.errors import ConfigError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.summary import MetricSummary
from srs_eval.nouns import Curves, Fit, Predictions
from srs_eval.nouns.predictions import concatenate, read_only, select
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import Summary, files, load, save, tables
from srs_eval.results.coverage import Coverage, LeftOut
from srs_eval.results.folder import is_run
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
    floats = ("p", "elapsed_days", "train_rate")
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
        f.name: {"str": "x", "int": 7, "int | None": 7, "bool": True, "float": 0.5}[f.type]
        for f in fields(Summary)
        if f.default is not MISSING and f.type in ("str", "int", "int | None", "bool", "float")
    }
    failed = LeftOut("failed", "no", 6, 60, {"x": 3}, {"y": (1, 2)})
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


@pytest.mark.parametrize(
    "content",
    [
        *([], 3, {}),
        *(
            {"label": "x", name: -1}
            for name in ("fits", "metrics", "tags", "notes", "protocol", "sees_truth")
        ),
    ],
)
def test_a_summary_that_is_something_else_is_refused(content, tmp_path):
    (tmp_path / files.SUMMARY).write_text(str(content).replace("'", '"'))
    with pytest.raises(ConfigError):
        load(tmp_path)
    if isinstance(content, dict):  # also where all other files are as they should be
        assert Summary.from_json({"label": "x"}).label == "x"
        with pytest.raises((LookupError, TypeError, ValueError)):
            Summary.from_json(content)


def test_what_was_saved_is_loaded(result, tmp_path):
    facts = replace(result.facts, label="fsrs6(fit=default)", tags={"a": "b"})
    saved = save(replace(result, facts=facts), tmp_path)
    again = load(tmp_path)
    assert repr(again.facts) == repr(saved.facts)
    assert again.facts.label == "fsrs6(fit=default)"
    assert tuple(again.fitted) == result.fitted
    assert (again.by_user.users, again.by_user.rows) == ((3, 1), result.by_user.rows)
    np.testing.assert_array_equal(again.by_user.values, result.by_user.values)
    for ours, theirs in zip(again.predicted, result.predicted, strict=True):
        assert_same(ours, theirs)
    assert again.predicted.read(3, curves=False).curves is None
    assert again.predicted.read("nobody") is None
    assert again.folder == saved.folder == tmp_path
    save(again, tmp_path / "other")
    for name in files.RESULTS:
        assert (tmp_path / "other" / name).read_bytes() == (tmp_path / name).read_bytes()


def test_a_result_that_could_not_be_saved_is_not_there(result, tmp_path, monkeypatch):
    def fail(*_, **options):
        raise OSError(28, "No space left on device")

    save(result, tmp_path)
    monkeypatch.setattr(files, "write_table", fail)
    with pytest.raises(OSError, match="No space"):
        save(result, tmp_path)
    assert not is_run(tmp_path)


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
        *("day", "elapsed_days", "nth_review", "lapses", "last_rating", "recalls", "train_rate"),
    ]
    assert set(columns["user"].to_pylist()) == {"ann"}
    bare = replace(single, curves=None, elapsed_days=None, nth_review=None, lapses=None)
    write_predictions(tmp_path, bare)
    assert not (tmp_path / files.CURVES).exists()
    assert_same(load_predictions(tmp_path), bare)


def test_fits_come_back_with_and_without_parameters():
    ok = Fit(3, 0, "ok", seconds=0.25, n_train=7, n_test=5, parameters=(0.5, -2.0))
    fits = (
        replace(ok, standard_errors=(0.1, 0.2)),
        Fit(3, 1, "failed", "ValueError: no", n_train=7, n_test=5, traceback="Traceback …\n  x"),
        Fit(3, 2, "fallback", "too few second reviews", parameters=(1.0,)),
        Fit(4, -1, "skipped", "user 4: too few"),
    )
    for some in (fits, fits[1::2]):
        assert tables.read_fits(tables.fits_table(some)) == some


def test_json_has_null_for_what_is_no_number(tmp_path):
    content = {"a": math.nan, "b": [math.inf, 1.5, {"c": -math.inf}], 3: (1, "ä"), "d": None}
    files.write_json(tmp_path / "it.json", content)
    text = (tmp_path / "it.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert json.loads(text) == {"a": None, "b": [None, 1.5, {"c": None}], "3": [1, "ä"], "d": None}
    assert files.read_json(tmp_path / "it.json") == json.loads(text)
