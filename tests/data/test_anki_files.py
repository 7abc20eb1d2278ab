"""Files that are handed to `AnkiCollection`, made by hand: their packing, days, decks and cards."""

import json
import sqlite3
from contextlib import closing

import pytest
import zstandard
from anki_files import DAY, START, change, collection, field, number, package

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.groups import preset_of_deck, template_number
from srs_eval.errors import ReviewLogError


def read(path, **options):
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


def test_a_collection_becomes_a_review_log(tmp_path):
    path = collection(tmp_path / "Ann.anki2", settings={"schedVer": 2, "creationOffset": 0})
    source = AnkiCollection(str(path))
    assert source.users() == ("Ann",)
    assert (source.name, source.location) == ("Ann.anki2", str(path))
    reviews = source.read("Ann")
    assert reviews.user == "Ann"
    assert reviews.rating.tolist() == [3, 3, 1, 4]
    assert reviews.state.tolist() == [0, 1, 2, 2]
    assert reviews.elapsed_seconds.tolist() == [-1, 600, 30 * 3600 - 600, 11 * DAY - 30 * 3600]
    assert reviews.duration_ms.tolist() == [4000, 3000, 9000, 2000]
    assert (reviews.deck, reviews.preset) == (None, None)
    named = AnkiCollection(path, user=17)
    assert named.users() == (17,)
    assert named.read(17).user == 17
    with pytest.raises(ReviewLogError):
        named.read("Ann")


# What a collection says, options, and the days of its answers, the first of them at 2:00 UTC.
DAYS = [
    # Version 1 counts from the creation stamp, here the very first answer.
    ({}, {}, [0, 0, 1, 11]),
    ({"schedVer": 1, "rollover": 9, "creationOffset": 0}, {}, [0, 0, 1, 11]),
    # 4:00 UTC: the first answers belong to the day before.
    ({"schedVer": 2, "creationOffset": 0}, {}, [0, 0, 2, 11]),
    ({"schedVer": 2, "creationOffset": 0, "rollover": 2}, {}, [0, 0, 1, 11]),
    # 3:00 in UTC+1 is 2:00 UTC; Anki records minutes west of UTC.
    ({"schedVer": 2, "creationOffset": -60, "rollover": 3}, {}, [0, 0, 1, 11]),
    ({"schedVer": 2, "creationOffset": 0, "localOffset": -120}, {}, [0, 0, 1, 11]),
    ({"schedVer": 2, "creationOffset": 0, "rollover": 3}, {}, [0, 0, 2, 11]),
    # Without a time zone the creation stamp tells when days begin.
    ({"schedVer": 2, "rollover": 4}, {}, [0, 0, 1, 11]),
    # Arguments take the place of what is recorded.
    ({"schedVer": 2, "rollover": 3}, {"utc_offset_minutes": 60}, [0, 0, 1, 11]),
    ({"schedVer": 2, "creationOffset": 0}, {"rollover_hour": 2}, [0, 0, 1, 11]),
    ({}, {"rollover_hour": 4, "utc_offset_minutes": 0}, [0, 0, 2, 11]),
]


def test_days_begin_where_the_collection_says(tmp_path):
    for n, (settings, options, days) in enumerate(DAYS):
        path = collection(tmp_path / f"{n}.anki2", settings=settings, table=n % 2 == 0)
        assert read(path, **options).day.tolist() == days, (settings, options)
    midnight = START + 2 * 3600
    rows = [(midnight * 1000 - 1, 5, 3, 0, 1, 0), (midnight * 1000, 5, 3, 0, 1, 0)]
    path = collection(tmp_path / "a.anki2", rows, settings={"schedVer": 2, "creationOffset": 0})
    assert read(path).day.tolist() == [0, 1]


def test_the_newest_collection_of_a_package_is_read_whatever_its_name(tmp_path):
    plain = collection(tmp_path / "made.anki2", settings={"schedVer": 2}).read_bytes()
    stub = b"never looked at"
    # As Anki writes it: a stream that does not declare how long its content is.
    compressed = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    packages = {
        "wrongly-named.txt": {"collection__anki2": plain},
        "old.colpkg": {"collection__anki2": stub, "collection__anki21": plain},
        "new.colpkg": {
            "meta": b"\x08\x03",
            "collection__anki2": stub,
            "collection__anki21": stub,
            "collection__anki21b": compressed,
        },
    }
    for name, members in packages.items():
        assert len(read(package(tmp_path / name, **members), scheduler=2)) == 4, name
    bare = tmp_path / "collection.anki21b"
    bare.write_bytes(compressed)
    assert len(read(bare)) == 4


