"""A run that is stopped: what is said, what is kept, and going on as if nothing had happened."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cases import rest_nightly
from commands import QUIET, Done, Here, outcome_of, summary_of
from commands import run_here as command

USERS = 5
WORDS = [f"data.users={USERS}", "panel=quick", "data.size_scale=0.02", *QUIET, "--config-dir=own"]
FILES = ("scores.parquet", "predictions.parquet", "curves.parquet")
# Sends the signal named in a file, if there is one, to the whole command at its fourth user.
STOPPING = """
import os
import time
from pathlib import Path

from srs_eval.algorithms.half_life.hlr import Hlr


class Stopping:
    same_day = False
    when = "previous_review"
    sees_truth = False

    def fit(self, reviews, rows, rng):
        if reviews.user == 4 and Path("stop").exists():
            time.sleep(0.3)  # let the main process come to rest
            os.killpg(0, int(Path("stop").read_text()))
            time.sleep(60)
        return Hlr().fit(reviews, rows, rng)
"""


def prepared(folder: Path) -> None:
    (folder / "stopping.py").write_text(STOPPING, encoding="utf-8")
    (folder / "own" / "algo").mkdir(parents=True)
    option = folder / "own" / "algo" / "stopping.yaml"
    option.write_text("_target_: stopping.Stopping\n", encoding="utf-8")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    prepared(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        assert command(["algo=stopping", *WORDS, "hydra.run.dir=out"]) == 0
    return folder / "out"


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    prepared(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return Here(tmp_path, capsys)


def stopped(folder: Path, number: signal.Signals, *words: str) -> Done:
    """Run a command that gets a signal when some users are finished and one is under way."""
    (folder / "stop").write_text(str(int(number)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "srs_eval", *WORDS, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=120,
        check=False,
    )
    (folder / "stop").unlink()
    return Done(done.returncode, done.stdout, done.stderr)


def finished(folder: Path) -> int:
    return len(list((folder / "parts" / "users").glob("*.parquet")))


@pytest.mark.slow
@pytest.mark.parametrize("compute", rest_nightly(["processes", "serial"]))
def test_a_run_interrupted_from_the_keyboard_can_be_continued(
    here: Here, undisturbed: Path, compute: str
) -> None:
    words = ["algo=stopping", f"compute={compute}", "hydra.run.dir=out"]
    out = here.folder / "out"
    done = stopped(here.folder, signal.SIGINT, *words)
    assert done.status == 130
    assert "interrupted" in done.err
    assert f"resume=true hydra.run.dir={out}" in done.err
    assert "Traceback" not in done.text
    assert outcome_of(out)["status"] == "interrupted"
    assert not (out / "summary.json").exists()
    refused = here(*WORDS, *words, "seed=7", "resume=true")
    assert refused.status == 2
    assert "begun with other settings" in refused.err
    assert_continues(here, undisturbed, *words)


@pytest.mark.slow
def test_a_run_that_was_killed_can_be_continued(here: Here, undisturbed: Path) -> None:
    words = ["algo=stopping", "hydra.run.dir=out"]
    done = stopped(here.folder, signal.SIGKILL, *words)
    assert done.status == -signal.SIGKILL
    assert outcome_of(here.folder / "out")["status"] == "interrupted"
    assert finished(here.folder / "out") == 3
    assert_continues(here, undisturbed, *words)


def assert_continues(here: Here, undisturbed: Path, *words: str) -> None:
    out = here.folder / "out"
    before = finished(out)
    assert 1 <= before < USERS
    done = here(*WORDS, *words, "resume=true")
    assert done.status == 0, done.err
    assert f"{before} of {USERS} users were done before" in done.out
    for name in FILES:
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert summary_of(out)["metrics"] == summary_of(undisturbed)["metrics"]
    assert not (out / "parts").exists()


@pytest.mark.slow
def test_an_interrupted_sweep_says_what_was_done_and_goes_on_from_there(here: Here) -> None:
    words = ["-m", "algo=avg,stopping,sm2", "hydra.sweep.dir=out"]
    done = stopped(here.folder, signal.SIGINT, *words)
    assert done.status == 130
    assert f"resume=true hydra.sweep.dir={here.folder / 'out'}" in done.err
    for status in ("avg          ok", "stopping     interrupted"):
        assert status in done.out
    assert "log_loss" in done.out  # the leaderboard of the job that is finished
    done = here(*WORDS, *words, "resume=true")
    assert done.status == 0, done.err
    assert "avg was finished before" in done.out
    assert f"3 of {USERS} users were done before" in done.out
