"""Collections made to do harm, or damaged by hand: each is refused with an error that names it."""

import json
import os
import random
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from contextlib import closing

import pytest
import zstandard
from anki_files import ROWS, START, change, collection, package, with_decks
from cases import rest_nightly

from srs_eval.data import temporary, untrusted_database
from srs_eval.data.anki import package as anki_package
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.decks import preset_of_deck
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r)"
HUGE = 10**23


def read(path, **options):
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


def refusal(path, **options):
    with pytest.raises(ReviewLogError) as caught:
        read(path, **options)
    assert caught.value.source == str(path)
    assert len(str(caught.value)) < 2000
    return str(caught.value)


@pytest.mark.parametrize("table", ["revlog", "col", "cards", "decks", "notes", "config", "REVLOG"])
def test_a_view_in_the_place_of_a_table_is_refused(tmp_path, table):
    path = with_decks(collection(tmp_path / "a.anki2", table=True), kinds=[(30, b"")])
    columns = "n id, 5 cid, 3 ease, 0 ivl, 0 factor, 1 time, 0 type, n crt, '' conf"
    change(path, f"drop table {table}", f"create view {table} as {ENDLESS} select {columns} from r")
    assert "view" in refusal(path)


@pytest.mark.parametrize(
    "statement",
    [
        f"create trigger t after insert on revlog begin {'select 1;' * 2} end",
        f"create view other as {ENDLESS} select n from r, revlog",
        "create virtual table cards using rtree(id, did, odid)",
        "create virtual table other using fts4(content=revlog, id)",
    ],
    ids=["trigger", "view of a table", "virtual table", "virtual table of a table"],
)
def test_anything_but_tables_is_refused(tmp_path, statement):
    path = change(collection(tmp_path / "a.anki2"), statement)
    assert "ordinary tables only" in refusal(path)


@pytest.mark.parametrize("how", ["virtual", "stored"])
def test_computed_columns_are_refused(tmp_path, how):
    path = collection(tmp_path / "a.anki2")
    column = f"ease integer generated always as (length(hex(cid))) {how}"
    names = "id integer primary key, cid, ivl, factor, time, type"
    change(path, "drop table revlog", f"create table revlog ({names}, {column})")
    assert "computed columns: ease" in refusal(path)


@pytest.mark.parametrize(
    "definition",
    ["CREATE/**/VIEW revlog AS SELECT 1 id", "create view revlog as select 1 id"],
)
def test_a_definition_counts_and_not_what_the_schema_says_of_it(tmp_path, definition):
    path = collection(tmp_path / "a.anki2")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("drop table revlog")
        database.execute("pragma writable_schema = on")
        values = ("table", "holidays", "holidays", 0, definition)
        database.execute("insert into sqlite_master values (?, ?, ?, ?, ?)", values)
    # Newer versions of SQLite find the contradiction first.
    assert re.search("of or for revlog|malformed database schema", refusal(path))


def test_reading_ends_when_the_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted_database, "_SECONDS_AT_MOST", -1)
    rows = [(START * 1000 + k, 5, 3, 0, 1, 0) for k in range(2000)]
    assert "within -1 seconds" in refusal(collection(tmp_path / "a.anki2", rows))


def test_a_value_of_absurd_size_is_refused(tmp_path):
    path = collection(tmp_path / "a.anki2")
    size = untrusted_database._VALUE_BYTES_AT_MOST + 1
    change(path, f"update col set conf = zeroblob({size})")
    assert "too big" in refusal(path)


def test_more_rows_than_anybody_has_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("srs_eval.data.anki.database._ROWS_AT_MOST", {"revlog": 3})
    assert "4 rows, more than 3" in refusal(collection(tmp_path / "a.anki2"))


