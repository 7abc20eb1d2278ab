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
from typing import IO, Any

import zstandard

from srs_eval.data.files import existing_path
from srs_eval.errors import ReviewLogError

# Newest first. In new packages, collection.anki2 only asks users of old versions to update.
_MEMBERS = ("collection.anki21b", "collection.anki21", "collection.anki2")
_NEWEST_PACKAGE_VERSION = 3
_BYTES_AT_MOST = 4 * 2**30
_CHUNK = 2**20
_COPY_ATTEMPTS = 5
_LOGS = ("", "-wal", "-journal")  # What SQLite keeps beside a database

_SQLITE = b"SQLite format 3\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"

_EXPORT_AGAIN = (
    "Download it again, or export it again in Anki: File > Export, then 'Anki Collection Package "
    "(.colpkg)', or 'Anki Deck Package (.apkg)' with 'Include scheduling information'."
)
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError),
    ValueError,  # to which broken names and sizes in a zip's directory lead
    RuntimeError,  # of encrypted members, and of packing that Python does not know
)


@contextmanager
def collection_copy(path: Path) -> Iterator[tuple[Path, bool]]:
    """Copy or unpack a collection into a temporary folder that is removed afterwards.

    `path` is a collection (``.anki2``, ``.anki21``, ``.anki21b``) or package (``.apkg``,
    ``.colpkg``). What counts is what is in the file, not how its name ends. Returns the database,
    and whether it was in a package.
    """
    source = str(path)
    if existing_path(path).is_dir():
        hint = f"Name a file in it, such as {path / 'collection.anki2'}."
        raise ReviewLogError(source, ["is a folder, not an Anki file"], hint)
    with tempfile.TemporaryDirectory(prefix="srs_eval_copy_") as folder:
        copy = Path(folder, "collection.anki2")
        try:
            # Beside the file a link points to, because that is where SQLite keeps its logs.
            is_package = _take_out(source, path.resolve(), copy)
            with copy.open("rb") as file:
                if file.read(len(_SQLITE)) != _SQLITE:
                    raise ValueError("what it holds is no database")
        except OSError as error:
            what = f"cannot be copied for reading: {error.strerror or error}"
            hint = (
                "Check that you may read it, and that the folder for temporary files has room for "
                "it (TMPDIR sets that folder)."
            )
            raise ReviewLogError(source, [what], hint) from error
        except _DAMAGED as error:
            what = f"cannot be unpacked ({str(error).rstrip('.')})"
            raise ReviewLogError(source, [what], _EXPORT_AGAIN) from error
        yield copy, is_package


def _take_out(source: str, path: Path, copy: Path) -> bool:
    """Write the collection in the file `path`, and return whether that is a package."""
    with path.open("rb") as file:
        start = file.read(len(_SQLITE))
        file.seek(0)
        is_package = start.startswith(b"PK")
        if is_package:
            _unpack(source, file, copy)
        elif start.startswith(_ZSTD):
            _write(source, zstandard.ZstdDecompressor().stream_reader(file), copy)
        elif start == _SQLITE:
            _copy_with_logs(source, path, copy)
        else:
            begin = f"begins with {start[:8]!r}" if start else "is empty"
            what = f"is neither an Anki package nor a collection (it {begin})"
            raise ReviewLogError(source, [what], _EXPORT_AGAIN)
    return is_package


def _unpack(source: str, file: IO[bytes], copy: Path) -> None:
    """Write the newest collection of a package; nothing else is taken out of it."""
    with zipfile.ZipFile(file) as package:
        names = package.namelist()
        member = next((name for name in _MEMBERS if name in names), None)
        if member is None:
            what = f"is a zip file but no Anki package: none of {', '.join(_MEMBERS)} is in it"
            raise ReviewLogError(source, [what], _EXPORT_AGAIN)
        # A message of protocol buffers, whose field 1 is the version.
        meta = package.open("meta").read(2) if "meta" in names else b""
        if meta[:1] == b"\x08" and meta[-1] > _NEWEST_PACKAGE_VERSION:
            what = f"is a package of version {meta[-1]}; known are 1 to {_NEWEST_PACKAGE_VERSION}"
            hint = "Tick 'Support older Anki versions' when exporting it in Anki."
            raise ReviewLogError(source, [what], hint)
        with package.open(member) as content:
            is_compressed = member == _MEMBERS[0]
            unpacked = zstandard.ZstdDecompressor().stream_reader(content)
            _write(source, unpacked if is_compressed else content, copy)


def _copy_with_logs(source: str, path: Path, copy: Path) -> None:
    """Copy a database together with the changes that SQLite keeps beside it.

    Copied again if any of the files changed meanwhile, so that they belong together.
    """
    for _ in range(_COPY_ATTEMPTS):
        before = _stamps(source, path)
        for suffix in before:
            with Path(f"{path}{suffix}").open("rb") as file:
                _write(source, file, Path(f"{copy}{suffix}"))
        if _stamps(source, path) == before:
            return
        for suffix in before:
            Path(f"{copy}{suffix}").unlink()
    what = f"was changed during each of {_COPY_ATTEMPTS} attempts to copy it"
    raise ReviewLogError(source, [what], "Wait until Anki is idle, or close it.")


def _stamps(source: str, path: Path) -> dict[str, tuple[int, int]]:
    """Time of change and size of a database and of the logs it has."""
    stamps = {}
    for file in (f"{path}{suffix}" for suffix in _LOGS):
        if os.path.lexists(file):
            found = os.lstat(file)
            if not stat.S_ISREG(found.st_mode):
                what = f"{Path(file).name} beside it is not a regular file"
                raise ReviewLogError(source, [what], "Move that away: SQLite writes no such.")
            stamps[file.removeprefix(str(path))] = (found.st_mtime_ns, found.st_size)
    return stamps


def _write(source: str, content: Any, to: Path) -> None:
    """Write a stream to a file, unless it is longer than any real collection."""
    with to.open("wb") as file:
        while chunk := content.read(_CHUNK):
            file.write(chunk)
            if file.tell() > _BYTES_AT_MOST:
                what = f"its collection has more than {_BYTES_AT_MOST / 2**30:g} GiB"
                hint = "No review log is that large; do you trust where the file comes from?"
                raise ReviewLogError(source, [what], hint)
