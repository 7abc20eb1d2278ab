"""How unfinished runs end: stopped, left, killed."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from mlflow import MlflowClient

from srs_eval.compute import stopping
from srs_eval.tracking.mlflow_store import process_is_gone
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
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


def ended(program, uri, experiment, folder, sent):
    """Start a run in a process of its own, and send it a signal, unless that is 0."""
    words = [sys.executable, "-c", program, uri, experiment, str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        if sent:
            process.send_signal(sent)
        process.wait(timeout=60)


def left(uri, experiment):
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.get_experiment_by_name(experiment).experiment_id
    (run,) = client.search_runs([experiment_id], "attributes.run_name = 'run'")
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "sent", "status"),
    [("unwinds", SLEEP, signal.SIGTERM, "KILLED"), ("leaves", START, 0, "FAILED")],
)
def test_a_run_that_is_asked_to_stop_ends_as_killed_and_one_that_is_left_as_failed(
    uri, tmp_path, name, program, sent, status
):
    ended(program, uri, name, tmp_path, sent)
    assert left(uri, name).info.status == status


def test_a_run_whose_process_died_is_closed_by_the_next_and_joined_to_what_resumes_it(
    uri, tmp_path
):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert process_is_gone(gone.pid)
    assert [process_is_gone(pid) for pid in (os.getpid(), 1, 0)] == [False] * 3
    client, here = MlflowClient(tracking_uri=uri), socket.gethostname()
    experiment, folder = client.create_experiment("died"), str(tmp_path / "it's")
    processes = {"run": (here, gone.pid), "elsewhere": ("x", gone.pid), "open": (here, os.getpid())}
    for name, (host, pid) in processes.items():
        tags = {"host": host, "pid": str(pid), "output": folder if name == "run" else ""}
        client.create_run(experiment, tags=tags, run_name=name)
    tracker = MlflowTracker(uri=uri, experiment="died")
    made = []
    for place, resumes in (("another", True), ("it's", False), ("it's", True)):
        tracker.start(RunInfo("next", folder=tmp_path / place, resumes=resumes))
        made.append(client.get_run(tracker.finish("finished").run_id))
    died = left(uri, "died")
    found = {run.info.run_name: run.info.status for run in client.search_runs([experiment])}
    assert [found[name] for name in processes] == ["KILLED", "RUNNING", "RUNNING"]
    assert [run.data.tags.get("resumes") for run in made] == [None, None, died.info.run_id]
    assert died.data.tags["resumed_by"] == made[-1].info.run_id
    assert made[-1].data.tags["output"] == folder


def test_what_was_told_in_full_before_a_kill_is_told_again_in_the_same_run(uri, tmp_path):
    tracker, ids = MlflowTracker(uri=uri, experiment="told"), []
    for settings, resumes in (("a", False), ("a", True), ("b", True), ("a", False)):
        tags = {"config_hash": settings, "code_hash": "c"}
        tracker.start(RunInfo("run", tags=tags, folder=tmp_path, resumes=resumes))
        ids.append(tracker.finish("finished").run_id)
    assert [ids.index(each) for each in ids] == [0, 0, 2, 3]
    client = MlflowClient(tracking_uri=uri)
    assert {client.get_run(each).info.status for each in ids} == {"FINISHED"}


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN, "of somebody else"])
def test_the_stop_signal_is_heard_by_all_and_given_back(uri, before):
    called = []
    handler = before if isinstance(before, int) else lambda number, _frame: called.append(number)
    outside = signal.signal(signal.SIGTERM, handler)
    try:
        tracker = MlflowTracker(uri=uri, experiment=f"stopped {before}")
        tracker.start(RunInfo("run"))
        if before == signal.SIG_DFL:
            with pytest.raises(SystemExit) as told:
                signal.raise_signal(signal.SIGTERM)
            assert told.value.code == 143
        else:
            signal.raise_signal(signal.SIGTERM)
        assert stopping.is_requested() == (before != signal.SIG_IGN)
        assert called == ([] if isinstance(before, int) else [signal.SIGTERM])
        tracker.finish("finished")
        status = "FINISHED" if before == signal.SIG_IGN else "KILLED"
        assert left(uri, f"stopped {before}").info.status == status
        assert (signal.getsignal(signal.SIGTERM), stopping.is_requested()) == (handler, False)
    finally:
        signal.signal(signal.SIGTERM, outside)


@pytest.mark.nightly
def test_the_use_of_the_machine_is_logged(uri, monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.2")
    tracker = MlflowTracker(uri=uri, system_metrics=True)
    tracker.start(RunInfo("measured", experiment="measured too"))
    time.sleep(1.5)
    run = MlflowClient(tracking_uri=uri).get_run(tracker.finish("finished").run_id)
    assert run.data.metrics["system/cpu_utilization_percentage"] >= 0
