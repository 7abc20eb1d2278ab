"""Waiting for what another process has locked: a lock file, or a sqlite database.

The busy handler of sqlite sleeps inside of one call, where no Ctrl-C is heard, and MLflow sets it
to 20 seconds at each use. So each statement waits briefly in sqlite and is repeated from here.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Engine, event

from srs_eval.tracking.address import LOCK_SECONDS

Result = TypeVar("Result")

_SECONDS_IN_SQLITE = 1.0
_SECONDS_BEFORE_NOTICE = 5.0
_PAUSE = 0.01
_BUSY_TIMEOUT = re.compile(r"\s*PRAGMA\s+busy_timeout\s*=", re.IGNORECASE)
_seconds: dict[str, float] = {}


def wait_when_locked(database: Path, seconds: float) -> None:
    """Let all of this process wait up to `seconds` for a sqlite file that is locked."""
    _seconds[str(database)] = seconds


def connected(database: Path) -> sqlite3.Connection:
    """Open a sqlite file for use with `waiting`."""
    return sqlite3.connect(database, timeout=_SECONDS_IN_SQLITE)


def waiting(database: Path | str, action: Callable[[], Result]) -> Result:
    """Call `action`, and repeat it while another process has the sqlite file locked."""
    began = time.monotonic()
    is_told = False
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - began
            if not is_passing_lock(error) or waited > _seconds.get(str(database), LOCK_SECONDS):
                raise
        if waited > _SECONDS_BEFORE_NOTICE and not is_told:
            is_told = True
            notice(f"waiting for {database}, which another process has locked")
        time.sleep(_PAUSE)  # a busy handler that sqlite skips, as where it would be in vain


def is_lock(error: sqlite3.Error) -> bool:
    """Whether sqlite failed because another process has locked the database."""
    # the low byte is the error, the others say more of it; absent where Python itself raised it
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_passing_lock(error: sqlite3.Error) -> bool:
    """Whether the same statement can succeed once the lock is gone, in the same transaction."""
    return is_lock(error) and error.sqlite_errorcode != sqlite3.SQLITE_BUSY_SNAPSHOT


def notice(text: str) -> None:
    """Write a notice to stderr; the loggers of MLflow are silenced."""
    sys.stderr.write(f"srs_eval: {text}\n")
    sys.stderr.flush()


@event.listens_for(Engine, "do_execute")
def _execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    if _BUSY_TIMEOUT.match(statement) and _database(context):
        statement = f"PRAGMA busy_timeout = {_SECONDS_IN_SQLITE * 1000:.0f}"
    return _waited(context, lambda: cursor.execute(statement, parameters))


@event.listens_for(Engine, "do_execute_no_params")
def _execute_no_params(cursor: Any, statement: str, context: Any) -> bool:
    return _waited(context, lambda: cursor.execute(statement))


@event.listens_for(Engine, "do_executemany")
def _execute_many(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    return _waited(context, lambda: cursor.executemany(statement, parameters))


def _waited(context: Any, execute: Callable[[], object]) -> bool:
    """Execute a statement; return False to let SQLAlchemy execute it if no wait is needed."""
    database = _database(context)
    if database is not None:
        waiting(database, execute)
    return database is not None


def _database(context: Any) -> str | None:
    """Return the sqlite file of a statement, if it is one to wait for."""
    url = context.root_connection.engine.url
    known = url.get_backend_name() == "sqlite" and url.database in _seconds
    return url.database if known else None
