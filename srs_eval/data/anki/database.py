"""A private copy of an Anki collection or package, and what it holds; nobody has to trust it.

The file itself is only ever read: Anki may have it open, and SQLite would write beside it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from srs_eval.data.files import existing
from srs_eval.errors import ReviewLogError

DAY_SECONDS = 86_400

# Newest first. In new packages, collection.anki2 only asks users of old versions to update.
_MEMBERS = ("collection.anki21b", "collection.anki21", "collection.anki2")
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# Far above the largest real collections; what is beyond is refused
_ROWS_AT_MOST, _SECONDS_AT_MOST = 20_000_000, 600
_BYTES_AT_MOST, _BYTES_OF_VALUE, _CHUNK = 4 * 2**30, 64 * 2**20, 2**20
_READING = {getattr(sqlite3, f"SQLITE_{n}") for n in ("SELECT", "READ", "FUNCTION", "PRAGMA")}
# Views are not read, and triggers do not run; any other definition is not from Anki.
_ORDINARY = re.compile(r"create\s+(table|view|trigger|(unique\s+)?index)\b", re.IGNORECASE)
# What columns of the review table may hold; what others hold may be unknown.
_POSSIBLE = {
    "id": "= 'integer' and id between 315532800000 and :latest",  # From 1980 to now
    "cid": "= 'integer' and cid > 0",
    "ease": "= 'integer' and ease between 0 and 4",
    "factor": "in ('integer', 'real') and factor between -2147483647 and 2147483647",
    "type": "= 'integer' and type between 0 and 5",
}
_OTHERS = """
    case when typeof(ivl) = 'integer' then ivl else 0 end as ivl,
    case when typeof(time) in ('integer', 'real') then cast(time as integer) else -1 end as time
