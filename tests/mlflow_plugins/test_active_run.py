"""Applications that use MLflow themselves."""

import os

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from srs_eval.mlflow_plugins.active_run import ActiveRun
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

NAMES = ("MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME")


@pytest.fixture
def ours(uri):
    """A tracker with an open run, in another experiment than the one MLflow was told."""
    tracker = MlflowTracker(uri=uri, experiment="ours")
    tracker.start(RunInfo("ours"))
    return tracker


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_what_a_job_logs_goes_to_its_run_whatever_was_chosen_before(
    global_uri, ours, tmp_path, monkeypatch
):
    import mlflow

    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "elsewhere")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'another.db'}")
    before = {name: os.environ.get(name) for name in NAMES}
    active = ActiveRun(ours.environment())
    mlflow.log_metric("loss", 0.5)
    mlflow.end_run()
    with mlflow.start_run(run_name="besides") as besides:
        pass
    mlflow.set_experiment("elsewhere")  # with nothing left to go on with, the job may
    active.restore()
    assert {name: os.environ.get(name) for name in NAMES} == before
    assert mlflow.get_tracking_uri() == f"sqlite:///{tmp_path / 'another.db'}"
    run_id = ours.finish("finished").run_id
    client = MlflowClient(global_uri)
    run = client.get_run(run_id)
    assert (run.data.metrics, run.info.status) == ({"loss": 0.5}, "FINISHED")
    assert besides.info.experiment_id == run.info.experiment_id
    mlflow.set_tracking_uri(global_uri)
    elsewhere = client.get_experiment_by_name("elsewhere").experiment_id
    with mlflow.start_run() as after:
        assert after.info.experiment_id == elsewhere


@pytest.mark.filterwarnings("ignore")
def test_a_run_left_open_is_closed_and_another_store_in_a_job_is_mlflows_refusal(
    global_uri, ours, tmp_path
):
    import mlflow

    before = {name: os.environ.get(name) for name in NAMES}
    ActiveRun(ours.environment()).restore()  # of a job that does not use MLflow
    assert {name: os.environ.get(name) for name in NAMES} == before
    active = ActiveRun(ours.environment())
    mlflow.set_experiment("elsewhere")
    with pytest.raises(MlflowException, match="does not match environment run ID"):
        mlflow.start_run()
    active.restore()
    active = ActiveRun(ours.environment())
    mlflow.log_metric("loss", 0.5)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'another.db'}")
    active.restore()
    assert mlflow.active_run() is None
    assert mlflow.get_tracking_uri() == global_uri
    ours.finish("finished")
