"""Commands that share a folder, are stopped or lose it, and go on as if nothing had been."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from commands import QUIET, apart, outcome_of, summary_of, write
from filelock import FileLock

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.results.kept import KeptParts
from srs_eval.tracking.tracker import NoTracker

SMALL = ("panel=quick", "data.size_scale=0.02", *QUIET)
RUN = ["algo=avg", "data.users=2", "data.max_reviews=600", *SMALL]
ON_POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def contents(folder):
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


SWEEP = pytest.param("sweep", marks=pytest.mark.slow)


@pytest.mark.parametrize("kind", ["run", SWEEP])
def test_a_second_command_in_a_folder_is_refused_and_changes_nothing(here, kind):
    words = [f"hydra.{kind}.dir=out", *(["-m"] if kind == "sweep" else [])]
    assert here(*RUN, *words).status == 0
    with FileLock(here.folder / "out" / ".lock"):
        before = contents(here.folder)
        refused = here(*RUN, *words, "name=another")
        assert refused.status == 1
        assert "out is in use by another command" in refused.err
        assert contents(here.folder) == before


@pytest.mark.parametrize("kind", ["run", SWEEP])
def test_commands_begun_in_the_same_second_get_folders_of_their_own(here, kind):
    job = "0_avg" if kind == "sweep" else ""
    words = [*RUN, f"hydra.{kind}.dir=same_${{now:%Y}}", *(["-m"] if job else [])]
    assert here(*words).status == 0
    (folder,) = here.folder.iterdir()
    with FileLock(folder / ".lock"):
        before = contents(folder)
        assert here(*words).status == 0
        assert contents(folder) == before
    assert summary_of(folder.with_name(f"{folder.name}_2") / job)["users"] == 2


@pytest.mark.parametrize("moment", ["keep", "end"])
def test_a_folder_that_goes_during_the_run_is_a_failure(here, monkeypatch, moment):
    monkeypatch.setattr(KeptParts, moment, lambda *_: shutil.rmtree(here.folder / "out"))
    done = here(*RUN, "hydra.run.dir=out")
    assert done.status == 1
    assert "out: it was removed or renamed during the run" in done.err


def test_figures_of_an_earlier_run_go_those_of_users_stay_and_a_failed_tracker_costs_no_result(
    here, monkeypatch
):
    def fail(*_):
        raise TrackingError("gone")

    def results():
        found = contents(here.folder / "out").items()
        return {name: text for name, text in found if "job.json" not in name and "/." not in name}

    theirs = here.folder / "out" / "figures" / "precious.png"
    theirs.parent.mkdir(parents=True)
    for file in (theirs, theirs.with_name("roc.png")):
        file.write_bytes(b"of an earlier run or of somebody's")
    with monkeypatch.context() as patch:
        patch.setattr(NoTracker, "finish", fail)
        failed = here(*RUN, "hydra.run.dir=out")
    assert failed.status == 1
    assert "gone\nThe results are in" in failed.err
    assert [file.name for file in theirs.parent.iterdir()] == ["precious.png"]
    before = results()
    assert here(*RUN, "hydra.run.dir=out", "resume=true", "seed=7").status == 2
    assert before == results()
    done = here(*RUN, "hydra.run.dir=out", "resume=true")
    assert (done.status, "2 of 2 users were done before" in done.out) == (0, True)
    assert results() == {name: text for name, text in before.items() if "/parts/" not in name}


def test_files_that_are_not_of_a_run_are_refused_and_stay(tmp_path):
    kept = KeptParts(tmp_path / "parts", "stamp")
    kept.folder.mkdir()
    (kept.folder / "mine.txt").write_text("mine", encoding="utf-8")
    for resume in (True, False):
        with pytest.raises(ConfigError):
            kept.open(resume=resume, chunk=1)
    kept.remove()
    assert (kept.folder / "mine.txt").read_text(encoding="utf-8") == "mine"


USERS = 5
WORDS = [f"data.users={USERS}", *SMALL, "--config-dir=own"]
# Sends the signal named in a file, if there is one, to the whole command at its fourth user.
STOPPING = """
import os
import time
from pathlib import Path

from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.tracking.tracker import NoTracker


class Slow(NoTracker):
    def log(self, found):
        if any(item.name == "rows_fingerprint" for item in found) and Path("stop").exists():
            time.sleep(110)


