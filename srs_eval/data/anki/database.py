"""What a review log needs from the database of an Anki collection, which nobody has to trust."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.data.anki.package import collection_copy
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import IntArray

DAY_SECONDS = 86_400

# Far above the largest real collections; what is beyond is refused.
_ROWS_AT_MOST = 20_000_000
_SECONDS_AT_MOST = 600
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 * 2**20,  # Bytes of a value
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 2**20,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
}
_READING = {
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ),
    *(sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA),
}
_TABLES = (
    *("revlog", "col", "config", "cards", "decks", "deck_config"),
    *("notes", "notetypes", "templates"),
)
_NAMED = re.compile(rf"\b({'|'.join(_TABLES)})\b", re.IGNORECASE)
_ORDINARY = re.compile(r"create\s+(table|(unique\s+)?index)\b", re.IGNORECASE)
_DIGITS = re.compile(r"-?[0-9]{1,18}")
_SETTINGS = ("schedVer", "rollover", "localOffset", "creationOffset", "fsrs")
# What stands for values of another type, which no rule accepts.
_NOT_A_NUMBER = -(2**63)
_WHOLE = "case typeof({0}) when 'integer' then {0} else {1} end"
_NUMBER = "case when typeof({0}) in ('integer', 'real') then cast({0} as integer) else {1} end"


@dataclass(frozen=True, slots=True)
class Revlog:
    """All rows of Anki's review table, in time order."""

    id: IntArray  # [n]: Time of the answer, in milliseconds since 1970 (UTC); unique
    cid: IntArray  # [n]: Card
    ease: IntArray  # [n]: Button pressed, 1 to 4; 0 if the row is no answer
    ivl: IntArray  # [n]: Interval given by the answer: days, or seconds where negative
    factor: IntArray  # [n]: Ease factor in per mille, or difficulty; 0 marks resets and cramming
    time: IntArray  # [n]: Milliseconds spent answering
    type: IntArray  # [n]: 0 learning, 1 review, 2 relearning, 3 filtered, 4 manual, 5 rescheduled

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.id)