"""
_OFFSETS = range(-840, 841)  # Minutes west of UTC
# The settings that matter, and what they may be
_SETTINGS = {
    "schedVer": (1, 2),
    "rollover": range(-23, 24),
    "localOffset": _OFFSETS,
    "creationOffset": _OFFSETS,
    "fsrs": (False, True),
}


@dataclass(frozen=True, slots=True)
class Collection:
    """An open copy of a collection."""

    source: str  # Path of the file
    is_of_decks: bool  # Whether it may be one that Anki made for a package of some decks
    connection: sqlite3.Connection

    def revlog(self) -> tuple[Any, dict[str, int]]:
        """Read the review table in time order, after a check that it is undamaged.

        Return a record array of int64: the time of the answer as ``id`` (ms since 1970, UTC), the
        card as ``cid``, the button as ``ease`` (0 if the row is no answer), the interval it gave as
        ``ivl`` (days, or seconds where negative), the ease in per mille or the difficulty as
        ``factor`` (0 marks resets and cramming), the ``time`` spent (ms), and as ``type`` 0
        learning, 1 review, 2 relearning, 3 filtered, 4 manual or 5 rescheduled. Also return how
        many rows have impossible values, by the first column that has one.
        """
        if not {*_POSSIBLE, "ivl", "time"} <= self._columns("revlog"):
            raise ValueError("there is no table revlog with the columns of Anki")
        ((fault,), *_) = self.connection.execute("pragma quick_check(revlog)")
        if fault != "ok":
            raise ValueError("; ".join(str(fault).splitlines()[:3]))
        limits = {"latest": int(1000 * (time.time() + DAY_SECONDS)), "rows": _ROWS_AT_MOST + 1}
        valid = {name: f"typeof({name}) {rule}" for name, rule in _POSSIBLE.items()}
        # Indexes may have an order that only Anki knows.
        query = f"select {', '.join(valid)}, {_OTHERS} from revlog not indexed"
        query += f" where {' and '.join(valid.values())} order by id limit :rows"
        cursor = self.connection.execute(query, limits)
        rows = np.fromiter(cursor, [(name, np.int64) for name, *_ in cursor.description])
        if len(rows) > _ROWS_AT_MOST:
            raise ValueError(f"its table revlog has more than {_ROWS_AT_MOST:,} rows")
        if (np.diff(rows["id"]) == 0).any():
            raise ValueError("rows of its table revlog have the same id")
        ((count,),) = self.connection.execute("select count(*) from revlog not indexed")
        first = " ".join(f"when not ({rule}) then '{name}'" for name, rule in valid.items())
        query = f"select case {first} end, count(*) from revlog not indexed group by 1"
        counts = self.connection.execute(query, limits) if count > len(rows) else ()
        invalid = {f"impossible value of {name}": count for name, count in counts if name}
        return rows.view(np.recarray), invalid

    def entries(self, table: str, column: str, text: str) -> dict[int, Any]:
        """Return a column of decks, presets or note types by their numbers.

        Older versions of Anki keep them in the column `text` of ``col``, as objects in JSON.
        """
        entries = [*self.rows(table, "id", column)]
        for (content,) in () if entries else self.rows("col", text):
            objects = dict(json.loads(content or "{}"))
            numbered = {int(key): each for key, each in objects.items() if key.isdecimal()}
            entries = [each for each in numbered.items() if isinstance(each[1], dict)]
        return {n: value for n, value in entries if isinstance(n, int) and n < 2**63}

    def settings(self) -> dict[str, Any]:
        """Read the creation stamp in seconds, ``crt``, and the settings that matter here."""
        rows = [*islice(self.rows("col", "crt", "conf"), 2)]
        if len(rows) != 1:
            raise ValueError("its table col does not say when it was created")
        ((created, text),) = rows
        stored = dict(json.loads(text or "{}"))
        # Since version 15 of the schema settings have a table, and `conf` is empty.
        table = self.rows("config", "key", "val")
        stored |= {key: json.loads(value) for key, value in table if key in _SETTINGS}
        settings = {key: stored[key] for key in _SETTINGS if stored.get(key) is not None}
        for key, value in settings.items():
            if value not in _SETTINGS[key]:
                raise ValueError(f"its setting {key} is {str(value)[:40]!r}")
        return {"crt": int(created), **settings}

    def rows(self, table: str, *columns: str) -> Iterable[tuple[Any, ...]]:
        """Read some columns of a table; there are no rows if it lacks one of them."""
        query = f"select {', '.join(columns)} from {table} not indexed limit {_ROWS_AT_MOST}"
        return self.connection.execute(query) if {*columns} <= self._columns(table) else ()

    def _columns(self, table: str) -> set[str]:
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
        is_package, suffix = _copied(path, copy), path.suffix.lower()
        is_of_decks = (is_package and suffix != ".colpkg") or suffix == ".anki21"
        try:
            # SQLite first merges or undoes what lies in the logs beside the copy.
            with closing(sqlite3.connect(copy)) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > end, 1_000)
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _BYTES_OF_VALUE)
                connection.execute("pragma trusted_schema = off")
                connection.execute("pragma cell_size_check = on")
                connection.set_authorizer(_only_reads)
                # Virtual tables run code when they are read; SQLite goes by the text.
                definitions = "select sql from sqlite_master where sql is not null"
                for (sql,) in connection.execute(definitions):
                    if not _ORDINARY.match(str(sql)):
                        raise ValueError(f"{str(sql)[:40]!r} defines no ordinary table")
                yield Collection(source, is_of_decks, connection)
        # of SQLite, JSON and numpy; SQLite quotes definitions in messages that may be no text
        except (sqlite3.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
            late = f"it takes more than {_SECONDS_AT_MOST:,} seconds"
            raise unreadable(source, late if time.monotonic() > end else str(error)) from error


def _only_reads(action: int, *about: str | None) -> int:
    """Allow to read, but not through a view or trigger, which is named last."""
    is_harmless = action in _READING and about[-1] is None
    return sqlite3.SQLITE_OK if is_harmless else sqlite3.SQLITE_DENY


def unreadable(source: str, reason: str) -> ReviewLogError:
    """Return an error for what is no collection, or damaged, with how Anki repairs it."""
    what = f"cannot be read as a collection or package of Anki ({reason.rstrip('.')})"
    hint = "Repair it in Anki (Tools > Check Database) and export it again, or use a backup."
    return ReviewLogError(source, [what], hint)


def _copied(path: Path, copy: Path) -> bool:
    """Copy the newest database in a file, and SQLite's logs beside it; return if it is packed.

    What counts is what is in the file, not how its name ends. Nothing may change meanwhile, so
    that the files belong together.
    """
    # SQLite keeps its logs beside the file that a link points to.
    file = existing(path).local.resolve()
    logs = {suffix: Path(f"{file}{suffix}") for suffix in ("-wal", "-journal")}
    try:
        before = _stamps(file, *logs.values())
        with ExitStack() as opened:
            content: Any = opened.enter_context(file.open("rb"))
            is_package: bool = content.peek().startswith(b"PK")
            if is_package:
                package = opened.enter_context(zipfile.ZipFile(content))
                names = [name for name in _MEMBERS if name in package.namelist()]
                content = opened.enter_context(package.open((*names, _MEMBERS[0])[0]))
            if content.peek(4).startswith(_ZSTANDARD):
                content = zstandard.ZstdDecompressor().stream_reader(content)
            _write(content, copy)
            for suffix, log in logs.items():
                if log.is_file():
                    _write(opened.enter_context(log.open("rb")), Path(f"{copy}{suffix}"))
        if _stamps(file, *logs.values()) != before:
            raise ValueError("it was changed meanwhile: close Anki, or try again")
    except Exception as error:  # of the disk, zip, zstandard, or our own
        raise unreadable(str(path), str(error)) from error
    return is_package


def _stamps(*files: Path) -> list[tuple[int, int]]:
    """Time of change and size of the files that are there."""
    return [(s.st_mtime_ns, s.st_size) for s in (f.stat() for f in files if f.is_file())]


def _write(content: Any, to: Path) -> None:
    """Write a stream to a file, unless it is longer than any collection."""
    with to.open("wb") as file:
        while chunk := content.read(_CHUNK):
            if file.tell() > _BYTES_AT_MOST:
                raise ValueError(f"its collection has more than {_BYTES_AT_MOST / 2**30:g} GiB")
            file.write(chunk)