def test_numbers_of_more_than_63_bits_are_no_presets():
    assert preset_of_deck(b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01") is None
    assert preset_of_deck(b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x02") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
@pytest.mark.parametrize("ending", ["-wal", "-journal"])
@pytest.mark.parametrize("kind", ["endless link", "pipe", "folder"])
def test_what_lies_beside_must_be_a_regular_file(tmp_path, ending, kind):
    path = collection(tmp_path / "a.anki2")
    beside = tmp_path / f"a.anki2{ending}"
    if kind == "endless link":
        beside.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(beside)
    else:
        beside.mkdir()
    assert f"a.anki2{ending}" in refusal(path)


def test_what_lies_beside_counts_for_the_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(anki_package, "_BYTES_AT_MOST", 100_000)
    path = collection(tmp_path / "a.anki2")
    assert len(read(path)) == 4
    (tmp_path / "a.anki2-wal").write_bytes(bytes(100_000))
    assert "with the changes beside it" in refusal(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_pipe_socket_or_device_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.anki2")
    assert "not a regular file" in refusal(tmp_path / "pipe.anki2")
    with pytest.raises(ReviewLogError, match="not a regular file"):
        ReviewTable(tmp_path / "pipe.anki2").users()
    (tmp_path / "link.anki2").symlink_to("/dev/zero")
    assert "not a regular file" in refusal(tmp_path / "link.anki2")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s.anki2"))
        assert "not a regular file" in refusal(tmp_path / "s.anki2")


def test_equal_ids_of_a_table_without_a_key_are_refused(tmp_path):
    path = collection(tmp_path / "a.anki2", [*ROWS, ROWS[1]], key="id integer")
    assert f"1 rows of revlog have the id of another row, the first {ROWS[1][0]}" in refusal(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rollover", -1_000_000),
        ("rollover", 24),
        ("rollover", 4.0),
        ("rollover", True),
        ("rollover", HUGE),
        ("creationOffset", 841),
        ("creationOffset", "60"),
        ("localOffset", -100_000),
        ("localOffset", [1]),
    ],
)
@pytest.mark.parametrize("table", [False, True])
def test_impossible_settings_are_refused_unless_others_are_given(tmp_path, name, value, table):
    settings = {"schedVer": 2, "creationOffset": 0, name: value}
    path = collection(tmp_path / "a.anki2", settings=settings, table=table)
    assert f"setting {name}" in refusal(path)
    assert len(read(path, rollover_hour=4, utc_offset_minutes=0)) == 4


@pytest.mark.parametrize("created", [-5, 10**15, 2**62])
def test_an_impossible_creation_stamp_is_refused_where_days_depend_on_it(tmp_path, created):
    path = collection(tmp_path / "a.anki2", created=created)
    assert "creation stamp" in refusal(path)
    assert len(read(path, rollover_hour=4, utc_offset_minutes=0)) == 4


@pytest.mark.parametrize("where", ["conf", "config", "decks"])
@pytest.mark.parametrize("content", ["[" * 50_000, '{"a":' * 50_000, "[1]", "7", "null", '{"'])
def test_json_that_is_no_object_or_too_deep_is_refused(tmp_path, where, content):
    path = with_decks(collection(tmp_path / "a.anki2", table=where == "config"), texts="{}")
    if where == "config":
        change(path, f"insert into config values ('rollover', '{content}')")
        if content == "null":
            assert len(read(path)) == 4  # no setting
        elif content == "7":
            assert len(read(path)) == 4  # a setting
        elif content == "[1]":
            assert len(read(path)) == 4  # not used by version 1
        else:
            assert "settings cannot be read" in refusal(path)
    else:
        change(path, f"update col set {where} = '{content}'")
        assert "cannot be read" in refusal(path)


@pytest.mark.parametrize("value", ["null", "'text'", "x'00'", "9e999", "1e30", "1.5"])
@pytest.mark.parametrize("column", ["id", "did", "odid"])
def test_cards_need_whole_numbers(tmp_path, column, value):
    path = with_decks(collection(tmp_path / "a.anki2"))
    change(path, f"update cards set {column} = {value} where id = 5")
    assert f"1 row of cards has no whole number as {column}" in refusal(path)


@pytest.mark.parametrize("value", ["null", "'text'", "5", "1.5"])
def test_options_of_decks_need_bytes(tmp_path, value):
    path = with_decks(collection(tmp_path / "a.anki2"), kinds=[(30, b"\x0a\x02\x08\x02")])
    change(path, f"update decks set kind = {value}")
    assert "no bytes as kind" in refusal(path)
    change(path, "update decks set kind = x'0a020802', id = null")
    assert "no whole number as id" in refusal(path)


@pytest.mark.parametrize("table", ["cards", "decks"])
def test_ids_that_occur_twice_are_refused(tmp_path, table):
    path = with_decks(collection(tmp_path / "a.anki2"), kinds=[(30, b"")])
    change(path, f"insert into {table} select * from {table}")
    assert f"occurs twice in its table {table}" in refusal(path)


@pytest.mark.parametrize("preset", [HUGE, float("inf"), float("nan"), "1e9", [1], None, 1.5, -HUGE])
def test_presets_need_whole_numbers(tmp_path, preset):
    path = with_decks(collection(tmp_path / "a.anki2"), texts=json.dumps({"30": {"conf": preset}}))
    assert "no whole number" in refusal(path)
    path = with_decks(collection(tmp_path / "b.anki2"), texts=json.dumps({HUGE: {"conf": 1}}))
    assert "64 bits" in refusal(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("factor", value) for value in ("null", "'much'", "-1e12", "1e300")),
        *(("time", value) for value in ("1e308", "9e999", "null", "4e12", "9223372036854775807")),
        *(("cid", value) for value in ("0", "x'05'", "1.5")),
        *(("ease", value) for value in ("-1", "5", "'3'", "9223372036854775807")),
        *(("type", value) for value in ("-1", "6", "null")),
        *(("id", value) for value in ("9223372036854775807", "-9223372036854775808")),
    ],
)  # fmt: skip
def test_odd_values_are_refused_or_dropped_and_counted(tmp_path, column, value):
    path = collection(tmp_path / "a.anki2")
    change(path, f"update revlog set {column} = {value} where id = {ROWS[1][0]}")
    assert f"revlog.{column}" in refusal(path)
    assert read(path, invalid_rows="drop").left_out == {"invalid values": 1}


