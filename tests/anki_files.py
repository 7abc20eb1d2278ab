"""Small Anki collections and packages, written without Anki: see `collection` and `package`."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

DAY = 86_400
# 2021-03-01, 02:00 UTC
START = 1_614_564_000
# id, cid, ease, factor, time, type: a card learnt, reviewed after 30 hours and 10 days later
ROWS = [
    (START * 1000, 5, 3, 0, 4000, 0),
    ((START + 600) * 1000, 5, 3, 0, 3000, 0),
    ((START + 30 * 3600) * 1000, 5, 1, 2500, 9000, 1),
    ((START + 11 * DAY) * 1000, 5, 4, 2300, 2000, 1),
]


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, and commit at the end, without waiting for the disk."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("pragma synchronous = off")
        database.execute("pragma journal_mode = memory")
        yield database


def collection(
    path: Path,
    rows: Iterable[Sequence[Any]] = ROWS,
    *,
    settings: Mapping[str, Any] | None = None,
    created: Any = START,
    table: bool = False,
    key: str = "id integer primary key",
) -> Path:
    """Write a collection with the tables a review log needs.

    Parameters
    ----------
    rows : iterable of sequences
        id, cid, ease, factor, time, type and, if wanted, ivl.
    settings : mapping
        Written to ``col.conf``, or to the table ``config`` with `table`.
    key : str
        How the column ``id`` of the review table is declared.
    """
    settings = settings or {}
    with opened(path) as database:
        database.execute("create table col (id, crt, conf)")
        conf = "" if table else json.dumps(settings)
        database.execute("insert into col values (1, ?, ?)", (created, conf))
        database.execute("create table notes (id)")
        database.executemany("insert into notes values (?)", [(1,), (2,)])
        columns = f"{key}, cid, usn, ease, ivl, lastIvl, factor, time, type"
        database.execute(f"create table revlog ({columns})")
        insert = "insert into revlog (id, cid, ease, factor, time, type, ivl) values "
        insert += "(?, ?, ?, ?, ?, ?, ?)"
        database.executemany(insert, [(*row, None)[:7] for row in rows])
        if table:
            database.execute("create table config (KEY text primary key, val blob)")
            stored = [(key, json.dumps(value).encode()) for key, value in settings.items()]
            database.executemany("insert into config values (?, ?)", stored)
    return path


def change(path: Path, *statements: str) -> Path:
    """Run statements on a database."""
    with opened(path) as database:
        for statement in statements:
            database.execute(statement)
    return path


def with_decks(path: Path, *, texts: str | None = None, kinds: Sequence[Any] = ()) -> Path:
    """Add cards and decks to a collection, the decks as text or as a table."""
    with opened(path) as database:
        database.execute("create table cards (id, did, odid)")
        database.executemany("insert into cards values (?, ?, ?)", [(5, 30, 0), (6, 1, 40)])
        if texts is not None:
            database.execute("alter table col add column decks")
            database.execute("update col set decks = ?", (texts,))
        if kinds:
            database.execute("create table decks (id, kind)")
            database.executemany("insert into decks values (?, ?)", kinds)
    return path


def package(path: Path, **members: bytes) -> Path:
    """Write a zip file; two underscores in a name stand for a dot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name.replace("__", "."), content)
    return path
