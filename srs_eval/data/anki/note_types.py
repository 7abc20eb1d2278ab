"""Note types and card templates of an Anki collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# A template is numbered by its note type and its place there, so that numbers stay the same from
# one export to the next.
_PLACES = 1000
_LARGEST_NOTE_TYPE = 2**53


def template_number(note_type: object, place: object) -> int | None:
    """Return the number of a card template; None for what is no template of Anki.

    >>> template_number(1_700_000_000_123, 1)
    1700000000123001
    """
    if not isinstance(note_type, int) or not 0 <= note_type < _LARGEST_NOTE_TYPE:
        return None
    if not isinstance(place, int) or not 0 <= place < _PLACES:
        return None
    return _PLACES * note_type + place


def template_of_card(note_type: int, place: int, templates: Mapping[int, str]) -> int | None:
    """Find the template of a card among the numbers of all templates.

    Cloze cards have the number of their deletion in the place of a template's number: all of them
    belong to the only template of their note type.
    """
    for number in (template_number(note_type, place), template_number(note_type, 0)):
        if number in templates:
            return number
    return None


def template_names(templates: Mapping[int, str], note_types: Mapping[int, str]) -> dict[int, str]:
    """Prefix the name of each template with that of its note type."""
    return {
        number: f"{note_types.get(number // _PLACES, number // _PLACES)}: {name}"
        for number, name in templates.items()
    }


def templates_in_text(note_types: Mapping[str, Any]) -> Iterable[tuple[int, int, Any]]:
    """Read note type, place and name of each template where note types are kept as text.

    What is not readable is left out.
    """
    for key, facts in note_types.items():
        listed = facts.get("tmpls") if isinstance(facts, dict) else None
        note_type = number_in(key)
        if note_type is None or not isinstance(listed, list):
            continue
        for template in listed:
            if isinstance(template, dict) and type(template.get("ord")) is int:
                yield note_type, template["ord"], template.get("name")


def number_in(text: str) -> int | None:
    """Parse a whole number of at most 64 bits; None if it is not one."""
    return int(text) if text.isascii() and text.lstrip("-").isdigit() and len(text) < 20 else None
