"""The file of a sqlite store: whole or not at all, and never lost."""

import errno
import os
import sqlite3
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.store.db import utils as mlflow_tables
from mlflow_store import RUN, keep

from srs_eval.errors import TrackingError
from srs_eval.tracking import sqlite_file
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker


def run_once(database, **options):
    return keep(f"sqlite:///{database}", Value("test/log_loss", 0.5), **options).run_id


def assert_one_run(database):
    run_id = run_once(database)
    run = MlflowClient(tracking_uri=f"sqlite:///{database}").get_run(run_id)
    assert (run.info.status, run.data.metrics) == ("FINISHED", {"test/log_loss": 0.5})
    assert files_of(database) <= {"mlflow.db", "mlflow.db-wal", "mlflow.db-shm", "mlflow.db.lock"}
    with closing(sqlite3.connect(database)) as connection:  # in which the UI reads beside runs
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def files_of(database):
    return {path.name for path in database.parent.iterdir()} - {"mlartifacts"}


def copied(store, database):
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(database)) as copy:
        source.backup(copy)
    return database


@pytest.fixture
def database(tmp_path):
    return tmp_path / "new" / "mlflow.db"


def content_of(database):
    """Tables, columns in order, and rows; MLflow makes indexes and constraints in any order."""
    with closing(sqlite3.connect(database)) as connection:
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql > ''").fetchall()
        parts = {name: sorted(line.strip(", \t") for line in sql.split("\n")) for name, sql in made}
        columns = [connection.execute(f"PRAGMA table_xinfo('{name}')").fetchall() for name in parts]
        rows = [line for line in connection.iterdump() if line.startswith("INSERT")]
    return parts, dict(zip(parts, columns, strict=True)), rows


def test_tables_from_the_template_are_those_of_all_steps(tmp_path, request, monkeypatch):
    monkeypatch.undo()  # of `_quick`
    quick, slow, template = tmp_path / "quick.db", tmp_path / "slow.db", sqlite_file._TABLES
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "_TABLES", Path(os.devnull))
        sqlite_file._create(slow)
    if request.config.getoption("force_regen"):
        with closing(sqlite3.connect(slow)) as connection:
            template.write_text("\n".join([*connection.iterdump(), ""]), encoding="utf-8")
    steps = []
    monkeypatch.setattr(mlflow_tables, "_initialize_tables", steps.append)
    sqlite_file._create(quick)
    assert (content_of(quick), steps) == (content_of(slow), [])
    # What it is not known to be equal to, it is not used for.
    monkeypatch.setattr(mlflow_tables, "_get_latest_schema_revision", lambda: "0123456789ab")
    sqlite_file._make_tables(tmp_path / "newer.db")
    assert [str(engine.url.database) for engine in steps] == [str(tmp_path / "newer.db")]


@pytest.fixture(autouse=True)
def _quick(store, monkeypatch):
    """Wait for little, and let MLflow create its tables by copying those of a store."""

    def create(engine):
        copied(store, Path(str(engine.url.database)))

    monkeypatch.setattr(sqlite_file, "_TABLES", Path(os.devnull))
    monkeypatch.setattr(mlflow_tables, "_initialize_tables", create)
    monkeypatch.setattr(sqlite_file, "_SECONDS_IN_SQLITE", 0.05)
    monkeypatch.setattr(sqlite_file, "_SECONDS_BEFORE_NOTICE", 0.1)


def test_what_a_killed_run_has_left_or_another_program_creates_meanwhile_is_no_obstacle(
    database, store, monkeypatch
):
    create = mlflow_tables._initialize_tables
    partial = database.with_name("mlflow.db.partial")
    partial.mkdir(parents=True)
    (partial / "mlflow.db").write_text("half")

    def race(engine):
        create(engine)
        with closing(sqlite3.connect(copied(store, database))) as theirs:
            theirs.execute("CREATE TABLE theirs (name)")

    monkeypatch.setattr(mlflow_tables, "_initialize_tables", race)
    assert_one_run(database)
    with closing(sqlite3.connect(database)) as found:
        assert found.execute("SELECT * FROM theirs").fetchall() == []
    partial.mkdir()
    assert_one_run(database)


@pytest.mark.parametrize("has_links", [True, False])
def test_a_store_is_on_the_disk_before_it_is_there(database, monkeypatch, *, has_links):
    events = []

    def named(*paths):
        if not has_links:
            raise OSError(errno.EPERM, "Operation not permitted")
        events.append("named")
        link(*paths)

    def renamed(*paths):
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


def test_a_creation_that_fails_leaves_nothing(database, monkeypatch):
    def fail(engine):
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
def locked(database):
    with closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield other


def test_a_locked_database_is_waited_for_and_told_in_two_lines_if_it_stays_locked(
    store, tmp_path, capfd
):
    used = copied(store, tmp_path / "mlflow.db")
    patient = MlflowTracker(uri=f"sqlite:///{used}", timeout=60)
    patient.start(RUN)
    with locked(used) as other:
        free = threading.Timer(0.5, other.execute, ("ROLLBACK",))
        free.start()
        patient.log([Value("test/log_loss", 0.5)])
        assert free.finished.is_set()
        free.join()
    patient.finish("finished")
    capfd.readouterr()
    tracker = MlflowTracker(uri=f"sqlite:///{used}", timeout=0.3)
    tracker.start(RUN)
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
