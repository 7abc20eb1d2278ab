"""The file of a sqlite store: there as a whole or not at all, and waited for where it is locked.

MLflow creates its tables in some hundred steps, and a file in which they were interrupted can
never be opened again. So they are created in a folder beside, from where the file is moved. Of the
newest tables that are known here the outcome of all steps is written, which takes no time.

The busy handler of sqlite sleeps inside of one call, where no Ctrl-C is heard, and MLflow sets it
to 20 seconds at each use. So each statement waits briefly in sqlite and is repeated from here.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from filelock import FileLock
from mlflow.store.db import utils
from sqlalchemy import Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from srs_eval.errors import TrackingError
from srs_eval.place import put_on_disk

Result = TypeVar("Result")

mlflow_tables: Any = utils  # which has no types

_REVISION = "alembic_version"
# What MLflow's steps make, with their last revision, as a test makes it anew and compares it.
_TABLES = Path(__file__).with_name("mlflow_tables.sql")

_SECONDS_IN_SQLITE = 1.0
_SECONDS_BEFORE_NOTICE = 5.0
_PAUSE = 0.01
_BUSY_TIMEOUT = re.compile(r"\s*PRAGMA\s+busy_timeout\s*=", re.IGNORECASE)
_seconds: WeakKeyDictionary[Engine, float] = WeakKeyDictionary()


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


def wait_when_locked(engine: Engine, seconds: float) -> None:
    """Let the statements of an engine wait up to `seconds` for its sqlite file."""
    if engine not in _seconds:
        event.listen(engine, "do_execute", _execute)
        event.listen(engine, "do_execute_no_params", _execute)
        event.listen(engine, "do_executemany", _execute_many)
    _seconds[engine] = seconds


def connected(database: object) -> sqlite3.Connection:
    """Open a sqlite file for use with `waiting`."""
    return sqlite3.connect(str(database), timeout=_SECONDS_IN_SQLITE)


def waiting(database: object, seconds: float, action: Callable[[], Result]) -> Result:
    """Call `action`, and repeat it while another process has the sqlite file locked."""
    began = time.monotonic()
    is_told = False
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - began
            # what was read before may have changed: the whole transaction is in vain
            is_stale = is_lock(error) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT
            if not is_lock(error) or is_stale or waited > seconds:
                raise
        if waited > _SECONDS_BEFORE_NOTICE and not is_told:
            is_told = True
            # to stderr: the loggers of MLflow are silenced
            sys.stderr.write(
                f"srs_eval: waiting for {database}, which another process has locked\n"
            )
            sys.stderr.flush()
        time.sleep(_PAUSE)  # a busy handler that sqlite skips, as where it would be in vain


def is_lock(error: sqlite3.Error) -> bool:
    """Whether sqlite failed because another process has locked the database."""
    # the low byte is the error, the others say more of it; absent where Python itself raised it
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _execute(cursor: Any, statement: str, *parameters_and_context: Any) -> bool:
    *parameters, context = parameters_and_context
    if _BUSY_TIMEOUT.match(statement):
        statement = f"PRAGMA busy_timeout = {_SECONDS_IN_SQLITE * 1000:.0f}"
    return _waited(context, lambda: cursor.execute(statement, *parameters))


def _execute_many(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    return _waited(context, lambda: cursor.executemany(statement, parameters))


def _waited(context: Any, execute: Callable[[], object]) -> bool:
    """Execute a statement, and tell SQLAlchemy that it was."""
    engine = context.root_connection.engine
    waiting(engine.url.database, _seconds[engine], execute)
    return True
