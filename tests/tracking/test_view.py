from __future__ import annotations

import base64
import json
import zlib

from mlflow import MlflowClient

from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
from srs_eval.tracking.view import VIEW_TAG, encode_view, view_state


def test_the_written_view_decodes_and_fits_into_a_tag(uri: str) -> None:
    experiment = MlflowClient(tracking_uri=uri).get_experiment_by_name("srs_eval")
    tag = experiment.tags[VIEW_TAG]
    assert len(tag) < 20_000
    packed = json.loads(tag)["state"].removeprefix("deflate;")
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert state == view_state()
    assert state["orderByKey"] == "metrics.`test/log_loss`"
    assert state["runsHiddenMode"] == "SHOW_ALL"
    names = [section["name"] for section in state["compareRunSections"]]
    assert names[:3] == ["test", "calib", "discrimination"]
    sections = {section["uuid"] for section in state["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= sections


def test_the_experiment_explains_itself_and_links_to_the_view(uri: str) -> None:
    experiment = MlflowClient(tracking_uri=uri).get_experiment_by_name("srs_eval")
    note = experiment.tags["mlflow.note.content"]
    assert f"#/experiments/{experiment.experiment_id}/runs" in note
    assert "log_loss" in note


def test_a_view_and_a_note_that_a_person_changed_stay(uri: str) -> None:
    client = MlflowClient(tracking_uri=uri)
    run = RunInfo("run", experiment="changed")
    tracker = MlflowTracker(uri=uri)
    tracker.start(run)
    tracker.finish("finished")
    experiment_id = client.get_experiment_by_name("changed").experiment_id
    changed = encode_view({"searchFilter": "mine"}, now_ms=0)
    client.set_experiment_tag(experiment_id, VIEW_TAG, changed)
    client.set_experiment_tag(experiment_id, "mlflow.note.content", "mine")
    tracker.start(run)
    tracker.finish("finished")
    tags = client.get_experiment(experiment_id).tags
    assert (tags[VIEW_TAG], tags["mlflow.note.content"]) == (changed, "mine")


def test_there_is_no_link_without_a_view(uri: str) -> None:
    tracker = MlflowTracker(uri=uri, view=False)
    tracker.start(RunInfo("run", experiment="plain"))
    links = tracker.finish("finished")
    assert links.view_url is None
    assert links.run_url is not None
    assert links.run_id in links.run_url
