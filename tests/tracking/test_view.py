from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable

from mlflow import MlflowClient

from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
from srs_eval.tracking.view import VIEW_TAG, encode_view, view_state


def test_the_written_view_decodes(uri: str, golden_text: Callable[[str, str], None]) -> None:
    experiment = MlflowClient(tracking_uri=uri).get_experiment_by_name("srs_eval")
    tag = experiment.tags[VIEW_TAG]
    assert len(tag) < 20_000
    packed = json.loads(tag)["state"].removeprefix("deflate;")
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert state == view_state()
    golden_text("view", json.dumps(state, indent=1) + "\n")
    sections = {section["uuid"] for section in state["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= sections
    note = experiment.tags["mlflow.note.content"]
    assert f"#/experiments/{experiment.experiment_id}/runs" in note


def test_a_view_and_a_note_that_a_person_changed_stay(uri: str) -> None:
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.create_experiment("changed")
    kept = {VIEW_TAG: encode_view({"searchFilter": "mine"}, 0), "mlflow.note.content": "mine"}
    for name, text in kept.items():
        client.set_experiment_tag(experiment_id, name, text)
    tracker = MlflowTracker(uri=uri, experiment="changed")
    tracker.start(RunInfo("run"))
    tracker.finish("finished")
    assert kept.items() <= client.get_experiment(experiment_id).tags.items()


def test_there_is_no_link_without_a_view(uri: str) -> None:
    tracker = MlflowTracker(uri=uri, view=False, experiment="plain")
    tracker.start(RunInfo("run"))
    links = tracker.finish("finished")
    assert (links.view_url, f"/runs/{links.run_id}" in str(links.run_url)) == (None, True)
