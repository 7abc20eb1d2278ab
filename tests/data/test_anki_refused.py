"""Collections made to do harm, or damaged: each is refused with an error that names it."""

import os
import random
import re
import socket
import zipfile
from collections import defaultdict

import pytest
import zstandard
from anki_files import ROWS, collection, opened, package, read, with_decks
from judging import judged
from logs import anki_log

from srs_eval.data.anki import database
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

# Reasons in the words of SQLite, zip, zstandard, JSON and Python.
NOT_OURS = r"(cannot be read: |damaged \(|unpacked \()(?!its |it |rows of|packages |neither ).*"


def refusal(path, **options):
    with pytest.raises(ReviewLogError) as caught:
        read(path, **options)
    assert caught.value.source == str(path)
    assert len(str(caught.value)) < 2000
    return caught.value


def in_our_words(error):
    return re.sub(NOT_OURS, r"\1…", str(error).replace(error.source, "…"))


def sound(path, script=""):
    """Write a collection that can be read, and change it."""
    path.unlink(missing_ok=True)
    with_decks(collection(path, table=True), [(30, b"\x0a\x02\x08\x02")])
    with opened(path) as changed:
        changed.executescript(script)
    return path


@pytest.fixture
def packed(tmp_path):
    """A collection in bytes, and compressed."""
    rows = [(row[0] + k, *row[1:]) for row in ROWS for k in range(300)]
    plain = collection(tmp_path / "made", rows).read_bytes()
    return plain, zstandard.ZstdCompressor().compress(plain)


