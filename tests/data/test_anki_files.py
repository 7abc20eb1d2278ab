"""Files made by hand for `AnkiCollection`: packing, days, decks, cards and the scheduler."""

import json
import sqlite3
from contextlib import closing
from itertools import product

import pytest
import zstandard
from anki_files import DAY, ROWS, START, change, collection, field, number, package, read

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.groups import preset_of_deck, template_number
from srs_eval.errors import ReviewLogError


def test_a_collection_becomes_a_review_log(tmp_path):
    path = collection(tmp_path / "Ann.anki2", settings={"schedVer": 2, "creationOffset": 0})
    source, named = AnkiCollection(str(path)), AnkiCollection(path, user=17)
    assert (source.name, source.location) == ("Ann.anki2", str(path))
    assert (source.users(), named.users()) == (("Ann",), (17,))
    assert (source.read("Ann").user, named.read(17).user) == ("Ann", 17)
    assert source.read("Ann").elapsed_seconds.tolist() == [
        *(-1, 600, 30 * 3600 - 600, 11 * DAY - 30 * 3600)
    ]
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


def test_an_open_transaction_neither_blocks_nor_shows(tmp_path):
    path = collection(tmp_path / "a.anki2")
    for mode in ("wal", "delete"):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(f"pragma journal_mode = {mode}")
            # A small cache makes SQLite write to its files before the end of the transaction.
            other.execute("pragma cache_size = 5")
            other.execute("begin exclusive")
            other.execute("delete from revlog")
            other.execute("create table filler as select zeroblob(100000) as content")
            assert len(read(path)) == 4
            other.execute("rollback")


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
    for models in ("{", "[]", '{"70": 5}', '{"x": {"tmpls": [{"ord": 0}]}}', '{"--7": {}}'):
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
    assert (log.note_type, log.template, set(log.note.tolist())) == (None, None, {1})
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


# (ease, ivl) of the learning steps of one card: seconds are negative, days positive.
STEPS = {
    "steps of 1": [(1, -60), (2, -600), (2, 1)],
    "steps of 2": [(1, -60), (3, -600), (3, 1), (2, -300), (4, 4)],
    "steps of either": [(1, -60), (2, -600), (3, 1)],
    "no other answers": [(1, -60), (1, -60), (1, -60)],
}
EITHER = "steps of either"
AS_1 = {1: 1, 2: 3, 3: 4, 4: 4}
# The name of a file, and the members of a package: the last is the collection.
LAYOUTS = {
    "bare": ["Ann.anki2"],
    "bare 21": ["collection.anki21"],
    "old deck 1": ["d.apkg", "collection__anki2"],
    "old deck 2": ["d.apkg", "collection__anki2", "collection__anki21"],
    "old whole 1": ["c.colpkg", "collection__anki2"],
    "old whole 2": ["c.colpkg", "collection__anki2", "collection__anki21"],
    "legacy deck": ["d.apkg", "meta", "collection__anki2", "collection__anki21"],
    "legacy whole": ["c.colpkg", "meta", "collection__anki2", "collection__anki21"],
    "new deck": ["d.apkg", "meta", "collection__anki2", "collection__anki21b"],
    "new whole": ["c.colpkg", "meta", "collection__anki2", "collection__anki21b"],
}
# Cards in relearning, as a preview, buried by hand; and in relearning as in version 1.
CARDS = ((3, 1), (2, 4), (2, -3), (2, 1), (2, 3), (2, 2))
# Of these versions only the first two are known.
VERSIONS = (1, 2, 0, 3, "2", 2.0, True)


def cases():
    """Yield layout, steps, state of a card and settings."""
    for layout, steps, version in product(LAYOUTS, STEPS, (1, 2)):
        yield layout, steps, None, {"schedVer": version}
    for card, (layout, version) in product(CARDS, [("old deck 1", 2), ("bare", 1)]):
        yield layout, EITHER, card, {"schedVer": version}
    for version in VERSIONS:
        yield "bare", EITHER, None, {"schedVer": version, "sched2021": True}
    for layout, steps in product(("bare", "old deck 2"), STEPS):
        yield layout, steps, None, {}


