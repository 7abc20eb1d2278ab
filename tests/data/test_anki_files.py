"""Files that are handed to `AnkiCollection`: good, odd and broken ones, made by hand."""

import json
import sqlite3
from contextlib import closing

import pytest
import zstandard
from anki_files import DAY, ROWS, START, collection, package, with_decks

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.errors import ReviewLogError


def database_bytes(tmp_path, **options):
    return collection(tmp_path / "made.anki2", **options).read_bytes()


def read(path, **options):
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


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


def test_a_user_can_be_given_another_name(tmp_path):
    path = collection(tmp_path / "collection.anki2")
    source = AnkiCollection(path, user=17)
    assert source.users() == (17,)
    assert source.read(17).user == 17
    with pytest.raises(ReviewLogError):
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
