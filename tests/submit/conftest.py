"""A leaderboard of small submissions, made by the code that users run."""

import shutil
from pathlib import Path

import pytest
from commands import QUIET, run_here
from submissions import WRITTEN

from srs_eval.submit.writing import submit_run

SMALL = ("data.users=3", "data.seed=5", "data.size_scale=0.02", "data.max_reviews=900")
PANEL = "+panel.metrics.ece={_target_: srs_eval.metrics.calibration.Ece}"
RUNS = {"avg": ("algo=avg",), "constant": ("algo=constant", "algo.p=0.8")}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Folders of finished runs by their labels."""
    folder = tmp_path_factory.mktemp("runs")
    for name, words in RUNS.items():
        run = [*words, *SMALL, *QUIET, "seed=1", "panel=quick", PANEL]
        assert run_here([*run, f"hydra.run.dir={folder / name}"]) == 0
    return {name: folder / name for name in RUNS}


@pytest.fixture(scope="session")
def good(runs, tmp_path_factory):
    """A leaderboard without problems; tests change copies."""
    folder = tmp_path_factory.mktemp("leaderboard")
    for name, run in runs.items():
        given = {**WRITTEN, "model": name}
        submit_run(run, folder / name, given, predictions=name == "avg")
    return folder


@pytest.fixture
def board(good, tmp_path):
    """A copy of the leaderboard."""
    return Path(shutil.copytree(good, tmp_path / "leaderboard"))
