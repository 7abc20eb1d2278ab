"""A run that is stopped: what is said, what is kept, and going on as if nothing had happened."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import QUIET, Done, Here, outcome_of

USERS = 5
WORDS = [f"data.users={USERS}", "panel=quick", "data.size_scale=0.02", *QUIET, "--config-dir=own"]
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


@pytest.fixture(autouse=True)
def _prepared(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.folder / "stopping.py").write_text(STOPPING, encoding="utf-8")
    (here.folder / "own" / "algo").mkdir(parents=True)
    option = here.folder / "own" / "algo" / "stopping.yaml"
    option.write_text("_target_: stopping.Stopping\n", encoding="utf-8")
    monkeypatch.syspath_prepend(here.folder)


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


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_stopped_can_be_continued(here: Here, number: signal.Signals) -> None:
    words = ["algo=stopping", "compute=processes", "hydra.run.dir=out"]
    out = here.folder / "out"
    done = stopped(here.folder, number, *words)
    if number == signal.SIGINT:
        assert done.status == 130
        assert f"resume=true hydra.run.dir={out}" in done.err
        assert "Traceback" not in done.text
    else:
        assert done.status == -number
    assert outcome_of(out)["status"] == "interrupted"
    assert not (out / "summary.json").exists()
    before = len(list((out / "parts" / "users").glob("*.parquet")))
    assert 1 <= before < USERS
    done = here(*WORDS, *words, "resume=true")
    assert done.status == 0, done.err
    assert f"{before} of {USERS} users were done before" in done.out
    assert here(*WORDS, *words, "hydra.run.dir=undisturbed").status == 0
    for name in ("scores.parquet", "predictions.parquet"):
        assert (out / name).read_bytes() == (here.folder / "undisturbed" / name).read_bytes(), name


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
