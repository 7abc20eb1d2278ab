"""A private copy of an Anki collection, taken out of whatever file holds it.

The file itself is only ever read. Anki may have it open and locked, so the database is
never opened in place: SQLite would write lock and log files beside it.
"""

from __future__ import annotations

import lzma
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zstandard

from srs_eval.data.files import existing
from srs_eval.errors import ReviewLogError

# Newest first. In new packages, collection.anki2 only asks users of old versions to update.
_MEMBERS = ("collection.anki21b", "collection.anki21", "collection.anki2")
_NEWEST_PACKAGE_VERSION = 3
_BYTES_AT_MOST = 4 * 2**30  # Far more than any real collection has
_CHUNK = 2**20
_COPY_ATTEMPTS = 5
_LOGS = ("", "-wal", "-journal")  # What SQLite keeps beside a database
_SQLITE = b"SQLite format 3\x00"

_EXPORT_AGAIN = (
    "Check that you may read it and that there is room for a copy (TMPDIR sets where), or export "
    "it again in Anki: File > Export, then 'Anki Collection Package (.colpkg)', or 'Anki Deck "
    "Package (.apkg)' with 'Include scheduling information'."
)
_DAMAGED = (
    *(OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError),
    ValueError,  # ours, and those to which broken names and sizes in a zip's directory lead
    RuntimeError,  # of encrypted members, and of packing that Python does not know
)


@contextmanager
def collection_copy(path: Path) -> Iterator[tuple[Path, bool]]:
    """Copy or unpack a collection into a temporary folder that is removed afterwards.

    `path` is a collection (``.anki2``, ``.anki21``, ``.anki21b``) or package (``.apkg``,
    ``.colpkg``). What counts is what is in the file, not how its name ends. Returns the database,
    and whether it was in a package.
    """
    if existing(path).local.is_dir():
        hint = f"Name a file in it, such as {path / 'collection.anki2'}."
        raise ReviewLogError(str(path), ["is a folder, not an Anki file"], hint)
    with tempfile.TemporaryDirectory(prefix="srs_eval_copy_") as folder:
        copy = Path(folder, "collection.anki2")
        try:
            # Beside the file a link points to, because that is where SQLite keeps its logs.
            is_package = _take_out(path.resolve(), copy)
        except _DAMAGED as error:
            what = f"cannot be unpacked ({str(error).rstrip('.')})"
            raise ReviewLogError(str(path), [what], _EXPORT_AGAIN) from error
        yield copy, is_package


def _take_out(path: Path, copy: Path) -> bool:
    """Write the collection in a file, the newest of a package; return whether it is a package."""
    with path.open("rb") as file:
        start = file.read(len(_SQLITE))
        file.seek(0)
        if start.startswith(b"PK"):
            with zipfile.ZipFile(file) as package, package.open(_member(package)) as content:
                _write(content, copy, is_compressed=content.name == _MEMBERS[0])
        elif start.startswith(b"\x28\xb5\x2f\xfd"):
            _write(file, copy, is_compressed=True)
        elif start == _SQLITE:
            _copy_with_logs(path, copy)
        else:
            begin = f"begins with {start[:8]!r}" if start else "is empty"
            raise ValueError(f"it is neither an Anki package nor a collection: it {begin}")
    with copy.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            raise ValueError("it holds no database")
    return start.startswith(b"PK")


def _member(package: zipfile.ZipFile) -> str:
    """Return the name of the newest collection in a package."""
    names = package.namelist()
    member = next((name for name in _MEMBERS if name in names), None)
    if member is None:
        raise ValueError(f"it is a zip file without any of {', '.join(_MEMBERS)}")
    # A message of protocol buffers, whose field 1 is the version.
    meta = package.open("meta").read(2) if "meta" in names else b""
    if meta[:1] == b"\x08" and meta[-1] > _NEWEST_PACKAGE_VERSION:
        known = f"known are 1 to {_NEWEST_PACKAGE_VERSION}"
        hint = "tick 'Support older Anki versions' when exporting it"
        raise ValueError(f"it is a package of version {meta[-1]}, {known}: {hint}")
    return member


def _copy_with_logs(path: Path, copy: Path) -> None:
    """Copy a database together with the changes that SQLite keeps beside it.

    Copied again if any of the files changed meanwhile, so that they belong together.
    """
    for _ in range(_COPY_ATTEMPTS):
        before = _stamps(path)
        for suffix in before:
            with Path(f"{path}{suffix}").open("rb") as file:
                _write(file, Path(f"{copy}{suffix}"))
        if _stamps(path) == before:
            return
        for suffix in before:
            Path(f"{copy}{suffix}").unlink()
    raise ValueError(f"it was changed during each of {_COPY_ATTEMPTS} attempts to copy it")


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Time of change and size of a database and of the logs it has."""
    stamps = {}
    for suffix in _LOGS:
        file = Path(f"{path}{suffix}")
        if os.path.lexists(file):
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"{file.name} beside it is not a regular file: move it away")
            stamps[suffix] = (found.st_mtime_ns, found.st_size)
    return stamps


def _write(content: Any, to: Path, *, is_compressed: bool = False) -> None:
    """Write a stream to a file, unless it is longer than any real collection."""
    if is_compressed:
        content = zstandard.ZstdDecompressor().stream_reader(content)
    with to.open("wb") as file:
        while chunk := content.read(_CHUNK):
            file.write(chunk)
            if file.tell() > _BYTES_AT_MOST:
                raise ValueError(f"its collection has more than {_BYTES_AT_MOST / 2**30:g} GiB")
