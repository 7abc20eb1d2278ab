"""How unfinished runs end: stopped, left, killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from srs_eval.errors import ConfigError
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.process import StopSignal, process_is_gone
from srs_eval.tracking.tracker import RunInfo

START = """
import sys, time
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker(uri=sys.argv[1])
tracker.start(RunInfo("run", experiment=sys.argv[2]))
print("started", flush=True)
"""
SLEEP = START + "time.sleep(60)\n"
FINISH_AS_FAILED = (
    START + "try:\n    time.sleep(60)\nexcept BaseException:\n    tracker.finish('failed')\n"
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def started(program: str, uri: str, experiment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, uri, experiment], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def status(uri: str, experiment: str) -> str:
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.get_experiment_by_name(experiment).experiment_id
    (run,) = client.search_runs([experiment_id], "attributes.run_name = 'run'")
    ended: str = run.info.status
    return ended


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("program", [SLEEP, FINISH_AS_FAILED], ids=["unwinds", "finishes"])
def test_a_run_that_is_asked_to_stop_ends_as_killed(
    uri: str, program: str, request: pytest.FixtureRequest
) -> None:
    experiment = request.node.name
    with started(program, uri, experiment) as process:
        process.terminate()
        process.wait(timeout=60)
    assert status(uri, experiment) == "KILLED"


@pytest.mark.slow
def test_a_run_that_is_left_ends_as_failed(uri: str) -> None:
    with started(START, uri, "left") as process:
        process.wait(timeout=60)
    assert status(uri, "left") == "FAILED"


@pytest.mark.slow
@posix_only
def test_a_run_whose_process_died_is_closed_by_the_next(uri: str) -> None:
    with started(SLEEP, uri, "died") as process:
        process.kill()
        process.wait(timeout=60)
    assert status(uri, "died") == "RUNNING"
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.get_experiment_by_name("died").experiment_id
    elsewhere = client.create_run(
        experiment_id, tags={"host": "another", "pid": str(process.pid)}, run_name="elsewhere"
    )
    alive = client.create_run(
        experiment_id,
        tags={"host": socket.gethostname(), "pid": str(os.getpid())},
        run_name="alive",
    )
    tracker = MlflowTracker(uri=uri)
    tracker.start(RunInfo("next", experiment="died"))
    tracker.finish("finished")
    assert status(uri, "died") == "KILLED"
    assert client.get_run(elsewhere.info.run_id).info.status == "RUNNING"
    assert client.get_run(alive.info.run_id).info.status == "RUNNING"


@posix_only
def test_the_stop_signal_is_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = StopSignal()
    stop.install()
    with pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert stop.received
    stop.restore()
    assert signal.getsignal(signal.SIGTERM) == before


@posix_only
def test_a_handler_of_somebody_else_is_called_too() -> None:
    called = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: called.append(number))
    try:
        stop = StopSignal()
        stop.install()
        signal.raise_signal(signal.SIGTERM)
        stop.restore()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert called == [signal.SIGTERM]
    assert stop.received


@posix_only
def test_only_a_process_that_is_not_there_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], cwd=tmp_path)
    process.wait(timeout=60)
    assert process_is_gone(process.pid)
    assert not process_is_gone(os.getpid())
    assert not process_is_gone(1)
    assert not process_is_gone(0)


def test_a_tracker_is_told_in_which_order_it_is_used(uri: str) -> None:
    with pytest.raises(RuntimeError, match="start"):
        MlflowTracker(uri=uri).finish("finished")


@posix_only
@pytest.mark.slow
def test_a_resumed_run_is_a_new_one_joined_to_the_interrupted_by_tags(
    uri: str, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("it's", "another")]
    client = MlflowClient(tracking_uri=uri)
    left = START.replace("experiment=", f"folder=Path({str(folders[0])!r}), experiment=")
    with started("from pathlib import Path\n" + left + "time.sleep(60)\n", uri, "resumed") as died:
        died.kill()
        died.wait(timeout=60)
    tracker = MlflowTracker(uri=uri)
    ids = []
    for folder, resumes in zip(reversed(folders), (True, True), strict=True):
        tracker.start(RunInfo("next", experiment="resumed", folder=folder, resumes=resumes))
        ids.append(tracker.finish("finished").run_id)
    experiment_id = client.get_experiment_by_name("resumed").experiment_id
    (interrupted,) = client.search_runs([experiment_id], "attributes.run_name = 'run'")
    assert interrupted.info.status == "KILLED"
    elsewhere, resumed = (client.get_run(run_id) for run_id in ids)
    assert "resumes" not in elsewhere.data.tags
    assert resumed.data.tags["resumes"] == interrupted.info.run_id
    assert interrupted.data.tags["resumed_by"] == resumed.info.run_id
    assert resumed.data.tags["output"] == str(folders[0])


def test_the_use_of_the_machine_needs_psutil(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from srs_eval.tracking import mlflow_session

    monkeypatch.setattr(mlflow_session, "find_spec", lambda name: None)
    tracker = MlflowTracker(uri=uri, system_metrics=True)
    with pytest.raises(ConfigError, match="pip install psutil"):
        tracker.start(RunInfo("measured", experiment="measured"))
    assert MlflowClient(tracking_uri=uri).get_experiment_by_name("measured") is None


@pytest.mark.nightly
def test_the_use_of_the_machine_is_logged(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.2")
    tracker = MlflowTracker(uri=uri, system_metrics=True)
    tracker.start(RunInfo("measured", experiment="measured too"))
    time.sleep(1.5)
    run = MlflowClient(tracking_uri=uri).get_run(tracker.finish("finished").run_id)
    assert run.data.metrics["system/cpu_utilization_percentage"] >= 0
