"""Runs in what several machines share: a tracking server, which may go away, and PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import SMALL, summary_of
from mlflow import MlflowClient
from mlflow_server import serving
from postgresql_server import postgresql_server

from srs_eval.errors import TrackingError
from srs_eval.tracking.items import ArtifactFile, Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.quiet import quiet_mlflow
from srs_eval.tracking.tracker import RunInfo

pytestmark = pytest.mark.nightly


def test_a_run_is_kept_by_a_server_and_its_end_is_told_when_the_server_goes(
    uri: str, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("kept\n")
    with serving(uri, tmp_path) as (process, address):
        tracker = MlflowTracker(uri=address, experiment="served")
        tracker.start(RunInfo("kept"))
        tracker.log([Value("test/log_loss", 0.5), ArtifactFile(note)])
        links = tracker.finish("finished")
        assert links.ui_command is None
        assert str(links.view_url).startswith(f"{address}/#/experiments/")
        client = MlflowClient(tracking_uri=address)
        assert client.get_run(links.run_id).data.metrics == {"test/log_loss": 0.5}
        kept = [file.path for file in client.list_artifacts(links.run_id)]
        assert kept == ["environment.json", "note.txt"]

        tracker.start(RunInfo("lost"))
        process.terminate()
        process.wait(timeout=30)
        before = time.monotonic()
        with pytest.raises(TrackingError):
            tracker.log([Value("test/log_loss", 0.5)])
        assert tracker.finish("failed").run_id
        assert time.monotonic() - before < 40


def test_processes_log_to_postgresql_at_once_and_every_run_is_whole(tmp_path: Path) -> None:
    with postgresql_server() as uri:
        words = [sys.executable, "-m", "srs_eval", "algo=hlr", "panel=quick", *SMALL]
        words += [f"tracking.uri={uri}", f"tracking.artifacts={tmp_path / 'files'}"]
        jobs = [
            subprocess.Popen(
                [*words, f"seed={seed}", f"hydra.run.dir={seed}", f"name=run {seed}"],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for seed in range(2)
        ]
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
