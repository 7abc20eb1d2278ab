"""Open untrusted SQLite databases."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from srs_eval.errors import ReviewLogError

# Far above the largest real collections; what is beyond is refused.
_SECONDS_AT_MOST = 600
_VALUE_BYTES_AT_MOST = 64 * 2**20
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _VALUE_BYTES_AT_MOST,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 2**20,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_INSTRUCTIONS_BETWEEN_LOOKS = 1_000
_FAULTS_QUOTED = 5
_KINDS = {"view": "view", "virtual": "virtual table"}
_ORDINARY = re.compile(r"(create\s+(table|(unique\s+)?index)\b|$)", re.IGNORECASE)


@contextmanager
def open_database(
    file: Path, source: str, *, tables: Sequence[str]
) -> Iterator[sqlite3.Connection]:
    """Open a database that may have been made to do harm.

    Only ordinary tables are read, so that no code in the database is run; the time and the size of
    values are limited. `file` is a private copy, as SQLite first merges or undoes what lies in the
    logs beside it, and `tables` is what is going to be read, as far as it is there. Raise
    `ReviewLogError`, also for reads within the block, if the database is damaged or beyond the
    limits, or if one of the names does not stand for a table.
    """
    clock = _Clock()
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as connection:
            _restrict(connection, clock)
            _require_tables(source, connection, tables)
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if clock.ran_out:
            what = f"could not be read within {_SECONDS_AT_MOST:,} seconds"
            hint = "Is the computer very busy, or the file not what it claims to be?"
            raise ReviewLogError(source, [what], hint) from error
        # SQLite quotes a damaged table definition in messages that may be no text.
        raise damaged(source, str(error)) from error


class _Clock:
    """The time that is left for reading a collection."""

    def __init__(self) -> None:
        self._end = time.monotonic() + _SECONDS_AT_MOST
        self.ran_out = False

    def __call__(self) -> bool:
        """Return whether SQLite is to stop."""
        self.ran_out = time.monotonic() > self._end
        return self.ran_out


def _restrict(connection: sqlite3.Connection, clock: _Clock) -> None:
    """Restrict a connection to reading rows, for a limited time."""
    connection.set_progress_handler(clock, _INSTRUCTIONS_BETWEEN_LOOKS)
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    for pragma in (
        "trusted_schema = off",
        "cell_size_check = on",
        "mmap_size = 0",
        "query_only = on",
    ):
        connection.execute(f"pragma {pragma}")


def _require_tables(source: str, connection: sqlite3.Connection, tables: Sequence[str]) -> None:
    """Raise if a view, trigger or virtual table touches a table, or if columns are computed."""
    names = re.compile(rf"\b({'|'.join(tables)})\b", re.IGNORECASE)
    wrong = []
    # The text is what SQLite goes by, whatever the other columns say.
    for name, text in connection.execute("select name, sql from sqlite_master"):
        definition = str(text or "")
        if not _ORDINARY.match(definition) and names.search(definition):
            kind = " ".join(definition[:40].split()[1:2]).lower()
            found = ", ".join(sorted({match.lower() for match in names.findall(definition)}))
            wrong.append(f"its definition {str(name)[:40]!r} makes a {kind} of or for {found}")
    for table in tables:
        columns = connection.execute(f"pragma table_xinfo({table})").fetchall()
        computed = [str(row[1]) for row in columns if row[6]]
        if computed:
            wrong.append(f"its table {table} has computed columns: {', '.join(computed[:3])}")
    if wrong:
        hint = "Anki has ordinary tables only; do you trust where this file comes from?"
        raise ReviewLogError(source, wrong[:_FAULTS_QUOTED], hint)


def programs_in_sqlite(connection: Any, query: str) -> list[str]:
    """Return what a query names in a file of SQLite that is more than an ordinary table.

    Triggers are none of it: they run when something is written.
    """
    connection.execute("pragma trusted_schema = off")
    # As SQLite has understood the file, whatever the texts and names in it claim.
    there = connection.execute("pragma table_list").fetchall()
    if not there:
        return ["this version of SQLite, older than 3.37, cannot tell its tables from its views"]
    found = []
    for _, name, kind, *_ in there:
        if not _is_named(name, query):
            continue
        if kind in {"view", "virtual"}:
            found.append(f"the query names the {_KINDS[kind]} {name[:40]!r}")
        quoted = name.replace('"', '""')
        columns = connection.execute(f'pragma table_xinfo("{quoted}")').fetchall()
        computed = [str(row[1]) for row in columns if row[6]]
        if computed and kind == "table":
            found.append(f"the table {name[:40]!r} has computed columns: {computed[0][:40]} …")
    return found[:_FAULTS_QUOTED]


def programs_in_duckdb(connection: Any, query: str) -> list[str]:
    """Return the views and macros of a file of DuckDB that a query names."""
    statement = """
        select 'view', view_name from duckdb_views() where not internal
        union select 'macro', function_name from duckdb_functions() where not internal
        order by 2
    """
    found = [
        f"the query names the {kind} {name[:40]!r}"
        for kind, name in connection.execute(statement).fetchall()
        if _is_named(name, query)
    ]
    return found[:_FAULTS_QUOTED]


def _is_named(name: str, query: str) -> bool:
    """Whether a query may name this: a word of the name is in it, or the name has no words."""
    words, used = (set(re.findall(r"\w+", text.lower())) for text in (name, query))
    return not words or bool(words & used)


def damaged(source: str, reason: str) -> ReviewLogError:
    """Return an error for a damaged collection, with how Anki repairs it."""
    what = f"its database is damaged ({reason})"
    hint = "Repair it in Anki (Tools > Check Database) and export it again, or use a backup."
    return ReviewLogError(source, [what], hint)