def written(folder, layout, steps, card, settings):
    """Write the file that a layout stands for."""
    rows = [(START * 1000 + 60_000 * k, 5, ease, 0, 10, 0, ivl) for k, (ease, ivl) in steps]
    plain = collection(folder / "plain", rows, settings=settings)
    if card:
        create = "create table cards (id integer primary key, type, queue)"
        change(plain, create, f"insert into cards (type, queue) values {card}")
    content = plain.read_bytes()
    plain.unlink()
    name, *members = LAYOUTS[layout]
    if not members:
        (folder / name).write_bytes(content)
        return folder / name
    held = {member: b"\x08\x03" if member == "meta" else b"dummy" for member in members}
    is_packed = members[-1].endswith("b")
    held[members[-1]] = zstandard.ZstdCompressor().compress(content) if is_packed else content
    return package(folder / name, **held)


def test_the_version_is_told_from_packing_setting_answers_and_cards(tmp_path, golden_text):
    said = []
    for layout, name, card, settings in cases():
        steps = list(enumerate(STEPS[name]))
        ratings = [ease for _, (ease, _) in steps]
        path = written(tmp_path, layout, steps, card, settings)
        of_version = {1: [AS_1[ease] for ease in ratings], 2: ratings}
        for version, expected in of_version.items():
            assert read(path, scheduler=version).rating.tolist() == expected
        try:
            log = read(path)
        except ReviewLogError as error:
            said_which = "data.scheduler=1 or data.scheduler=2" in error.hint
            told = error.violations[0] if said_which and error.source == str(path) else str(error)
        else:
            told = log.notes[0].removeprefix("ratings read as those of ")
            version = int(log.notes[0].split("version ")[1][0])
            assert log.rating.tolist() == of_version[version]
        state = f"a card of type {card[0]} and queue {card[1]}, " if card else ""
        said.append(f"{layout}, {name}, {state}{settings}:\n  {told}")
    golden_text("anki_schedulers", "\n".join(said) + "\n")


def test_answers_of_reviews_stay_and_those_before_2015_are_of_either_version(tmp_path):
    steps = [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (4, 1)]
    rows = [(ROWS[0][0] + k, 5, ease, 0, 10, kind) for k, (ease, kind) in enumerate(steps)]
    for version, ratings in ((1, [1, 3, 4, 2, 3, 3, 4]), (2, [1, 2, 3, 2, 3, 2, 4])):
        path = collection(tmp_path / f"{version}.anki2", rows, settings={"schedVer": version})
        assert read(path).rating.tolist() == ratings
    for begin, scheduler, version in ((1_420_070_399_000, "auto", 1), (1_420_070_400_000, 2, 2)):
        rows = [(begin, 5, 4, 0, 10, 0, 1)]
        path = collection(tmp_path / f"{begin}.anki2", rows, settings={"schedVer": 1})
        assert f"version {version}" in read(path, scheduler=scheduler).notes[0]


def test_a_log_says_when_days_begin(tmp_path):
    # With version 1 at the creation stamp, with version 2 at 4:00 in the recorded time zone.
    two = {"schedVer": 2, "creationOffset": 0}
    east = {**two, "rollover": -2, "localOffset": -330}
    for settings, options, said in (
        (two, {}, "04:00 UTC"),
        (two, {"scheduler": 1}, "02:00 UTC"),
        (east, {}, "16:30 UTC"),
        (east, {}, "22:00"),
        (east, {}, "UTC+05:30, setting localOffset"),
        (east, {"rollover_hour": 5, "utc_offset_minutes": 0}, "data.rollover_hour=5"),
    ):
        path = collection(tmp_path / "a.anki2", settings=settings)
        assert said in read(path, **options).notes[1]
        path.unlink()
