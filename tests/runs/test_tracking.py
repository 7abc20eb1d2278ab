"""Runs in MLflow, as its own client reads them."""

import json
import time
from contextlib import chdir, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import mlflow
import numpy as np
import pandas as pd
import PIL.Image
import pyarrow.parquet as pq
import pytest
from commands import write
from mlflow import MlflowClient
from saved import entry_with, run_of

from srs_eval.comparison.compare import Report, compare
from srs_eval.errors import ConfigError, Pruned, ReviewLogError, TrackingError
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.panel import HEADLINE
from srs_eval.metrics.predictions import select
from srs_eval.metrics.score import score
from srs_eval.runs import config, mlflow_store, tracking
from srs_eval.runs.compute import Serial
from srs_eval.runs.folder import FITS, fits_table
from srs_eval.runs.tracking import Mlflow

pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with chdir(folder):  # MLflow keeps files beside the store
        uri = f"sqlite:///{folder / 'mlflow.db'}"
        Mlflow(uri=uri).has("0" * 32)
        yield uri


@pytest.fixture(scope="module")
def setup():
    values = {"data.users": 3, "data.max_reviews": 600, "tags.paper": "one", "notes": "a note"}
    cfg, choices = config.composed({"algo": "hlr", "data": "synthetic", "panel": "quick"}, values)
    built = config.build(cfg, choices, objects={"compute": Serial(), "tracking": None})
    return replace(built, words=["data.users=3", "+tags.paper=one"])


@pytest.fixture(scope="module")
def run(setup, tmp_path_factory):
    return run_of(setup, tmp_path_factory.mktemp("run"))


@pytest.fixture
def client(uri):
    return MlflowClient(uri)


@pytest.fixture
def tracker(uri):
    return Mlflow(uri=uri)


@pytest.fixture
def logged(setup, run, tracker):
    """Log a run, by default that of this module."""

    def log(run=run, figures=(), run_id=None, tracker=tracker):
        with tracker.run(setup, run.folder, run_id) as tracked:
            tracked.log(run, "hlr on synthetic\nthe rest", figures)
        return tracked

    return log


def files_of(client, run_id, *folders):
    files = (file for folder in folders for file in client.list_artifacts(run_id, folder))
    return [file.path for file in files if not file.is_dir]


