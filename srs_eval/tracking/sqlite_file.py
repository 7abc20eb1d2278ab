"""The file of a sqlite store: there as a whole or not at all.

MLflow creates its tables in some hundred steps, and a file in which they were interrupted can
never be opened again. So they are created in a folder beside, from where the file is moved. Of the
newest tables that are known here the outcome of all steps is written, which takes no time.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow.store.db import utils
from sqlalchemy import event
from sqlalchemy.pool import ConnectionPoolEntry

from srs_eval.errors import TrackingError
from srs_eval.place import put_on_disk
from srs_eval.tracking.locked import connected, waiting

mlflow_tables: Any = utils  # which has no types

_REVISION = "alembic_version"
# What MLflow's steps make, with their last revision, as a test makes it anew and compares it.
_TABLES = Path(__file__).with_name("mlflow_tables.sql")


def prepare(database: Path, lock: FileLock, seconds: float) -> None:
    """Create the file of a store unless it is there; raise if MLflow cannot open it.

    Waits up to `seconds` for a file that another process has locked.
    """
    partial = _partial(database)
    if partial.is_dir() or not database.exists():
        with lock:
            # whose process has died, or it would have the lock
            shutil.rmtree(partial, ignore_errors=True)
            if not database.exists():
                _create(database)
    # Not read-only: what an interrupted program has left half written is undone by this.
    with closing(connected(database)) as connection:
        waiting(database, seconds, lambda: _require_ready(database, connection))
        # In this mode, which the file remembers, the UI can read while runs write.
        mode = waiting(database, seconds, lambda: _first(connection, "PRAGMA journal_mode"))
        if mode != "wal":
            waiting(database, seconds, lambda: connection.execute("PRAGMA journal_mode=WAL"))


def _require_ready(database: Path, connection: sqlite3.Connection) -> None:
    """Check that this MLflow can open the file."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = sorted(name for (name,) in found)
    revision = ""
    if _REVISION in tables:
        revision = _first(connection, f"SELECT version_num FROM {_REVISION}") or ""
    newest = mlflow_tables._get_latest_schema_revision()
    if revision == newest:
        return
    if tables and not {_REVISION, "experiments"} & set(tables):
        raise TrackingError(
            f"{database} is a database of another program, with the table {tables[0]}; "
            "set tracking.uri"
        )
    if not _is_known(revision):
        raise TrackingError(
            f"{database} was made by a newer MLflow (revision {revision}); "
            "upgrade MLflow, or set tracking.uri"
        )
    if "runs" not in tables or _first(connection, "SELECT count(*) FROM runs") == 0:
        raise TrackingError(
            f"{database} holds no runs, and not the tables of this MLflow.\n"
            "  If another program, such as mlflow ui, is creating it now, wait until it has; "
            f"otherwise delete {database}"
        )
    raise TrackingError(
        f"{database} was made by an older MLflow (revision {revision or 'none'}, "
        f"expected {newest}) and holds runs.\n"
        "  Copy the file while nothing uses it, then: "
        f"python -m mlflow db upgrade sqlite:///{database.as_posix()}"
    )


def _first(connection: sqlite3.Connection, query: str) -> Any:
    """Return the first value of the first row, None without rows."""
    row = connection.execute(query).fetchone()
    return None if row is None else row[0]


def _is_known(revision: str) -> bool:
    config = mlflow_tables._get_alembic_config("")
    scripts = mlflow_tables.ScriptDirectory.from_config(config)
    return not revision or any(script.revision == revision for script in scripts.walk_revisions())


def _create(database: Path) -> None:
    """Create the tables in a folder beside the file, and move it to its place."""
    partial = _partial(database)
    try:
        partial.mkdir(parents=True)
        fresh = partial / database.name
        _make_tables(fresh)
        put_on_disk(fresh)
        _move(fresh, database)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _make_tables(file: Path) -> None:
    """Create the tables, as MLflow does: by a hundred steps, unless `_TABLES` is their outcome."""
    tables = _TABLES.read_text(encoding="utf-8")
    if f"VALUES('{mlflow_tables._get_latest_schema_revision()}');" in tables:
        with closing(connected(file)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            connection.executescript(tables)
        return
    engine = mlflow_tables.create_sqlalchemy_engine(f"sqlite:///{file.as_posix()}")
    event.listen(engine, "connect", _write_quickly)
    try:
        mlflow_tables._initialize_tables(engine)
    finally:
        engine.dispose()


def _write_quickly(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    # A half-made file is thrown away anyway, and the whole one is put on the disk at the end.
    connection.execute("PRAGMA synchronous=OFF")


def _move(fresh: Path, database: Path) -> None:
    """Move a file to where none may be: another program may have created one meanwhile."""
    try:
        os.link(fresh, database)
    except FileExistsError:
        pass  # whether MLflow can open it is looked at next
    except OSError:  # no hard links in this file system
        if not database.exists():
            fresh.rename(database)


def _partial(database: Path) -> Path:
    return database.with_name(f"{database.name}.partial")
