"""What a review log needs from the database of an Anki collection, which nobody has to trust."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.data.anki.package import copy_collection
from srs_eval.errors import ReviewLogError

DAY_SECONDS = 86_400

# Far above the largest real collections; what is beyond is refused.
_ROWS_AT_MOST = 20_000_000
_SECONDS_AT_MOST = 600
_BYTES_AT_MOST = 64 * 2**20  # Of a value
_READING = {
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ),
    *(sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA),
}
# Views are not read, and triggers do not run; any other definition is not from Anki.
_ORDINARY = re.compile(r"create\s+(table|view|trigger|(unique\s+)?index)\b", re.IGNORECASE)
# What stands for a value that is no whole number, which no rule accepts
_NOT_A_NUMBER = -(2**63)
_SETTINGS = ("schedVer", "rollover", "localOffset", "creationOffset", "fsrs")
# Columns of the review table, and those that may have decimals
_REVLOG, _REALS = ("cid", "ease", "ivl", "factor", "time", "type"), ("factor", "time")
_WHOLE = "case when typeof({0}) in ('integer', {1}) then cast({0} as integer) else {2} end"


@dataclass(frozen=True, slots=True)
class Collection:
    """An open copy of a collection."""

    source: str  # Path of the file
    is_of_decks: bool  # Whether it may be one that Anki made for a package of some decks
    connection: sqlite3.Connection

    def revlog(self) -> Any:
        """Read the whole review table in time order, after a check that it is undamaged.

        A record array of int64: the time of the answer as ``id`` (ms since 1970, UTC), the card as
        ``cid``, the button as ``ease`` (0 if the row is no answer), the interval it gave as ``ivl``
        (days, or seconds where negative), the ease in per mille or the difficulty as ``factor`` (0
        marks resets and cramming), the ``time`` spent (ms), and as ``type`` 0 learning, 1 review, 2
        relearning, 3 filtered, 4 manual or 5 rescheduled.
        """
        needed = {"revlog": {"id", *_REVLOG}, "col": {"crt", "conf"}}
        if not all(columns <= self.columns_of(table) for table, columns in needed.items()):
            what = "is a database but no Anki collection: no table revlog or col as Anki has them"
            hint = "Name a collection or an exported package of Anki."
            raise ReviewLogError(self.source, [what], hint)
        faults = [str(row[0]) for row in self.connection.execute("pragma quick_check(revlog)")]
        if faults != ["ok"]:
            raise damaged(self.source, "; ".join("\n".join(faults).splitlines()[:3]))
        rows = self.numbers("revlog", _REVLOG, odd=_REVLOG)
        rows.ivl[rows.ivl == _NOT_A_NUMBER] = 0
        return rows

    def numbers(self, table: str, columns: Sequence[str], odd: Sequence[str] = ()) -> Any:
        """Read ``id`` and other columns of a table as whole numbers, in the order of ``id``.

        Returns a record array, without rows where the table lacks one of the columns. Raise if a
        value is no whole number, unless its column is `odd`, or if an ``id`` is there twice.
        """
        names = ["id", *columns]
        values = [
            _WHOLE.format(name, "'real'" if name in _REALS else "''", _NOT_A_NUMBER)
            for name in names
        ]
        # Indexes may have an order that only Anki knows.
        query = f"""
            select {", ".join(values)}
            from {table} not indexed order by id limit {_ROWS_AT_MOST + 1}
        """
        kinds = np.dtype([(name, np.int64) for name in names])
        is_there = {*names} <= self.columns_of(table)
        cursor = self.connection.execute(query) if is_there else ()
        rows = np.fromiter(cursor, kinds).view(np.recarray)
        if len(rows) > _ROWS_AT_MOST:
            raise damaged(self.source, f"its table {table} has more than {_ROWS_AT_MOST:,} rows")
        names = [name for name in names if name not in odd]
        if wrong := np.sum(np.any([rows[name] == _NOT_A_NUMBER for name in names], axis=0)):
            what = f"rows of {table} without a whole number as {' or '.join(names)}: {wrong:,}"
            raise damaged(self.source, what)
        if repeated := np.sum(rows.id[1:] == rows.id[:-1]):
            raise damaged(self.source, f"rows of {table} with the id of another row: {repeated:,}")
        return rows

    def entries(self, table: str, column: str, text: str) -> dict[int, Any]:
        """Return a column of decks, presets or note types by their numbers.

        Older versions of Anki keep them in the column `text` of ``col``, as objects in JSON.
        """
        entries = [*self.rows(table, "id", column)]
        for (content,) in () if entries else self.rows("col", text):
            objects = self._json(content or "{}", text, dict)
            numbered = {int(key): each for key, each in objects.items() if key.isdecimal()}
            entries = [each for each in numbered.items() if isinstance(each[1], dict)]
        return {n: value for n, value in entries if isinstance(n, int) and n < 2**63}

    def settings(self) -> Mapping[str, Any]:
        """Read the creation stamp in seconds, ``crt``, and the settings that matter here."""
        rows = [*islice(self.rows("col", "crt", "conf"), 2)]
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise damaged(self.source, "its table col does not say when it was created")
        ((created, text),) = rows
        stored = self._json(text or "{}", "settings", dict)
        # Since version 15 of the schema settings have a table, and `conf` is empty.
        for key, value in self.rows("config", "key", "val"):
            if key in _SETTINGS:
                stored[key] = self._json(value, "settings")
        settings = {key: stored[key] for key in _SETTINGS if stored.get(key) is not None}
        return {"crt": created, **settings}

    def rows(self, table: str, *columns: str) -> Iterable[tuple[Any, ...]]:
        """Read some columns of a table; there are no rows if it lacks one of them."""
        is_there = {*columns} <= self.columns_of(table)
        query = f"select {', '.join(columns)} from {table} not indexed"
        return self.connection.execute(query) if is_there else ()

    def _json(self, text: Any, what: str, kind: type = object) -> Any:
        """Return a value in JSON."""
        with suppress(ValueError, TypeError, RecursionError):
            if isinstance(value := json.loads(text), kind):
                return value
        raise damaged(self.source, f"its {what} are not as Anki writes them, in JSON")

    def columns_of(self, table: str) -> set[str]:
        """Names of the columns of a table, in lower case, without computed ones."""
        rows = self.connection.execute(f"pragma table_info({table})")
        return {str(row[1]).lower() for row in rows}


@contextmanager
def open_collection(path: Path) -> Iterator[Collection]:
    """Open a copy of a collection that may have been made to do harm, leaving itself untouched.

    Only ordinary tables are read, so that no code in the database is run; the time and the size of
    values are limited. Raise `ReviewLogError`, also for reads within the block, if the database is
    damaged or beyond the limits.
    """
    source, end = str(path), time.monotonic() + _SECONDS_AT_MOST
    with tempfile.TemporaryDirectory(prefix="srs_eval_copy_") as folder:
        copy = Path(folder, "collection.anki2")
        is_package, suffix = copy_collection(path, copy), path.suffix.lower()
        is_of_decks = (is_package and suffix != ".colpkg") or suffix == ".anki21"
        try:
            # SQLite first merges or undoes what lies in the logs beside the copy.
            with closing(sqlite3.connect(copy)) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > end, 1_000)
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _BYTES_AT_MOST)
                connection.execute("pragma trusted_schema = off")
                connection.execute("pragma cell_size_check = on")
                connection.set_authorizer(_only_reads)
                _require_tables(source, connection)
                yield Collection(source, is_of_decks, connection)
        except (sqlite3.Error, ValueError, RecursionError) as error:
            if time.monotonic() > end:
                what = f"could not be read within {_SECONDS_AT_MOST:,} seconds"
                hint = "Is the computer very busy, or the file not what it claims to be?"
                raise ReviewLogError(source, [what], hint) from error
            # SQLite quotes a damaged table definition in messages that may be no text.
            raise damaged(source, str(error)) from error


def _only_reads(action: int, *about: str | None) -> int:
    """Allow to read, but not through a view or trigger, which is named last."""
    is_harmless = action in _READING and about[-1] is None
    return sqlite3.SQLITE_OK if is_harmless else sqlite3.SQLITE_DENY


def _require_tables(source: str, connection: sqlite3.Connection) -> None:
    """Raise if there are virtual tables, which run code when they are read."""
    # The text is what SQLite goes by, whatever the other columns say.
    for (sql,) in connection.execute("select sql from sqlite_master where sql is not null"):
        if not _ORDINARY.match(str(sql)):
            what = f"its definition {str(sql)[:40]!r} is that of no ordinary table"
            hint = "Anki has ordinary tables only; do you trust where this file comes from?"
            raise ReviewLogError(source, [what], hint)


def damaged(source: str, reason: str) -> ReviewLogError:
    """Return an error for a damaged collection, with how Anki repairs it."""
    what = f"its database is damaged ({reason})"
    hint = "Repair it in Anki (Tools > Check Database) and export it again, or use a backup."
    return ReviewLogError(source, [what], hint)
