"""Bytes in which Anki keeps a deck, read and damaged."""

import pytest

from srs_eval.data.anki.decks import preset_of_deck


def number(value):
    """Write a number as protocol buffers do."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + number(rest) if rest else bytes([low])


def field(place, kind, content):
    return number(8 * place + kind) + content


def inside(place, content):
    return field(place, 2, number(len(content)) + content)


@pytest.mark.parametrize("preset", [1, 127, 128, 1_700_000_000_123, 2**62])
def test_the_preset_of_a_normal_deck_is_found(preset):
    others = field(9, 1, bytes(8)) + field(8, 5, bytes(4)) + inside(7, b"text") + field(6, 0, b"\1")
    assert preset_of_deck(inside(1, others + field(1, 0, number(preset)) + others)) == preset


def test_a_filtered_deck_has_none():
    assert preset_of_deck(inside(2, field(1, 0, number(5)))) is None


@pytest.mark.parametrize(
    "kind",
    [
        b"",
        inside(1, b""),
        inside(1, field(1, 0, b"")),
        inside(1, inside(1, b"x")),
        field(1, 0, number(5)),
        b"\xff",
        b"\x0b\x00",
        inside(1, b"\x0b"),
    ],
)
def test_what_cannot_be_read_is_not_known(kind):
    assert preset_of_deck(kind) is None
