"""Decks, presets, note types and card templates, in the forms in which Anki keeps them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from srs_eval.data.anki.database import Collection
from srs_eval.data.reviews import IntArray

NUMBER, LENGTH, FLOAT = 0, 2, 5  # How protocol buffers write a field
# A template is numbered by its note type and its place there, so that numbers stay the same from
# one export to the next.
_PLACES = 1000
_LARGEST_NOTE_TYPE = 2**53
_NOT_KNOWN = -1


def groups_of(
    collection: Collection, cards: IntArray
) -> tuple[dict[str, IntArray], dict[str, Mapping[int, str]]]:
    """Return the groups of each card, [n], and their names, by the names of columns of a log.

    Numbers are -1 where nothing is known of a card; where nothing is known of any, there is no
    column. A card that is in a filtered deck belongs to the deck it came from.
    """
    note_types = collection.entries("notetypes", "name", "models")
    titles: dict[str, Mapping[int, str]] = {
        "deck": _names(collection.entries("decks", "name", "decks")),
        "preset": _names(collection.entries("deck_config", "name", "dconf")),
        "note_type": _names(note_types),
        "template": _templates(collection, note_types),
    }
    of_card = collection.numbers("cards", ("did", "odid", "nid", "ord"))
    columns = {"note": of_card.nid, "deck": np.where(of_card.odid == 0, of_card.did, of_card.odid)}
    kinds = collection.entries("decks", "kind", "decks")
    presets = {deck: preset_of_deck(kind) for deck, kind in kinds.items()}
    columns["preset"] = _looked_up([*presets.values()], [*presets], columns["deck"])
    notes = collection.numbers("notes", ("mid",))
    columns["note_type"] = _looked_up(notes.mid, notes.id, of_card.nid)
    # Cloze cards have the number of their deletion in the place of a template's number: all of
    # them belong to the only template of their note type.
    only = _PLACES * columns["note_type"]
    numbers = [only + of_card.ord, only]
    are_there = [np.isin(each, [*titles["template"]]) for each in numbers]
    columns["template"] = np.select(are_there, numbers, _NOT_KNOWN)
    table = pd.DataFrame(columns, of_card.id, dtype=np.int64)
    is_known = (table != _NOT_KNOWN).any()
    is_known["preset"] = is_known["deck"] and any(each != _NOT_KNOWN for each in presets.values())
    of_log = table.loc[:, is_known].reindex(cards, fill_value=_NOT_KNOWN)
    return {str(group): column.to_numpy() for group, column in of_log.items()}, titles


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
    try:
        fields = UnknownFieldSet(Empty.FromString(message))
    except DecodeError:
        return {}
    values = {(each.field_number, each.wire_type): each.data for each in fields}
    for key in [key for key in values if key[1] == FLOAT]:
        (values[key],) = struct.unpack("<f", struct.pack("<I", values[key]))
    return values


def preset_of_deck(kind: Any) -> int:
    """Find the preset of a deck, -1 for a filtered deck, which has none, and what cannot be read.

    It is ``KindContainer.normal.config_id`` of ``proto/anki/decks.proto`` in ankitects/anki.

    >>> preset_of_deck(bytes([0x0A, 0x02, 0x08, 0x01]))
    1
    """
    number = value_of(kind, "conf", (1, LENGTH), (1, NUMBER))
    # Numbers are signed: what is above half of the range is negative, and no preset.
    return number if type(number) is int and abs(number) < 2**63 else _NOT_KNOWN


def _looked_up(numbers: Any, keys: Any, wanted: IntArray) -> IntArray:
    """Return the numbers of the keys that are wanted, -1 where there is none."""
    table = pd.Series(numbers, keys, np.int64)
    return table.reindex(wanted, fill_value=_NOT_KNOWN).to_numpy()


def _templates(collection: Collection, note_types: Mapping[int, Any]) -> dict[int, str]:
    """Return the names of all card templates by number; what cannot be read is left out."""
    rows = [*collection.rows("templates", "ntid", "ord", "name")] or [
        (number, value_of(each, "ord"), value_of(each, "name"))
        for number, note_type in note_types.items()
        if isinstance(templates := value_of(note_type, "tmpls"), list)
        for each in templates
    ]
    names = _names(note_types)
    return {
        _PLACES * number + place: f"{names.get(number, number)}: {name}"
        for number, place, name in rows
        if type(number) is type(place) is int and isinstance(name, str)
        if 0 <= number < _LARGEST_NOTE_TYPE and 0 <= place < _PLACES
    }


def _names(stored: Mapping[int, Any]) -> dict[int, str]:
    """Return the names of decks, presets or note types, as far as they can be read."""
    names = {number: value_of(each, "name") for number, each in stored.items()}
    return {n: name.replace("\x1f", "::") for n, name in names.items() if isinstance(name, str)}