def test_long_values_are_not_quoted_whole(tmp_path):
    path = collection(tmp_path / "a.anki2")
    change(path, "update revlog set ease = zeroblob(1000000)")
    assert "revlog.ease" in refusal(path)


class TestTemporaryFolders:
    """Copies are removed, also those of killed processes, and nothing else is."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        folder = tmp_path / "temporary"
        folder.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        return folder

    def left_behind(self, folder, name="srs_eval_copy_abcd1234"):
        (folder / name).mkdir()
        (folder / name / "collection.anki2").write_bytes(b"content")
        return folder / name

    @pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
    def test_copies_of_killed_processes_are_removed_at_the_next_start(self, folder, tmp_path):
        self.left_behind(folder)
        assert len(read(collection(tmp_path / "a.anki2"))) == 4
        assert list(folder.iterdir()) == []

    @pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
    def test_the_copy_of_another_process_stays_until_it_is_killed(self, folder):
        code = (
            "import sys, time, tempfile; from srs_eval.data.temporary import temporary_folder\n"
            f"tempfile.tempdir = {str(folder)!r}\n"
            "with temporary_folder() as used:\n"
            "    (used / 'collection.anki2').write_bytes(b'content')\n"
            "    print('ready', flush=True); time.sleep(600)"
        )
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            temporary.remove_leftovers()
            assert len(list(folder.iterdir())) == 1
            process.kill()
        assert len(list(folder.iterdir())) == 1
        temporary.remove_leftovers()
        assert list(folder.iterdir()) == []

    @pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
    def test_a_folder_in_use_stays(self, folder):
        with temporary.temporary_folder() as used:
            (used / "collection.anki2").write_bytes(b"content")
            temporary.remove_leftovers()
            assert list(used.iterdir())
            assert used.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []

    def test_a_new_folder_that_is_not_locked_yet_stays(self, folder):
        new = folder / "srs_eval_copy_abcd1234"
        new.mkdir()
        temporary.remove_leftovers()
        assert new.is_dir()

    def test_what_only_looks_alike_stays(self, folder, tmp_path):
        victim = tmp_path / "victim"
        victim.mkdir()
        (victim / "precious").write_bytes(b"content")
        (folder / "srs_eval_copy_link1234").symlink_to(victim)
        (folder / "srs_eval_copy_file1234").write_bytes(b"content")
        for name in (
            "srs_eval_copy_",
            "srs_eval_copy_ABCD1234",
            "srs_eval_copy_abcd12345",
            "other",
        ):
            self.left_behind(folder, name)
        before = sorted(path.name for path in folder.rglob("*"))
        temporary.remove_leftovers()
        assert sorted(path.name for path in folder.rglob("*")) == before
        assert (victim / "precious").is_file()

    @pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
    def test_links_inside_a_leftover_are_not_followed(self, folder, tmp_path):
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious" / "file").write_bytes(b"content")
        left = self.left_behind(folder)
        (left / "link").symlink_to(tmp_path / "precious")
        temporary.remove_leftovers()
        assert not left.exists()
        assert (tmp_path / "precious" / "file").is_file()

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no user numbers")
    def test_a_folder_of_another_user_stays(self, folder, monkeypatch):
        left = self.left_behind(folder)
        monkeypatch.setattr("os.geteuid", lambda: left.stat().st_uid + 1)
        temporary.remove_leftovers()
        assert left.is_dir()

    def test_only_so_many_are_removed_at_once(self, folder, monkeypatch):
        monkeypatch.setattr(temporary, "_REMOVED_AT_MOST", 2)
        for number in range(5):
            self.left_behind(folder, f"srs_eval_copy_abcd123{number}")
        temporary.remove_leftovers()
        assert len(list(folder.iterdir())) >= 3

    def test_a_refused_file_leaves_nothing(self, folder, tmp_path):
        refusal(change(collection(tmp_path / "a.anki2"), "drop table col"))
        assert list(folder.iterdir()) == []


def mutated(content, generator):
    """Overwrite, cut, repeat or insert a few places."""
    content = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 5, 40))):
        place = generator.randrange(len(content))
        kind = generator.randrange(6)
        if kind == 0:
            content[place] ^= 1 << generator.randrange(8)
        elif kind == 1:
            content[place : place + 4] = generator.choice(
                (b"\xff\xff\xff\xff", b"\0\0\0\0", struct.pack(">I", generator.randrange(2**32)))
            )
        elif kind == 2:
            content[place : place + 8] = generator.randbytes(8)
        elif kind == 3:
            length = generator.randrange(1, 600)
            other = generator.randrange(len(content))
            content[place : place + length] = content[other : other + length]
        elif kind == 4 and len(content) > 200:
            del content[place : place + generator.randrange(1, 100)]
        else:
            content[place:place] = generator.randbytes(generator.randrange(1, 20))
    return bytes(content)


def samples(tmp_path):
    """Collections and packages of every layout, small enough to be hit everywhere."""
    rows = [(row[0] + 50 * k, row[1] + k, *row[2:], -60) for row in ROWS for k in range(40)]
    settings = {"schedVer": 2, "creationOffset": -60, "rollover": 3}
    options = {"rows": rows, "settings": settings}
    old = with_decks(collection(tmp_path / "old", **options), texts='{"30": {"conf": 2}}')
    kinds = [(30, b"\x0a\x02\x08\x02"), (1, b"\x12\x00")]
    new = with_decks(collection(tmp_path / "new", table=True, **options), kinds=kinds)
    packed = zstandard.ZstdCompressor().compress(new.read_bytes())
    older = package(tmp_path / "p1", collection__anki21=old.read_bytes())
    newer = package(tmp_path / "p2", meta=b"\x08\x03", collection__anki21b=packed)
    return {
        "a.anki2": old.read_bytes(),
        "b.anki2": new.read_bytes(),
        "c.apkg": older.read_bytes(),
        "d.colpkg": newer.read_bytes(),
    }


def outcome(path, invalid_rows):
    """Return whether a file was read or refused; anything else is an error of the reader."""
    try:
        return "read" if len(read(path, invalid_rows=invalid_rows)) else "empty"
    except ReviewLogError as error:
        return "refused" if error.source == str(path) else "not named"


@pytest.mark.parametrize("seed", rest_nightly(range(4)))
def test_mutated_files_are_read_or_refused(tmp_path, seed):
    generator = random.Random(seed)
    originals = samples(tmp_path)
    outcomes = Counter()
    for number in range(100):
        name, content = generator.choice(sorted(originals.items()))
        if name == "c.apkg" and number % 2:  # inside the package, past the check sums
            with zipfile.ZipFile(tmp_path / "p1") as zipped:
                inner = mutated(zipped.read("collection.anki21"), generator)
            path = package(tmp_path / name, collection__anki21=inner)
        else:
            path = tmp_path / name
            path.write_bytes(mutated(content, generator))
        before = path.read_bytes()
        outcomes[outcome(path, generator.choice(("error", "drop")))] += 1
        assert path.read_bytes() == before
    assert outcomes.keys() == {"read", "refused"}
