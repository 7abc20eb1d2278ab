"""The file of a sqlite store: there as a whole or not at all.

MLflow creates its tables in some hundred steps, and a file in which they were interrupted can
never be opened again. So they are created in a folder beside, from where the file is moved.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow.store.db import utils
from sqlalchemy import event
from sqlalchemy.pool import ConnectionPoolEntry

from srs_eval.errors import TrackingError
from srs_eval.place import put_on_disk
from srs_eval.tracking.locked import connected, notice, waiting

mlflow_tables: Any = utils  # which has no types

# A file that is created by another program, such as `mlflow ui`, changes all the time.
SECONDS_WITHOUT_CHANGE = 10.0
_COMPANIONS = ("-journal", "-wal", "-shm")
_REVISION = "alembic_version"
# What MLflow itself writes into a store in which nothing was kept.
_FIRST_ROWS = {
    _REVISION: "SELECT 0",
    "experiments": "SELECT count(*) FROM experiments WHERE name != 'Default'",
    "workspaces": "SELECT count(*) FROM workspaces WHERE name != 'default'",
}


@dataclass(frozen=True, slots=True)
class _Content:
    """What is in a file."""

    revision: str  # Of the tables; "" before the first
    tables: tuple[str, ...]  # Their names
    is_empty: bool  # Whether nothing was ever kept there

    @property
    def is_mlflow(self) -> bool:
        """Whether it is empty or was created by MLflow."""
        return not self.tables or _REVISION in self.tables or "experiments" in self.tables


def prepare(database: Path, lock: FileLock) -> None:
    """Create the file of a store unless it is there; replace one whose creation was interrupted.

    A file in which anything was kept is never touched.
    """
    newest = mlflow_tables._get_latest_schema_revision()
    if _partial(database).is_dir() or not _is_ready(database, newest):
        with lock:
            # whose process has died, or it would have the lock
            shutil.rmtree(_partial(database), ignore_errors=True)
            while not _is_ready(database, newest):
                if not database.exists():
                    _create(database)
                elif _has_come_to_rest(database):
                    _set_aside(database)
    _let_readers_in(database)


def _is_ready(database: Path, newest: str) -> bool:
    """Whether MLflow can open the file; raise if it cannot and the file is not ours to replace."""
    if not database.exists():
        return False
    content = _content(database)
    if content.revision == newest:
        return True
    if not content.is_mlflow:
        raise TrackingError(
            f"{database} is a database of another program, with the table {content.tables[0]}; "
            "set tracking.uri"
        )
    if not _is_known(content.revision):
        raise TrackingError(
            f"{database} was made by a newer MLflow (revision {content.revision}); "
            "upgrade MLflow, or set tracking.uri"
        )
    if not content.is_empty:
        raise TrackingError(
            f"{database} was made by an older MLflow (revision {content.revision or 'none'}, "
            f"expected {newest}) and holds runs.\n"
            "  Copy the file while nothing uses it, then: "
            f"python -m mlflow db upgrade sqlite:///{database.as_posix()}"
        )
    return False


def _content(database: Path) -> _Content:
    # Not read-only: what an interrupted program has left half written is undone by this.
    with closing(connected(database)) as connection:

        def read() -> _Content:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = tuple(sorted(name for (name,) in found))
            revision = None
            if _REVISION in tables:
                revision = connection.execute(f"SELECT version_num FROM {_REVISION}").fetchone()
            is_empty = not any(_rows(connection, table) for table in tables)
            return _Content(revision[0] if revision else "", tables, is_empty)

        return waiting(database, read)


def _rows(connection: sqlite3.Connection, table: str) -> int:
    """Count rows, but no further than to know that there is one."""
    quoted = '"' + table.replace('"', '""') + '"'
    query = _FIRST_ROWS.get(table, f"SELECT count(*) FROM (SELECT 1 FROM {quoted} LIMIT 1)")
    rows: int = connection.execute(query).fetchone()[0]
    return rows


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
        engine = mlflow_tables.create_sqlalchemy_engine(f"sqlite:///{fresh.as_posix()}")
        event.listen(engine, "connect", _write_quickly)
        try:
            mlflow_tables._initialize_tables(engine)
        finally:
            engine.dispose()
        _let_readers_in(fresh)
        put_on_disk(fresh)
        _move(fresh, database)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_quickly(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    # A half-made file is thrown away anyway, and the whole one is put on the disk at the end.
    connection.execute("PRAGMA synchronous=OFF")


def _let_readers_in(database: Path) -> None:
    # In this mode, which the file remembers, the UI can read while runs write.
    with closing(connected(database)) as connection:
        mode = waiting(database, lambda: connection.execute("PRAGMA journal_mode").fetchone())[0]
        if mode != "wal":
            waiting(database, lambda: connection.execute("PRAGMA journal_mode=WAL"))


def _move(fresh: Path, database: Path) -> None:
    """Move a file to where none may be: another program may have created one meanwhile."""
    try:
        os.link(fresh, database)
    except FileExistsError:
        pass  # the next look at it will tell what it is
    except OSError:  # no hard links in this file system
        if not database.exists():
            fresh.rename(database)


def _has_come_to_rest(database: Path) -> bool:
    """Whether no process is still creating the file."""
    before = _trace(database)
    notice(f"{database}: created only in part; waiting whether anybody goes on with it")
    until = time.monotonic() + SECONDS_WITHOUT_CHANGE
    while time.monotonic() < until:
        time.sleep(0.05)
        if _trace(database) != before:
            return False
    return True


def _trace(database: Path) -> tuple[object, ...]:
    """Sample what changes with every step of a creation."""
    if not database.exists():
        return ()
    status = database.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _set_aside(database: Path) -> None:
    """Rename a file in which nothing was kept, and what sqlite has put beside it."""
    names = (database.with_name(f"{database.name}.unfinished{n or ''}") for n in count())
    aside = next(name for name in names if not name.exists())
    for companion in _COMPANIONS:
        beside = Path(f"{database}{companion}")
        if beside.exists():
            beside.replace(f"{aside}{companion}")
    database.replace(aside)
    notice(
        f"the creation of {database} was interrupted before anything was kept in it; "
        f"it is created again, the old file is {aside.name}"
    )


def _partial(database: Path) -> Path:
    return database.with_name(f"{database.name}.partial")