class Stopping:
    same_day = False
    when = "previous_review"
    sees_truth = False

    def fit(self, reviews, rows, rng):
        if reviews.user == 4 and Path("stop").exists():
            before = Path("out/0_avg/job.json")
            while Path("wait").exists() and '"ok"' not in before.read_text():
                time.sleep(0.1)
            time.sleep(0.3)  # let the main process come to rest
            os.killpg(0, int(Path("stop").read_text()))
            time.sleep(60)
        return Hlr().fit(reviews, rows, rng)
"""


@pytest.fixture
def _prepared(here, monkeypatch):
    option = {
        "own/algo/stopping.yaml": "_target_: stopping.Stopping\n",
        "own/tracking/slow.yaml": "_target_: stopping.Slow\n",
    }
    write(here.folder, {"stopping.py": STOPPING, **option})
    monkeypatch.syspath_prepend(here.folder)


def stopped(folder, number, *words):
    """Run a command that gets a signal when some users are finished and one is under way."""
    (folder / "stop").write_text(str(int(number)), encoding="utf-8")
    done = apart(folder, *WORDS, *words)
    (folder / "stop").unlink()
    return done


@pytest.mark.slow
@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_stopped_can_be_continued(here, number):
    words = ["algo=stopping", "compute=processes", "hydra.run.dir=out"]
    out = here.folder / "out"
    done = stopped(here.folder, number, *words)
    if number == signal.SIGINT:
        assert done.status == 130
        assert f"resume=true hydra.run.dir={out}" in done.err
        assert done.err.count("srs_eval: interrupted") == 1
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
@pytest.mark.usefixtures("_prepared")
def test_an_interrupted_sweep_says_what_was_done_and_goes_on_from_there(here):
    words = ["-m", "algo=avg,stopping,sm2", "hydra.sweep.dir=out"]
    (here.folder / "wait").touch()
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


@pytest.mark.slow
@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_ended_while_the_next_is_evaluated_can_be_stopped_with_it(here, number):
    words = ["-m", "algo=avg,stopping", "hydra.sweep.dir=out", "tracking=slow"]
    began = time.monotonic()
    done = stopped(here.folder, number, *words)
    assert time.monotonic() - began < 100
    assert done.status == 128 + number
    assert done.err.count("interrupted") == 1
    assert "Traceback" not in done.text
    for job in ("0_avg", "1_stopping"):
        assert outcome_of(here.folder / "out" / job)["status"] == "interrupted"
    done = here(*WORDS, *words, "resume=true")
    assert done.status == 0, done.err
    assert f"{USERS} of {USERS} users were done before" in done.out
    assert f"3 of {USERS} users were done before" in done.out


INTERRUPTED = "srs_eval: interrupted\n"
BEGIN = """
import atexit, os, signal, time
from srs_eval.compute import stopping
def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    for _ in range(10): pass
def go_on():
    for _ in range(1000):
        time.sleep(0.02)
    return 0
class Dropping:
    def __init__(self, number=signal.SIGINT):
        self.number = number
    def __del__(self):
        interrupt(self.number)
def command():
"""
END = "\nstopping.run(command)\n"
# What a command does, its exit status, and whether it is said to be interrupted.
PROGRAMS = {
    "in a library that is then astray": (
        "try: interrupt()\n    except BaseException: pass\n    return None.missing",
        130,
    ),
    "in a finaliser": ("Dropping(signal.SIGTERM); return go_on()", 143),
    "twice at once": (
        "Dropping()\n    try: go_on()\n    except KeyboardInterrupt:\n"
        "        Dropping(); raise",  # at the same time: the same request
        130,
    ),
    "caught": (
        "try: interrupt(); time.sleep(1)\n    except: pass\n    stopping.check(); return 0",
        130,
    ),
    "at exit": ("atexit.register(interrupt, signal.SIGTERM); return 7", 7),
}
STUBBORN = """
    try:
        print("ready", flush=True)
        go_on()
    finally:
        print("cleaning", flush=True)
        go_on()
"""


@ON_POSIX
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_signal_is_heard(program):
    body, status = PROGRAMS[program]
    done = apart(None, f"{BEGIN}    {body}{END}", program=["-c"])
    assert (done.status, done.err) == (status, "" if status == 7 else INTERRUPTED)


@ON_POSIX
@pytest.mark.slow
def test_a_second_signal_ends_at_once():
    words = [sys.executable, "-c", BEGIN + STUBBORN + END]
    with subprocess.Popen(words, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaning\n"
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert "stopped at once" in process.stderr.read()


@ON_POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_is_heard(tmp_path, number):
    stub = f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)\n"
    (tmp_path / "hydra.py").write_text(stub, encoding="utf-8")
    done = apart(tmp_path, "algo=avg")
    assert (done.status, done.err) == (128 + number, INTERRUPTED)
