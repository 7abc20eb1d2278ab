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
from cases import rest_nightly
from postgresql_server import free_port, postgresql_server
from sessions import (
    JOBS,
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

ONE_USER = (*RUN, "data.users=1")
A_WHOLE_STORE = 800_000  # bytes of mlflow.db when all its tables are there


def at_once(folder, many, **store):
    """Run many commands at once to their end."""
    own = [(f"seed={n}", *to(f"out{n}")) for n in range(many)]
    for command in [Command(folder, *ONE_USER, *each, **store) for each in own]:
        command.ended()


@pytest.mark.slow
@pytest.mark.parametrize("many", rest_nightly([6, 30]))
def test_many_commands_may_be_the_first_to_use_a_store(tmp_path, many):
    at_once(tmp_path, many)
    assert_one_run_each(store_of(tmp_path), many)


@pytest.mark.nightly
def test_commands_use_a_store_in_postgresql_at_once(tmp_path):
    with postgresql_server() as uri:
        store = {"MLFLOW_TRACKING_URI": uri}
        at_once(tmp_path, 4, **store)
        words = (*RUN, *to("out"))
        Command(tmp_path, *words, seconds=0.1, **store).until_fitted(3).kill()
        run(tmp_path, *words, **store)
        assert_one_run_each(uri, 5)


@pytest.mark.slow
@pytest.mark.parametrize("share", rest_nightly([0.3, 0.0, 0.02, 0.9]))
def test_a_command_may_be_killed_while_it_creates_the_store(tmp_path, share):
    def created():
        total = 0
        for file in tmp_path.rglob("*mlflow.db*"):
            with suppress(OSError):  # it may go meanwhile
                total += file.stat().st_size
        return total > share * A_WHOLE_STORE

    words = (*ONE_USER, *to("out"))
    Command(tmp_path, *words).until(created).kill()
    run(tmp_path, *words)
    assert_one_run_each(store_of(tmp_path), 1)


@pytest.mark.slow
@pytest.mark.parametrize("end", rest_nightly([3, 60, signal.SIGINT, signal.SIGTERM]))
def test_a_locked_store_is_waited_for_when_the_results_are_on_the_disk(tmp_path, end):
    """For seconds, or until the command is stopped, which then sends them when it is repeated."""
    run(tmp_path, *ONE_USER, *to("first"))
    words = (*RUN, *to("out"))
    command = Command(tmp_path, *words).until_fitted(0)
    with closing(sqlite3.connect(tmp_path / "mlflow.db", timeout=30)) as other:
        other.execute("begin immediate")
        command.until((tmp_path / "out" / "summary.json").exists)
        if isinstance(end, signal.Signals):
            command.stop(end)
        else:
            until = time.time() + end
            command.until(lambda: time.time() > until)
        other.rollback()
    again = command.ended() if command.status is None else run(tmp_path, *words)
    assert again is command or not fits(tmp_path, again.began)
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
@pytest.mark.parametrize(("is_down", "what"), [(True, ()), (False, ()), (False, JOBS)])
def test_results_are_on_the_disk_when_the_server_is_away_and_are_sent_later(
    tmp_path, is_down, what
):
    port = free_port()
    address, words = f"http://127.0.0.1:{port}", (*RUN, *what, *to("out", what))
    options = {"seconds": 0.1, "MLFLOW_TRACKING_URI": address}
    if is_down:
        command = run(tmp_path, *words, status=1, **options)
    else:
        with served(tmp_path, port) as server:
            command = Command(tmp_path, *words, **options).until_fitted(3)
            os.killpg(server.pid, signal.SIGKILL)
            command.ended(1)
    assert address in command.text
    assert_same(tmp_path / "out", undisturbed(*RUN, *what))
    with served(tmp_path, port):
        again = run(tmp_path, *words, **options)
        assert_one_run_each(address, 2 if what else 1)
    assert not fits(tmp_path, again.began)
