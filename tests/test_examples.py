"""Each example does what its page says."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import watch
from anki_files import ROWS, collection, opened
from bench_module import BenchModule, ModuleModel
from cases import rest_nightly
from clanki import TABLES, ClankiCollection
from commands import QUIET, SMALL, run_here
from evidence import either, first_alarm, log_evidence
from mlflow import MlflowClient
from simulated_app import log_of
from trial import fitted

import srs_eval as se
from srs_eval.algorithms.half_life import Hlr
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ReviewLogError
from srs_eval.protocol.srs_benchmark import SrsBenchmark

EXAMPLES = Path(__file__).parents[1] / "examples"
LEVEL = 0.01
QUESTION = watch.Question("champion", "challenger", 0.9, tolerance=0.01)

PLUG_INS = sorted(path for path in EXAMPLES.glob("*/conf/algo/*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("option", rest_nightly(PLUG_INS), ids=lambda path: path.stem)
def test_a_plug_in_is_tried_for_lookahead_and_runs_from_its_option_file(
    option, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ["--config-dir", str(option.parents[1]), f"algo={option.stem}", *SMALL, *QUIET]
    assert run_here([*words, "hydra.run.dir=run"]) == 0
    assert math.isfinite(se.load("run").scores["log_loss"].mean())


def test_a_module_predicts_what_the_same_equations_do_in_the_engine():
    module = BenchModule(short=False)
    source = SyntheticUsers(users=1, seed=2, size_scale=0.1)
    task = SrsBenchmark()(source.read(1), same_day=module.same_day)
    reviews, fold = task.reviews, task.folds[-1]
    start = ModuleModel(module.constructed(whole_days=True).eval())
    elapsed = np.outer(reviews.elapsed[fold.test], [0.5, 1.0, 3.0])
    level, passes, failures = start.parameters
    equal = fitted(Hlr(fit="default", parameters=(passes, failures, level)), reviews, fold.train)
    expected = equal.predict_at(reviews, fold.test, elapsed)
    assert start.predict_at(reviews, fold.test, elapsed) == pytest.approx(expected, abs=1e-4)


def test_alarms_without_a_difference_are_as_rare_as_promised():
    """A whole day is easier or harder for everyone, and for a user; weekends have fewer reviews."""
    rng, day, alarms = np.random.default_rng(11), np.arange(365), []
    below = 0.03 * (np.sin(day / 15) - 1) - 0.1 * (day > 200)  # swings below 0, and falls at once
    for _ in range(200):
        size = (365, 15)
        reviews = rng.poisson(np.where(day % 7 < 5, 10, 3)[:, None], size) + 1
        effect = rng.normal(0, 0.05, 365)[:, None] + rng.normal(0, 0.1, size)
        p = rng.uniform(0.85, 0.95, size)
        true = np.clip(p + np.clip(effect, -0.05, 0.05), 0, 1)
        count = reviews.sum(axis=1)
        x = (rng.binomial(reviews, true) - reviews * p).sum(axis=1) / count
        independent = (reviews * p * (1 - p)).sum(axis=1) / count**2
        log_e = either(log_evidence(x, independent), log_evidence(-x, independent))
        alarms.append(first_alarm(log_e, LEVEL) is not None)
        assert first_alarm(log_evidence(x + below, independent), LEVEL) is None
    assert np.mean(alarms) <= LEVEL


def alarms(**options):
    frame = log_of(np.random.default_rng(4), **options)
    days, _ = watch.days_of(se.source(frame, p=QUESTION.columns), QUESTION)
    return {name for name, test in watch.judged(days, QUESTION).items() if test.reached is not None}


def test_alarms_are_of_planted_differences_only():
    assert alarms(users=6, better=0.0) == set()
    assert watch.CALIBRATION in alarms(better=0.0, bias=0.04)
    assert alarms() - {watch.CALIBRATION} == {watch.BETTER}


@pytest.mark.nightly
def test_the_alias_of_the_watch_moves_once_and_only_on_proof(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = f"sqlite:///{tmp_path / 'm.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    log_of(np.random.default_rng(4)).to_parquet("log.parquet")
    client = MlflowClient(store)
    client.create_registered_model("recall")
    for number, alias in (("1", "champion"), ("2", "challenger")):
        client.create_model_version("recall", source=str(tmp_path))
        client.set_registered_model_alias("recall", alias, number)

    def night(until, *words):
        names = "--champion champion --challenger challenger --retention 0.9 --tolerance 0.01"
        words = ("--promote", "recall", "--until", until, *words)
        status = watch.main(["log.parquet", "user=user", *names.split(), *words])
        champion = client.get_model_version_by_alias("recall", "champion").version
        return status, str(champion), json.loads(capsys.readouterr().out)

    status, champion, first = night("2026-03-20")
    assert (status, champion, first["days"], first["promotion"]) == (0, "1", 17, None)
    status, champion, would = night("2026-04-20", "--dry-run")
    assert (status, champion, would["promotion"]["after"]) == (watch.ALARM, "1", "2")
    status, champion, last = night("2026-04-20")
    assert (status, champion, last["alarms"]) == (watch.ALARM, "2", [watch.BETTER])
    # once: whoever moves it back has a reason
    client.set_registered_model_alias("recall", "champion", "1")
    _, champion, later = night("2026-04-25")
    assert (champion, later["promotion"]) == ("1", last["promotion"])
    with pytest.raises(ValueError, match="begin another watch"):  # what is asked stays the same
        night("2026-04-25", "--level", "0.05")


def test_predictions_of_clanki_are_those_that_did_not_know_the_answer(tmp_path):
    """Of a review the newest, and none of a final fit, but of frozen weights."""
    log, cache = collection(tmp_path / "collection.anki2"), tmp_path / "cache.sqlite"
    stored = {
        "fsrs7": [(0, 0.1, "final_fit"), (1, 0.2, "test_fold"), (2, 0.3, "post_optimization")],
        "rwkv_curve": [(0, 0.5, "final_fit"), (0, 0.6, "final_fit"), (9, 0.7, "final_fit")],
    }
    columns = "revlog_id, prediction, sample_role, updated_at, fold_index, source"
    with opened(cache) as database:
        for name, rows in stored.items():
            database.execute(f"create table {TABLES[name]} ({columns})")
            for age, (review, p, role) in enumerate(rows):
                values = (ROWS[review][0] if review < len(ROWS) else 9, p, role, age, 0, "a")
                database.execute(f"insert into {TABLES[name]} values (?, ?, ?, ?, ?, ?)", values)
    source = ClankiCollection(log, predictions=cache)
    reviews = source.read("collection")
    assert reviews.recorded_names == ("fsrs7", "rwkv_curve")
    expected = [[np.nan, 0.6], [0.2, np.nan], [0.3, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(reviews.recorded, expected)
    with opened(cache) as database:
        database.execute(f"update {TABLES['fsrs7']} set prediction = 1.5")
    with pytest.raises(ReviewLogError):
        source.read("collection")
