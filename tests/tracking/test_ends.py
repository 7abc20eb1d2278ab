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
from mlflow.entities import Run

from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.process import StopSignal, process_is_gone
from srs_eval.tracking.tracker import RunInfo

START = """
import sys, time
from pathlib import Path
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker(uri=sys.argv[1])
tracker.start(RunInfo("run", experiment=sys.argv[2], folder=Path(sys.argv[3])))
print("started", flush=True)
"""
SLEEP = START + "time.sleep(60)\n"
FINISH_AS_FAILED = (
    START + "try:\n    time.sleep(60)\nexcept BaseException:\n    tracker.finish('failed')\n"
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def started(program: str, uri: str, experiment: str, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, uri, experiment, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def left(uri: str, experiment: str) -> Run:
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.get_experiment_by_name(experiment).experiment_id
    (run,) = client.search_runs([experiment_id], "attributes.run_name = 'run'")
    return run


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize(
    ("program", "is_stopped", "status"),
    [(SLEEP, True, "KILLED"), (FINISH_AS_FAILED, True, "KILLED"), (START, False, "FAILED")],
    ids=["unwinds", "finishes", "leaves"],
)
def test_a_run_that_is_asked_to_stop_ends_as_killed_and_one_that_is_left_as_failed(
    uri: str,
    tmp_path: Path,
    program: str,
    *,
    is_stopped: bool,
    status: str,
    request: pytest.FixtureRequest,
) -> None:
    experiment = request.node.callspec.id
    with started(program, uri, experiment, tmp_path) as process:
        if is_stopped:
            process.terminate()
        process.wait(timeout=60)
    assert left(uri, experiment).info.status == status


@pytest.mark.slow
@posix_only
def test_a_run_whose_process_died_is_closed_by_the_next_and_joined_to_what_resumes_it(
    uri: str, tmp_path: Path
) -> None:
    client = MlflowClient(tracking_uri=uri)
    folder = tmp_path / "it's"
    with started(SLEEP, uri, "died", folder) as process:
        process.kill()
        process.wait(timeout=60)
    assert left(uri, "died").info.status == "RUNNING"
    experiment_id = client.get_experiment_by_name("died").experiment_id
    # of processes that may go on: one on another machine, one that is there
    others = [
        client.create_run(experiment_id, tags={"host": host, "pid": str(pid)}).info.run_id
        for host, pid in (("another", process.pid), (socket.gethostname(), os.getpid()))
    ]
    tracker = MlflowTracker(uri=uri, experiment="died")
    tags = []
    for place, resumes in ((tmp_path / "another", True), (folder, False), (folder, True)):
        tracker.start(RunInfo("next", folder=place, resumes=resumes))
        tags.append(client.get_run(tracker.finish("finished").run_id).data.tags)
    died = left(uri, "died")
    assert died.info.status == "KILLED"
    assert {client.get_run(other).info.status for other in others} == {"RUNNING"}
    assert [run.get("resumes") for run in tags] == [None, None, died.info.run_id]
    resumed = client.get_run(died.data.tags["resumed_by"])
    assert resumed.data.tags["output"] == died.data.tags["output"] == str(folder)
    assert resumed.data.tags["resumes"] == died.info.run_id


@posix_only
def test_the_stop_signal_is_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = StopSignal()
    stop.install()
    with pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert (ended.value.code, stop.received) == (143, True)
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
    assert (called, stop.received) == ([signal.SIGTERM], True)


@posix_only
def test_only_a_process_that_is_not_there_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], cwd=tmp_path)
    process.wait(timeout=60)
    assert process_is_gone(process.pid)
    assert [process_is_gone(pid) for pid in (os.getpid(), 1, 0)] == [False] * 3


@pytest.mark.nightly
def test_the_use_of_the_machine_is_logged(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.2")
    tracker = MlflowTracker(uri=uri, system_metrics=True)
    tracker.start(RunInfo("measured", experiment="measured too"))
    time.sleep(1.5)
    run = MlflowClient(tracking_uri=uri).get_run(tracker.finish("finished").run_id)
    assert run.data.metrics["system/cpu_utilization_percentage"] >= 0
