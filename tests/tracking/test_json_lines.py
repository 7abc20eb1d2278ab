from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from commands import SMALL, Here, summary_of

from srs_eval.tracking.items import ArtifactFile, Param, TableRows, Value
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.tracker import RunInfo, Tracker


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_item_is_a_line(tmp_path: Path) -> None:
    tracker: Tracker = JsonLines()
    tracker.start(RunInfo("run", tags={"label": "avg"}, folder=tmp_path))
    tracker.log(
        [
            Param("algo", "avg"),
            Value("test/log_loss", np.float64(0.5)),
            Value("test/auc", float("nan")),
            TableRows("users", {"user": ["a"], "auc": np.array([np.inf])}),
            ArtifactFile(tmp_path / "x.txt", "results"),
        ]
    )
    links = tracker.finish("finished")
    assert links.run_id == str(tmp_path / "items.jsonl")
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


def test_a_run_begins_a_new_file_and_a_resumed_one_goes_on(tmp_path: Path) -> None:
    for resumes, expected in ((False, 2), (False, 2), (True, 4)):
        tracker = JsonLines()
        tracker.start(RunInfo("run", folder=tmp_path, resumes=resumes))
        tracker.finish("failed")
        assert len(lines(tmp_path / "items.jsonl")) == expected


def test_each_line_is_in_the_file_before_the_next_is_made(tmp_path: Path) -> None:
    tracker = JsonLines()
    tracker.start(RunInfo("killed at any of them", folder=tmp_path))

    def values() -> Iterator[Value]:
        for number in range(20):
            assert len(lines(tmp_path / "items.jsonl")) == 1 + number
            yield Value(f"test/m{number}", number)

    tracker.log(values())


def test_the_command_keeps_its_run_in_a_file_without_mlflow(here: Here) -> None:
    done = here("algo=avg", *SMALL, "tracking=jsonl", "figures=false", "hydra.run.dir=out")
    assert done.status == 0, done.err
    kept = lines(here.folder / "out" / "items.jsonl")
    values = {line["name"]: line["value"] for line in kept if line["item"] == "Value"}
    log_loss = summary_of(here.folder / "out")["metrics"]["log_loss"]["mean_users"]
    assert values["test/log_loss"] == log_loss
    assert not (here.folder / "mlflow.db").exists()
