"""Files that are handed to `AnkiCollection`: good, odd and broken ones, made by hand."""

import json
import sqlite3
import time
import zipfile
from contextlib import closing

import pytest
import zstandard
from anki_files import DAY, ROWS, START, collection, package, with_decks

from srs_eval.data.anki import package as anki_package
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.errors import ReviewLogError


def database_bytes(tmp_path, **options):
    return collection(tmp_path / "made.anki2", **options).read_bytes()


def read(path, **options):
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


def message(path, **options):
    with pytest.raises(ReviewLogError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_a_collection_becomes_a_review_log(tmp_path):
    path = collection(tmp_path / "Ann.anki2", settings={"schedVer": 2, "creationOffset": 0})
    source = AnkiCollection(str(path))
    assert source.users() == ("Ann",)
    assert source.name == "Ann.anki2"
    assert source.location == str(path)
    reviews = source.read("Ann")
    assert reviews.user == "Ann"
    assert reviews.rating.tolist() == [3, 3, 1, 4]
    assert reviews.state.tolist() == [0, 1, 2, 2]
    assert reviews.elapsed_seconds.tolist() == [-1, 600, 30 * 3600 - 600, 11 * DAY - 30 * 3600]
    assert reviews.duration_ms.tolist() == [4000, 3000, 9000, 2000]


@pytest.mark.parametrize("table", [False, True], ids=["col.conf", "table config"])
@pytest.mark.parametrize(
    ("settings", "options", "days"),
    [
        # Version 1 counts from the creation stamp, here the very first answer.
        ({}, {}, [0, 0, 1, 11]),
        ({"schedVer": 1, "rollover": 9, "creationOffset": 0}, {}, [0, 0, 1, 11]),
        # 4:00 UTC: the first answers at 2:00 belong to the day before.
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
    ],
)  # fmt: skip
def test_days_begin_where_the_collection_says(tmp_path, settings, options, days, table):
    path = collection(tmp_path / "a.anki2", settings=settings, table=table)
    assert read(path, **options).day.tolist() == days


def test_the_three_learning_buttons_of_version_1_become_again_good_and_easy(tmp_path):
    rows = [(ROWS[0][0] + k, 5, ease, 0, 10, kind) for k, (ease, kind) in enumerate(
        [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (4, 1)]
    )]  # fmt: skip
    old = collection(tmp_path / "old.anki2", rows, settings={"schedVer": 1})
    new = collection(tmp_path / "new.anki2", rows, settings={"schedVer": 2})
    assert read(old).rating.tolist() == [1, 3, 4, 2, 3, 3, 4]
    assert read(new).rating.tolist() == [1, 2, 3, 2, 3, 2, 4]


def test_the_first_instant_of_a_day_belongs_to_it(tmp_path):
    midnight = START + 2 * 3600
    rows = [(midnight * 1000 - 1, 5, 3, 0, 1, 0), (midnight * 1000, 5, 3, 0, 1, 0)]
    path = collection(tmp_path / "a.anki2", rows, settings={"schedVer": 2, "creationOffset": 0})
    assert read(path).day.tolist() == [0, 1]


def test_an_hour_without_a_time_zone_asks_for_one(tmp_path):
    path = collection(tmp_path / "a.anki2")
    assert "data.utc_offset_minutes" in message(path, rollover_hour=4)


def test_a_setting_of_the_wrong_kind_is_named(tmp_path):
    path = collection(tmp_path / "a.anki2", settings={"schedVer": 2, "rollover": "four"})
    assert "rollover is 'four'" in message(path, utc_offset_minutes=0)


def test_settings_that_are_not_json_are_reported(tmp_path):
    path = collection(tmp_path / "a.anki2")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("update col set conf = '{\"schedVer'")
    assert "its settings cannot be read" in message(path)


def test_a_user_can_be_given_another_name(tmp_path):
    path = collection(tmp_path / "collection.anki2")
    source = AnkiCollection(path, user=17)
    assert source.users() == (17,)
    assert source.read(17).user == 17
    with pytest.raises(ReviewLogError, match="Its one user is 17"):
        source.read("collection")


@pytest.mark.parametrize("name", ["a.apkg", "a.colpkg", "wrongly-named.txt"])
def test_what_is_in_a_file_counts_and_not_its_ending(tmp_path, name):
    plain = database_bytes(tmp_path)
    assert len(read(package(tmp_path / name, collection__anki2=plain))) == 4


def test_the_newest_collection_of_a_package_is_read(tmp_path):
    plain = database_bytes(tmp_path, settings={"schedVer": 2})
    stub = b"never looked at"
    # As Anki writes it: a stream that does not declare how long its content is.
    compressed = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    old = package(tmp_path / "old.colpkg", collection__anki2=stub, collection__anki21=plain)
    new = package(
        tmp_path / "new.colpkg",
        meta=b"\x08\x03",
        collection__anki2=stub,
        collection__anki21=stub,
        collection__anki21b=compressed,
    )
    bare = tmp_path / "collection.anki21b"
    bare.write_bytes(compressed)
    assert [len(read(path)) for path in (old, new, bare)] == [4, 4, 4]


def test_only_the_collection_is_taken_out_of_a_package(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    path = tmp_path / "evil.apkg"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("../../escaped.txt", "outside")
        zipped.writestr("/escaped.txt", "outside")
        zipped.writestr("collection.anki2", database_bytes(tmp_path))
    with anki_package.collection_copy(path) as copy:
        assert [entry.name for entry in copy.database.parent.iterdir()] == ["collection.anki2"]
    assert len(read(path)) == 4
    assert list(folder.iterdir()) == []
    assert not list(tmp_path.rglob("escaped.txt"))


def test_a_package_that_unpacks_to_an_absurd_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(anki_package, "_BYTES_AT_MOST", 3 * 2**20)
    huge = zstandard.ZstdCompressor().compress(bytes(8 * 2**20))
    assert "unpacks to more than" in message(package(tmp_path / "a.apkg", collection__anki21b=huge))
    zipped = package(tmp_path / "b.apkg", collection__anki21=bytes(8 * 2**20))
    assert "unpacks to more than" in message(zipped)


def test_recent_changes_in_a_second_file_are_read_through_a_link_too(tmp_path):
    folder = tmp_path / "profile"
    folder.mkdir()
    path = collection(folder / "collection.anki2", ROWS[:2])
    link = tmp_path / "link.anki2"
    link.symlink_to(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal")
        insert = "insert into revlog (id, cid, ease, factor, time, type) values (?, ?, ?, ?, ?, ?)"
        database.executemany(insert, ROWS[2:])
        assert len(read(path)) == len(read(link)) == 4


def test_a_read_only_file_can_be_read(tmp_path):
    path = collection(tmp_path / "a.anki2")
    before = path.read_bytes(), path.stat().st_mtime_ns
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert len(read(path)) == 4
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.anki2"]
    finally:
        tmp_path.chmod(0o755)


def test_a_file_that_keeps_changing_is_not_read_half_way(tmp_path, monkeypatch):
    path = collection(tmp_path / "a.anki2")
    stamps = iter(range(100))
    changing = lambda _: {path.name: (next(stamps), 0)}  # noqa: E731
    monkeypatch.setattr(anki_package, "_stamps", changing)
    assert "was changed during each of 5 attempts" in message(path)


def test_a_missing_file_suggests_its_neighbours(tmp_path):
    collection(tmp_path / "collection.anki2")
    assert f"Did you mean {tmp_path / 'collection.anki2'}?" in message(tmp_path / "colection.anki2")
    assert "has no nowhere" in message(tmp_path / "nowhere" / "x.colpkg")


def test_a_folder_says_which_files_are_in_it(tmp_path):
    assert "no file ending in .colpkg" in message(tmp_path)
    collection(tmp_path / "collection.anki2")
    assert "holds collection.anki2" in message(tmp_path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty (0 bytes)"),
        (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page"),
        (b"id,cid,ease\n1,2,3\n", "neither an Anki package nor a collection"),
        (b"SQLite format 3\x00" + bytes(3000), "is damaged"),
        (b"PK\x03\x04", "damaged package, perhaps cut off"),
        (b"\x28\xb5\x2f\xfd" + b"nonsense", "compressed collection is damaged"),
    ],
    ids=["empty", "html", "csv", "sqlite header only", "zip header only", "zstd header only"],
)
def test_a_file_of_another_kind_is_described(tmp_path, content, expected):
    path = tmp_path / "all.colpkg"
    path.write_bytes(content)
    assert expected in message(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_package_is_reported(tmp_path, share):
    whole = package(tmp_path / "w.colpkg", collection__anki21=database_bytes(tmp_path)).read_bytes()
    path = tmp_path / "all.colpkg"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "damaged package, perhaps cut off" in message(path)


def test_a_package_with_changed_bytes_is_reported(tmp_path):
    plain = database_bytes(tmp_path)
    path = package(tmp_path / "all.colpkg", collection__anki21=plain)
    content = bytearray(path.read_bytes())
    content[200:220] = bytes(20)
    path.write_bytes(content)
    assert "damaged package" in message(path)


def test_a_truncated_stream_in_a_whole_package_is_reported(tmp_path):
    rows = [(row[0] + k, *row[1:]) for row in ROWS for k in range(900)]
    plain = database_bytes(tmp_path, rows=rows)
    compressed = zstandard.ZstdCompressor().compress(plain)
    for share in (0.3, 0.6, 0.9):
        cut = compressed[: int(len(compressed) * share)]
        path = package(tmp_path / f"{share}.colpkg", collection__anki21b=cut)
        assert "damaged" in message(path)


@pytest.mark.parametrize("where", [0.3, 0.5, 0.8])
def test_a_database_with_overwritten_pages_is_reported(tmp_path, where):
    rows = [(row[0] + k, *row[1:]) for row in ROWS for k in range(900)]
    path = collection(tmp_path / "a.anki2", rows)
    content = bytearray(path.read_bytes())
    first = int(len(content) * where) // 4096 * 4096
    content[first : first + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    text = message(path)
    assert "damaged" in text
    assert "Check Database" in text


def test_an_encrypted_package_is_reported(tmp_path):
    path = package(tmp_path / "a.apkg", collection__anki2=database_bytes(tmp_path))
    content = bytearray(path.read_bytes())
    central = content.rindex(b"PK\x01\x02")
    for flags in (6, central + 8):
        content[flags] |= 1
    path.write_bytes(content)
    assert "encrypted" in message(path)


def test_an_unknown_way_of_packing_is_reported(tmp_path):
    path = package(tmp_path / "a.apkg", collection__anki2=database_bytes(tmp_path))
    content = bytearray(path.read_bytes())
    central = content.rindex(b"PK\x01\x02")
    for method in (8, central + 10):
        content[method] = 97
    path.write_bytes(content)
    assert "packed in a way that Anki does not use" in message(path)


def test_a_package_of_a_later_version_is_reported(tmp_path):
    compressed = zstandard.ZstdCompressor().compress(database_bytes(tmp_path))
    path = package(tmp_path / "a.colpkg", meta=b"\x08\x04", collection__anki21b=compressed)
    assert "version 4" in message(path)


def test_a_database_of_another_program_is_reported(tmp_path):
    path = tmp_path / "other.anki2"
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table revlog (id, cid)")
    text = message(path)
    assert "table col" in text
    assert "column revlog.ease" in text


def test_a_review_table_without_ids_is_reported(tmp_path):
    path = collection(tmp_path / "a.anki2")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table other as select * from revlog")
        database.execute("drop table revlog")
        database.execute("alter table other rename to revlog")
        database.execute("update revlog set id = 'soon' where id > 0")
    assert "4 rows of revlog have no whole number as id" in message(path)


def test_names_and_messages_that_are_no_text_are_reported(tmp_path):
    path = collection(tmp_path / "a.anki2")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE notes", b"CREA\xd7E TABLE notes"))
    assert "damaged" in message(path)
    zipped = package(tmp_path / "a.apkg", holidays__anki2=b"sun", **{"\u00e4": b"moon"})
    zipped.write_bytes(zipped.read_bytes().replace("\u00e4".encode(), b"\xff\xff"))
    assert "damaged package" in message(zipped)


def test_a_collection_without_its_creation_is_reported(tmp_path):
    path = collection(tmp_path / "a.anki2")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("delete from col")
    assert "when it was created" in message(path)


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    path = collection(tmp_path / "a.anki2")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    text = message(path)
    assert "No space left on device" in text
    assert "TMPDIR" in text


def impossible_rows():
    late = int((time.time() + 400 * DAY) * 1000)
    return [
        (0, 5, 3, 0, 10, 0),
        (ROWS[0][0] + 1, 5, 9, 0, 10, 0),
        (ROWS[0][0] + 2, 5, "three", 0, 10, 0),
        (ROWS[0][0] + 3, 5, 3, 0, -20, 0),
        (ROWS[0][0] + 4, 5, 3, 0, 10, 7),
        (ROWS[0][0] + 5, None, 3, 0, 10, 0),
        (late, 5, 3, 0, 10, 0),
    ]


def test_impossible_values_are_all_named(tmp_path):
    text = message(collection(tmp_path / "a.anki2", [*ROWS, *impossible_rows()]))
    base = ROWS[0][0]
    for expected in [
        "revlog.id: row with id 0 has 0",
        f"revlog.ease: row with id {base + 1} has 9, row with id {base + 2} has 'three'; expected",
        f"revlog.time: row with id {base + 3} has -20",
        f"revlog.type: row with id {base + 4} has 7",
        f"revlog.cid: row with id {base + 5} has None",
        "data.invalid_rows=drop",
    ]:
        assert expected in text


def test_impossible_values_can_be_dropped_and_are_counted(tmp_path):
    path = collection(tmp_path / "a.anki2", [*ROWS, *impossible_rows()])
    reviews = read(path, invalid_rows="drop")
    assert len(reviews) == 4
    assert reviews.left_out == {"invalid values": 7}


def test_an_empty_collection_says_so(tmp_path):
    assert "Review some cards" in message(collection(tmp_path / "a.anki2", []))
    empty = collection(tmp_path / "b.anki2", []).read_bytes()
    path = package(tmp_path / "a.apkg", collection__anki21=empty)
    assert "Include scheduling information" in message(path)
    whole = package(tmp_path / "a.colpkg", collection__anki21=empty)
    assert "Include scheduling" not in message(whole), "there is no such box for collections"


def test_a_log_without_any_review_gives_the_reasons(tmp_path):
    rows = [(ROWS[0][0], 5, 0, 2500, 0, 4), (ROWS[1][0], 5, 3, 2500, 900, 1)]
    text = message(collection(tmp_path / "a.anki2", rows))
    assert "none of its 2 rows" in text
    assert "1 set by hand" in text
    assert "1 card without a learning step" in text


def test_decks_of_a_collection_are_read_from_text_or_table(tmp_path):
    text = json.dumps({"30": {"conf": 2}, "40": {"conf": 1_500_000_000_000}, "1": {"dyn": 1}})
    old = with_decks(collection(tmp_path / "old.anki2"), texts=text)
    kinds = [(30, b"\x0a\x02\x08\x02"), (1, b"\x12\x00")]
    new = with_decks(collection(tmp_path / "new.anki2"), kinds=kinds)
    for path, presets in ((old, {5: 2, 6: 1_500_000_000_000}), (new, {5: 2, 6: -1})):
        log = read(path)
        known = {5: 30, 6: 40}
        assert log.deck.tolist() == [known.get(card, -1) for card in log.card.tolist()]
        assert log.preset.tolist() == [presets.get(card, -1) for card in log.card.tolist()]


def test_a_collection_without_cards_or_decks_is_read_without_them(tmp_path):
    log = read(collection(tmp_path / "a.anki2"))
    assert log.deck is None
    assert log.preset is None
    log = read(with_decks(collection(tmp_path / "b.anki2")))
    assert log.deck is not None
    assert log.preset is None


@pytest.mark.parametrize("texts", ["{", "[1]", '{"x": {"conf": 1}}', '{"1": 7}'])
def test_decks_that_cannot_be_read_are_reported(tmp_path, texts):
    path = with_decks(collection(tmp_path / "a.anki2"), texts=texts)
    assert "its decks cannot be read" in message(path)
