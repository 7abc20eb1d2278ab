"""Anki collections and packages, changed by SQL and by bytes."""

from __future__ import annotations

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from random import Random

from anki_files import DAY, START, collection
from logs import broken, damaged, judge
from verdicts import Verdict

from srs_eval.data.anki.collection import AnkiCollection

# Statements that no honest program makes, and whether what is left can be read.
_FORGED = (
    "drop table revlog; create view revlog as with recursive r(n) as (select 1 union all select "
    "n + 1 from r) select n id, 5 cid, 3 ease, 0 factor, 1 time, 0 type from r",
    "drop table revlog; create view revlog as with recursive r(n) as (select 1 union all select "
    "n + 1 from r limit 100000) select a.n * 100000 + b.n id, 5 cid, 3 ease, 0 factor, 1 time, "
    "0 type from r a, r b",
    "drop table col; create view col as with recursive r(n) as (select 1 union all select n + 1 "
    "from r) select n id, n crt, randomblob(1000000) conf from r",
    "drop table revlog",
    "alter table revlog rename column ease to eaze",
    "delete from col",
    "update col set crt = null",
    "update col set crt = 1e30",
    "update col set conf = replace(hex(zeroblob(40000)), '0', '[')",
    "update col set conf = 'null'",
    "create trigger t after insert on revlog begin delete from revlog; end",
    "drop table if exists config; create table config (key text, val blob); "
    "insert into config values ('rollover', x'ff')",
    "drop table if exists config; create table config (key text, val blob); "
    "insert into config values ('rollover', '-1000000')",
    "create table decks (id, name, kind); insert into decks values (1, 'a', zeroblob(300000))",
    "create table decks (id, name, kind); insert into decks values (1, 'a', null)",
    "create table decks (id, name, kind); insert into decks values ('x', 'a', 5)",
    f"create table decks (id, name, kind); insert into decks values (1, 'a', x'{'ff' * 300_000}')",
    "create table cards (id, did, odid); insert into cards values (5, null, null)",
    "create table cards (id, did, odid); insert into cards values (5, 1e30, 'x')",
)
_CELLS = ("null", "'text'", "x'00ff'", "1e30", "-1", "9e999", "2", "9223372036854775807", "1.5")


def anki_log(random: Random, folder: Path) -> Verdict:
    """Change a collection, perhaps in a package, and read it."""
    path = _made(random, folder / "ann.anki2")
    family = random.choice(("forged", "cells", "bytes", "package"))
    if family == "forged":
        _execute(path, random.choice(_FORGED))
        return judge(AnkiCollection(path), path, lambda log: broken(log, _rows(path)))
    if family == "cells":
        for _ in range(random.randint(1, 3)):
            column = random.choice(("id", "cid", "ease", "factor", "time", "type"))
            change = f"update or ignore revlog set {column} = {random.choice(_CELLS)}"
            _execute(path, f"{change} where rowid = {random.randint(1, 5)}")
        return judge(AnkiCollection(path), path, lambda log: broken(log, _rows(path)))
    if family == "bytes":
        path.write_bytes(damaged(random, path.read_bytes()))
        return judge(AnkiCollection(path), path, lambda log: broken(log, None))
    packed = _package(random, folder, path)
    return judge(AnkiCollection(packed), packed, lambda log: broken(log, None))


def _made(random: Random, path: Path) -> Path:
    """Write a small collection."""
    rows = [
        ((START + day * DAY + card) * 1000, card, random.randint(1, 4), 2500, 4000, int(day > 0))
        for day in range(random.randint(1, 20))
        for card in range(1, 6)
    ]
    settings = {"schedVer": 2, "rollover": 4}
    key = random.choice(("id integer primary key", "id integer", "id"))
    return collection(path, rows, settings=settings, table=random.random() < 0.3, key=key)


def _execute(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(statements)


def _rows(path: Path) -> int | None:
    """Count the rows of the review table; None if it is none."""
    with closing(sqlite3.connect(path)) as database:
        query = "select type from sqlite_master where name = 'revlog'"
        kind = database.execute(query).fetchone()
        if kind != ("table",):
            return None
        return int(database.execute("select count(*) from revlog").fetchone()[0])


def _package(random: Random, folder: Path, inside: Path) -> Path:
    """Pack a collection into an invalid package."""
    path = folder / f"ann.{random.choice(('apkg', 'colpkg'))}"
    names = ("collection.anki2", "collection.anki21", "../collection.anki2", "/etc/x", "media")
    with zipfile.ZipFile(path, "w", random.choice((0, 8, 12, 14))) as zipped:
        for name in random.sample(names, random.randint(1, 3)):
            content = inside.read_bytes()
            zipped.writestr(name, damaged(random, content) if random.random() < 0.3 else content)
    if random.random() < 0.6:
        path.write_bytes(damaged(random, path.read_bytes()))
    return path