def test_a_run_has_its_settings_numbers_data_tables_figures_and_files(
    client, tracker, logged, run, tmp_path
):
    figure = tmp_path / "calibration.png"
    PIL.Image.new("RGB", (60, 40), "white").save(figure)
    run_id = logged(figures=[figure]).run_id
    assert logged(figures=[figure], run_id=run_id).run_id == run_id  # as after a kill
    assert tracker.has(run_id)
    kept, facts = client.get_run(run_id), run.facts
    assert (kept.info.run_name, kept.info.status) == ("hlr on synthetic", "FINISHED")
    params, metrics = kept.data.params, kept.data.metrics
    chosen = {"algo": "hlr", "data": "synthetic", "protocol": "srs_benchmark", "panel": "quick"}
    assert {**chosen, "seed": "2026", "data.users": "3"}.items() <= params.items()
    assert "None" not in params.values()
    loss = facts.metrics["log_loss"]
    expected = {
        "test/log_loss": loss.mean_users,
        "test/log_loss_low": loss.lo,
        "test/log_loss_high": loss.hi,
        "rests_on/reviews": facts.reviews,
        "rests_on/users_read": 3,
        "fits/failed": 0,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    tags = {name: text for name, text in kept.data.tags.items() if not name.startswith("mlflow.")}
    expected = {"paper": "one", "when": "previous_review", "output": str(run.folder)}
    assert {**expected, "rows_fingerprint": facts.rows_fingerprint}.items() <= tags.items()
    note = kept.data.tags["mlflow.note.content"].splitlines()
    assert note[0] == f"**log loss {loss.mean_users:.4f} [{loss.lo:.4f}, {loss.hi:.4f}]**"
    assert note[-1] == "a note"
    (dataset,) = kept.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("synthetic", facts.rows_fingerprint)
    files = files_of(client, run_id, "results", "figures", "tables")
    assert {"results/summary.json", "figures/calibration.png", "tables/thresholds.json"} <= {*files}
    table = json.loads(Path(client.download_artifacts(run_id, "tables/metrics.json")).read_text())
    assert [row[0] for row in table["data"]] == [*facts.metrics]


def test_learning_curves_are_means_over_fits_and_one_that_ends_stays_where_it_is(
    client, logged, run, tmp_path
):
    losses = ((0.5, 0.3, 0.1), (0.4, 0.2), ())
    fits = [Fit(1, fold, "ok", training_loss=each) for fold, each in enumerate(losses)]
    pq.write_table(fits_table(fits), tmp_path / FITS)
    facts = replace(run.facts, metrics={}, users=0)  # it has no scores
    run_id = logged(replace(run, folder=tmp_path, facts=facts)).run_id
    curve = client.get_metric_history(run_id, "learning/training_loss")
    steps = [(each.step, round(each.value, 9)) for each in curve]
    assert steps == [(1, 0.45), (2, 0.25), (3, 0.15)]
    assert client.get_metric_history(run_id, "learning/test_log_loss") == []
    metrics = client.get_run(run_id).data.metrics
    assert ("test/log_loss" in metrics, metrics["rests_on/users_read"]) == (False, 3)


def test_a_new_experiment_has_a_view_which_the_link_opens(uri, client, logged):
    tracked = logged(tracker=Mlflow(uri=uri, experiment="viewed"))
    kept = client.get_experiment_by_name("viewed")
    link = tracked.store.link()
    assert f"mlflow.sharedViewState.{link.partition('viewStateShareKey=')[2]}" in kept.tags
    assert f"#/experiments/{kept.experiment_id}/runs?workflowType=machine_learning" in link
    state = json.loads(mlflow_store._VIEW_FILE.read_bytes())
    shown = {chart["metricKey"] for chart in state["compareRunCharts"] if "metricKey" in chart}
    metrics = client.get_run(tracked.run_id).data.metrics
    assert shown <= {f"test/{name}" for name in tracking.SHOWN}
    assert {"test/log_loss", "test/auc"} <= shown & metrics.keys()


@pytest.mark.parametrize(("error", "status"), [(LookupError, "FAILED"), (Pruned, "KILLED")])
def test_a_run_that_is_left_ends_as_what_left_it_and_goes_on_later(
    client, tracker, setup, run, error, status
):
    with pytest.raises(error), tracker.run(setup, run.folder, None) as tracked:
        raise error
    run_id = tracked.run_id
    assert (client.get_run(run_id).info.status, tracker.has(run_id)) == (status, False)
    with tracker.run(setup, run.folder, run_id) as tracked:
        assert (tracked.run_id, client.get_run(run_id).info.status) == (run_id, "RUNNING")
        tracked.log(run, "text", [])
    assert tracker.has(run_id)


def test_a_run_with_failed_fits_has_failed_and_one_that_the_store_has_lost_begins_anew(
    client, tracker, logged, run
):
    failed = replace(run, facts=replace(run.facts, failed=1))
    first = logged(failed).run_id
    assert client.get_run(first).info.status == "FAILED"
    client.delete_run(first)
    assert [tracker.has(each) for each in (first, "0" * 32, "no id")] == [False] * 3
    assert logged(run_id=first).run_id != first


def test_jobs_of_a_sweep_are_nested_and_their_comparison_is_logged_to_the_parent(
    client, tracker, logged, tmp_path, monkeypatch
):
    parent = tracker.parent(tmp_path.name, "s1")
    assert tracker.parent(tmp_path.name, "s1", parent) == parent
    monkeypatch.setenv(tracking.PARENT, parent)
    job = logged().run_id
    assert client.get_run(job).data.tags["mlflow.parentRunId"] == parent
    file = tmp_path / "deep" / "report.html"
    write(tmp_path, {"deep/report.html": "x"})
    standings = compare([entry_with("hlr", {1: 200}, {"log_loss": [0.3]})])
    reports, jobs = [Report(standings, [file])], {standings.runs["hlr"].place: job}
    tracker.log_comparison(reports, tmp_path, parent, jobs=jobs)
    assert client.get_run(job).data.metrics["vs_baseline/log_loss_percent"] == 0
    tracker.log_comparison(reports, tmp_path)  # of the small command, to a run of its own
    mlflow_store.Store(tracker.uri, "srs_eval").end(parent, "KILLED", only_running=True)
    experiment = client.get_experiment_by_name("srs_eval").experiment_id
    kinds = {each.data.tags.get("kind"): each for each in client.search_runs([experiment])}
    assert kinds["sweep"].info.run_id == parent
    for each in (kinds["sweep"], kinds["comparison"]):
        assert (each.info.run_name, each.info.status) == (tmp_path.name, "FINISHED")
        files = files_of(client, each.info.run_id, "tables", "comparison/deep")
        assert files == ["tables/comparison_1.json", "comparison/deep/report.html"]


def test_the_run_of_mlflow_run_is_used_once_and_its_parameters_stay(client, logged, monkeypatch):
    project = client.create_experiment("project")
    own = client.create_run(project).info.run_id
    client.log_param(own, "algo", "what was typed")
    monkeypatch.setenv("MLFLOW_RUN_ID", own)
    tracked = logged()
    assert tracked.run_id == own
    assert f"/experiments/{project}/" in tracked.store.link()
    kept = client.get_run(own)
    assert (kept.info.status, kept.data.params["algo"]) == ("FINISHED", "what was typed")
    assert kept.data.params["data"] == "synthetic"
    assert logged().run_id != own


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://me:hush@host:5000/", "MLflow   http://host:5000/#/experiments/7/"),
        ("postgresql://me:hush@host/runs", '--backend-store-uri "$MLFLOW_TRACKING_URI"  #'),
        ("postgresql://me@host/runs", "--backend-store-uri postgresql://me@host/runs  #"),
        ("sqlite:///m.db", "--backend-store-uri sqlite:///m.db  #"),
    ],
)
def test_the_link_leads_to_the_store_and_has_no_password(uri, shown):
    store = object.__new__(mlflow_store.Store)
    file = Path.cwd() / "m.db" if "m.db" in uri else None
    vars(store).update(uri=f"sqlite:///{file}" if file else uri, file=file, experiment_id="7")
    assert shown in store.link()
    assert "hush" not in store.link()


