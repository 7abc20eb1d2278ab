"""Trackers without MLflow: lines in a file, and none."""

import json

import numpy as np
from commands import SMALL, summary_of

from srs_eval.tracking.items import ArtifactFile, Param, TableRows, Value
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.tracker import NoTracker, RunInfo, RunLinks


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_item_is_a_line_that_is_in_the_file_before_the_next_is_made(tmp_path):
    tracker = JsonLines()
    tracker.start(RunInfo("run", tags={"label": "avg"}, folder=tmp_path))
    given = [
        Param("algo", "avg"),
        Value("test/log_loss", np.float64(0.5)),
        Value("test/auc", float("nan")),
        TableRows("users", {"user": ["a"], "auc": np.array([np.inf])}),
        ArtifactFile(tmp_path / "x.txt", "results"),
    ]

    def made():
        for number, item in enumerate(given):
            assert len(lines(tmp_path / "items.jsonl")) == 1 + number
            yield item

    tracker.log(made())
    assert tracker.finish("finished").run_id == str(tmp_path / "items.jsonl")
    first, *items, last = lines(tmp_path / "items.jsonl")
    assert (first["item"], first["name"], first["tags"]) == ("RunInfo", "run", {"label": "avg"})
    assert items == [
        {"item": "Param", "name": "algo", "value": "avg"},
        {"item": "Value", "name": "test/log_loss", "value": 0.5},
        {"item": "Value", "name": "test/auc", "value": None},
        {"item": "TableRows", "name": "users", "columns": {"user": ["a"], "auc": [None]}},
        {"item": "ArtifactFile", "path": str(tmp_path / "x.txt"), "folder": "results"},
    ]
    assert (last["item"], last["status"]) == ("RunEnd", "finished")
    for resumes, expected in ((True, 9), (False, 2), (True, 4)):
        tracker.start(RunInfo("run", folder=tmp_path, resumes=resumes))
        tracker.finish("failed")
        assert len(lines(tmp_path / "items.jsonl")) == expected


def test_the_command_keeps_its_run_in_a_file_without_mlflow(here):
    done = here("algo=avg", *SMALL, "tracking=jsonl", "figures=false", "hydra.run.dir=out")
    assert done.status == 0, done.err
    kept = lines(here.folder / "out" / "items.jsonl")
    values = {line["name"]: line["value"] for line in kept if line["item"] == "Value"}
    log_loss = summary_of(here.folder / "out")["metrics"]["log_loss"]["mean_users"]
    assert values["test/log_loss"] == log_loss
    assert not (here.folder / "mlflow.db").exists()


def test_no_tracking_draws_the_items_and_keeps_none():
    drawn = []
    tracker = NoTracker()
    tracker.start(RunInfo("run"))
    tracker.log(drawn.append(n) or Value(f"test/m{n}", n) for n in range(3))
    assert tracker.finish("finished") == RunLinks()
    assert drawn == [0, 1, 2]
