"""A private copy of an Anki collection, taken out of whatever file holds it.

The file itself is only ever read. Anki may have it open and locked, so the database is
never opened in place: SQLite would write lock and log files beside it.
"""

from __future__ import annotations

import lzma
import os
import stat
import zipfile
import zlib
from contextlib import ExitStack
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
_LOGS = ("", "-wal", "-journal")  # What SQLite keeps beside a database
_SQLITE, _ZSTANDARD = b"SQLite format 3\x00", b"\x28\xb5\x2f\xfd"

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


def copy_collection(path: Path, copy: Path) -> bool:
    """Write the database of a collection or package to a file; return whether it is a package.

    What counts is what is in the file, not how its name ends.
    """
    if existing(path).local.is_dir():
        hint = f"Name a file in it, such as {path / 'collection.anki2'}."
        raise ReviewLogError(str(path), ["is a folder, not an Anki file"], hint)
    try:
        # Beside the file a link points to, because that is where SQLite keeps its logs.
        return _take_out(path.resolve(), copy)
    except _DAMAGED as error:
        what = f"cannot be unpacked ({str(error).rstrip('.')})"
        raise ReviewLogError(str(path), [what], _EXPORT_AGAIN) from error


def _take_out(path: Path, copy: Path) -> bool:
    """Copy the newest collection in a file, and the logs beside it.

    None of them may change meanwhile, so that they belong together.
    """
    before = _stamps(path)
    with ExitStack() as opened:
        content: Any = opened.enter_context(path.open("rb"))
        is_package: bool = content.peek().startswith(b"PK")
        if is_package:
            package = opened.enter_context(zipfile.ZipFile(content))
            content = opened.enter_context(package.open(_member(package)))
        if content.peek(4).startswith(_ZSTANDARD):
            content = zstandard.ZstdDecompressor().stream_reader(content)
        start = content.read(len(_SQLITE))
        if start != _SQLITE:
            begin = f"begins with {start[:8]!r}" if start else "is empty or cut off"
            raise ValueError(f"it is neither an Anki package nor a collection: it {begin}")
        _write(content, copy, start)
    for suffix in before.keys() - {""}:
        with Path(f"{path}{suffix}").open("rb") as log:
            _write(log, Path(f"{copy}{suffix}"))
    if _stamps(path) != before:
        raise ValueError("it was changed meanwhile: close Anki, or try again")
    return is_package


def _member(package: zipfile.ZipFile) -> str:
    """Return the name of the newest collection in a package."""
    names = package.namelist()
    member = next((name for name in _MEMBERS if name in names), None)
    if member is None:
        raise ValueError(f"it is a zip file without any of {', '.join(_MEMBERS)}")
    # A message of protocol buffers, whose field 1 is the version.
    meta = package.open("meta").read(2) if "meta" in names else b""
    if meta[:1] == b"\x08" and meta[-1] > _NEWEST_PACKAGE_VERSION:
        versions = f"known are 1 to {_NEWEST_PACKAGE_VERSION}"
        hint = "tick 'Support older Anki versions' when exporting it"
        raise ValueError(f"it is a package of version {meta[-1]}, {versions}: {hint}")
    return member


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Time of change and size of a file and of the logs beside it."""
    stamps = {}
    for suffix in _LOGS:
        file = Path(f"{path}{suffix}")
        if os.path.lexists(file):
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{file.name} beside it is not a regular file: move it away")
            stamps[suffix] = (status.st_mtime_ns, status.st_size)
    return stamps


def _write(content: Any, to: Path, start: bytes = b"") -> None:
    """Write a stream to a file, after its start, unless it is longer than any collection."""
    with to.open("wb") as file:
        file.write(start)
        while chunk := content.read(_CHUNK):
            file.write(chunk)
            if file.tell() > _BYTES_AT_MOST:
                raise ValueError(f"its collection has more than {_BYTES_AT_MOST / 2**30:g} GiB")