AWAY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("address", "said", "kind"),
    [
        ("mlruns", "MLFLOW_ALLOW_FILE_STORE", ConfigError),
        (f"postgresql+psycopg://me:hidden-word@{AWAY}/runs", "127.0.0.1", TrackingError),
        (f"http://{AWAY}", f"{AWAY}: the server does not answer", TrackingError),
    ],
)
def test_an_address_where_no_runs_are_kept_is_refused_in_mlflows_words(
    address, said, kind, logged, monkeypatch
):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # MLflow tries ten times
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(kind, match=said) as refused:
        logged(tracker=Mlflow())
    assert len(str(refused.value).splitlines()) == 2
    assert "hidden-word" not in str(refused.value)


def test_a_lock_that_stays_is_an_error(uri, monkeypatch):
    def locked():
        raise OSError("(sqlite3.OperationalError) database is locked")

    monkeypatch.setattr(mlflow_store, "_PATIENCE", 0.5)
    with pytest.raises(TrackingError, match="another process has locked the database"):
        mlflow_store.Store(uri, "srs_eval").waiting(locked)()


@pytest.mark.nightly
def test_the_use_of_the_machine_is_logged(uri, client, setup, run, monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.2")
    with Mlflow(uri=uri, system_metrics=True).run(setup, run.folder, None) as tracked:
        time.sleep(1.5)
    metrics = client.get_run(tracked.run_id).data.metrics
    assert metrics["system/cpu_utilization_percentage"] >= 0


@pytest.fixture
def fluent(uri, tmp_path, monkeypatch):
    """Let MLflow's own functions use the store, which keep an experiment of another test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlflow.tracking.fluent._active_experiment_id", None)
    mlflow.set_tracking_uri(uri)
    yield
    mlflow.set_tracking_uri(None)


@pytest.mark.slow
@pytest.mark.usefixtures("fluent")
def test_predictions_get_the_panel_as_a_metric_of_mlflow():
    from srs_eval.runs.mlflow_metric import panel_metric

    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 1.0, 400)
    columns = {
        "elapsed_days": rng.integers(1, 50, 400).astype(float),
        "nth_review": rng.integers(2, 9, 400),
        "lapses": rng.integers(0, 3, 400),
        "card": rng.integers(0, 40, 400),
    }
    frame = pd.DataFrame({"p": p, "recalled": rng.random(400) < p, **columns})
    panel = {"targets": "recalled", "extra_metrics": [panel_metric()]}
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(data=frame, predictions="p", **panel)
    expected = score(frame["p"], frame["recalled"], **columns)
    logged = mlflow.get_run(run.info.run_id).data.metrics
    for name in HEADLINE:
        assert logged[f"test/{name}"] == result.metrics[f"test/{name}"] == expected[name]
    bounds = logged["test/log_loss_low"], logged["test/log_loss_high"]
    assert bounds == expected.intervals["log_loss"]


def assert_predicts_as(run, setup, predict):
    """Hold what is predicted of each review against a run, and so its scores."""
    log, last = setup.source.read(1), run.predictions(1)
    reviews = pd.DataFrame({"card": log.card, "elapsed_days": log.elapsed, "rating": log.rating})
    recall = predict(reviews)["recall"]
    last = select(last, last.fold == last.fold.max())
    np.testing.assert_allclose(recall.iloc[last.row], last.p, atol=1e-6)
    assert (recall.notna() == (reviews["elapsed_days"] >= 1)).all()


HISTORY = pd.DataFrame({"card": [1, 1, 2], "elapsed_days": [0.0, 3.0, 0.0], "rating": 3})


def test_a_model_built_from_its_parameters_predicts_as_its_run_did(setup, run, monkeypatch):
    from srs_eval.runs.mlflow_model import ServedMemoryModel, log_model

    monkeypatch.setattr("mlflow.start_run", nullcontext)
    model, average = ServedMemoryModel(), {"_target_": "srs_eval.algorithms.baselines.Average"}

    def log(artifacts, **_):
        model.load_context(SimpleNamespace(artifacts=artifacts))

    store = SimpleNamespace(waiting=lambda _: log)
    other = replace(setup, content={**setup.content, "algo": average})
    assert log_model(store, "", other, run).startswith("not kept: ")
    assert log_model(store, "", setup, run) == "kept: user 1, fold 4"
    assert_predicts_as(run, setup, lambda reviews: model.predict(None, reviews))
    for days, ratings, row in ((3, [3, 3, 5], 3), (3, [0, 3, 3], 1), (0.5, 3, 2), (-1, 3, 2)):
        wrong = HISTORY.assign(elapsed_days=[days] * 3, rating=ratings)
        with pytest.raises(ReviewLogError, match=f"row {row}: expected a rating"):
            model.predict(None, wrong)


@pytest.mark.slow
@pytest.mark.usefixtures("fluent")
def test_a_model_that_is_logged_is_served(uri, client, setup, run):
    with Mlflow(uri=uri, model=True).run(setup, run.folder, None) as tracked:
        tracked.log(run, "text", [])
    assert client.get_run(tracked.run_id).data.tags["model"] == "kept: user 1, fold 4"
    (kept,) = client.get_run(tracked.run_id).outputs.model_outputs
    served = mlflow.pyfunc.load_model(f"models:/{kept.model_id}")
    with pytest.raises(mlflow.MlflowException, match="rating"):
        served.predict(HISTORY.drop(columns="rating"))
    assert_predicts_as(run, setup, served.predict)
