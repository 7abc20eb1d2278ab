"""Note types, templates and presets of crafted and damaged collections."""

import json
import sqlite3
from contextlib import closing

import pytest
from anki_files import change, collection
from anki_presets import field, number

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.decks import preset_of_deck
from srs_eval.data.anki.note_types import template_number, template_of_card, templates_in_text
from srs_eval.errors import ReviewLogError

CARDS = "create table cards (id, did, odid, nid, ord)"


def crafted(path, *, note=(1, 70), place=0, models=None, templates=()):
    """Write a collection whose one card, 5, belongs to a note."""
    collection(path)
    change(path, "drop table notes", "create table notes (id, mid)", CARDS)
    change(path, f"insert into notes values ({note[0]}, {note[1]})")
    change(path, f"insert into cards values (5, 1, 0, 1, {place})")
    if models is not None:
        text = models.replace("'", "''")
        change(path, "alter table col add column models", f"update col set models = '{text}'")
    if templates:
        change(path, "create table templates (ntid, ord, name)")
    for template in templates:
        change(path, f"insert into templates values ({', '.join(map(repr, template))})")
    return AnkiCollection(path).read(path.stem)


def test_note_types_and_templates_of_a_table(tmp_path):
    log = crafted(tmp_path / "a.anki2", place=1, templates=[(70, 0, "front"), (70, 1, "back")])
    assert set(log.note_type.tolist()) == {70}
    assert set(log.template.tolist()) == {70_001}
    assert log.titles["template"] == {70_000: "70: front", 70_001: "70: back"}


def test_note_types_and_templates_of_a_text(tmp_path):
    kinds = {"70": {"name": "Basic", "tmpls": [{"ord": 0, "name": "Card 1"}]}}
    log = crafted(tmp_path / "a.anki2", models=json.dumps(kinds))
    assert set(log.template.tolist()) == {70_000}
    assert log.titles["note_type"] == {70: "Basic"}
    assert log.titles["template"] == {70_000: "Basic: Card 1"}


@pytest.mark.parametrize("models", ["{", "[]", '{"70": 5}', '{"x": {"tmpls": [{"ord": 0}]}}'])
def test_templates_that_cannot_be_read_are_not_known(tmp_path, models):
    log = crafted(tmp_path / "a.anki2", models=models)
    assert log.template is None
    assert set(log.note_type.tolist()) == {70}


def test_the_note_type_of_a_card_without_note_is_not_known(tmp_path):
    assert crafted(tmp_path / "a.anki2", note=(2, 70)).note_type is None


@pytest.mark.parametrize("options", [{"note": (1, "'x'")}, {"place": "null"}, {"place": 0.5}])
def test_numbers_stored_as_something_else_are_damage(tmp_path, options):
    with pytest.raises(ReviewLogError, match="no whole number"):
        crafted(tmp_path / "a.anki2", **options)


def test_a_damaged_page_of_notes_costs_the_note_types_alone(tmp_path):
    path = tmp_path / "a.anki2"
    whole = crafted(path)
    with closing(sqlite3.connect(path)) as database:
        (page,) = database.execute(
            "select rootpage from sqlite_master where name = 'notes'"
        ).fetchone()
        (size,) = database.execute("pragma page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    log = AnkiCollection(path).read("a")
    assert log.note_type is None
    assert log.template is None
    assert log.rating.tolist() == whole.rating.tolist()
    assert [note for note in log.notes if "damaged" in note]
    assert not [note for note in whole.notes if "damaged" in note]


def test_cloze_cards_belong_to_the_only_template():
    assert template_of_card(70, 4, {70_000: "Cloze"}) == 70_000
    assert template_of_card(71, 4, {70_000: "Cloze"}) is None


@pytest.mark.parametrize("place", [-1, 1000, None, "0"])
def test_places_that_no_template_has(place):
    assert template_number(70, place) is None
    assert template_number(2**60, 0) is None


def test_templates_in_text_leave_out_what_is_none():
    kinds = {"70": {"tmpls": [{"ord": True, "name": "a"}, 5, {"ord": 1, "name": "b"}]}, "7": []}
    assert list(templates_in_text(kinds)) == [(70, 1, "b")]


def inside(key, *content):
    return field(key, b"".join(content))


@pytest.mark.parametrize("preset", [1, 127, 128, 1_700_000_000_123, 2**62])
def test_the_preset_of_a_normal_deck_is_found(preset):
    others = [b"\x49" + bytes(8), b"\x45" + bytes(4), field(7, b"text"), b"\x30\x01"]
    assert preset_of_deck(inside(1, *others, b"\x08", number(preset), *others)) == preset


@pytest.mark.parametrize(
    "kind",
    [
        b"",
        inside(2, b"\x08\x05"),  # a filtered deck
        inside(1, b""),
        inside(1, b"\x08"),
        inside(1, inside(1, b"x")),
        b"\x08\x05",
        b"\xff",
        b"\x0b\x00",
        inside(1, b"\x0b"),
        # of more than 63 bits
        b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01",
        b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x02",
    ],
)
def test_a_preset_that_cannot_be_read_is_not_known(kind):
    assert preset_of_deck(kind) is None
