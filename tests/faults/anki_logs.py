"""Anki collections and packages, changed by SQL and by bytes."""

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from random import Random

from anki_files import DAY, START, collection
from logs import broken, damaged, judge
from verdicts import Verdict

from srs_eval.data.anki.collection import AnkiCollection

_WITHOUT_END = "with recursive r(n) as (select 1 union all select n + 1 from r{}) select"
_REVIEWS = "drop table revlog; create view revlog as " + _WITHOUT_END
_CONFIG = "drop table if exists config; create table config (key text, val blob); insert into "
_DECKS = "create table decks (id, name, kind); insert into decks values "
# Statements that no honest program makes.
_FORGED = (
    _REVIEWS.format("") + " n id, 5 cid, 3 ease, 0 factor, 1 time, 0 type from r",
    _REVIEWS.format(" limit 100000")
    + " a.n * 100000 + b.n id, 5 cid, 3 ease, 0 factor, 1 time, 0 type from r a, r b",
    f"drop table col; create view col as {_WITHOUT_END.format('')} "
    "n id, n crt, randomblob(1000000) conf from r",
    "drop table revlog",
    "alter table revlog rename column ease to eaze",
    "delete from col",
    "update col set crt = null",
    "update col set crt = 1e30",
    "update col set conf = replace(hex(zeroblob(40000)), '0', '[')",
    "update col set conf = 'null'",
    "create trigger t after insert on revlog begin delete from revlog; end",
    _CONFIG + "config values ('rollover', x'ff')",
    _CONFIG + "config values ('rollover', '-1000000')",
    _DECKS + "(1, 'a', zeroblob(300000))",
    _DECKS + "(1, 'a', null)",
    _DECKS + "('x', 'a', 5)",
    _DECKS + f"(1, 'a', x'{'ff' * 300_000}')",
    "create table cards (id, did, odid); insert into cards values (5, null, null)",
    "create table cards (id, did, odid); insert into cards values (5, 1e30, 'x')",
)
_CELLS = ("null", "'text'", "x'00ff'", "1e30", "-1", "9e999", "2", "9223372036854775807", "1.5")


def anki_log(random: Random, folder: Path) -> Verdict:
    """Change a collection, perhaps in a package, and read it."""
    path = _made(random, folder / "ann.anki2")
    family = random.choice(("forged", "cells", "bytes", "package"))
    statements = [random.choice(_FORGED)] if family == "forged" else []
    if family == "cells":
        for _ in range(random.randint(1, 3)):
            column = random.choice(("id", "cid", "ease", "factor", "time", "type"))
            change = f"update or ignore revlog set {column} = {random.choice(_CELLS)}"
            statements.append(f"{change} where rowid = {random.randint(1, 5)}")
    rows = None
    if statements:
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(";".join(statements))
            kind = "select type from sqlite_master where name = 'revlog'"
            if database.execute(kind).fetchone() == ("table",):
                rows = int(database.execute("select count(*) from revlog").fetchone()[0])
    elif family == "bytes":
        path.write_bytes(damaged(random, path.read_bytes()))
    else:
        path = _package(random, folder, path)
    return judge(AnkiCollection(path), path, lambda log: broken(log, rows))


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
