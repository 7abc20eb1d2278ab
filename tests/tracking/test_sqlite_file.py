"""The file of a sqlite store: whole or not at all, and never lost."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
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

create_slowly = mlflow_tables._initialize_tables


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


def copied(store: Path, database: Path) -> Path:
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(database)) as copy:
        source.backup(copy)
    return database


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "new" / "mlflow.db"


@pytest.fixture(autouse=True)
def _quick(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for little, and let MLflow create its tables by copying those of a store."""

    def create(engine: Engine) -> None:
        copied(store, Path(str(engine.url.database)))

    monkeypatch.setattr(mlflow_tables, "_initialize_tables", create)
    monkeypatch.setattr(sqlite_file, "SECONDS_WITHOUT_CHANGE", 0.1)
    monkeypatch.setattr(waits, "_SECONDS_IN_SQLITE", 0.05)
    monkeypatch.setattr(waits, "_SECONDS_BEFORE_NOTICE", 0.1)


@pytest.mark.parametrize("statements", [0, 5, 150])
def test_a_store_whose_creation_was_left_unfinished_is_created_again(
    database: Path, statements: int, capsys: pytest.CaptureFixture[str]
) -> None:
    left = list(range(statements))
    database.parent.mkdir()
    database.touch()
    engine = mlflow_tables.create_sqlalchemy_engine(f"sqlite:///{database}")
    event.listen(engine, "connect", sqlite_file._write_quickly)
    event.listen(engine, "after_cursor_execute", lambda *_: left.pop())
    with quiet_mlflow(), suppress(IndexError):
        create_slowly(engine)
    engine.dispose()
    partial = database.with_name("mlflow.db.partial")  # as a kill has left it
    partial.mkdir()
    (partial / "mlflow.db").write_text("half")
    run_once(database)
    aside = database.with_name("mlflow.db.unfinished")
    assert aside.is_file()
    assert aside.name in capsys.readouterr().err
    aside.unlink()
    assert_one_run(database)


def test_a_file_that_somebody_goes_on_creating_is_waited_for(
    database: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "SECONDS_WITHOUT_CHANGE", 60)
    database.parent.mkdir()
    database.touch()
    late = threading.Timer(0.3, shutil.copyfile, (copied(store, tmp_path / "whole.db"), database))
    late.start()
    assert_one_run(database)
    late.join()


def test_what_another_program_creates_meanwhile_is_not_replaced(
    database: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = mlflow_tables._initialize_tables

    def race(engine: Engine) -> None:
        create(engine)
        with closing(sqlite3.connect(copied(store, database))) as theirs:
            theirs.execute("CREATE TABLE theirs (name)")

    monkeypatch.setattr(mlflow_tables, "_initialize_tables", race)
    run_once(database)
    with closing(sqlite3.connect(database)) as found:
        assert found.execute("SELECT * FROM theirs").fetchall() == []


@pytest.mark.parametrize("has_links", [True, False])
def test_a_store_is_on_the_disk_before_it_is_there(
    database: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    events: list[object] = []

    def named(*paths: Path) -> None:
        if not has_links:
            raise OSError(errno.EPERM, "Operation not permitted")
        events.append("named")
        link(*paths)

    def renamed(*paths: Path) -> None:
        events.append("named")
        rename(*paths)

    link, rename, sync = os.link, os.rename, os.fsync
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", named)
        patch.setattr(os, "rename", renamed)
        patch.setattr(os, "fsync", lambda fd: (events.append(os.fstat(fd).st_ino), sync(fd)))
        sqlite_file._create(database)
    assert events == [database.stat().st_ino, "named"]
    assert_one_run(database)


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


def test_a_locked_database_is_waited_for_and_told_in_two_lines_if_it_stays_locked(
    store: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    used = copied(store, tmp_path / "mlflow.db")
    patient = MlflowTracker(uri=f"sqlite:///{used}", timeout=60)
    patient.start(RunInfo("run"))
    with locked(used) as other:
        free = threading.Timer(0.5, other.execute, ("ROLLBACK",))
        free.start()
        patient.log([Value("test/log_loss", 0.5)])
        assert free.finished.is_set()
        free.join()
    patient.finish("finished")
    capfd.readouterr()
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