@dataclass(frozen=True, slots=True)
class Collection:
    """An open copy of a collection."""

    source: str  # Path of the file
    is_of_decks: bool  # Whether it may be one that Anki made for a package of some decks
    connection: sqlite3.Connection

    def revlog(self) -> Revlog:
        """Read the whole review table as it is stored, and check that it is undamaged."""
        values = {name: _WHOLE.format(name, _NOT_A_NUMBER) for name in ("cid", "ease", "type")}
        values |= {name: _NUMBER.format(name, _NOT_A_NUMBER) for name in ("factor", "time")}
        columns = self.integers("revlog", **values, ivl=_WHOLE.format("ivl", 0))
        if not columns or not {"crt", "conf"} <= self.columns_of("col"):
            what = "is a database but no Anki collection: no table revlog or col as Anki has them"
            hint = "Name a collection or an exported package of Anki."
            raise ReviewLogError(self.source, [what], hint)
        faults = [str(row[0]) for row in self.connection.execute("pragma quick_check(revlog)")]
        if faults != ["ok"]:
            raise damaged(self.source, "; ".join("\n".join(faults).splitlines()[:3]))
        return Revlog(**columns)

    def integers(self, table: str, **columns: str) -> dict[str, IntArray]:
        """Read columns, each by an expression, and ``id``, by which rows are sorted.

        Returns nothing where the table lacks one of them. Raise if values are no whole numbers.
        """
        columns = {"id": "id", **columns}
        if not columns.keys() <= self.columns_of(table):
            return {}
        # Indexes may have an order that only Anki knows.
        rows_of = f"from {table} not indexed"
        wrong = " or ".join(f"typeof({value}) <> 'integer'" for value in columns.values())
        query = f"select count(*), count(distinct id), coalesce(sum({wrong}), 0) {rows_of}"
        rows, ids, others = self.connection.execute(query).fetchone()
        if others:
            what = f"rows of {table} without a whole number as {' or '.join(columns)}: {others:,}"
            raise damaged(self.source, what)
        if ids < rows:
            raise damaged(
                self.source, f"rows of {table} with the id of another row: {rows - ids:,}"
            )
        if rows > _ROWS_AT_MOST:
            what = f"its table {table} has {rows:,} rows, more than {_ROWS_AT_MOST:,}"
            raise ReviewLogError(self.source, [what], "No real collection has so many.")
        found = self.connection.execute(
            f"select {', '.join(columns.values())} {rows_of} order by id"
        )
        read = np.fromiter(found, np.dtype((np.int64, len(columns))), rows)
        return dict(zip(columns, np.ascontiguousarray(read.T), strict=True))

    def objects(self, table: str, column: str, text: str) -> dict[int, Any]:
        """Return a column of decks, presets or note types, each with its number.

        Older versions of Anki keep them as `text` in JSON: then it is the whole object of each.
        """
        if {"id", column} <= self.columns_of(table):
            query = f"select id, {column} from {table} not indexed"
            return {n: value for n, value in self.connection.execute(query) if isinstance(n, int)}
        if text not in self.columns_of("col"):
            return {}
        (stored,) = self.connection.execute(f"select {text} from col").fetchone()
        kept = self._object(text, stored)
        return {int(number): each for number, each in kept.items() if _DIGITS.fullmatch(number)}

    def settings(self) -> tuple[int, Mapping[str, Any]]:
        """Read the creation stamp in seconds, and the settings on days, as Anki stored them."""
        rows = self.connection.execute("select crt, conf from col limit 2").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise damaged(self.source, "its table col does not say when it was created")
        ((created, text),) = rows
        stored = self._object("settings", text)
        # Since version 15 of the schema settings have a table, and `conf` is empty.
        if {"key", "val"} <= self.columns_of("config"):
            marks = ", ".join("?" * len(_SETTINGS))
            # The collation of the key is Anki's own.
            query = f"select key, val from config where key collate binary in ({marks})"
            for key, value in self.connection.execute(query, _SETTINGS).fetchmany(len(_SETTINGS)):
                stored[key] = self._json("settings", value)
        return created, {key: stored[key] for key in _SETTINGS if stored.get(key) is not None}

    def _object(self, what: str, text: Any) -> dict[str, Any]:
        """Parse an object in JSON; an empty text is an empty object."""
        parsed = self._json(what, text or "{}")
        if not isinstance(parsed, dict):
            raise damaged(self.source, f"its {what} cannot be read: no object in JSON")
        return parsed

    def _json(self, what: str, text: Any) -> Any:
        try:
            return json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self.source, f"its {what} cannot be read: {error}") from error

    def columns_of(self, table: str) -> set[str]:
        """Names of the columns of a table, in lower case; none if it is not there."""
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
    with collection_copy(path) as (copy, is_package):
        try:
            # SQLite first merges or undoes what lies in the logs beside the copy.
            with closing(sqlite3.connect(copy)) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > end, 1_000)
                connection.set_authorizer(_only_reads)
                for limit, value in _LIMITS.items():
                    connection.setlimit(limit, value)
                for pragma in ("trusted_schema = off", "cell_size_check = on", "mmap_size = 0"):
                    connection.execute(f"pragma {pragma}")
                _require_tables(source, connection)
                suffix = path.suffix.lower()
                is_of_decks = (is_package and suffix != ".colpkg") or suffix == ".anki21"
                yield Collection(source, is_of_decks, connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if time.monotonic() > end:
                what = f"could not be read within {_SECONDS_AT_MOST:,} seconds"
                hint = "Is the computer very busy, or the file not what it claims to be?"
                raise ReviewLogError(source, [what], hint) from error
            # SQLite quotes a damaged table definition in messages that may be no text.
            raise damaged(source, str(error)) from error


def _only_reads(
    action: int, _first: str | None, _second: str | None, _database: str | None, view: str | None
) -> int:
    """Allow to read, but not through a view or trigger."""
    is_harmless = action in _READING and view is None
    return sqlite3.SQLITE_OK if is_harmless else sqlite3.SQLITE_DENY


def _require_tables(source: str, connection: sqlite3.Connection) -> None:
    """Raise if a view, trigger or virtual table touches a table, or if columns are computed."""
    # The text is what SQLite goes by, whatever the other columns say.
    query = "select name, sql from sqlite_master where sql is not null"
    wrong = [
        f"its definition {str(name)[:40]!r} is no ordinary table and names {named[0].lower()}"
        for name, sql in connection.execute(query)
        if not _ORDINARY.match(str(sql)) and (named := _NAMED.search(str(sql)))
    ]
    for table in () if wrong else _TABLES:
        for column in connection.execute(f"pragma table_xinfo({table})"):
            if column[6]:
                wrong.append(f"column {str(column[1])[:40]!r} of its table {table} is computed")
    if wrong:
        hint = "Anki has ordinary tables only; do you trust where this file comes from?"
        raise ReviewLogError(source, wrong[:5], hint)


def damaged(source: str, reason: str) -> ReviewLogError:
    """Return an error for a damaged collection, with how Anki repairs it."""
    what = f"its database is damaged ({reason})"
    hint = "Repair it in Anki (Tools > Check Database) and export it again, or use a backup."
    return ReviewLogError(source, [what], hint)
