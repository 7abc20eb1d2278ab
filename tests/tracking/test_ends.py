"""How unfinished runs end: stopped, left, killed; and runs in what several machines share."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from cases import loaded
from commands import SMALL, summary_of
from mlflow import MlflowClient
from mlflow_store import keep, runs_in
from postgresql_server import postgresql_server

from srs_eval.compute import stopping
from srs_eval.errors import TrackingError
from srs_eval.tracking.items import ArtifactFile, Value
from srs_eval.tracking.mlflow_store import process_is_gone
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.quiet import quiet_mlflow
from srs_eval.tracking.tracker import RunInfo

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
screenshots = loaded("docs/make_screenshots.py")
START = """
import sys, time
from pathlib import Path
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker(uri=sys.argv[1], experiment=sys.argv[2])
tracker.start(RunInfo("run", folder=Path(sys.argv[3])))
print("started", flush=True)
"""
SLEEP = START + "time.sleep(60)\n"


def left(uri, experiment):
    (run,) = [run for run in runs_in(uri, experiment)[1] if run.info.run_name == "run"]
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "sent", "status"),
    [("unwinds", SLEEP, signal.SIGTERM, "KILLED"), ("leaves", START, 0, "FAILED")],
)
def test_a_run_that_is_asked_to_stop_ends_as_killed_and_one_that_is_left_as_failed(
    uri, tmp_path, name, program, sent, status
):
    words = [sys.executable, "-c", program, uri, name, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        if sent:
            process.send_signal(sent)
        process.wait(timeout=60)
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
def test_a_run_is_kept_by_a_server_and_its_end_is_told_when_the_server_goes(
    uri, tmp_path, monkeypatch
):
    (tmp_path / "note.txt").write_text("kept\n")
    monkeypatch.chdir(tmp_path)  # where the server keeps files
    with screenshots.mlflow_ui(uri) as address:
        note = ArtifactFile(tmp_path / "note.txt")
        links = keep(address, Value("test/log_loss", 0.5), note, experiment="served")
        assert links.ui_command is None
        assert str(links.view_url).startswith(f"{address}/#/experiments/")
        client = MlflowClient(tracking_uri=address)
        assert client.get_run(links.run_id).data.metrics == {"test/log_loss": 0.5}
        kept = [file.path for file in client.list_artifacts(links.run_id)]
        assert kept == ["environment.json", "note.txt"]
        tracker = MlflowTracker(uri=address, experiment="served")
        tracker.start(RunInfo("lost"))
    before = time.monotonic()
    with pytest.raises(TrackingError):
        tracker.log([Value("test/log_loss", 0.5)])
    assert tracker.finish("failed").run_id
    assert time.monotonic() - before < 40


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "google-chrome", "chrome"))),
    reason="no Chromium on the PATH",
)
def test_the_view_shows_every_run_with_its_columns_and_sections(uri):
    losses = {"avg on josh": 0.51, "fsrs6 on josh": 0.44, "lstm on josh": 0.43}
    for name, loss in losses.items():
        values = {"test/log_loss": loss, "calib/smece": 0.02, "extra/number": 1.0}
        items = [Value(*value) for value in values.items()]
        links = keep(uri, *items, run=RunInfo(name), experiment="browser")
    page = str(links.view_url).partition("/#/")[2]
    with screenshots.mlflow_ui(uri) as address, screenshots.Browser() as browser:
        browser.open(f"{address}/#/{page}", *losses, "test\n(1)", "calib\n(1)", "extra\n(1)")
        shown = browser.evaluate("document.body.innerText")
        assert shown.index("lstm on josh") < shown.index("fsrs6 on josh")
        assert shown.index("test\n(1)") < shown.index("calib\n(1)") < shown.index("extra\n(1)")
        table = page.replace("compareRunsMode=CHART", "compareRunsMode=TABLE")
        browser.open(f"{address}/#/{table}", *losses, "test/log_loss", "calib/smece", "0.43")


@pytest.mark.nightly
def test_processes_log_to_postgresql_at_once_and_every_run_is_whole(tmp_path):
    with postgresql_server() as uri:
        words = [sys.executable, "-m", "srs_eval", "algo=hlr", "panel=quick", *SMALL]
        words += [f"tracking.uri={uri}", f"tracking.artifacts={tmp_path / 'files'}"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        own = [[f"seed={n}", f"hydra.run.dir={n}", f"name=run {n}"] for n in range(2)]
        jobs = [subprocess.Popen([*words, *more], cwd=tmp_path, **pipes) for more in own]
        told = [job.communicate(timeout=300)[0] for job in jobs]
        assert [job.returncode for job in jobs] == [0, 0], "\n".join(told)
        with quiet_mlflow():
            client, runs = runs_in(uri)
            assert sorted(run.info.run_name for run in runs) == ["run 0", "run 1"]
            assert {run.info.status for run in runs} == {"FINISHED"}
            for run in runs:
                summary = summary_of(tmp_path / run.data.params["seed"])
                log_loss = summary["metrics"]["log_loss"]["mean_users"]
                assert run.data.metrics["test/log_loss"] == round(log_loss, 4)
                kept = {file.path for file in client.list_artifacts(run.info.run_id)}
                assert {"calibration.svg", "results", "tables", "images"} <= kept


@pytest.mark.nightly
def test_the_use_of_the_machine_is_logged(uri, monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.2")
    tracker = MlflowTracker(uri=uri, system_metrics=True, experiment="measured too")
    tracker.start(RunInfo("measured"))
    time.sleep(1.5)
    run = MlflowClient(tracking_uri=uri).get_run(tracker.finish("finished").run_id)
    assert run.data.metrics["system/cpu_utilization_percentage"] >= 0
