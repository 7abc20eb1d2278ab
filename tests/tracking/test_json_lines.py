from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import SMALL, Here, summary_of

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking.items import ArtifactFile, Param, TableRows, Value
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.tracker import RunInfo, Tracker

KILLED = """
import os, signal, sys
from pathlib import Path
from srs_eval.tracking.items import Value
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.tracker import RunInfo
tracker = JsonLines()
tracker.start(RunInfo("killed", folder=Path(sys.argv[1])))
def values():
    for number in range(1000):
        if number == 700:
            os.kill(os.getpid(), signal.SIGKILL)
        yield Value(f"test/m{number}", number)
tracker.log(values())
"""


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


def test_what_a_killed_run_has_left_can_be_read(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(lines(tmp_path / "items.jsonl")) == 701


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrackingError, match="cannot write"):
        JsonLines().start(RunInfo("run", folder=tmp_path / "file" / "inside"))
    with pytest.raises(RuntimeError, match="start"):
        JsonLines().log([])


def test_the_command_keeps_its_run_in_a_file_without_mlflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    here = Here(tmp_path, capsys)
    done = here("algo=avg", *SMALL, "tracking=jsonl", "figures=false", "hydra.run.dir=out")
    assert done.status == 0, done.err
    values = {
        line["name"]: line["value"]
        for line in lines(tmp_path / "out" / "items.jsonl")
        if line["item"] == "Value"
    }
    log_loss = summary_of(tmp_path / "out")["metrics"]["log_loss"]["mean_users"]
    assert values["test/log_loss"] == log_loss
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.parametrize("file", ["/home/me/.bashrc", "../items.jsonl", "a/items.jsonl", ".zshenv"])
def test_a_file_that_other_programs_may_run_is_refused(file: str) -> None:
    with pytest.raises(ConfigError, match="tracking"):
        JsonLines(file=file)
