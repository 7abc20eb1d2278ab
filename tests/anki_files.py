"""Small Anki collections and packages, written without Anki: `collection`, `package`, `write`."""

from __future__ import annotations

import json
import sqlite3
import struct
import zipfile
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd

from srs_eval.data.anki.collection import AnkiCollection

DAY = 86_400
# 2021-03-01, 02:00 UTC
START = 1_614_564_000
DAY_MS = 1000 * DAY
MORNING = 1000 * START + 4 * 3_600_000
SETTINGS = {"schedVer": 2, "rollover": 4, "localOffset": 0}
# id, cid, ease, factor, time, type: a card learnt, reviewed after 30 hours and 10 days later
ROWS = [
    (START * 1000, 5, 3, 0, 4000, 0),
    ((START + 600) * 1000, 5, 3, 0, 3000, 0),
    ((START + 30 * 3600) * 1000, 5, 1, 2500, 9000, 1),
    ((START + 11 * DAY) * 1000, 5, 4, 2300, 2000, 1),
]


@contextmanager
def opened(path):
    """Open a database, and commit at the end, without waiting for the disk."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("pragma synchronous = off")
        database.execute("pragma journal_mode = memory")
        yield database


def collection(
    path, rows=ROWS, *, settings=None, created=START, table=False, key="id integer primary key"
):
    """Write a collection with the tables a review log needs.

    Rows are id, cid, ease, factor, time, type and, if wanted, ivl. Settings go to ``col.conf``,
    or to the table ``config`` with `table`; `key` declares the column ``id`` of the reviews.
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


def read(path, **options):
    """Read the log of the only user of a collection."""
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


def change(path, *statements):
    """Run statements on a database."""
    with opened(path) as database:
        for statement in statements:
            database.execute(statement)
    return path


def package(path, **members):
    """Write a zip file; two underscores in a name stand for a dot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name.replace("__", "."), content)
    return path


@dataclass(frozen=True)
class Written:
    """A preset and its only deck."""

    number: int
    name: str
    deck: str
    parameters: tuple[float, ...] = ()
    retention: float = 0.9


def number(value):
    """Write a number as protocol buffers do."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(key, content):
    return number(8 * key + 2) + number(len(content)) + content


def preset_message(parameters, retention, key=6):
    packed = struct.pack(f"<{len(parameters)}f", *parameters)
    return (
        (field(key, packed) if packed else b"") + number(8 * 37 + 5) + struct.pack("<f", retention)
    )


def write(path, logs, presets, *, fsrs=True, late=0, kind=1):
    """Write a collection of reviews, each with the place of its preset in `presets`.

    Every later review was made `late` days after it was due; `kind` is its type.
    """
    frames, of_card = [], {}
    for place, (log, of_preset) in enumerate(logs):
        cards = 10_000_000 * (place + 1) + log.card
        decks = [presets[preset].number + 1 for preset in of_preset]
        of_card |= zip(cards.tolist(), decks, strict=True)
        given = pd.Series(log.elapsed_days).groupby(cards).shift(-1, fill_value=1 + late) - late
        columns = {"day": log.day, "card": cards, "rating": log.rating}
        columns |= {"state": np.where(log.elapsed_days < 0, 0, kind), "given": np.maximum(given, 1)}
        frames.append(pd.DataFrame(columns))
    every = pd.concat(frames).sort_values("day", kind="stable")
    revlog = [
        (MORNING + day * DAY_MS + 1000 * n, card, rating, 2500, 4000, state, given)
        for n, (day, card, rating, state, given) in enumerate(every.to_numpy().tolist())
    ]
    collection(path, revlog, settings={**SETTINGS, "fsrs": fsrs})
    with opened(path) as database:
        database.execute("create table cards (id, did, odid, nid, ord)")
        database.execute("create table decks (id, name, kind)")
        database.execute("create table deck_config (id, name, config)")
        of_card = [(card, deck, card) for card, deck in of_card.items()]
        database.executemany("insert into cards values (?, ?, 0, ?, 0)", of_card)
        for each in presets:
            deck = field(1, b"\x08" + number(each.number))
            message = preset_message(each.parameters, each.retention)
            name = each.deck.replace("::", "\x1f")
            database.execute("insert into decks values (?, ?, ?)", (each.number + 1, name, deck))
            database.execute(
                "insert into deck_config values (?, ?, ?)", (each.number, each.name, message)
            )
    return path
