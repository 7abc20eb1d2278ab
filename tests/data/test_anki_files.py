"""Files made by hand for `AnkiCollection`: packing, days, decks, the scheduler, damage and harm."""

import json
import os
import random
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pytest
import zstandard
from anki_files import DAY, ROWS, START, change, collection, field, number, opened, package, read
from judging import judged
from logs import anki_log

from srs_eval.data.anki import database
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.groups import preset_of_deck
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError
from srs_eval.protocol.candidates import in_seconds


def refusal(path, **options):
    with pytest.raises(ReviewLogError) as caught:
        read(path, **options)
    assert caught.value.source == str(path)
    assert len(str(caught.value)) < 2000
    return caught.value


def test_a_collection_becomes_the_review_log_of_its_one_user(tmp_path):
    numbers = [2**62, 2**62 + 1, 2**63 - 1, 2**62]  # cards with large numbers stay apart
    pairs = enumerate(zip(ROWS, numbers, strict=True))
    rows = [(row[0], card, *row[2:5], n // 3) for n, (row, card) in pairs]
    path = collection(tmp_path / "Ann.anki2", rows)
    source, named = AnkiCollection(str(path)), AnkiCollection(path, user=17)
    assert (source.name, source.location) == ("Ann.anki2", str(path))
    assert (source.users(), named.users()) == (("Ann",), (17,))
    log = source.read("Ann")
    assert (log.user, named.read(17).user) == ("Ann", 17)
    assert log.card.tolist() == numbers
    assert log.elapsed_seconds.tolist() == [-1, -1, -1, 11 * DAY]
    with pytest.raises(ReviewLogError, match="there is no user Ann"):
        named.read("Ann")


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


@pytest.mark.parametrize(
    ("settings", "options", "hour"),
    [
        # version 1 counts from the creation stamp, 2:00
        ({}, {"scheduler": 1}, 2),
        ({"schedVer": 1, "rollover": 9, "creationOffset": 0}, {}, 2),
        ({"schedVer": 2, "creationOffset": 0}, {"scheduler": 1}, 2),
        # later versions begin at the rollover hour, of a zone in minutes west of UTC
        ({"schedVer": 2, "creationOffset": 0}, {}, 4),
        ({"schedVer": 2, "creationOffset": 0, "rollover": 3}, {}, 3),
        ({"schedVer": 2, "creationOffset": -60, "rollover": 3}, {}, 2),
        ({"schedVer": 2, "creationOffset": 0, "localOffset": -120}, {}, 2),
        ({"schedVer": 2, "rollover": -2, "localOffset": -330}, {}, 16.5),
        ({"schedVer": 2, "rollover": 4}, {}, 2),
        ({"schedVer": 2, "rollover": 3}, {"utc_offset_minutes": 60}, 2),
        ({"schedVer": 2, "creationOffset": 0}, {"rollover_hour": 2}, 2),
        ({"localOffset": -330}, {"rollover_hour": 5, "utc_offset_minutes": 0}, 5),
    ],
)
@pytest.mark.parametrize("table", [False, True])
def test_days_begin_where_the_collection_says(tmp_path, settings, options, hour, table):
    path = collection(tmp_path / "a.anki2", settings=settings, table=table)
    log = AnkiCollection(path, **options).read_with_table("a")
    assert log.start == hour * 3600
    days = [(row[0] // 1000 - log.start) // DAY for row in ROWS]
    assert log.reviews.day.tolist() == [day - days[0] for day in days]


def test_a_day_ends_a_millisecond_before_the_next(tmp_path):
    next_day = 1000 * (START + 2 * 3600)
    rows = [(next_day - 1, 5, 3, 0, 1, 0), (next_day, 5, 3, 0, 1, 0)]
    path = collection(tmp_path / "a.anki2", rows, settings={"schedVer": 2, "creationOffset": 0})
    assert read(path).day.tolist() == [0, 1]


def test_an_hour_without_a_time_zone_is_refused(tmp_path):
    error = refusal(collection(tmp_path / "a.anki2"), rollover_hour=4)
    assert "data.utc_offset_minutes" in error.hint


def test_the_newest_collection_of_a_package_is_read_whatever_its_name(tmp_path):
    plain = collection(tmp_path / "made.anki2", settings={"schedVer": 2}).read_bytes()
    # As Anki writes it: a stream that does not declare how long its content is.
    compressed = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    oldest = {"collection__anki2": plain}
    old = {"collection__anki2": b"never looked at", "collection__anki21": plain}
    new = {**old, "collection__anki21": b"nor this", "collection__anki21b": compressed}
    for name, members in {"wrongly-named.txt": oldest, "a.colpkg": old, "b.colpkg": new}.items():
        assert len(read(package(tmp_path / name, **members))) == 4, name
    (tmp_path / "collection.anki21b").write_bytes(compressed)
    assert len(read(tmp_path / "collection.anki21b")) == 4


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


def test_what_cannot_be_read_of_decks_and_note_types_is_not_known(tmp_path):
    decks = {"1": {"name": "a", "conf": 3}, "2": {"conf": 1.5}, "9" * 19: {"name": "z"}, "4": 4}
    objects = {"models": {"70": {"name": "Basic"}, "7": [], "8": {}, "x": {}}, "decks": decks}
    path = change(
        collection(tmp_path / "a.anki2"),
        *(f"alter table col add column {name}" for name in objects),
        *(f"update col set {name} = '{json.dumps(each)}'" for name, each in objects.items()),
        "create table cards (id integer primary key, did, odid, nid)",
        "insert into cards values (5, 1, 0, 1), (9, 2, 0, 2)",
        *("drop table notes", "create table notes (id, mid)", "insert into notes values (1, 70)"),
    )
    log = read(path)
    assert log.titles == {"deck": {1: "a"}, "preset": {}, "note_type": {70: "Basic"}}
    groups = (log.deck, log.preset, log.note, log.note_type)
    assert [{*each} for each in groups] == [{1}, {3}, {1}, {70}]
    log = read(change(path, "update cards set did = 2, nid = 2"))
    assert ({*log.deck}, log.preset, {*log.note}, log.note_type) == ({2}, None, {2}, None)


def test_the_preset_of_a_normal_deck_is_found_or_not_known():
    others = b"\x49" + bytes(8) + b"\x45" + bytes(4) + field(7, b"text") + b"\x30\x01"
    for preset in (1, 128, 2**63 - 1):
        assert preset_of_deck(field(1, others + b"\x08" + number(preset) + others)) == preset
    filtered, too_large = field(2, b"\x08\x05"), field(1, b"\x08" + number(2**63))
    for kind in (b"", None, "text", b"\xff", b"\x0b\x00", field(1, b"\x08"), filtered, too_large):
        assert preset_of_deck(kind) == -1


# (ease, ivl) of the learning steps of one card: seconds are negative, days positive.
NO_EASY, WITH_EASY = [(1, -60), (2, -600), (3, 1)], [(3, -600), (2, -300), (4, 4)]
AGAIN, EASY = [(1, -60)] * 3, [(4, 1)]
ASKED = None


@pytest.mark.parametrize(
    ("name", "said", "steps", "version"),
    [
        *(("Ann.anki2", stated, NO_EASY, stated) for stated in (1, 2)),
        *(("Ann.anki2", 1, WITH_EASY, ASKED), ("Ann.anki2", 1, EASY, 1)),
        *(("Ann.anki2", 2, WITH_EASY, 2), ("c.colpkg", 1, NO_EASY, 1)),
        *(("c.colpkg", 2, NO_EASY, 2), ("c.colpkg", 1, WITH_EASY, ASKED)),
        # Packages of decks have the setting of a fresh collection.
        *(("d.apkg", 1, NO_EASY, ASKED), ("d.apkg", 1, WITH_EASY, 2), ("d.apkg", 1, AGAIN, 1)),
        *(("d.apkg", 2, NO_EASY, 2), ("collection.anki21", 1, WITH_EASY, 2)),
    ],
)
def test_the_version_is_told_from_the_setting_and_the_answers(tmp_path, name, said, steps, version):
    kinds = [(n, e, 2 * (n > 1), ivl) for n, (e, ivl) in enumerate(steps)]
    rows = [(START * 1000 + 60_000 * n, 5, e, 0, 10, kind, ivl) for n, e, kind, ivl in kinds]
    path = collection(tmp_path / name, rows, settings={"schedVer": said})
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


def sound(path, script=""):
    """Write a collection that can be read, and change it."""
    with opened(collection(path, table=True)) as database:
        database.execute("create table cards (id, did, odid, nid, ord)")
        database.execute("insert into cards values (5, 30, 0, 1, 0), (6, 1, 40, 1, 1)")
        database.execute("create table decks (id, kind)")
        database.executescript(script)
    return path


# Statements that no honest program makes; each is refused by itself.
_ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r) select n"
_FORGED = "drop table revlog; pragma writable_schema = on; insert into sqlite_master values"
_COPY = "create table other as select * from revlog"
_INSTEAD = "drop table revlog; alter table other rename to revlog"
FORGED = (
    f"drop table REVLOG; create view REVLOG as {_ENDLESS} id, 5 cid, 3 ease, 0 ivl, 0 type from r",
    f"drop table col; create view col as {_ENDLESS} crt, '' conf from r",
    f"drop table cards; create view cards as {_ENDLESS} id, 5 did, 0 odid, 1 nid, 0 ord from r",
    "alter table revlog rename to other; create view revlog as select * from other",
    f"{_FORGED} ('table', 'days', 'days', 2, 'CREATE/**/ VIEW revlog AS SELECT 1 id, 5 cid')",
    f"{_FORGED} ('table', 'days', 'days', 0, 'create VIEW revlog AS SELECT 1 id, 5 cid')",
    "drop table cards; create virtual table cards using rtree(id, did, odid)",
    "create virtual table other using fts4(content=revlog, id)",
    *(
        f"alter table {table} drop column {name}; alter table {table} add column {name} as (hex(7))"
        for table, name in (("revlog", "ease"), ("col", "conf"))
    ),
    "update col set conf = zeroblob(67108865)",
    "drop table col; alter table revlog rename column ease to eaze",
    f"{_COPY}; {_INSTEAD}; update revlog set id = 'soon'",
    f"{_COPY} union all select * from revlog; {_INSTEAD}",
    "update revlog set time = null; pragma writable_schema = on; "
    "update sqlite_master set sql = replace(sql, 'time,', 'time not null,')",
    "delete from col",
    "insert into col select * from col",
    *(f"update col set conf = '{text}'" for text in ('{"schedVer', "[" * 50_000, "[1]", "7")),
    *(f"insert into config values ('rollover', {value})" for value in ("x'ff'", "null", "'24'")),
    *(f"insert into config values {row}" for row in (("localOffset", "841"), ("schedVer", "3"))),
    *(f"update cards set {change} where id = 5" for change in ("id = null", "did = 1e30")),
    "insert into cards select * from cards",
    "drop table decks; alter table col add column decks; update col set decks = '7'",
    "alter table col add column models; update col set models = '{'",
)


@pytest.mark.parametrize("script", FORGED)
def test_a_forged_collection_is_refused(tmp_path, script):
    refusal(sound(tmp_path / "a.anki2", script))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("factor", ("null", "1e300", "'x'")),
        ("cid", ("0", "zeroblob(1000000)", "1.5")),
        ("ease", ("'3'", "5", "-1", "1.5")),
        ("type", ("6", "-1", "null")),
        ("id", ("0", "1000 * (strftime('%s', 'now') + 90000)")),
    ],
)
def test_rows_with_impossible_values_are_left_out_and_counted(tmp_path, column, values):
    for n, value in enumerate(values):
        script = f"update revlog set {column} = {value} where id = {ROWS[1][0]}"
        log = read(sound(tmp_path / f"{n}.anki2", script))
        assert (len(log), log.left_out) == (3, {f"impossible value of {column}": 1}), value
    both = "update revlog set ease = 9, cid = -1"
    (found,) = refusal(sound(tmp_path / "both.anki2", both)).violations
    assert "4 impossible value of cid" in found


def test_what_is_no_collection_is_refused(tmp_path):
    rows = [(row[0] + k, *row[1:]) for row in ROWS for k in range(300)]
    plain = collection(tmp_path / "made", rows).read_bytes()
    compressed = zstandard.ZstdCompressor().compress(plain)
    whole = package(tmp_path / "sound", collection__anki21=plain).read_bytes()
    packages = (
        {"meta": b"\x08\x02", "collection": plain},  # holds no collection
        {"collection__anki21": b"nothing"},
        {"collection__anki21b": compressed[: len(compressed) // 2]},
    )
    encrypted = bytearray(whole)
    encrypted[6] = encrypted[whole.rindex(b"PK\x01\x02") + 8] = 1
    pages = [len(plain) * k // 10 // 4096 * 4096 for k in (3, 5, 8)]
    path = tmp_path / "log.anki2"
    for content in (
        *(package(tmp_path / "odd", **each).read_bytes() for each in packages),
        *(whole[: len(whole) * k // 1000] for k in (1, 100, 999)),
        *(plain[:page] + b"\xa5" * 4096 + plain[page + 4096 :] for page in pages),
        whole[:200] + bytes(20) + whole[220:],
        bytes(encrypted),
        plain.replace(b"CREATE TABLE notes", b"CREA\xd7E TABLE notes"),
        plain[:16] + bytes(3000),
        compressed[:4] + b"nonsense",
        b"\n<!DOCTYPE html><html><body>Sign in</body></html>",
        b"",
    ):
        path.write_bytes(content)
        refusal(path)
    for rows in ([], [(ROWS[0][0], 5, 0, 2500, 0, 4), (ROWS[1][0], 5, 3, 2500, 900, 1)]):
        (found,) = refusal(collection(tmp_path / f"{len(rows)} rows", rows)).violations
        assert found.kind == "empty"
    refusal(tmp_path)
    refusal(tmp_path / "nowhere" / "x.colpkg")


def test_views_and_settings_that_do_not_matter_are_taken(tmp_path):
    others = "create view other as select * from revlog;"
    others += "create trigger t after insert on revlog begin select 1; end;"
    others += "insert into config values ('rollover', 'null'), ('x', '[')"
    assert len(read(sound(tmp_path / "a.anki2", others))) == 4


def test_what_is_larger_or_takes_longer_than_any_collection_is_refused(tmp_path, monkeypatch):
    rows = [(row[0] + k, *row[1:]) for row in ROWS for k in range(500)]
    path, wal = collection(tmp_path / "a.anki2", rows), tmp_path / "a.anki2-wal"
    monkeypatch.setattr(database, "_ROWS_AT_MOST", 2000)
    assert len(read(path)) == 2000
    monkeypatch.setattr(database, "_ROWS_AT_MOST", 1999)
    assert "more than 1,999 rows" in str(refusal(path))
    monkeypatch.setattr(database, "_BYTES_OF_VALUE", 10)
    assert "too big" in str(refusal(path))
    monkeypatch.setattr(database, "_SECONDS_AT_MOST", -1)
    assert "more than -1 seconds" in str(refusal(path))
    monkeypatch.setattr(database, "_BYTES_AT_MOST", 3 * 2**20)
    zeros = bytes(8 * 2**20)
    package(tmp_path / "a.apkg", collection__anki21=zeros)
    package(tmp_path / "b.apkg", collection__anki21b=zstandard.ZstdCompressor().compress(zeros))
    wal.write_bytes(zeros)
    for file in (tmp_path / "a.apkg", tmp_path / "b.apkg", path):
        assert "GiB" in str(refusal(file))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
@pytest.mark.parametrize(
    "make", [lambda path: path.symlink_to("/dev/zero"), os.mkfifo, lambda path: path.mkdir()]
)
def test_only_regular_files_are_read(tmp_path, make):
    path = collection(tmp_path / "a.anki2")
    for suffix in ("-wal", "-journal"):
        make(path.with_name(path.name + suffix))
    assert len(read(path)) == 4
    make(tmp_path / "other.anki2")
    refusal(tmp_path / "other.anki2")
    with pytest.raises(ReviewLogError):
        ReviewTable(tmp_path / "other.anki2").users()


def test_files_that_keep_changing_are_reported(tmp_path, monkeypatch):
    path, stamps = collection(tmp_path / "a.anki2"), iter(range(100))
    monkeypatch.setattr(database, "_stamps", lambda *_: next(stamps))
    assert "was changed meanwhile" in str(refusal(path))


def test_only_the_collection_is_taken_out_of_a_package_and_nothing_stays(tmp_path, monkeypatch):
    plain = collection(tmp_path / "made").read_bytes()
    folder, path = tmp_path / "temporary", tmp_path / "evil.apkg"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    names = ("../../escaped.txt", "/escaped.txt", "collection.anki2")
    with zipfile.ZipFile(path, "w") as zipped:
        for name, content in zip(names, ("outside", "outside", plain), strict=True):
            zipped.writestr(name, content)
    with database.open_collection(path):
        (copy,) = folder.iterdir()
        assert [entry.name for entry in copy.iterdir()] == ["collection.anki2"]
    assert len(read(path, scheduler=1)) == 4
    refusal(sound(tmp_path / "a.anki2", "drop table col"))
    assert list(folder.iterdir()) == []
    assert not list(tmp_path.rglob("escaped.txt"))


def test_changed_collections_and_packages_are_read_or_refused(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    found = set()
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome, shown = judged(anki_log, random.Random(seed), folder)
        assert not shown, seed
        found.add(outcome)
    assert found == {"accepted", "clear error"}
