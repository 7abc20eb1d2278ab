"""Files made by hand for `AnkiCollection`: packing, days, decks, cards and the scheduler."""

import json
import sqlite3
from contextlib import closing

import pytest
import zstandard
from anki_files import DAY, START, change, collection, field, number, opened, package, read

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


def test_days_begin_where_the_collection_says(tmp_path, transcript):
    """Version 1 counts from the creation stamp; minutes are west of UTC."""
    path = tmp_path / "a.anki2"

    def told_by(*words):
        pairs = [word.split("=") for word in words]
        given = {name: int(value) for name, value in pairs}
        options = {name: given.pop(name) for name in [*given] if "_" in name or name == "scheduler"}
        path.unlink(missing_ok=True)
        log = read(collection(path, settings=given, table="rollover" in given), **options)
        return f"  {log.day.tolist()}, {log.notes[1]}\n"

    transcript("anki_days", told_by)
    midnight = START + 2 * 3600
    rows = [(midnight * 1000 - 1, 5, 3, 0, 1, 0), (midnight * 1000, 5, 3, 0, 1, 0)]
    path = collection(tmp_path / "b.anki2", rows, settings={"schedVer": 2, "creationOffset": 0})
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


def crafted(path, *, note=1, kind=70, place=0, models=None, templates=()):
    """Write a collection whose one card, 5, belongs to a note of a kind."""
    path.unlink(missing_ok=True)
    with opened(collection(path)) as database:
        database.execute("drop table notes")
        database.execute("create table notes (id, mid)")
        database.execute("create table cards (id, did, odid, nid, ord)")
        database.execute("insert into notes values (?, ?)", (note, kind))
        database.execute("insert into cards values (5, 1, 0, 1, ?)", (place,))
        if models is not None:
            database.execute("alter table col add column models")
            text = models if isinstance(models, str) else json.dumps(models)
            database.execute("update col set models = ?", (text,))
        if templates:
            database.execute("create table templates (ntid, ord, name)")
            database.executemany("insert into templates values (?, ?, ?)", templates)
    return read(path)


def test_note_types_and_templates_are_read_from_text_or_table_where_they_are_known(
    tmp_path, transcript
):
    def told_by(*words):
        given = {name: json.loads(value) for name, value in (word.split("=") for word in words)}
        try:
            log = crafted(tmp_path / "a.anki2", **given)
        except ReviewLogError as error:
            return f"  {error.violations[0]}\n"
        lines = []
        for name in ("note_type", "template"):
            if getattr(log, name) is not None:
                numbers, titles = set(getattr(log, name).tolist()), log.titles[name]
                lines.append(f"  {name} {numbers}, titles {titles}\n")
        return "".join(lines) or "  unknown\n"

    transcript("anki_note_types", told_by)
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
    "of_1": [(1, -60), (2, -600), (2, 1)],
    "of_2": [(1, -60), (3, -600), (3, 1), (2, -300), (4, 4)],
    "of_either": [(1, -60), (2, -600), (3, 1)],
    "all_again": [(1, -60), (1, -60), (1, -60)],
    "easy": [(4, 1)],
}
# and the types of answers that are no steps
REVIEWED = [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (4, 1)]
STEPS["and_reviews"] = [(ease, None, kind) for ease, kind in REVIEWED]


def written(folder, name, *members, steps, card=None, at=START * 1000, **settings):
    """Write a collection, or a package of which the last member is the collection."""
    rows = [
        (at + 60_000 * k, 5, ease, 0, 10, *(kind or [0]), ivl)
        for k, (ease, ivl, *kind) in enumerate(steps)
    ]
    plain = collection(folder / "plain", rows, settings=settings)
    if card:
        create = "create table cards (id integer primary key, type, queue)"
        change(plain, create, f"insert into cards (type, queue) values {tuple(card)}")
    content = plain.read_bytes()
    plain.unlink()
    if not members:
        (folder / name).write_bytes(content)
        return folder / name
    held = {member: b"\x08\x03" if member == "meta" else b"dummy" for member in members}
    is_packed = members[-1].endswith("b")
    held[members[-1]] = zstandard.ZstdCompressor().compress(content) if is_packed else content
    return package(folder / name, **held)


def test_the_version_is_told_from_packing_setting_answers_and_cards(tmp_path, transcript):
    """Also by cards in relearning, as a preview, buried by hand, or as in version 1."""

    def told_by(file, answers, *words):
        given = {name: json.loads(value) for name, value in (word.split("=") for word in words)}
        path = written(tmp_path, *file.split(","), steps=STEPS[answers], **given)
        ratings = {n: read(path, scheduler=n).rating.tolist() for n in (1, 2)}
        try:
            log = read(path)
        except ReviewLogError as error:
            is_ours = "data.scheduler=1 or data.scheduler=2" in error.hint
            is_ours = is_ours and error.source == str(path)
            told = error.violations[0] if is_ours else error
        else:
            told = log.notes[0].removeprefix("ratings read as those of ")
            assert log.rating.tolist() == ratings[int(told.split("version ")[1][0])]
        return f"  {ratings}\n  {told}\n"

    transcript("anki_schedulers", told_by)
