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
from functools import cache
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.store.db import utils as mlflow_tables
from sqlalchemy import Engine, event

from srs_eval.errors import TrackingError
from srs_eval.tracking import sqlite_file
from srs_eval.tracking.items import Value
from srs_eval.tracking.locked import wait_when_locked
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.quiet import quiet_mlflow
from srs_eval.tracking.tracker import RunInfo

NEWEST = mlflow_tables._get_latest_schema_revision()
FIRST_REVISION = "451aebb31d03"

ONE_RUN = """
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker()
tracker.start(RunInfo("run"))
tracker.log([Value(f"test/m{n}", n) for n in range(50)])
tracker.finish("finished")
"""
# Kills its process at one of the statements that create the tables.
KILLED = """
import os, signal, sys
from itertools import count
from sqlalchemy import Engine, event
numbers = count(1)
@event.listens_for(Engine, "after_cursor_execute")
def _end(*_):
    if next(numbers) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
"""

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


class _Cut(Exception):
    pass


@contextmanager
def each_statement(act: object) -> Iterator[None]:
    """Call something after each statement of SQLAlchemy."""
    event.listen(Engine, "after_cursor_execute", act)
    try:
        yield
    finally:
        event.remove(Engine, "after_cursor_execute", act)


def create_in_place(database: Path, statements: int | None = None) -> None:
    """Create the tables as MLflow does, up to a statement if a number is given."""
    done = 0

    def cut(*_: object) -> None:
        nonlocal done
        done += 1
        if done == statements:
            raise _Cut

    engine = mlflow_tables.create_sqlalchemy_engine(f"sqlite:///{database}")
    event.listen(engine, "connect", sqlite_file._write_quickly)
    try:
        with quiet_mlflow(), each_statement(cut):
            mlflow_tables._initialize_tables(engine)
    except _Cut:
        pass
    finally:
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


@pytest.mark.nightly
def test_every_step_of_a_creation_is_known_as_unfinished(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_when_locked(database, 0)
    # reads every script of MLflow's, at each of hundreds of statements
    monkeypatch.setattr(sqlite_file, "_is_known", cache(sqlite_file._is_known))
    seen: list[bool] = []

    def look(*_: object) -> None:
        with suppress(sqlite3.OperationalError):  # locked, while the statement is not committed
            seen.append(sqlite_file._is_ready(database, NEWEST))

    engine = mlflow_tables.create_sqlalchemy_engine(f"sqlite:///{database}")
    event.listen(engine, "connect", sqlite_file._write_quickly)
    event.listen(engine, "after_cursor_execute", look)
    with quiet_mlflow():
        mlflow_tables._initialize_tables(engine)
    engine.dispose()
    assert len(seen) > 200
    first_ready = seen.index(True) if True in seen else len(seen)
    assert not any(seen[:first_ready])
    assert first_ready > len(seen) - 10
    assert sqlite_file._is_ready(database, NEWEST)


@pytest.mark.slow
@pytest.mark.parametrize("statements", [5, pytest.param(150, marks=pytest.mark.slow)])
def test_a_store_whose_creation_an_older_version_left_unfinished_is_created_again(
    database: Path, statements: int, capsys: pytest.CaptureFixture[str]
) -> None:
    create_in_place(database, statements)
    run_once(database)
    aside = database.with_name("mlflow.db.unfinished")
    assert aside.is_file()
    assert aside.name in capsys.readouterr().err
    aside.unlink()
    assert_one_run(database)


@pytest.mark.slow
def test_an_empty_file_becomes_a_store(database: Path) -> None:
    database.touch()
    run_once(database)


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


@pytest.mark.parametrize(
    ("revision", "told"), [(FIRST_REVISION, "older MLflow"), ("fedcba987654", "newer MLflow")]
)
def test_a_store_with_runs_of_another_mlflow_is_not_touched(
    used: Path, revision: str, told: str
) -> None:
    with closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [revision])
    before = used.read_bytes()
    with pytest.raises(TrackingError, match=told):
        run_once(used)
    assert used.read_bytes() == before
    assert files_of(used) <= {"mlflow.db", "mlflow.db.lock"}


def test_a_half_upgraded_store_with_runs_is_not_touched(used: Path) -> None:
    with closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")
        connection.execute("DROP TABLE webhooks")
    before = used.read_bytes()
    with pytest.raises(TrackingError, match="db upgrade"):
        run_once(used)
    assert used.read_bytes() == before


def test_a_database_of_another_program_is_not_touched(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE revlog (id INTEGER)")
    before = database.read_bytes()
    with pytest.raises(TrackingError, match="another program, with the table revlog"):
        run_once(database)
    assert database.read_bytes() == before


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
    assert_one_run(database)


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


@pytest.mark.slow
def test_a_database_that_stays_locked_is_told_in_two_lines(
    used: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tracker = MlflowTracker(uri=f"sqlite:///{used}", timeout=0.2)
    tracker.start(RunInfo("run"))
    with locked(used):
        with pytest.raises(TrackingError, match=r"locked by another process for 0\.2 s") as told:
            tracker.log([Value("test/log_loss", 0.5)])
        with pytest.raises(TrackingError, match="locked"):
            run_once(used, timeout=0.2)
        tracker.finish("failed")
    assert str(told.value).count("\n") == 1
    assert "Traceback" not in "".join(capfd.readouterr())


@posix_only
@pytest.mark.nightly
@pytest.mark.parametrize("statement", [7, 300])
def test_a_creation_that_is_killed_leaves_no_trace_in_the_next(
    database: Path, statement: int
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED + ONE_RUN, str(statement)], cwd=database.parent, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert files_of(database) == {"mlflow.db.lock", "mlflow.db.partial"}
    assert_one_run(database)


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
