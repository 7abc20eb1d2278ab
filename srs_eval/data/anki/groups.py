"""Decks, presets with FSRS settings and note types, as old and new Anki keep them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from srs_eval.data.anki.database import Collection, open_collection
from srs_eval.data.reviews import IntArray

NUMBER, LENGTH, FLOAT = 0, 2, 5  # How protocol buffers write a field
# Fields of ``DeckConfig.Config`` of ``proto/anki/deck_config.proto`` in ankitects/anki, and the
# names that older versions have for them: parameters, those of the newest FSRS first
_PARAMETERS = {6: "fsrsParams6", 5: "fsrsParams5", 3: "fsrsWeights"}
_LARGEST = 2**31
_NOT_KNOWN = -1


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of a preset that concern FSRS and intervals."""

    # As they are stored; empty if FSRS was never optimised for the preset, or they cannot be read.
    parameters: tuple[float, ...] = ()
    desired_retention: float = 0.9
    longest_interval: int = 36500  # Days


@dataclass(frozen=True, slots=True)
class FsrsSettings:
    """FSRS settings of a collection."""

    enabled: bool  # whether Anki schedules by FSRS
    presets: Mapping[int, Preset]  # by the number of the preset


def read_fsrs_settings(path: str | Path) -> FsrsSettings:
    """Read the FSRS settings of a collection or package.

    Raise `ReviewLogError` if the file is missing, no collection, or damaged.
    """
    with open_collection(Path(path).expanduser()) as collection:
        enabled = collection.settings().get("fsrs") is True
        stored = collection.entries("deck_config", "config", "dconf")
        return FsrsSettings(enabled, {number: preset_of(each) for number, each in stored.items()})


def preset_of(stored: Any) -> Preset:
    """Return what can be used of the settings of a preset, and defaults in place of the others."""
    lists = [value_of(stored, name, (field, LENGTH)) for field, name in _PARAMETERS.items()]
    lists = [_singles(each) if isinstance(each, bytes) else each for each in lists]
    parameters = next((each for each in lists if isinstance(each, list) and each), [])
    if not all(isinstance(n, int | float) and abs(n) < _LARGEST for n in parameters):
        parameters = []
    retention = value_of(stored, "desiredRetention", (37, FLOAT))
    if not isinstance(retention, int | float) or not 0 < retention < 1:
        retention = Preset().desired_retention
    longest = value_of(stored, "rev.maxIvl", (16, NUMBER))
    if not isinstance(longest, int) or not 0 < longest < _LARGEST:
        longest = Preset().longest_interval
    return Preset(tuple(map(float, parameters)), round(retention, 4), longest)


def groups_of(
    collection: Collection, cards: IntArray
) -> tuple[dict[str, IntArray], dict[str, dict[int, str]]]:
    """Return the groups of each card, [n], and their names, by the names of columns of a log.

    Numbers are -1 where nothing is known of a card; where nothing is known of any, there is no
    column. A card that is in a filtered deck belongs to the deck it came from.
    """
    kinds = collection.entries("decks", "kind", "decks")
    titles = {
        "deck": _names(collection.entries("decks", "name", "decks")),
        "preset": _names(collection.entries("deck_config", "name", "dconf")),
        "note_type": _names(collection.entries("notetypes", "name", "models")),
    }
    columns = [(name, np.int64) for name in ("id", "nid", "did", "odid")]
    rows = np.fromiter(collection.rows("cards", *dict(columns)), columns).view(np.recarray)
    deck = np.where(rows.odid == 0, rows.did, rows.odid)
    groups = {
        "note": rows.nid,
        "deck": deck,
        "preset": _values({n: preset_of_deck(kind) for n, kind in kinds.items()}, deck),
        "note_type": _values(dict(collection.rows("notes", "id", "mid")), rows.nid),
    }
    table = pd.DataFrame(groups, index=rows.id)
    known = table.loc[:, (table != _NOT_KNOWN).any()].reindex(cards, fill_value=_NOT_KNOWN)
    return {str(group): column.to_numpy() for group, column in known.items()}, titles


def _values(of: Mapping[int, int], numbers: IntArray) -> IntArray:
    """Look numbers up, -1 where there is none."""
    return pd.Series(of, dtype=np.int64).reindex(numbers, fill_value=_NOT_KNOWN).to_numpy(np.int64)


def value_of(stored: Any, path: str, *fields: tuple[int, int]) -> Any:
    """Return a value of a deck, preset or note type, None if it has none.

    It is at a path in the objects in JSON of older versions of Anki, and in a field of a field … of
    the messages of protocol buffers of newer ones: each is the number and how it is written.

    >>> value_of({"rev": {"maxIvl": 150}}, "rev.maxIvl", (16, NUMBER))
    150
    >>> value_of(bytes([0x12, 0x03, 0x08, 0x96, 0x01]), "conf", (2, LENGTH), (1, NUMBER))
    150
    """
    for key in path.split(".") if isinstance(stored, dict) else fields:
        values: Any = _fields(stored) if isinstance(stored, bytes) else stored
        stored = values.get(key) if isinstance(values, dict) else None
    return stored


def _fields(message: bytes) -> dict[tuple[int, int], Any]:
    """Return the last value of each field of a message, or nothing; those of 4 bytes are floats."""
    values: dict[tuple[int, int], Any] = {}
    with suppress(DecodeError):
        for each in UnknownFieldSet(Empty.FromString(message)):
            key = each.field_number, each.wire_type
            values[key] = each.data
            if each.wire_type == FLOAT:
                (values[key],) = struct.unpack("<f", struct.pack("<I", each.data))
    return values


def _singles(content: bytes) -> list[float]:
    """Return numbers in single precision, of which Anki keeps 4 decimals."""
    numbers = np.frombuffer(content[: len(content) // 4 * 4], "<f4").tolist()
    return [float(f"{number:.6g}") for number in numbers]


def preset_of_deck(kind: Any) -> int:
    """Find the preset of a deck, -1 for a filtered deck, which has none, and what cannot be read.

    It is ``KindContainer.normal.config_id`` of ``proto/anki/decks.proto`` in ankitects/anki.
    """
    number = value_of(kind, "conf", (1, LENGTH), (1, NUMBER))
    # Numbers are signed: what is above half of the range is negative, and no preset.
    return number if type(number) is int and abs(number) < 2**63 else _NOT_KNOWN


def _names(stored: Mapping[int, Any]) -> dict[int, str]:
    """Return the names of decks, presets or note types, as far as they can be read."""
    names = {number: value_of(each, "name") for number, each in stored.items()}
    return {n: name.replace("\x1f", "::") for n, name in names.items() if isinstance(name, str)}