def crafted(path, *, note=(1, 70), place=0, models=None, templates=()):
    """Write a collection whose one card, 5, belongs to a note."""
    path.unlink(missing_ok=True)
    change(
        collection(path),
        "drop table notes",
        "create table notes (id, mid)",
        "create table cards (id, did, odid, nid, ord)",
        f"insert into notes values ({note[0]}, {note[1]})",
        f"insert into cards values (5, 1, 0, 1, {place})",
    )
    if models is not None:
        text = models.replace("'", "''")
        change(path, "alter table col add column models", f"update col set models = '{text}'")
    if templates:
        change(path, "create table templates (ntid, ord, name)")
    for template in templates:
        change(path, f"insert into templates values ({', '.join(map(repr, template))})")
    return read(path)


def test_note_types_and_templates_are_read_from_text_or_table_where_they_are_known(tmp_path):
    path = tmp_path / "a.anki2"
    log = crafted(path, place=1, templates=[(70, 0, "front"), (70, 1, "back")])
    assert set(log.note_type.tolist()) == {70}
    assert set(log.template.tolist()) == {70_001}
    assert log.titles["template"] == {70_000: "70: front", 70_001: "70: back"}
    listed = [{"ord": True, "name": "a"}, 5, {"ord": 0, "name": "Card 1"}]
    kinds = {"70": {"name": "Basic", "tmpls": listed}, "7": []}
    log = crafted(path, models=json.dumps(kinds), place=4)  # the fifth deletion of a cloze
    assert set(log.template.tolist()) == {70_000}
    assert log.titles["note_type"] == {70: "Basic"}
    assert log.titles["template"] == {70_000: "Basic: Card 1"}
    for models in ("{", "[]", '{"70": 5}', '{"x": {"tmpls": [{"ord": 0}]}}'):
        log = crafted(path, models=models)
        assert log.template is None
        assert set(log.note_type.tolist()) == {70}
    assert crafted(path, note=(2, 70)).note_type is None
    for options in ({"note": (1, "'x'")}, {"place": "null"}, {"place": 0.5}):
        with pytest.raises(ReviewLogError, match="no whole number"):
            crafted(path, **options)
    for place in (-1, 1000, None, "0"):
        assert template_number(70, place) is None
    assert template_number(2**60, 0) is None


def test_a_damaged_page_of_notes_costs_the_note_types_alone(tmp_path):
    path = tmp_path / "a.anki2"
    whole = crafted(path)
    with closing(sqlite3.connect(path)) as database:
        found = "select rootpage from sqlite_master where name = 'notes'"
        (page,) = database.execute(found).fetchone()
        (size,) = database.execute("pragma page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    log = read(path)
    assert (log.note_type, log.template) == (None, None)
    assert log.rating.tolist() == whole.rating.tolist()
    assert [sum("damaged" in note for note in each.notes) for each in (whole, log)] == [0, 1]


def test_the_preset_of_a_normal_deck_is_found_or_not_known():
    def inside(key, *content):
        return field(key, b"".join(content))

    others = [b"\x49" + bytes(8), b"\x45" + bytes(4), field(7, b"text"), b"\x30\x01"]
    for preset in (1, 127, 128, 1_700_000_000_123, 2**62, 2**63 - 1):
        assert preset_of_deck(inside(1, *others, b"\x08", number(preset), *others)) == preset
    for kind in (
        b"",
        inside(2, b"\x08\x05"),  # a filtered deck
        inside(1, b""),
        inside(1, b"\x08"),
        inside(1, inside(1, b"x")),
        *(b"\x08\x05", b"\xff", b"\x0b\x00"),
        inside(1, b"\x0b"),
        inside(1, b"\x08", number(2**63)),  # of more than 63 bits
        inside(1, b"\x08" + b"\xff" * 9 + b"\x02"),
    ):
        assert preset_of_deck(kind) is None
