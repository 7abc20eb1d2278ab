"""Anki collections with decks, presets and FSRS settings, written without Anki."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from anki_files import START, collection, opened

from srs_eval.nouns import IntArray, Reviews

DAY_MS = 86_400_000
MORNING = 1000 * START + 4 * 3_600_000
SETTINGS = {"schedVer": 2, "rollover": 4, "localOffset": 0}


@dataclass(frozen=True)
class Written:
    """A preset and its only deck."""

    number: int
    name: str
    deck: str
    parameters: tuple[float, ...] = ()
    retention: float = 0.9


def number(value: int) -> bytes:
    """Write a number as protocol buffers do."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(key: int, content: bytes) -> bytes:
    return number(8 * key + 2) + number(len(content)) + content


def preset_message(parameters: Sequence[float], retention: float, key: int = 6) -> bytes:
    packed = struct.pack(f"<{len(parameters)}f", *parameters)
    return (
        (field(key, packed) if packed else b"") + number(8 * 37 + 5) + struct.pack("<f", retention)
    )


def write(
    path: Path,
    logs: Sequence[tuple[Reviews, IntArray]],
    presets: Sequence[Written],
    *,
    fsrs: bool = True,
    late: int = 0,
    kind: int = 1,
) -> Path:
    """Write a collection.

    Parameters
    ----------
    logs : sequence of (Reviews, int64 [n])
        Reviews, and the place of the preset of each in `presets`.
    late : int
        How many days after the due date every later review was made.
    kind : int
        Type of reviews after a card's first.
    """
    rows: list[tuple[int, ...]] = []
    cards: dict[int, int] = {}
    for place, (log, of_preset) in enumerate(logs):
        known = (10_000_000 * (place + 1) + log.card).tolist()
        cards |= dict(zip(known, of_preset.tolist(), strict=True))
        following = np.zeros(len(log), np.int64)
        seen: dict[int, int] = {}
        for row in range(len(log) - 1, -1, -1):
            card = int(log.card[row])
            following[row] = seen.get(card, 1)
            seen[card] = int(log.elapsed_days[row])
        facts = zip(log.day.tolist(), known, log.rating.tolist(), strict=True)
        for row, (day, card, rating) in enumerate(facts):
            first = log.elapsed_days[row] < 0
            given = max(int(following[row]) - late, 1)
            rows.append((day, place, row, card, rating, 0 if first else kind, given))
    rows.sort()
    revlog = [
        (
            START * 1000 + 4 * 3_600_000 + day * DAY_MS + 1000 * n,
            card,
            rating,
            2500,
            4000,
            type_,
            ivl,
        )
        for n, (day, _, _, card, rating, type_, ivl) in enumerate(rows)
    ]
    collection(path, revlog, settings={**SETTINGS, "fsrs": fsrs})
    with opened(path) as database:
        database.execute("create table cards (id, did, odid)")
        database.execute("create table decks (id, name, kind)")
        database.execute("create table deck_config (id, name, config)")
        of_card = [(card, presets[place].number + 1, 0) for card, place in cards.items()]
        database.executemany("insert into cards values (?, ?, ?)", of_card)
        for each in presets:
            deck = field(1, b"\x08" + number(each.number))
            message = preset_message(each.parameters, each.retention)
            name = each.deck.replace("::", "\x1f")
            database.execute("insert into decks values (?, ?, ?)", (each.number + 1, name, deck))
            database.execute(
                "insert into deck_config values (?, ?, ?)", (each.number, each.name, message)
            )
    return path
