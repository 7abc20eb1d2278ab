"""The file of a sqlite store: whole or not at all, and never lost."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.store.db import utils as mlflow_tables
from sqlalchemy import Engine, event

from srs_eval.errors import TrackingError
from srs_eval.tracking import locked as waits
from srs_eval.tracking import sqlite_file
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.quiet import quiet_mlflow
from srs_eval.tracking.tracker import RunInfo

ONE_RUN = """
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker()
tracker.start(RunInfo("run"))
tracker.log([Value(f"test/m{n}", n) for n in range(50)])
tracker.finish("finished")
"""
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def create_in_place(database: Path, statements: int = 10_000) -> None:
    """Create the tables as MLflow does, up to a statement."""
    left = list(range(statements))
    engine = mlflow_tables.create_sqlalchemy_engine(f"sqlite:///{database}")
    event.listen(engine, "connect", sqlite_file._write_quickly)
    event.listen(engine, "after_cursor_execute", lambda *_: left.pop())
    with quiet_mlflow(), suppress(IndexError):
        mlflow_tables._initialize_tables(engine)
    engine.dispose()


def run_once(database: Path, **options: float) -> str:
    tracker = MlflowTracker(uri=f"sqlite:///{database}", **options)  # type: ignore[arg-type]
    tracker.start(RunInfo("run"))
    tracker.log([Value("test/log_loss", 0.5)])
    return tracker.finish("finished").run_id


def assert_one_run(database: Path) -> None:
    run_id = run_once(database)
    run = MlflowClient(tracking_uri=f"sqlite:///{database}").get_run(run_id)
    assert (run.info.status, run.data.metrics) == ("FINISHED", {"test/log_loss": 0.5})
    assert files_of(database) <= {"mlflow.db", "mlflow.db-wal", "mlflow.db-shm", "mlflow.db.lock"}


def files_of(database: Path) -> set[str]:
    return {path.name for path in database.parent.iterdir()} - {"mlartifacts"}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "mlflow.db"


@pytest.fixture
def used(store: Path, database: Path) -> Path:
    """A store with a run."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(database)) as copy:
        source.backup(copy)
    return database


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "SECONDS_WITHOUT_CHANGE", 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("statements", [0, 5, 150])
def test_a_store_whose_creation_an_older_version_left_unfinished_is_created_again(
    database: Path, statements: int, capsys: pytest.CaptureFixture[str]
) -> None:
    database.touch()
    if statements:
        create_in_place(database, statements)
    run_once(database)
    aside = database.with_name("mlflow.db.unfinished")
    assert aside.is_file()
    assert aside.name in capsys.readouterr().err
    aside.unlink()
    assert_one_run(database)


@pytest.mark.slow
def test_a_file_that_somebody_goes_on_creating_is_waited_for(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "SECONDS_WITHOUT_CHANGE", 60)
    database.touch()
    whole = database.with_name("whole.db")
    create_in_place(whole)
    late = threading.Timer(0.3, shutil.copyfile, (whole, database))
    late.start()
    assert run_once(database)
    late.join()
    assert not database.with_name("mlflow.db.unfinished").exists()


@pytest.mark.slow
def test_what_another_program_creates_meanwhile_is_not_replaced(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = used.rename(used.with_name("theirs.db"))
    create = mlflow_tables._initialize_tables

    def race(engine: Engine) -> None:
        create(engine)
        shutil.copyfile(theirs, used)

    monkeypatch.setattr(mlflow_tables, "_initialize_tables", race)
    run_once(used)
    client = MlflowClient(tracking_uri=f"sqlite:///{used}")
    experiment_id = client.get_experiment_by_name("srs_eval").experiment_id
    assert len(client.search_runs([experiment_id])) >= 2


@pytest.mark.slow
def test_a_file_system_without_hard_links_will_do(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert_one_run(database.parent / "new" / "folder" / database.name)


@pytest.mark.parametrize("has_links", [True, False])
def test_a_store_is_on_the_disk_before_it_is_there(
    database: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    events: list[object] = []

    def make(engine: Engine) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE made (name)")

    def named(*paths: Path) -> None:
        if not has_links:
            raise OSError(errno.EPERM, "Operation not permitted")
        events.append("named")
        link(*paths)

    def renamed(*paths: Path) -> None:
        events.append("named")
        rename(*paths)

    link, rename, sync = os.link, os.rename, os.fsync
    monkeypatch.setattr(mlflow_tables, "_initialize_tables", make)
    monkeypatch.setattr(os, "link", named)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append(os.fstat(fd).st_ino), sync(fd)))
    sqlite_file._create(database)
    assert events == [database.stat().st_ino, "named"]


@pytest.mark.slow
def test_a_creation_that_fails_leaves_nothing(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(engine: Engine) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE experiments (id INTEGER)")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow_tables, "_initialize_tables", fail)
        with pytest.raises(TrackingError, match="No space left"):
            run_once(database)
    assert files_of(database) == {"mlflow.db.lock"}
    assert_one_run(database)


@contextmanager
def locked(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield other


@pytest.mark.nightly
def test_a_locked_database_is_waited_for(used: Path) -> None:
    tracker = MlflowTracker(uri=f"sqlite:///{used}", timeout=60)
    tracker.start(RunInfo("run"))
    with locked(used) as other:
        free = threading.Timer(2.5, other.execute, ("ROLLBACK",))
        free.start()
        began = time.monotonic()
        tracker.log([Value("test/log_loss", 0.5)])
        assert time.monotonic() - began > 2
        free.join()
    tracker.finish("finished")


def test_a_database_that_stays_locked_is_told_in_two_lines_after_one_notice(
    used: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "_SECONDS_IN_SQLITE", 0.05)
    monkeypatch.setattr(waits, "_SECONDS_BEFORE_NOTICE", 0.1)
    tracker = MlflowTracker(uri=f"sqlite:///{used}", timeout=0.3)
    tracker.start(RunInfo("run"))
    with locked(used):
        with pytest.raises(TrackingError, match=r"locked by another process for 0\.3 s") as told:
            tracker.log([Value("test/log_loss", 0.5)])
        notice = f"srs_eval: waiting for {used}, which another process has locked\n"
        assert "".join(capfd.readouterr()) == notice
        with pytest.raises(TrackingError, match="locked"):
            run_once(used, timeout=0.2)
        tracker.finish("failed")
    assert str(told.value).count("\n") == 1
    assert "Traceback" not in "".join(capfd.readouterr())


@posix_only
@pytest.mark.nightly
def test_creations_killed_at_random_leave_a_store_that_opens(database: Path) -> None:
    rng = random.Random(13)
    # within each second of a creation, and each signal
    for second, sent in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGKILL)):
        folder = database.parent / str(second)
        folder.mkdir()
        with subprocess.Popen([sys.executable, "-c", ONE_RUN], cwd=folder) as process:
            until = time.monotonic() + 120
            while not (folder / "mlflow.db.partial").exists() and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.75 * (second + rng.random()))
            process.send_signal(sent)
        assert_one_run(folder / "mlflow.db")
