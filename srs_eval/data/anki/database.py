"""A private copy of an Anki collection or package, and what it holds; nobody has to trust it.

The file itself is only ever read: Anki may have it open, and SQLite would write beside it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import stat
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zstandard

from srs_eval.data.cells import violations
from srs_eval.data.files import existing
from srs_eval.errors import ReviewLogError

DAY_SECONDS = 86_400

# Newest first. In new packages, collection.anki2 only asks users of old versions to update.
_MEMBERS = ("collection.anki21b", "collection.anki21", "collection.anki2")
_NEWEST_PACKAGE_VERSION = 3
_LOGS = ("", "-wal", "-journal")  # What SQLite keeps beside a database
_SQLITE, _ZSTANDARD = b"SQLite format 3\x00", b"\x28\xb5\x2f\xfd"
# Far above the largest real collections; what is beyond is refused
_ROWS_AT_MOST, _SECONDS_AT_MOST = 20_000_000, 600
_BYTES_AT_MOST, _BYTES_OF_VALUE, _CHUNK = 4 * 2**30, 64 * 2**20, 2**20
_READING = {getattr(sqlite3, f"SQLITE_{n}") for n in ("SELECT", "READ", "FUNCTION", "PRAGMA")}
# Views are not read, and triggers do not run; any other definition is not from Anki.
_ORDINARY = re.compile(r"create\s+(table|view|trigger|(unique\s+)?index)\b", re.IGNORECASE)
# What stands for a value that is no whole number
_NOT_A_NUMBER, _MOST = -(2**63), 2**63 - 1
_EARLIEST_MS = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp() * 1000)
_ROWS_QUOTED = 3
Possible = tuple[int, int, str]  # The least and the largest value of a column, and what it is
_ANY = (_NOT_A_NUMBER, _MOST, "")
WHOLE: Possible = (1 - _MOST, _MOST, "a whole number")
_SETTINGS = ("schedVer", "rollover", "localOffset", "creationOffset", "fsrs")
_REALS = ("factor", "time")  # Columns that may have decimals
_WHOLE = "case when typeof({0}) in ('integer', {1}) then cast({0} as integer) else {2} end"

_EXPORT_AGAIN = (
    "Check that you may read it and that there is room for a copy (TMPDIR sets where), or export "
    "it again in Anki: File > Export, then 'Anki Collection Package (.colpkg)', or 'Anki Deck "
    "Package (.apkg)' with 'Include scheduling information'."
)


@dataclass(frozen=True, slots=True)
class Collection:
    """An open copy of a collection."""

    source: str  # Path of the file
    is_of_decks: bool  # Whether it may be one that Anki made for a package of some decks
    connection: sqlite3.Connection

    def revlog(self, *, drop: bool) -> tuple[Any, int]:
        """Read the review table in time order, after a check that it is undamaged.

        Return a record array of int64: the time of the answer as ``id`` (ms since 1970, UTC), the
        card as ``cid``, the button as ``ease`` (0 if the row is no answer), the interval it gave as
        ``ivl`` (days, or seconds where negative), the ease in per mille or the difficulty as
        ``factor`` (0 marks resets and cramming), the ``time`` spent (ms), and as ``type`` 0
        learning, 1 review, 2 relearning, 3 filtered, 4 manual or 5 rescheduled. Rows with
        impossible values are an error, or left out and counted.
        """
        latest = int((time.time() + DAY_SECONDS) * 1000)
        possible = {
            "id": (_EARLIEST_MS, latest, "a time from 1980 to now, in ms"),
            "cid": (1, _MOST, "the number of a card"),
            "ease": (0, 4, "0 to 4"),
            "ivl": _ANY,
            "factor": (1 - 2**31, 2**31 - 1, "a number of at most 32 bits"),
            "time": _ANY,
            "type": (0, 5, "0 to 5"),
        }
        needed = {"revlog": {*possible}, "col": {"crt", "conf"}}
        if not all(columns <= self._columns(table) for table, columns in needed.items()):
            what = "is a database but no Anki collection: no table revlog or col as Anki has them"
            hint = "Name a collection or an exported package of Anki."
            raise ReviewLogError(self.source, [what], hint)
        ((fault,), *_) = self.connection.execute("pragma quick_check(revlog)")
        if fault != "ok":
            raise damaged(self.source, "; ".join(str(fault).splitlines()[:3]))
        rows, invalid = self.numbers("revlog", possible, drop=drop)
        rows.ivl[rows.ivl == _NOT_A_NUMBER] = 0
        return rows, invalid

    def numbers(
        self, table: str, possible: Mapping[str, Possible], *, drop: bool
    ) -> tuple[Any, int]:
        """Read columns as whole numbers in the order of ``id``, the first; none if one is lacking.

        Rows with impossible values are an error, or left out and counted.
        """
        reals = ["'real'" if name in _REALS else "''" for name in possible]
        values = map(_WHOLE.format, possible, reals, [_NOT_A_NUMBER] * len(possible))
        # Indexes may have an order that only Anki knows.
        query = f"select {', '.join(values)} from {table} not indexed order by id limit ?"
        is_there = {*possible} <= self._columns(table)
        cursor = self.connection.execute(query, [_ROWS_AT_MOST + 1]) if is_there else ()
        rows = np.fromiter(cursor, [(name, np.int64) for name in possible]).view(np.recarray)
        if len(rows) > _ROWS_AT_MOST:
            raise damaged(self.source, f"its table {table} has more than {_ROWS_AT_MOST:,} rows")
        if (rows.id == _NOT_A_NUMBER).any() or (rows.id[1:] == rows.id[:-1]).any():
            raise damaged(self.source, f"rows of {table} have no whole number of their own as id")
        valid, wrong = np.ones(len(rows), np.bool_), []
        for column, (low, high, expected) in possible.items():
            good = (rows[column] >= low) & (rows[column] <= high)
            valid &= good
            if not good.all():
                cells = pd.Series(rows[column], dtype=object)
                for row in np.flatnonzero(~good)[:_ROWS_QUOTED]:  # quoted as they are stored
                    query = f"select {column} from {table} not indexed where id = {rows.id[row]}"
                    (cells[row],) = self.connection.execute(query).fetchone()
                name, place = f"{table}.{column}", lambda row: f"row with id {rows.id[row]}"
                wrong += violations(name, cells, ~good, expected, place, "out_of_range")
        if wrong and not drop:
            hint = "Repair the collection, or leave such rows out with data.invalid_rows=drop."
            raise ReviewLogError(self.source, wrong, hint)
        return rows[valid], int(np.sum(~valid))

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
        is_there = {*columns} <= self._columns(table)
        query = f"select {', '.join(columns)} from {table} not indexed"
        return self.connection.execute(query) if is_there else ()

    def _json(self, text: Any, what: str, kind: type = object) -> Any:
        with suppress(ValueError, TypeError, RecursionError):
            if isinstance(value := json.loads(text), kind):
                return value
        raise damaged(self.source, f"its {what} are not as Anki writes them, in JSON")

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
                        raise ValueError(
                            f"its definition {str(sql)[:40]!r} is of no ordinary table"
                        )
                yield Collection(source, is_of_decks, connection)
        except (sqlite3.Error, ValueError, RecursionError) as error:
            # SQLite quotes a damaged table definition in messages that may be no text.
            is_late = time.monotonic() > end
            late = f"it cannot be read within {_SECONDS_AT_MOST:,} seconds"
            raise damaged(source, late if is_late else str(error)) from error


def _only_reads(action: int, *about: str | None) -> int:
    """Allow to read, but not through a view or trigger, which is named last."""
    is_harmless = action in _READING and about[-1] is None
    return sqlite3.SQLITE_OK if is_harmless else sqlite3.SQLITE_DENY


def damaged(source: str, reason: str) -> ReviewLogError:
    """Return an error for a damaged collection, with how Anki repairs it."""
    what = f"its database is damaged ({reason})"
    hint = "Repair it in Anki (Tools > Check Database) and export it again, or use a backup."
    return ReviewLogError(source, [what], hint)


def _copied(path: Path, copy: Path) -> bool:
    """Copy the newest database in a file, and SQLite's logs beside it; return if it is packed.

    What counts is what is in the file, not how its name ends. Nothing may change meanwhile, so
    that the files belong together.
    """
    if existing(path).local.is_dir():
        hint = f"Name a file in it, such as {path / 'collection.anki2'}."
        raise ReviewLogError(str(path), ["is a folder, not an Anki file"], hint)
    try:
        file = path.resolve()  # SQLite keeps its logs beside the file that a link points to
        before = _stamps(file)
        with ExitStack() as opened:
            content: Any = opened.enter_context(file.open("rb"))
            is_package: bool = content.peek().startswith(b"PK")
            if is_package:
                package = opened.enter_context(zipfile.ZipFile(content))
                content = opened.enter_context(package.open(_member(package)))
            if content.peek(4).startswith(_ZSTANDARD):
                content = zstandard.ZstdDecompressor().stream_reader(content)
            _write(content, copy, begins=_SQLITE)
        for suffix in before.keys() - {""}:
            with Path(f"{file}{suffix}").open("rb") as log:
                _write(log, Path(f"{copy}{suffix}"))
        if _stamps(file) != before:
            raise ValueError("it was changed meanwhile: close Anki, or try again")
    except Exception as error:  # of the disk, zip, zstandard, or our own
        what = f"cannot be unpacked ({str(error).rstrip('.')})"
        raise ReviewLogError(str(path), [what], _EXPORT_AGAIN) from error
    return is_package


def _member(package: zipfile.ZipFile) -> str:
    """Return the name of the newest collection in a package."""
    names = package.namelist()
    member = next((name for name in _MEMBERS if name in names), None)
    if member is None:
        raise ValueError(f"it is a zip file without any of {', '.join(_MEMBERS)}")
    # A message of protocol buffers, whose field 1 is the version
    meta = package.open("meta").read(2) if "meta" in names else b""
    if meta[:1] == b"\x08" and meta[-1] > _NEWEST_PACKAGE_VERSION:
        hint = "tick 'Support older Anki versions' when exporting it"
        raise ValueError(f"packages of version {meta[-1]} are not known: {hint}")
    return member


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Time of change and size of a file and, by their suffix, of the logs beside it."""
    stamps = {}
    for suffix in _LOGS:
        file = Path(f"{path}{suffix}")
        with suppress(FileNotFoundError):
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{file.name} beside it is not a regular file: move it away")
            stamps[suffix] = (status.st_mtime_ns, status.st_size)
    return stamps


def _write(content: Any, to: Path, begins: bytes = b"") -> None:
    """Write a stream to a file, unless it is longer than any collection or begins otherwise."""
    with to.open("wb") as file:
        for chunk in iter(lambda: content.read(_CHUNK), b""):
            if not (file.tell() or chunk.startswith(begins)):
                raise ValueError(
                    f"neither an Anki package nor a collection begins with {chunk[:8]!r}"
                )
            file.write(chunk)
            if file.tell() > _BYTES_AT_MOST:
                raise ValueError(f"its collection has more than {_BYTES_AT_MOST / 2**30:g} GiB")
        if file.tell() < len(begins):
            raise ValueError("it is empty or cut off")
