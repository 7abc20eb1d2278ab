"""Runs in MLflow, as its own client reads them."""

import json
import time
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import PIL.Image
import pyarrow.parquet as pq
import pytest
from commands import revision_known
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from mlflow import MlflowClient
from tqdm import tqdm

from srs_eval.errors import ConfigError, Pruned, TrackingError
from srs_eval.evaluation.fits import Fit
from srs_eval.runs import config, evaluation, mlflow_store, tracking
from srs_eval.runs.compute import Serial
from srs_eval.runs.folder import FITS, fits_table, save
from srs_eval.runs.options import conf_folder
from srs_eval.runs.tracking import Mlflow

pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with chdir(folder), revision_known():  # MLflow keeps files beside the store
        Mlflow(uri="sqlite:///mlflow.db").has("0" * 32)
        yield f"sqlite:///{folder / 'mlflow.db'}"


@pytest.fixture(scope="module")
def setup():
    values = {"data.users": 3, "data.max_reviews": 600, "tags.paper": "one", "notes": "a note"}
    cfg, choices = config.composed({"algo": "hlr", "data": "synthetic", "panel": "quick"}, values)
    built = config.build(cfg, choices, objects={"compute": Serial(), "tracking": None})
    words = ["algo=per_group", "algo@algo.base=hlr"]  # of a command before, in the same process
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        HydraConfig.instance().set_config(compose("config", words, return_hydra_config=True))
    yield replace(built, words=["data.users=3", "+tags.paper=one"])
    HydraConfig.instance().cfg = None


@pytest.fixture(scope="module")
def run(setup, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return save(evaluation.evaluate(setup, folder, bar=partial(tqdm, disable=True)), folder)


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
    assert "algo.base" not in params
    assert not {"None"} & {*params.values()}
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
    assert (len(params) <= 15, len(metrics) <= 30) == (True, True)
    tags = {name: text for name, text in kept.data.tags.items() if not name.startswith("mlflow.")}
    expected = {"paper": "one", "when": "previous_review", "output": str(run.folder)}
    assert {**expected, "rows_fingerprint": facts.rows_fingerprint}.items() <= tags.items()
    note = kept.data.tags["mlflow.note.content"].splitlines()
    assert note[0] == f"**log loss {loss.mean_users:.4f} [{loss.lo:.4f}, {loss.hi:.4f}]**"
    assert f"run_uuid={run_id}" in note[2]
    assert note[-1] == "a note"
    (dataset,) = kept.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("synthetic", facts.rows_fingerprint)
    files = files_of(client, run_id, "results", "figures", "tables")
    assert {"results/summary.json", "figures/calibration.png", "tables/thresholds.json"} <= {*files}
    table = json.loads(Path(client.download_artifacts(run_id, "tables/metrics.json")).read_text())
    assert [row[0] for row in table["data"]] == [*facts.metrics]
    images = files_of(client, run_id, "images")
    assert len(images) == 2  # the picture and a small one
    assert "calibration+step+0" in images[0]


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
    command, _, link = tracked.store.link().partition("  # ")
    assert f"mlflow.sharedViewState.{link.partition('viewStateShareKey=')[2]}" in kept.tags
    assert f"#/experiments/{kept.experiment_id}/runs?workflowType=machine_learning" in link
    assert command.startswith("MLflow   mlflow ui --backend-store-uri sqlite:///")
    state = json.loads(mlflow_store._VIEW_FILE.read_bytes())
    shown = {chart["metricKey"] for chart in state["compareRunCharts"] if "metricKey" in chart}
    metrics = client.get_run(tracked.run_id).data.metrics
    assert shown <= {f"test/{name}" for name in tracking.SHOWN}
    assert {"test/log_loss", "test/auc"} <= shown & metrics.keys()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (LookupError, "FAILED"),
        *((KeyboardInterrupt, "KILLED"), (SystemExit, "KILLED"), (Pruned, "KILLED")),
    ],
)
def test_a_run_that_is_left_ends_as_what_left_it_and_goes_on_later(
    client, tracker, logged, setup, run, error, status
):
    with pytest.raises(error), tracker.run(setup, run.folder, None) as tracked:
        raise error
    run_id = tracked.run_id
    assert (client.get_run(run_id).info.status, tracker.has(run_id)) == (status, False)
    assert logged(run_id=run_id).run_id == run_id
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
    assert client.get_run(parent).info.status == "RUNNING"
    assert tracker.parent(tmp_path.name, "s1", parent) == parent
    monkeypatch.setenv(tracking.PARENT, parent)
    job = logged().run_id
    tags = client.get_run(job).data.tags
    assert (tags["mlflow.parentRunId"], tags["sweep_id"]) == (parent, "s1")
    files = [tmp_path / "report.html", tmp_path / "deep" / "comparison.csv"]
    files[1].parent.mkdir()
    for file in files:
        file.write_text("x")
    table = pd.DataFrame({"run": ["hlr"], "mean": [0.3]})
    standings = [SimpleNamespace(text="hlr leads\nmore", table=table, files=files)]
    against = {job: {"log_loss": 2.5}}
    assert "mlflow ui" in tracker.log_comparison(standings, tmp_path, parent, against=against)
    assert client.get_run(job).data.metrics["vs_baseline/log_loss_percent"] == 2.5
    tracker.log_comparison(standings, tmp_path)  # of the small command, to a run of its own
    experiment = client.get_experiment_by_name("srs_eval").experiment_id
    compared = [
        kept
        for kept in client.search_runs([experiment])
        if kept.data.tags.get("kind") in ("sweep", "comparison")
    ]
    assert len(compared) == 2
    for kept in compared:
        assert (kept.info.run_name, kept.info.status) == (tmp_path.name, "FINISHED")
        assert kept.data.tags["mlflow.note.content"].startswith("**hlr leads**")
        names = files_of(client, kept.info.run_id, "tables", "comparison", "comparison/deep")
        assert names == [
            *("tables/comparison_1.json", "comparison/report.html"),
            "comparison/deep/comparison.csv",
        ]


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


AWAY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("address", "said", "kind"),
    [
        ("mlruns", "MLFLOW_ALLOW_FILE_STORE", ConfigError),
        ("s3://bucket/x", "unsupported URI", ConfigError),
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


def test_a_call_that_meets_a_lock_is_made_again_for_a_while(uri, monkeypatch):
    monkeypatch.setattr(mlflow_store, "_PATIENCE", 0.5)
    store, calls = mlflow_store.Store(uri, "srs_eval"), []

    def locked(until):
        calls.append(until)
        if len(calls) < until:
            raise OSError("(sqlite3.OperationalError) database is locked")
        return "done"

    assert (store.waiting(locked)(3), calls) == ("done", [3] * 3)
    with pytest.raises(TrackingError, match="another process has locked the database"):
        store.waiting(locked)(10**9)


@pytest.mark.nightly
def test_the_use_of_the_machine_is_logged(uri, client, setup, run, monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.2")
    with Mlflow(uri=uri, system_metrics=True).run(setup, run.folder, None) as tracked:
        time.sleep(1.5)
    metrics = client.get_run(tracked.run_id).data.metrics
    assert metrics["system/cpu_utilization_percentage"] >= 0
