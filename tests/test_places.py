"""Addresses of files and folders, on this machine and in object stores."""

import pickle

import pytest
from cases import rest_nightly
from object_store import object_store

from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.places import Place, explained


@pytest.fixture
def store(monkeypatch):
    with object_store(monkeypatch, "bucket") as started:
        yield started


@pytest.fixture(params=rest_nightly(["path", "s3"]))
def folder(request, tmp_path):
    if request.param == "path":
        return Place.of(tmp_path / "bucket")
    request.getfixturevalue("store")
    return Place.of("s3://bucket/places")


def write(place, content):
    with place.writing() as file:
        file.write(content)


def test_files_are_written_listed_and_read(folder):
    assert (folder.kind(), folder.files(recursive=True), folder.folders()) == ("", [], [])
    one = folder / "b" / "söme [n]#1.name"
    for place, content in ((one, b"first"), (one, b"second"), (folder / "a", b"")):
        write(place, content)
    write(folder / ".hidden" / "file", b"")
    assert folder.files() == [folder / "a"]
    assert folder.files(recursive=True) == [folder / "a", one]
    assert folder.folders() == [folder / "b"]
    assert (one.kind(), folder.kind(), one.parent.parent) == ("file", "folder", folder)
    with pickle.loads(pickle.dumps(one)).reading() as file:
        assert file.read() == b"second"
    with pytest.raises(ReviewLogError) as caught, (folder / "none").reading():
        pass
    assert str(caught.value).startswith(f"{folder / 'none'}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["ftp://host/x", "s3:/bucket", "s3://", "s3://key:secret@bucket/x"]
)
def test_other_addresses_are_refused_without_their_passwords(address):
    with pytest.raises(ConfigError) as caught:
        Place.of(address)
    assert "secret" not in str(caught.value)


def test_parts_of_addresses_are_known(monkeypatch, tmp_path):
    azure = Place.of("abfss://logs@us.dfs.core.windows.net/a/b.Parquet")
    assert (azure.path, azure.name, azure.suffix) == ("logs/a/b.Parquet", "b.Parquet", ".parquet")
    assert Place.of("hf://datasets/owner/name/").path == "datasets/owner/name"
    assert Place.of(tmp_path.as_uri()) == Place.of(tmp_path)
    assert not any(Place.of(path).is_remote for path in ("runs/s3", "C:/runs"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Place.of("~/logs").local == tmp_path / "logs"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionError(13, "Failed to open 'x'. Detail: [errno 13]"), "Permission denied"),
        (OSError("AWS Error ACCESS_DENIED during HeadObject\nRequest ID"), "AWS Error ACCESS_DEN"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_errors_of_libraries_are_let_through_in_one_line(error, text):
    with pytest.raises(ReviewLogError) as caught, explained(Place.of("s3://bucket/key")):
        raise error
    assert str(caught.value).startswith(f"s3://bucket/key: {text}")
    assert "\n" not in str(caught.value)