def odd_files(folder, plain, compressed):
    """Write files and packages that are no collections, each with the name of what is wrong."""
    packages = {
        "no collection": {"meta": b"\x08\x02", "collection": plain},
        "no database": {"collection__anki21": b"nothing"},
        "later version": {"meta": b"\x08\x04", "collection__anki21b": compressed},
        "sound": {"collection__anki21": plain},
        "stream cut": {"collection__anki21b": compressed[: len(compressed) // 2]},
    }
    for name, members in packages.items():
        package(folder / name, **members)
    whole = (folder / "sound").read_bytes()
    (folder / "sound").unlink()
    encrypted = bytearray(whole)
    encrypted[6] = encrypted[whole.rindex(b"PK\x01\x02") + 8] = 1
    contents = {
        "empty": b"",
        "web page": b"\n<!DOCTYPE html><html><body>Sign in</body></html>",
        "header of a database": b"SQLite format 3\x00" + bytes(3000),
        "header of a package": b"PK\x03\x04",
        "header of a stream": b"\x28\xb5\x2f\xfd" + b"nonsense",
        "names in the schema": plain.replace(b"CREATE TABLE notes", b"CREA\xd7E TABLE notes"),
        "package overwritten": whole[:200] + bytes(20) + whole[220:],
        "package encrypted": bytes(encrypted),
    }
    contents |= {f"package cut at {k} ‰": whole[: len(whole) * k // 1000] for k in (100, 999)}
    for k in (3, 5, 8):
        page = len(plain) * k // 10 // 4096 * 4096
        overwritten = plain[:page] + b"\xa5" * 4096 + plain[page + 4096 :]
        contents[f"page overwritten at {k}0 %"] = overwritten
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    collection(folder / "no reviews", [])
    rows = [(ROWS[0][0], 5, 0, 2500, 0, 4), (ROWS[1][0], 5, 3, 2500, 900, 1)]
    collection(folder / "no learning", rows)
    (folder / "folder").mkdir()
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("anki_databases", {}),
        ("anki_odd_values", {"invalid_rows": "drop"}),
        ("anki_settings", {"rollover_hour": 4, "utc_offset_minutes": 0}),
    ],
)
def test_a_changed_collection_is_refused_unless_options_allow_it(
    tmp_path, transcript, name, options
):
    def told_by(*words):
        path = sound(tmp_path / "a.anki2", " ".join(words))
        error = refusal(path)
        told = [in_our_words(error).partition("\n")[0]]
        for found in error.violations:
            assert len(found) < 300
            told += [", ".join([found.kind, found.column, *found.rows])] if found.column else []
        if options:
            log = read(path, **options)
            told.append(f"with {options}: {len(log)} reviews, left out {log.left_out}")
        # The clock goes on.
        return re.sub(r"\b1[789]\d{11}\b", "(a later time)", "\n".join([*told, ""]))

    transcript(name, told_by)


OTHER = "alter table revlog rename to other; create view revlog as select"
# Forged in the schema, with and without a page of their own
FORGED = """
    drop table revlog; pragma writable_schema = on;
    insert into sqlite_master values ('table', 'holidays', 'holidays', {}, '{} VIEW revlog AS
    SELECT 1 id, 5 cid')
"""


@pytest.mark.parametrize(
    "script",
    [
        f"{OTHER} 1 id, 5 cid",
        f"{OTHER} * from other",
        f"{OTHER} one.* from other one join other two using (id)",
        f"{OTHER} n id from (select 1 n)",
        "drop table revlog; create virtual table revlog using fts4(id, cid, ease, factor)",
        "drop table revlog; create virtual table revlog using rtree(id, cid, ease)",
        *(FORGED.format(page, create) for page in (0, 2) for create in ("CREATE/**/", "create")),
    ],
)
def test_reviews_that_are_no_ordinary_table_are_refused(tmp_path, script):
    refusal(sound(tmp_path / "a.anki2", script))


def test_what_is_no_collection_is_refused(tmp_path, packed, golden_text):
    folder = tmp_path / "files"
    folder.mkdir()
    said = defaultdict(list)
    for path in odd_files(folder, *packed):
        said[in_our_words(refusal(path))].append(path.name)
    golden_text("anki_refusals", "\n".join(f"# {each}\n{text}\n" for text, each in said.items()))
    assert "no such file" in str(refusal(folder / "nowhere" / "x.colpkg"))


def test_a_sound_collection_is_read_and_so_are_settings_that_do_not_matter(tmp_path):
    others = "create view other as select * from revlog;"
    others += "create trigger t after insert on revlog begin select 1; end"
    assert len(read(sound(tmp_path / "a.anki2", others))) == 4
    for content in ("null", "7", "[1]"):  # none, used, and not used by version 1
        setting = f"insert into config values ('rollover', '{content}')"
        assert len(read(sound(tmp_path / "a.anki2", setting))) == 4


def test_what_is_larger_or_takes_longer_than_any_collection_is_refused(tmp_path, monkeypatch):
    rows = [(row[0] + k, *row[1:]) for row in ROWS for k in range(500)]
    path = collection(tmp_path / "a.anki2", rows)
    monkeypatch.setattr(database, "_ROWS_AT_MOST", 2000)
    assert len(read(path)) == 2000
    monkeypatch.setattr(database, "_ROWS_AT_MOST", 1999)
    assert "more than 1,999 rows" in str(refusal(path))
    monkeypatch.undo()
    monkeypatch.setattr(database, "_BYTES_AT_MOST", 3 * 2**20)
    zeros = b"SQLite format 3\0" + bytes(8 * 2**20)
    huge = {"collection__anki21b": zstandard.ZstdCompressor().compress(zeros)}
    for n, content in enumerate((huge, {"collection__anki21": zeros})):
        assert "more than" in str(refusal(package(tmp_path / f"{n}.apkg", **content)))
    (tmp_path / "a.anki2-wal").write_bytes(zeros)
    assert "more than" in str(refusal(path))
    (tmp_path / "a.anki2-wal").unlink()
    monkeypatch.setattr(database, "_SECONDS_AT_MOST", -1)
    assert "within -1 seconds" in str(refusal(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_collection_and_what_lies_beside_it_must_be_regular_files(tmp_path):
    kinds = {
        "link": lambda path: path.symlink_to("/dev/zero"),
        "pipe": os.mkfifo,
        "folder": lambda path: path.mkdir(),
    }
    for kind, make in kinds.items():
        for ending in ("-wal", "-journal"):
            path = collection(tmp_path / f"{kind}{ending}.anki2")
            beside = path.with_name(path.name + ending)
            make(beside)
            assert beside.name in str(refusal(path))
        make(tmp_path / f"{kind}.anki2")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket.anki2"))
        for name in ("pipe", "link", "socket"):
            assert "not a regular file" in str(refusal(tmp_path / f"{name}.anki2"))
    with pytest.raises(ReviewLogError, match="not a regular file"):
        ReviewTable(tmp_path / "pipe.anki2").users()


def test_files_that_keep_changing_are_reported(tmp_path, monkeypatch):
    path, stamps = collection(tmp_path / "a.anki2"), iter(range(100))
    assert "data.utc_offset_minutes" in str(refusal(path, rollover_hour=4))
    monkeypatch.setattr(database, "_stamps", lambda *_: {"": (next(stamps), 0)})
    assert "was changed meanwhile" in str(refusal(path))


def test_only_the_collection_is_taken_out_of_a_package_and_nothing_stays(
    tmp_path, monkeypatch, packed
):
    folder, path = tmp_path / "temporary", tmp_path / "evil.apkg"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    names = ("../../escaped.txt", "/escaped.txt", "collection.anki2")
    with zipfile.ZipFile(path, "w") as zipped:
        for name, content in zip(names, ("outside", "outside", packed[0]), strict=True):
            zipped.writestr(name, content)
    with database.open_collection(path):
        (copy,) = folder.iterdir()
        assert [entry.name for entry in copy.iterdir()] == ["collection.anki2"]
    assert len(read(path, scheduler=1)) == 1200
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
