import errno
import os
import pickle
from contextlib import nullcontext, suppress
from unittest.mock import Mock

import pytest
from cases import rest_nightly
from object_store import object_store
from pyarrow import fs

from srs_eval.errors import ConfigError, PlaceError
from srs_eval.place import Place, put_on_disk


@pytest.fixture
def store(monkeypatch):
    with object_store(monkeypatch, "bucket") as started:
        yield started


@pytest.fixture(params=rest_nightly(["path", "s3"]))
def folder(request, tmp_path):
    if request.param == "path":
        return Place.of(tmp_path / "bucket")
    request.getfixturevalue("store")
    return Place.of("s3://bucket/folder")


def test_files_are_written_whole_listed_and_read(folder):
    assert not folder.exists()
    assert folder.files(recursive=True) == []
    one = folder / "b" / "söme.name"
    one.write(b"first")
    one.write(b"second")
    (folder / "a").write(b"")
    (folder / ".hidden" / "file").write(b"")
    (entry, other) = folder.files(recursive=True)
    assert (entry.place, other.place, other.size) == (folder / "a", one, 6)
    assert [each.place for each in folder.files()] == [folder / "a"]
    assert (one.kind(), folder.kind(), one.entry()) == ("file", "folder", other)
    assert pickle.loads(pickle.dumps(one)).read() == b"second"
    with pytest.raises(FileNotFoundError), one.writing() as path:
        path.with_name("none").rename(path)
    assert one.read() == b"second"
    folder.remove()
    assert not folder.exists()


def test_a_local_file_is_the_old_one_until_the_new_one_is_whole(tmp_path):
    place = Place.of(tmp_path / "folder" / "file")
    place.write(b"old")
    with place.writing() as path:
        path.write_bytes(b"ne")
        assert path.parent == place.local.parent  # a rename does not leave a disk
        assert [entry.place for entry in place.parent.files()] == [place]
        assert place.read() == b"old"
        path.write_bytes(b"new")
    assert place.read() == b"new"
    with suppress(ZeroDivisionError), place.writing() as path:
        path.write_bytes(b"ne")
        raise ZeroDivisionError
    assert place.read() == b"new"
    assert [file.name for file in place.parent.local.iterdir()] == ["file"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, durable):
    events, replace = [], os.replace
    monkeypatch.setattr(os, "rename", Mock(side_effect=FileExistsError))  # as on Windows
    monkeypatch.setattr(os, "fsync", lambda fd: events.append(os.fstat(fd).st_ino))
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("named"), replace(*paths)))
    place = Place.of(tmp_path / "file")
    with place.writing(durable=durable) as path:
        path.write_bytes(b"whole")
    inode = place.local.stat().st_ino
    assert events == ([inode, "named"] if durable else ["named"])
    # A file system may be unable to do so for a folder, but not for a file.
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.EINVAL, "Invalid argument")))
    put_on_disk(tmp_path)
    with pytest.raises(OSError, match="Invalid"):
        put_on_disk(tmp_path / "file")


def test_parts_of_addresses_are_known_and_other_addresses_are_refused():
    for address in ("ftp://host/x", "s3:/bucket", "file:///tmp/x", "s3://key:secret@bucket/x"):
        with pytest.raises(ConfigError) as caught:
            Place.of(address)
        assert "secret" not in str(caught.value)
    azure = Place.of("abfss://logs@us.dfs.core.windows.net/a/b.parquet")
    assert (azure.path, azure.name, azure.suffix) == ("logs/a/b.parquet", "b.parquet", ".parquet")
    assert Place.of("hf://datasets/owner/name").path == "datasets/owner/name"
    with pytest.raises(ConfigError):
        _ = azure.local


class FoldersEndWithTheirFiles:
    """A store like Google's: removing a folder fails at its end, as there is none any more."""

    def __init__(self, *, stuck):
        self.files, self.stuck = ["bucket/run/part"], stuck

    def get_file_info(self, path):
        inside = any(name.startswith(path) for name in self.files)
        return fs.FileInfo(path, fs.FileType.Directory if inside else fs.FileType.NotFound)

    def delete_dir(self, path):
        self.files = self.files if self.stuck else []
        raise FileNotFoundError(2, f"no object {path}/")


@pytest.mark.parametrize("stuck", [False, True])
def test_a_folder_may_end_with_its_files(monkeypatch, stuck):
    store = FoldersEndWithTheirFiles(stuck=stuck)
    monkeypatch.setattr("srs_eval.place._filesystem", lambda *_: store)
    with pytest.raises(PlaceError) if stuck else nullcontext():
        Place.of("gs://bucket/run").remove()
    assert bool(store.files) == stuck


@pytest.mark.slow
def test_a_store_that_fails_every_tenth_request_loses_nothing_and_names_what_is_not_there(store):
    store.failing = lambda number: "" if number % 10 else "503 Slow Down"
    folder = Place.of("s3://bucket/many")
    for number in range(25):
        (folder / f"{number}").write(bytes([number]))
    assert sorted(entry.place.read() for entry in folder.files()) == [bytes([n]) for n in range(25)]
    assert store.requests > 50
    store.failing = lambda number: ""
    for address in ("s3://bucket/none", "s3://nobody/none"):
        with pytest.raises(PlaceError) as caught:
            Place.of(address).read()
        assert caught.value.address == address
    with pytest.raises(PlaceError, match="no such bucket"):
        Place.of("s3://nobody/none").write(b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "what"),
    [
        ("403 Access Denied", "permission is denied"),
        ("503 Slow Down", "the store fails"),
        ("403 Invalid Access Key Id", "credentials"),
        ("400 Expired Token", "credentials"),
        ("301 Permanent Redirect", "region"),
    ],
)
def test_errors_of_a_store_are_explained(store, failure, what, monkeypatch):
    monkeypatch.setattr("srs_eval.place._ATTEMPTS", 2)
    place = Place.of("s3://bucket/key")
    place.write(b"here")
    store.failing = lambda number: failure
    with pytest.raises(PlaceError):  # the store answers this with a number alone
        place.read()
    for use in (lambda: place.write(b"there"), Place.of("s3://bucket/a").files):
        with pytest.raises(PlaceError) as caught:
            use()
        assert what in caught.value.what, caught.value
    store.failing = lambda number: ""
    assert place.read() == b"here"
