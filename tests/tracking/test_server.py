"""A tracking server that is there, that is not, and that goes away half-way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow_server import free_port, serving

from srs_eval.errors import TrackingError
from srs_eval.tracking.items import ArtifactFile, Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo


def test_a_server_that_is_not_there_is_told_within_seconds() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    before = time.monotonic()
    with pytest.raises(TrackingError) as told:
        MlflowTracker(uri=address).start(RunInfo("run"))
    assert time.monotonic() - before < 15
    assert address in str(told.value)
    assert "Start that server or correct tracking.uri" in str(told.value)


@pytest.mark.nightly
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
        with pytest.raises(TrackingError, match="Start that server"):
            tracker.log([Value("test/log_loss", 0.5)])
        assert tracker.finish("failed").run_id
        assert time.monotonic() - before < 40
