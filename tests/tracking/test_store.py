"""Opening stores: at once from several processes, in the right place, under `mlflow run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from srs_eval.tracking.items import Param, Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

ONE_RUN = """
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker()
tracker.start(RunInfo("parallel"))
tracker.log([Value(f"test/m{n}", n) for n in range(50)])
tracker.finish("finished")
"""


@pytest.mark.slow
def test_four_processes_may_start_at_once_on_a_fresh_store(tmp_path: Path) -> None:
    words = [sys.executable, "-W", "error", "-c", ONE_RUN]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    processes = [subprocess.Popen(words, cwd=tmp_path, text=True, **pipes) for _ in range(4)]
    assert [process.communicate(timeout=120)[0] for process in processes] == [""] * 4
    assert [process.returncode for process in processes] == [0] * 4
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'srs_eval'")
    runs = client.search_runs([experiment.experiment_id])
    assert [len(run.data.metrics) for run in runs] == [50] * 4
    assert len({run.data.tags["mlflow.runColor"] for run in runs}) == 1
    assert experiment.artifact_location == (tmp_path / "mlartifacts" / "srs_eval").as_uri()
    assert not (tmp_path / "mlruns").exists()


def test_the_store_of_the_environment_is_used_and_nothing_is_left_in_it(
    uri: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    tracker = MlflowTracker(artifacts=str(tmp_path / "files"))
    tracker.start(RunInfo("run", experiment="of/an other"))
    run_id = tracker.finish("finished").run_id
    kept = MlflowClient(tracking_uri=uri).get_experiment_by_name("of/an other")
    assert kept.artifact_location == (tmp_path / "files" / "of_an_other").as_uri()
    assert dict(os.environ) == before
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
    assert MlflowClient(tracking_uri=uri).get_run(run_id).info.status == "FINISHED"


def test_a_run_of_mlflow_run_is_joined_once_and_its_params_are_respected(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = MlflowClient(tracking_uri=uri)
    opened = client.create_run(client.create_experiment("project"))
    client.log_param(opened.info.run_id, "algo", "lstm")
    client.log_param(opened.info.run_id, "data", "josh")
    monkeypatch.setenv("MLFLOW_RUN_ID", opened.info.run_id)
    tracker = MlflowTracker(uri=uri, experiment="another")
    tracker.start(RunInfo("lstm", tags={"sweep_id": "s"}))
    tracker.log([Param("algo", "lstm"), Param("data", "py_fsrs"), Value("test/log_loss", 0.5)])
    assert tracker.finish("finished").run_id == opened.info.run_id
    run = client.get_run(opened.info.run_id)
    assert run.data.params == {"algo": "lstm", "data": "josh", "srs_eval.data": "py_fsrs"}
    assert (run.info.run_name, run.info.status) == ("lstm", "FINISHED")
    assert run.data.tags["sweep_id"] == "s"
    assert client.get_experiment_by_name("another") is None
    tracker.start(RunInfo("second", experiment="project"))
    assert tracker.finish("finished").run_id != opened.info.run_id
