"""The store of MLflow: used at once by many, created by a killed command, locked, and away."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from urllib.request import urlopen

import pytest
from postgresql_server import free_port, postgresql_server
from sessions import (
    RUN,
    Command,
    assert_one_run_each,
    assert_same,
    fits,
    run,
    store_of,
    to,
    undisturbed,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
ONE_USER = (*RUN, "data.users=1")
A_WHOLE_STORE = 800_000  # bytes of mlflow.db when all its tables are there
A_PAGE = 30  # lines at most, what a run says of its results among them


def at_once(folder, many, **store):
    """Run many commands at once to their end."""
    own = [(f"seed={n}", f"hydra.run.dir=out{n}") for n in range(many)]
    for command in [Command(folder, *ONE_USER, *each, **store) for each in own]:
        command.ended()


@pytest.mark.parametrize(
    "many", [pytest.param(6, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.nightly)]
)
def test_many_commands_may_be_the_first_to_use_a_store(tmp_path, many):
    at_once(tmp_path, many)
    assert_one_run_each(store_of(tmp_path), many)


@pytest.mark.nightly
def test_commands_use_a_store_in_postgresql_at_once(tmp_path):
    with postgresql_server() as uri:
        store = {"MLFLOW_TRACKING_URI": uri}
        at_once(tmp_path, 4, **store)
        words = (*RUN, "hydra.run.dir=out")
        Command(tmp_path, *words, seconds=0.1, **store).until_fitted(3).kill()
        run(tmp_path, *words, **store)
        assert_one_run_each(uri, 5)


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(0.3, marks=pytest.mark.slow),
        *(pytest.param(share, marks=pytest.mark.nightly) for share in (0.0, 0.02, 0.5, 0.9, 1.0)),
    ],
)
def test_a_command_may_be_killed_while_it_creates_the_store(tmp_path, share):
    def created():
        total = 0
        for file in tmp_path.rglob("*mlflow.db*"):
            with suppress(OSError):  # it may go meanwhile
                total += file.stat().st_size
        return total > share * A_WHOLE_STORE

    words = (*ONE_USER, "hydra.run.dir=out")
    Command(tmp_path, *words).until(created).kill()
    run(tmp_path, *words)
    run(tmp_path, *ONE_USER, "seed=1", "hydra.run.dir=other")
    assert_one_run_each(store_of(tmp_path), 2)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.nightly)])
def test_a_locked_store_is_waited_for_when_the_results_are_on_the_disk(tmp_path, seconds):
    run(tmp_path, *ONE_USER, "hydra.run.dir=first")
    command = Command(tmp_path, *RUN, "hydra.run.dir=out").until_fitted(0)
    with closing(sqlite3.connect(tmp_path / "mlflow.db", timeout=30)) as other:
        other.execute("begin immediate")
        command.until((tmp_path / "out" / "summary.json").exists)
        until = time.time() + seconds
        command.until(lambda: time.time() > until)
        other.rollback()
    command.ended()
    assert_same(tmp_path / "out", undisturbed(*RUN))
    assert_one_run_each(store_of(tmp_path), 2)


@contextmanager
def served(folder, port):
    """Serve a store in a folder; yield the process."""
    words = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    words += ["--backend-store-uri", f"sqlite:///{folder / 'served.db'}"]
    words += ["--artifacts-destination", str(folder / "served")]
    with (folder / "server.txt").open("a") as said:
        options = {"stdout": said, "stderr": said, "start_new_session": True}
        process = subprocess.Popen(words, cwd=folder, **options)
    try:
        until = time.time() + 120
        while not _answers(port):
            assert time.time() < until
            time.sleep(0.1)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port):
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
        return True
    return False


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["down", "dies", "dies in a sweep"])
def test_results_are_on_the_disk_when_the_server_is_away_and_are_sent_later(tmp_path, kind):
    port = free_port()
    sweep = ("-m", "algo.factor=1,0.9") if "sweep" in kind else ()
    address, words = f"http://127.0.0.1:{port}", (*RUN, *sweep)
    options = {"seconds": 0.1, "MLFLOW_TRACKING_URI": address}
    if kind == "down":
        command = run(tmp_path, *words, *to("out", words), status=1, **options)
    else:
        with served(tmp_path, port) as server:
            command = Command(tmp_path, *words, *to("out", words), **options).until_fitted(3)
            os.killpg(server.pid, signal.SIGKILL)
            command.ended(1)
    assert address in command.text
    assert len(command.text.splitlines()) <= A_PAGE
    assert_same(tmp_path / "out", undisturbed(*words))
    with served(tmp_path, port):
        again = run(tmp_path, *words, *to("out", words), **options)
        assert_one_run_each(address, 1 + len(sweep) // 2)
    assert not fits(tmp_path, again.began)
