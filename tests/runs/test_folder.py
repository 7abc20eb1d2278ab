"""The folder of a run: whatever is written comes back, and what is damaged is named."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from invented import Logs
from pydantic_core import PydanticSerializationError
from saved import assert_same, load_predictions, run_of, setup_of

from srs_eval.algorithms.algorithm import Contribution, Part
from srs_eval.algorithms.baselines import Average
from srs_eval.errors import ConfigError, FolderInUseError
from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import score_user
from srs_eval.metrics.means import MetricSummary
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.predictions import Curves, Predictions, concatenate
from srs_eval.metrics.scores import brier, log_loss
from srs_eval.runs import folder as files
from srs_eval.runs.evaluation import Checkpoint, added_up
from srs_eval.runs.folder import Run, runs_below
from srs_eval.runs.summary import Counts, Coverage, LeftOut, Summary

PANEL = Panel([log_loss, brier], pooled=False)


def every_column(user, seed, kind=np.float64):
    """Predictions with a value in every field there is."""
    rng, n = np.random.default_rng(seed), 7
    kinds = {"recalled": rng.random(n) < 0.5, "row": np.arange(n), "p": rng.random(n).astype(kind)}
    kinds["elapsed_days"] = rng.random(n)
    columns = {
        f.name: kinds.get(f.name, rng.integers(1, 9, n))
        for f in fields(Predictions)
        if f.name not in ("users", "user", "curves")
    }
    grid = rng.random((2, 3))
    of_reviews = np.zeros(2, int), columns["fold"][:2], np.arange(2)
    curves = Curves(*of_reviews, grid.cumsum(1), grid, grid)
    return Predictions(users=(user,), user=np.zeros(n, np.int64), curves=curves, **columns)


def saved(folder, *every, fits=None):
    """Save predictions of users as a run."""
    setup = setup_of(Average(), Logs({}), PANEL)
    checkpoint, users = Checkpoint(folder, setup.stamp), [each.users[0] for each in every]
    for user, each in zip(users, every, strict=True):
        evaluation = UserEvaluation(user, fits or (Fit(user, 0, "ok"),), each, ReviewLog(len(each)))
        checkpoint.write(score_user(evaluation, PANEL))
    return files.save(added_up(setup, users, checkpoint), folder)


def test_no_column_is_forgotten(tmp_path):
    parts = [every_column(user, user) for user in (5, 2)]
    for run in (saved(tmp_path, *parts), Run.read(tmp_path)):
        for part in parts:
            assert_same(run.predictions(*part.users), part)
        assert list(run.every_prediction())[1].users == (2,)
        assert run.predictions("nobody") is None
    assert_same(load_predictions(tmp_path), concatenate(parts))
    bare = replace(parts[0], curves=None, elapsed_days=None, nth_review=None, lapses=None)
    saved(tmp_path, bare)
    assert not (tmp_path / files.CURVES).exists()
    assert_same(load_predictions(tmp_path), bare)


def test_users_of_both_kinds_and_precisions_share_a_file(tmp_path):
    single, double = every_column(7, 1, np.float32), every_column("ann", 2)
    run = saved(tmp_path, single, double)
    assert run.by_user.complete == ("7", "ann")  # by text, in every file
    assert [fit.user for fit in run.fits()] == ["7", "ann"]
    assert run.predictions("7").p.tolist() == single.p.tolist()
    assert run.predictions("ann").p.dtype == np.float64


def test_the_summary_comes_last_so_that_half_a_run_is_none(tmp_path, monkeypatch):
    saved(tmp_path, every_column(1, 1))
    write = files._write

    def full(path, tables):
        if path.name == files.SCORES:
            raise OSError("no space left on device")
        write(path, tables)

    monkeypatch.setattr(files, "_write", full)
    with pytest.raises(OSError, match="no space"):
        saved(tmp_path, every_column(1, 2))
    assert runs_below(tmp_path) == []


def test_no_field_of_a_fit_is_forgotten(tmp_path):
    part = Part("all", "base", (1.0,), (math.inf,), 3, standalone=True, title="t")
    fit = Fit(
        *(4, 0, "fallback", "why", 1.5, 10, 20, (0.1, 0.2), (0.3, 0.4), "a trace", (part,), False),
        contributions=(Contribution("x", 0.1, 0.2),),
        training_loss=(0.7, 0.5),
        test_log_loss=(0.8, 0.6),
    )
    default = Fit(4, 0, "ok")
    names = [f.name for f in fields(Fit) if f.name not in ("user", "fold")]
    assert not any(getattr(fit, name) == getattr(default, name) for name in names)
    run = saved(tmp_path, every_column(4, 1), fits=(fit, default))
    assert list(run.fits()) == [fit, default]
    assert (run.facts.fallback, run.facts.not_converged) == (1, 1)


def test_no_field_of_a_summary_is_forgotten_and_a_file_is_whole_or_as_it_was(tmp_path):
    row = MetricSummary(0.5, 1.0, 2.0, 0.1, 0.9, 3, 2.5, np.nan, 1.0)
    values = {"str": "x", "int": 7, "bool": True, "float": 0.5}
    counts = Counts(9, 3, 0, 6, {"x": 1}, {"y": 2})
    summary = Summary(
        **{f.name: values[f.type] for f in fields(Summary) if f.type in values},
        metrics={"log_loss": row},
        thresholds=({"threshold": 0.9, "tp": np.nan},),
        left_out={"manual": 2},
        coverage=Coverage(counts, counts, (LeftOut("failed", "no", 6, 60),)),
        tags={"config_hash": "c"},
    )
    usual, file = Summary(""), tmp_path / "it.json"
    same = [f.name for f in fields(Summary) if getattr(summary, f.name) == getattr(usual, f.name)]
    assert same == []
    files.write_json(file, asdict(summary))
    text = file.read_text()
    assert "NaN" not in text
    assert repr(Summary.from_json(json.loads(text))) == repr(summary)
    with pytest.raises(PydanticSerializationError):
        files.write_json(file, {"a": object()})
    with pytest.raises(UnicodeEncodeError), files.whole(file) as partial:
        partial.write_text("no text: \ud800", encoding="utf-8")
    assert (file.read_text(), [*tmp_path.iterdir()]) == (text, [file])


def test_anybody_can_read_a_run_and_what_is_damaged_is_named(logs_of, tmp_path):
    run_of(setup_of(Average(), logs_of(3, 1), PANEL), tmp_path)

    def read():
        run = Run.read(tmp_path)
        return [*run.every_prediction(), *run.fits()]

    assert read()
    assert pq.read_schema(tmp_path / files.PREDICTIONS).names == [
        *("user", "fold", "row", "card", "p", "recalled"),
        *("day", "elapsed_days", "nth_review", "lapses", "last_rating", "recalls"),
    ]
    for name in (files.SUMMARY, files.SCORES, files.PREDICTIONS, files.FITS):
        file = tmp_path / name
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])
        with pytest.raises(ConfigError, match=str(file)):
            read()
        file.write_bytes(content)
    for content in ([], 3, {}, {"label": "x", "users": "many"}, {"label": "x", "metrics": -1}):
        (tmp_path / files.SUMMARY).write_text(json.dumps(content))
        with pytest.raises(ConfigError, match=r"summary\.json"):
            read()
    (tmp_path / files.SCORES).unlink()
    with pytest.raises(ConfigError, match="folder of a finished run"):
        read()


def test_a_run_of_nothing_can_be_saved_and_read(make_log, logs_of, tmp_path):
    run = run_of(setup_of(Average(), logs_of(make_log(cards=1)), default_panel()), tmp_path)
    assert (run.facts.users, run.facts.skipped, run.has_predictions) == (0, 1, False)
    assert list(run.every_prediction()) == []
    for summary in run.facts.metrics.values():
        assert np.isnan([summary.mean_users, summary.pooled, summary.lo]).all()
    assert runs_below(tmp_path) == [tmp_path]


def test_a_folder_has_one_command_or_shards_with_a_claim_each(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_SECONDS", 0)  # that a shard waits for another

    def claim(shard):
        with files.claimed(tmp_path, shard):
            return False

    def is_refused(shard=None):
        with ThreadPoolExecutor(1) as pool:  # as another command
            return isinstance(pool.submit(claim, shard).exception(), FolderInUseError)

    with files.claimed(tmp_path):
        assert not claim(None)  # the same command
        assert is_refused()
        assert is_refused("1/2")
    assert not is_refused()
    with files.claimed(tmp_path, "1/2"):
        assert is_refused()
        assert is_refused("1/2")
        assert not is_refused("2/2")
