"""Decks, presets, note types and card templates, in the forms in which Anki keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from srs_eval.nouns import IntArray

# A message of protocol buffers: keys are 8 * number + kind of value, numbers are base 128.
_NORMAL_DECK = 8 * 1 + 2
_PRESET = 8 * 1 + 0
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_NUMBER_BYTES = 10
_NUMBER_BITS = 64
# A template is numbered by its note type and its place there, so that numbers stay the same from
# one export to the next.
_PLACES = 1000
_LARGEST_NOTE_TYPE = 2**53


def preset_of_deck(kind: bytes) -> int | None:
    """Find the preset in the column ``kind`` of Anki's table of decks.

    None for a filtered deck, which has none, and for what cannot be read. It is
    ``KindContainer.normal.config_id`` of ``proto/anki/decks.proto`` in ankitects/anki.

    >>> preset_of_deck(bytes([0x0A, 0x02, 0x08, 0x01]))
    1
    """
    try:
        normal = message_field(kind, _NORMAL_DECK)
        preset = message_field(normal, _PRESET) if isinstance(normal, bytes) else None
    except (IndexError, ValueError):
        return None
    # Numbers are signed: what is above half of the range is negative, and no preset.
    return preset if isinstance(preset, int) and preset < 2 ** (_NUMBER_BITS - 1) else None


def message_field(message: bytes, wanted: int) -> int | bytes | None:
    """Find the value under a key of a message."""
    place = 0
    while place < len(message):
        key, place = _number(message, place)
        value: int | bytes
        if key % 8 == _NUMBER:
            value, place = _number(message, place)
        else:
            length, place = _length(message, place, key % 8)
            if length > len(message) - place:
                raise ValueError("a value ends after the message")
            value, place = message[place : place + length], place + length
        if key == wanted:
            return value
    return None


def _length(message: bytes, place: int, kind: int) -> tuple[int, int]:
    """Return the length of a value in bytes, and where it begins."""
    if kind == _BYTES:
        return _number(message, place)
    if kind in (_EIGHT_BYTES, _FOUR_BYTES):
        return (8 if kind == _EIGHT_BYTES else 4), place
    raise ValueError(f"there is no value of kind {kind}")


def _number(message: bytes, place: int) -> tuple[int, int]:
    """Read a number of at most 10 bytes and 64 bits, and say where it ends."""
    number = 0
    for index in range(_NUMBER_BYTES):
        byte = message[place + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if number >> _NUMBER_BITS:
                break
            return number, place + index + 1
    raise ValueError("a number has more than 64 bits")


def template_numbers(note_types: IntArray, places: IntArray) -> IntArray:
    """Return the number of each card template, -1 for what is no template of Anki.

    >>> template_numbers(np.array([1_700_000_000_123, -1]), np.array([1, 1])).tolist()
    [1700000000123001, -1]
    """
    are_possible = (note_types >= 0) & (note_types < _LARGEST_NOTE_TYPE)
    are_possible &= (places >= 0) & (places < _PLACES)
    return np.where(are_possible, _PLACES * note_types + places, -1)


def template_number(note_type: object, place: object) -> int | None:
    """Return the number of a card template; None for what is no template of Anki."""
    if not isinstance(note_type, int) or not isinstance(place, int):
        return None
    inside = 0 <= note_type < _LARGEST_NOTE_TYPE and 0 <= place < _PLACES
    return _PLACES * note_type + place if inside else None


def template_names(templates: Mapping[int, str], note_types: Mapping[int, str]) -> dict[int, str]:
    """Prefix the name of each template with that of its note type."""
    return {
        number: f"{note_types.get(number // _PLACES, number // _PLACES)}: {name}"
        for number, name in templates.items()
    }


def templates_in_text(
    note_types: Iterable[tuple[int, Mapping[str, Any]]],
) -> Iterator[tuple[int, int, Any]]:
    """Go through note type, place and name of each template of note types kept as text."""
    for note_type, facts in note_types:
        listed = facts.get("tmpls")
        for template in listed if isinstance(listed, list) else ():
            if isinstance(template, dict) and type(template.get("ord")) is int:
                yield note_type, template["ord"], template.get("name")
