"""A run that is stopped: what is said, what is kept, and going on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import Done, Here, outcome_of, summary_of

from srs_eval.run import command

WORDS = ["algo=hlr", "data.users=10", "data.size_scale=0.02", "tracking=none", "figures=false"]
FILES = ("scores.parquet", "predictions.parquet", "curves.parquet")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    assert command([*WORDS, f"hydra.run.dir={folder}"]) == 0
    return folder


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, capsys)


def finished(folder: Path) -> list[Path]:
    return sorted((folder / "users").glob("*/fits.parquet"))


def stopped(folder: Path, number: signal.Signals, *words: str, at: Path) -> Done:
    """Send a signal to a run and its workers as soon as a user is finished."""
    run = subprocess.Popen(
        [sys.executable, "-m", "srs_eval", *WORDS, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while run.poll() is None and len(finished(folder / at)) < 2:
        time.sleep(0.005)
    os.killpg(run.pid, number)
    out, err = run.communicate(timeout=60)
    return Done(run.returncode, out, err)


@pytest.mark.parametrize("compute", ["serial", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_run_interrupted_from_the_keyboard_can_be_continued(
    here: Here, undisturbed: Path, compute: str
) -> None:
    words = [f"compute={compute}", "hydra.run.dir=out"]
    out = here.folder / "out"
    done = stopped(here.folder, signal.SIGINT, *words, at=Path("out"))
    assert done.status == 130
    assert "interrupted" in done.err
    assert f"resume=true hydra.run.dir={out}" in done.err
    assert "Traceback" not in done.text
    assert outcome_of(out)["status"] == "interrupted"
    assert not (out / "summary.json").exists()
    refused = here(*WORDS, "seed=7", "resume=true", "hydra.run.dir=out")
    assert refused.status == 2
    assert "begun with other settings" in refused.err
    assert_continues(here, undisturbed, *words)


def test_a_run_that_was_killed_can_be_continued(here: Here, undisturbed: Path) -> None:
    done = stopped(here.folder, signal.SIGKILL, "hydra.run.dir=out", at=Path("out"))
    assert done.status == -signal.SIGKILL
    assert outcome_of(here.folder / "out")["status"] == "interrupted"
    assert_continues(here, undisturbed, "hydra.run.dir=out")


def assert_continues(here: Here, undisturbed: Path, *words: str) -> None:
    out = here.folder / "out"
    before = len(finished(out))
    assert before >= 2
    done = here(*WORDS, *words, "resume=true")
    assert done.status == 0, done.err
    assert f"{before} of 10 users were done before" in done.out
    for name in FILES:
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert summary_of(out)["metrics"] == summary_of(undisturbed)["metrics"]
    assert not (out / "users").exists()


def test_an_interrupted_sweep_says_what_was_done_and_goes_on_from_there(here: Here) -> None:
    words = ["-m", "algo=avg,hlr,sm2", "hydra.sweep.dir=out"]
    done = stopped(here.folder, signal.SIGINT, *words, at=Path("out/1_hlr"))
    assert done.status == 130
    assert f"resume=true hydra.sweep.dir={here.folder / 'out'}" in done.err
    for status in ("avg          ok", "hlr          interrupted"):
        assert status in done.out
    assert "Means over users" in done.out
    done = here(*WORDS, *words, "resume=true")
    assert done.status == 0, done.err
    assert "avg was finished before" in done.out
    assert "users were done before" in done.out
