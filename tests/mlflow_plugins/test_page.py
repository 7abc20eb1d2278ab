"""What docs/mlflow.md shows, runs."""

from __future__ import annotations

import csv
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from srs_eval.tracking import items

TEXT = (Path(__file__).parents[2] / "docs" / "mlflow.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.S)
SMALL = ("figures=false", "data.size_scale=0.02", "data.users=2", "hydra.run.dir=out")


def block(containing: str) -> str:
    (text,) = [text for _, text in BLOCKS if containing in text]
    return text


def run(folder: Path, *words: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**env, "PYTHONPATH": str(folder), "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
def test_the_tracker_of_the_page_keeps_a_run(tmp_path: Path) -> None:
    code = block("class Spreadsheet")
    (tmp_path / "spreadsheet.py").write_text(code, encoding="utf-8")
    (tmp_path / "conf" / "tracking").mkdir(parents=True)
    option = tmp_path / "conf" / "tracking" / "spreadsheet.yaml"
    option.write_text(block("_target_: spreadsheet"), encoding="utf-8")
    command = shlex.split(block("tracking=spreadsheet"))
    run(tmp_path, *command[1:], *SMALL)
    ((status, name, *values),) = csv.reader((tmp_path / "runs.csv").read_text().splitlines())
    assert (status, name) == ("finished", "avg on synthetic")
    assert [value for value in values if value.startswith("test/log_loss=0.")]


COMPARED = """
from mlflow import MlflowClient
import srs_eval

p = classifier.predict_proba(test[known])[:, 1]
scores = srs_eval.score(p, test["recalled"], **{name: test[name] for name in known})
found = {name.partition("/")[2]: value for name, value in result.metrics.items()}
defined = {name: value for name, value in scores.items() if value == value}
defined["reviews"] = defined.pop("n")
assert not defined.pop("n_dropped")
assert {name: found[name] for name in defined} == defined
assert len(defined) > 30
files = MlflowClient().list_artifacts(mlflow.last_active_run().info.run_id)
assert {"calibration.png", "corp.png", "roc.png"} <= {file.path for file in files}
"""


@pytest.mark.nightly
def test_the_evaluators_of_the_page_print_the_log_loss(tmp_path: Path) -> None:
    assert run(tmp_path, "-c", block('predictions="p"')) == "0.3240\n"
    out = run(tmp_path, "-c", block("log_model") + COMPARED)
    assert re.fullmatch(r"0\.\d{4}\n", out)


def test_the_callback_of_the_page_is_that_of_the_example() -> None:
    shown = yaml.safe_load(block("callbacks:"))["hydra"]["callbacks"]["mlflow"]
    example = Path(__file__).parents[2] / "examples" / "hydra_callback" / "conf" / "config.yaml"
    used = yaml.safe_load(example.read_text())["hydra"]["callbacks"]["mlflow"]
    assert shown["_target_"] == used["_target_"]
    assert set(shown) == set(used)


def test_every_kind_of_item_is_named() -> None:
    for kind in items.Item.__args__:
        assert f"`{kind.__name__}`" in TEXT


@pytest.mark.nightly
def test_the_model_of_the_page_is_registered_and_predicts(tmp_path: Path) -> None:
    store = f"tracking.uri=sqlite:///{tmp_path / 'mlflow.db'}"
    words = ("algo=fsrs6", "algo.fit=default", "panel=quick", "tracking.model=true", store)
    run(tmp_path, "-m", "srs_eval", *words, *SMALL)
    printed = run(tmp_path, "-c", block("register_model(newest"))
    recall = [float(line.split()[-1]) for line in printed.splitlines()[-6:]]
    assert len(recall) == 6
    assert recall[:3] == sorted(recall[:3], reverse=True)
