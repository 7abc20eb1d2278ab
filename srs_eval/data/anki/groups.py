"""Decks, presets, note types and card templates, in the forms in which Anki keeps them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.data.anki.database import Collection
from srs_eval.nouns import GROUPS, IntArray

# Keys of messages of protocol buffers: 8 * number of the field + kind of value.
_NORMAL_DECK = 8 * 1 + 2
_PRESET = 8 * 1 + 0
_LENGTHS = {1: 8, 5: 4}  # Bytes of a value, by its kind
_NUMBER_BITS = 64
# A template is numbered by its note type and its place there, so that numbers stay the same from
# one export to the next.
_PLACES = 1000
_LARGEST_NOTE_TYPE = 2**53
_NOT_KNOWN = -1


def message_fields(message: bytes) -> dict[int, Any]:
    """Return the first value of each key of a message of protocol buffers.

    Keys are 8 * number of the field + kind of value, numbers are base 128. Raise `ValueError` if it
    is no such message.

    >>> message_fields(bytes([0x08, 0x96, 0x01, 0x12, 0x01, 0x61]))
    {8: 150, 18: b'a'}
    """
    stream = io.BytesIO(message)

    def number() -> int:
        value = 0
        for shift in range(0, _NUMBER_BITS, 7):
            (byte,) = stream.read(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80 and not value >> _NUMBER_BITS:
                return value
        raise ValueError("a number has more than 64 bits")

    values: dict[int, Any] = {}
    while stream.tell() < len(message):
        key = number()
        if key % 8 == 0:
            values.setdefault(key, number())
            continue
        length = number() if key % 8 == 2 else _LENGTHS.get(key % 8, len(message))
        value = stream.read(length)
        if len(value) < length:
            raise ValueError("a value ends after the message")
        values.setdefault(key, value)
    return values


def preset_of_deck(kind: Any) -> int | None:
    """Find the preset in the column ``kind`` of Anki's table of decks.

    None for a filtered deck, which has none, and for what cannot be read. It is
    ``KindContainer.normal.config_id`` of ``proto/anki/decks.proto`` in ankitects/anki.

    >>> preset_of_deck(bytes([0x0A, 0x02, 0x08, 0x01]))
    1
    """
    try:
        preset = message_fields(message_fields(kind)[_NORMAL_DECK])[_PRESET]
    except (KeyError, ValueError, TypeError):
        return None
    # Numbers are signed: what is above half of the range is negative, and no preset.
    return int(preset) if preset < 2 ** (_NUMBER_BITS - 1) else None


def groups_of(
    collection: Collection, cards: IntArray
) -> tuple[dict[str, IntArray | None], dict[str, Mapping[int, str]]]:
    """Return the groups of each card, [n], and their names, by the names of columns of a log.

    Numbers are -1 where nothing is known of a card, and None where nothing is known of any. A card
    that is in a filtered deck belongs to the deck it came from.
    """
    note_types = collection.objects("notetypes", "name", "models")
    templates = _templates(collection, note_types)
    titles: dict[str, Mapping[int, str]] = {
        "deck": _names(collection.objects("decks", "name", "decks")),
        "preset": _names(collection.objects("deck_config", "name", "dconf")),
        "note_type": _names(note_types),
    }
    titles["template"] = {
        number: f"{titles['note_type'].get(number // _PLACES, number // _PLACES)}: {name}"
        for number, name in templates.items()
    }
    numbers: dict[str, IntArray | None] = dict.fromkeys(GROUPS)
    if table := collection.integers("cards", did="did", odid="odid"):
        home = np.where(table["odid"] == 0, table["did"], table["odid"])
        numbers["deck"] = _looked_up(table["id"], home, cards)
    if numbers["deck"] is not None:
        presets = _presets(collection)
        of_decks = np.array([*presets.values()], np.int64)
        numbers["preset"] = _looked_up([*presets], of_decks, numbers["deck"])
    if table := collection.integers("cards", nid="nid", ord="ord"):
        note_type, template = _note_types(collection, table, templates)
        for group, of_cards in (
            ("note", table["nid"]),
            ("note_type", note_type),
            ("template", template),
        ):
            numbers[group] = _looked_up(table["id"], of_cards, cards)
    return numbers, titles


def _looked_up(known: Any, numbers: IntArray, keys: IntArray) -> IntArray | None:
    """Look up the number of each key, -1 where it is not known; None if none is known."""
    table = pd.Series(numbers, known)
    table = table[table != _NOT_KNOWN]
    return table.reindex(keys, fill_value=_NOT_KNOWN).to_numpy(np.int64) if len(table) else None


def _presets(collection: Collection) -> dict[int, int]:
    """Return the preset of each deck, as far as it is recorded."""
    found = {}
    for deck, kept in collection.objects("decks", "kind", "decks").items():
        preset = kept.get("conf") if isinstance(kept, dict) else preset_of_deck(kept)
        if type(preset) is int and preset.bit_length() < _NUMBER_BITS:
            found[deck] = preset
    return found


def _note_types(
    collection: Collection, table: Mapping[str, IntArray], templates: Mapping[int, str]
) -> tuple[IntArray, IntArray]:
    """Return the note type and the template of each card in a table, -1 where not known.

    Cloze cards have the number of their deletion in the place of a template's number: all of
    them belong to the only template of their note type.
    """
    notes = collection.integers("notes", mid="mid")
    kinds = pd.Series(notes.get("mid"), notes.get("id"), np.int64)
    note_type = kinds.reindex(table["nid"], fill_value=_NOT_KNOWN).to_numpy(np.int64)
    template = np.full(len(note_type), _NOT_KNOWN)
    for place in (np.zeros_like(note_type), table["ord"]):  # its own place counts before the first
        number = np.where((place >= 0) & (place < _PLACES), _PLACES * note_type + place, _NOT_KNOWN)
        template = np.where(np.isin(number, [*templates]), number, template)
    return note_type, template


def _templates(collection: Collection, note_types: Mapping[int, Any]) -> dict[int, str]:
    """Return the names of all card templates by number; what cannot be read is left out."""
    rows: list[tuple[Any, Any, Any]] = []
    if {"ntid", "ord", "name"} <= collection.columns_of("templates"):
        query = "select ntid, ord, name from templates not indexed"
        rows = collection.connection.execute(query).fetchall()
    for note_type, kept in note_types.items():
        listed = kept.get("tmpls") if isinstance(kept, dict) else None
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict):
                rows.append((note_type, each.get("ord"), each.get("name")))
    return {
        _PLACES * note_type + place: name
        for note_type, place, name in rows
        if type(note_type) is type(place) is int and isinstance(name, str)
        if 0 <= note_type < _LARGEST_NOTE_TYPE and 0 <= place < _PLACES
    }


def _names(kept: Mapping[int, Any]) -> dict[int, str]:
    """Return the names of decks, presets or note types, as far as they can be read."""
    names = {n: each.get("name") if isinstance(each, dict) else each for n, each in kept.items()}
    return {n: name.replace("\x1f", "::") for n, name in names.items() if isinstance(name, str)}
