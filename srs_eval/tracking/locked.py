"""Waiting for a sqlite database that another process has locked.

The busy handler of sqlite sleeps inside of one call, where no Ctrl-C is heard, and MLflow sets it
to 20 seconds at each use. So each statement waits briefly in sqlite and is repeated from here.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, event

Result = TypeVar("Result")

_SECONDS_IN_SQLITE = 1.0
_SECONDS_BEFORE_NOTICE = 5.0
_PAUSE = 0.01
_BUSY_TIMEOUT = re.compile(r"\s*PRAGMA\s+busy_timeout\s*=", re.IGNORECASE)
_seconds: WeakKeyDictionary[Engine, float] = WeakKeyDictionary()


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
