"""Runs in what several machines share: PostgreSQL, and a server, with its pages in a browser."""

import subprocess
import sys
import time

import pytest
from browser_page import in_browser, screenshots
from commands import SMALL, summary_of
from mlflow import MlflowClient
from mlflow_store import keep
from postgresql_server import postgresql_server

from srs_eval.errors import TrackingError
from srs_eval.tracking.items import ArtifactFile, Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.quiet import quiet_mlflow
from srs_eval.tracking.tracker import RunInfo

pytestmark = pytest.mark.nightly


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


@in_browser
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
            client = MlflowClient(tracking_uri=uri)
            (experiment,) = client.search_experiments(filter_string="name = 'srs_eval'")
            runs = client.search_runs([experiment.experiment_id])
            assert sorted(run.info.run_name for run in runs) == ["run 0", "run 1"]
            assert {run.info.status for run in runs} == {"FINISHED"}
            for run in runs:
                summary = summary_of(tmp_path / run.data.params["seed"])
                log_loss = summary["metrics"]["log_loss"]["mean_users"]
                assert run.data.metrics["test/log_loss"] == round(log_loss, 4)
                kept = {file.path for file in client.list_artifacts(run.info.run_id)}
                assert {"calibration.svg", "results", "tables", "images"} <= kept
