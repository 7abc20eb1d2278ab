"""What `python -m srs_eval.compare` makes of runs, and a sweep of its jobs."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from commands import QUIET, SMALL
from commands import run_here as run_command

from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

command = partial(status, *COMMANDS["compare"])


def json_of(file):
    return json.loads(file.read_text("utf-8"))


SWEEP = ("-m", "algo=avg,constant,moving_avg", "panel=quick", *SMALL, *QUIET)
FILES = {"comparison.md", "comparison.tex", "comparison.csv", "comparison.json", "report.html"}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    assert run_command([*SWEEP, f"hydra.sweep.dir={folder}"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch, page_without_images):
    monkeypatch.chdir(tmp_path)


def compared(*words):
    """Compare runs in a folder of their own; return the content of the JSON file."""
    shutil.rmtree("out", ignore_errors=True)
    assert command([*map(str, words), "out=out", "tracking=none"]) == 0
    assert {path.name for path in Path("out").glob("*.*")} == FILES
    return json_of(Path("out") / "comparison.json")


def test_a_sweep_is_compared_from_its_folder_as_at_its_end(sweep):
    content = compared(sweep)
    assert content["baseline"] == "avg"
    losses = {
        file.parent.name.partition("_")[2]: json_of(file)["metrics"]["log_loss"]["mean_users"]
        for file in sweep.glob("*/summary.json")
    }
    means = {of["run"]: of["mean"] for of in content["leaderboard"] if of["weighting"] == "users"}
    assert means == pytest.approx(losses)
    assert content["leaders"] == {"previous_review": "avg", "at_review": "moving_avg"}
    assert {path.name for path in sweep.iterdir()} >= FILES
    assert json_of(sweep / "comparison.json")["leaderboard"] == content["leaderboard"]
    assert compared(sweep, "metric=brier")["metric"] == "brier"
    assert command([str(sweep), "tracking=none"]) == 0
    assert list(Path().glob("outputs/*/*_compare/report.html"))


@pytest.mark.slow
def test_results_stay_where_the_tracking_store_cannot_be_used(sweep, capsys):
    assert command([str(sweep), "out=out", "tracking.uri=http://127.0.0.1:9"]) == 1
    assert {path.name for path in Path("out").iterdir()} == FILES
    assert "Traceback" not in capsys.readouterr().err
