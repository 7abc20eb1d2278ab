"""Files made by hand for `AnkiCollection`: packing, days, decks, cards and the scheduler."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import zstandard
from anki_files import DAY, ROWS, START, change, collection, field, number, package, read

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.groups import preset_of_deck
from srs_eval.errors import ReviewLogError
from srs_eval.protocol.candidates import in_seconds


def test_a_collection_becomes_the_review_log_of_its_one_user(tmp_path):
    path = collection(tmp_path / "Ann.anki2", settings={"schedVer": 2, "creationOffset": 0})
    source, named = AnkiCollection(str(path)), AnkiCollection(path, user=17)
    assert (source.name, source.location) == ("Ann.anki2", str(path))
    assert (source.users(), named.users()) == (("Ann",), (17,))
    log = source.read("Ann")
    assert (log.user, named.read(17).user) == ("Ann", 17)
    gaps = [-1, 600, 30 * 3600 - 600, 11 * DAY - 30 * 3600]
    assert log.elapsed_seconds.tolist() == gaps
    with pytest.raises(ReviewLogError, match="there is no user 'Ann'"):
        named.read("Ann")


def test_cards_with_the_largest_numbers_stay_apart(tmp_path):
    numbers = [2**62, 2**62 + 1, 2**63 - 1, 2**62]
    pairs = zip(ROWS, numbers, strict=True)
    rows = [(row[0], card, *row[2:5], n // 3) for n, (row, card) in enumerate(pairs)]
    log = read(collection(tmp_path / "a.anki2", rows))
    assert log.card.tolist() == numbers
    assert log.elapsed_days.tolist() == [-1, -1, -1, 11]


@pytest.mark.parametrize("took", [-1, 4e12, 9e999, "soon", None])
def test_an_impossible_answer_time_is_not_known_and_the_review_stays(tmp_path, took):
    rows = [(row[0] + 60_000 * n, 5 + n, *row[2:]) for row in ROWS for n in (0, 1)]
    sound = read(collection(tmp_path / "a.anki2", rows))
    rows[2] = (*rows[2][:4], took, 0)
    log = read(collection(tmp_path / "b.anki2", rows))
    times = [4000, 4000, np.nan, 3000, 9000, 9000, 2000, 2000]
    np.testing.assert_array_equal(log.duration_ms, times)
    for name in ("card", "rating", "day", "elapsed_seconds", "state"):
        np.testing.assert_array_equal(getattr(log, name), getattr(sound, name))
    assert log.left_out == sound.left_out == {}
    assert log.notes[2].startswith("how long 1 of 8 answers took is not known")
    whole, partly = (in_seconds(each, answer_time=False)[0].reviews for each in (sound, log))
    # nothing is subtracted where the time is not known
    difference = 86_400 * (partly.elapsed - whole.elapsed)
    np.testing.assert_allclose(difference, 3 * (np.arange(8) == 2), atol=1e-6)
    every = [(*row[:4], took, row[5]) for row in ROWS]
    assert read(collection(tmp_path / "c.anki2", every)).duration_ms is None


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
        assert len(read(package(tmp_path / name, **members))) == 4, name
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


def groups_of(log):
    """Return the only number of each group of a log, None where there is no such column."""
    columns = (log.deck, log.preset, log.note, log.note_type, log.template)
    return [None if each is None else int(*{*each.tolist()}) for each in columns]


def test_what_cannot_be_read_of_decks_and_note_types_is_not_known(tmp_path):
    templates = [{"ord": "0", "name": "a"}, 5, {"ord": 0, "name": "Card_1"}, {"ord": 1}]
    odd = {"7": [], "8": {"tmpls": 5}, "x": {}}
    objects = {
        "models": {"70": {"name": "Basic", "tmpls": templates}, **odd},
        "decks": {
            "1": {"name": "a", "conf": 3},
            "2": {"conf": 1.5},
            "9" * 19: {"name": "z"},
            "4": 4,
        },
    }
    path = change(
        collection(tmp_path / "a.anki2"),
        *(f"alter table col add column {name}" for name in objects),
        *(f"update col set {name} = '{json.dumps(each)}'" for name, each in objects.items()),
        "create table cards (id integer primary key, did, odid, nid, ord)",
        "insert into cards values (5, 1, 0, 1, 4)",
        *("drop table notes", "create table notes (id, mid)", "insert into notes values (1, 70)"),
    )
    log = read(path)
    titles = {"deck": {1: "a"}, "preset": {}, "note_type": {70: "Basic"}}
    assert log.titles == {**titles, "template": {70_000: "Basic: Card_1"}}
    assert groups_of(log) == [1, 3, 1, 70, 70_000]
    log = read(change(path, "update cards set did = 2, nid = 2"))
    assert groups_of(log) == [2, -1, 2, None, None]


def test_the_preset_of_a_normal_deck_is_found_or_not_known():
    others = b"\x49" + bytes(8) + b"\x45" + bytes(4) + field(7, b"text") + b"\x30\x01"
    for preset in (1, 128, 2**63 - 1):
        assert preset_of_deck(field(1, others + b"\x08" + number(preset) + others)) == preset
    filtered, too_large = field(2, b"\x08\x05"), field(1, b"\x08" + number(2**63))
    for kind in (b"", None, "text", b"\xff", b"\x0b\x00", field(1, b"\x08"), filtered, too_large):
        assert preset_of_deck(kind) == -1


# (ease, ivl) of the learning steps of one card: seconds are negative, days positive.
OF_1, OF_2 = [(1, -60), (2, -600), (2, 1)], [(1, -60), (3, -600), (3, 1), (2, -300), (4, 4)]
EITHER, AGAIN, EASY = [(1, -60), (2, -600), (3, 1)], [(1, -60)] * 3, [(4, 1)]
ASKED = None


@pytest.mark.parametrize(
    ("name", "stated", "steps", "version"),
    [
        *(("Ann.anki2", stated, EITHER, stated) for stated in (1, 2)),
        *(("Ann.anki2", stated, OF_1, stated) for stated in (1, 2)),
        *(("Ann.anki2", 1, OF_2, ASKED), ("Ann.anki2", 1, EASY, 1), ("Ann.anki2", 2, OF_2, 2)),
        *(("c.colpkg", 1, EITHER, 1), ("c.colpkg", 2, OF_1, 2), ("c.colpkg", 1, OF_2, ASKED)),
        # Packages of decks have the setting of a fresh collection.
        *(("d.apkg", 1, OF_1, 1), ("d.apkg", 1, OF_2, 2), ("d.apkg", 1, EITHER, ASKED)),
        *(("d.apkg", 2, OF_1, ASKED), ("d.apkg", 2, OF_2, 2), ("d.apkg", 2, EITHER, 2)),
        *(("d.apkg", 1, AGAIN, 1), ("collection.anki21", 1, OF_2, 2)),
        *(("Ann.anki2", wrong, EITHER, ASKED) for wrong in (0, 3, "2", 2.0, True)),
    ],
)
def test_the_version_is_told_from_the_setting_and_the_answers(
    tmp_path, name, stated, steps, version
):
    rows = [
        (START * 1000 + 60_000 * n, 5, ease, 0, 10, 0, ivl) for n, (ease, ivl) in enumerate(steps)
    ]
    path = collection(tmp_path / name, rows, settings={"schedVer": stated})
    if name.endswith("pkg"):
        package(path, collection__anki21=path.read_bytes())
    ratings = {n: read(path, scheduler=n).rating.tolist() for n in (1, 2)}
    assert ratings[1] == [ease + (ease in (2, 3)) for ease, _ in steps]
    assert ratings[2] == [ease for ease, _ in steps]
    if version is ASKED:
        with pytest.raises(ReviewLogError, match=r"data\.scheduler=1 .* or data\.scheduler=2"):
            read(path)
    else:
        log = read(path)
        assert log.rating.tolist() == ratings[version]
        assert log.notes[0].startswith(f"ratings read as those of version {version} of")


def test_only_steps_of_learning_are_renumbered_and_easy_of_anki_1_tells_nothing(tmp_path):
    kinds = [(2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (4, 1)]
    rows = [(START * 1000 + n, 5, ease, 0, 10, kind) for n, (ease, kind) in enumerate(kinds)]
    log = read(collection(tmp_path / "a.anki2", rows, settings={"schedVer": 1}))
    assert log.rating.tolist() == [3, 4, 2, 3, 3, 4]
    last_of_2014 = 1_420_070_399_000
    rows = [(last_of_2014, 5, 4, 0, 10, 0, 1), (last_of_2014 + 1, 5, 2, 0, 10, 0, 1)]
    assert read(collection(tmp_path / "b.anki2", rows)).rating.tolist() == [4, 3]
