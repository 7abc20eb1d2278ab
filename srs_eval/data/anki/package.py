"""A private copy of an Anki collection, taken out of whatever file holds it.

The file itself is only ever read. Anki may have it open and locked, so the database is
never opened in place: SQLite would write lock and log files beside it.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard

from srs_eval.data.files import existing_path
from srs_eval.errors import ReviewLogError

_SUFFIXES = (".colpkg", ".apkg", ".anki21b", ".anki21", ".anki2")

# Newest first. In new packages, collection.anki2 only asks users of old versions to update.
_MEMBERS = ("collection.anki21b", "collection.anki21", "collection.anki2")
_NEWEST_PACKAGE_VERSION = 3
_BYTES_AT_MOST = 4 * 2**30
_CHUNK = 2**20
_COPY_ATTEMPTS = 5
_LOGS = ("-wal", "-journal")

_SQLITE = b"SQLite format 3\x00"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD = b"\x28\xb5\x2f\xfd"

_EXPORT_AGAIN = (
    "Export it again in Anki: File > Export, then 'Anki Collection Package (.colpkg)', or "
    "'Anki Deck Package (.apkg)' with 'Include scheduling information'."
)
_FETCH_AGAIN = "Copy or download the file again, or export it again in Anki (File > Export)."


@dataclass(frozen=True, slots=True)
class CollectionCopy:
    """A copied collection."""

    database: Path  # Its SQLite file
    member: str | None  # Its name inside the package; None if it was not in a package
    has_meta: bool = False  # Whether the package says its version, as packages do since Anki 2.1.50


@contextmanager
def collection_copy(path: Path) -> Iterator[CollectionCopy]:
    """Copy or unpack a collection into a temporary folder that is removed afterwards.

    `path` is a collection (``.anki2``, ``.anki21``, ``.anki21b``) or package (``.apkg``,
    ``.colpkg``). What counts is what is in the file, not how its name ends.
    """
    with tempfile.TemporaryDirectory(prefix="srs_eval_copy_") as folder:
        try:
            copy = _take_out(path, Path(folder, "collection.anki2"))
        except OSError as error:
            what = f"cannot be copied for reading: {error.strerror or error}"
            hint = (
                "Check that you may read it, and that the folder for temporary files has room for "
                "it (TMPDIR sets that folder)."
            )
            raise ReviewLogError(str(path), [what], hint) from error
        yield copy


def _take_out(path: Path, database: Path) -> CollectionCopy:
    """Write the collection in the package `path` to `database`."""
    if existing_path(path).is_dir():
        raise ReviewLogError(str(path), ["is a folder, not an Anki file"], _files_in(path))
    # Beside the file a link points to, because that is where SQLite keeps its logs.
    path = path.resolve()
    with path.open("rb") as file:
        start = file.read(16)
        file.seek(0)
        member, has_meta = None, False
        if start.startswith(_ZIP):
            member, has_meta = _unpack(path, file, database)
        elif start.startswith(_ZSTD):
            _decompress(str(path), file, database)
        elif start == _SQLITE:
            _copy_with_logs(path, database)
        else:
            raise ReviewLogError(str(path), [_what_it_is_instead(start)], _FETCH_AGAIN)
    with database.open("rb") as file:
        if file.read(16) != _SQLITE:
            what = f"is damaged: {member or 'what it holds'} is no database"
            raise ReviewLogError(str(path), [what], _FETCH_AGAIN)
    return CollectionCopy(database, member, has_meta)


def _what_it_is_instead(start: bytes) -> str:
    """Describe a file that is neither a package nor a database by its first bytes."""
    if not start:
        return "is empty (0 bytes)"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return "is a web page (or other XML), not an Anki file"
    return f"is neither an Anki package nor a collection (it begins with {start[:8]!r})"


def _files_in(folder: Path) -> str:
    """List the Anki files of a folder."""
    found = sorted(entry for entry in folder.iterdir() if entry.suffix.lower() in _SUFFIXES)
    if not found:
        return f"There is no file ending in {', '.join(_SUFFIXES)} in {folder}."
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"Name one file; {folder} holds {', '.join(entry.name for entry in found[:3])}{more}."


def _copy_with_logs(path: Path, database: Path) -> None:
    """Copy a database together with the changes that SQLite keeps beside it.

    Copied again if any of the files changed meanwhile, so that they belong together.
    """
    for _ in range(_COPY_ATTEMPTS):
        before = _stamps(path)
        if sum(size for _, size in before.values()) > _BYTES_AT_MOST:
            raise _too_large(str(path), "is (with the changes beside it)")
        for name in before:
            suffix = name.removeprefix(path.name)
            shutil.copyfile(path.with_name(name), database.with_name(database.name + suffix))
        if _stamps(path) == before:
            return
        for suffix in _LOGS:
            database.with_name(database.name + suffix).unlink(missing_ok=True)
    what = f"was changed during each of {_COPY_ATTEMPTS} attempts to copy it"
    raise ReviewLogError(str(path), [what], "Wait until Anki is idle, or close it.")


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Time of change and size of a database and of the logs it has."""
    stamps = {}
    for file in [path, *(path.with_name(path.name + suffix) for suffix in _LOGS)]:
        try:
            found = file.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            what = f"cannot be read together with {file.name} beside it, which is no regular file"
            raise ReviewLogError(str(path), [what], "Move that away: SQLite does not write such.")
        stamps[file.name] = (found.st_mtime_ns, found.st_size)
    return stamps


def _unpack(path: Path, file: IO[bytes], database: Path) -> tuple[str, bool]:
    """Write the newest collection of a package to `database`.

    Returns the name of the member, and whether the package says its version.
    """
    source = str(path)
    try:
        with zipfile.ZipFile(file) as package:
            member = _newest_member(source, package)
            has_meta = "meta" in package.namelist()
            with package.open(member) as content:
                if member.filename == _MEMBERS[0]:
                    _decompress(source, content, database)
                else:
                    _write(source, content, database)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError) as error:
        # ValueError is what broken names and sizes in a zip's directory lead to.
        what = f"is a damaged package, perhaps cut off ({str(error).rstrip('.')})"
        raise ReviewLogError(source, [what], _FETCH_AGAIN) from error
    except NotImplementedError as error:
        what = f"is packed in a way that Anki does not use ({error})"
        raise ReviewLogError(source, [what], _EXPORT_AGAIN) from error
    return member.filename, has_meta


def _newest_member(source: str, package: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Choose the collection to read; nothing else is ever taken out of a package."""
    members = {info.filename: info for info in package.infolist()}
    present = [members[name] for name in _MEMBERS if name in members]
    if not present:
        what = f"is a zip file but no Anki package: none of {', '.join(_MEMBERS)} is in it"
        raise ReviewLogError(source, [what], _EXPORT_AGAIN)
    if present[0].flag_bits & 1:
        hint = "Unpack it with its password first, or export it again in Anki (File > Export)."
        raise ReviewLogError(source, [f"{present[0].filename} in it is encrypted"], hint)
    version = _package_version(package, members)
    if version > _NEWEST_PACKAGE_VERSION:
        what = f"is a package of version {version}; known are 1 to {_NEWEST_PACKAGE_VERSION}"
        hint = "Tick 'Support older Anki versions' when exporting it in Anki."
        raise ReviewLogError(source, [what], hint)
    return present[0]


def _package_version(package: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> int:
    """Read the version from ``meta``: a protobuf message whose field 1 it is."""
    if "meta" not in members or members["meta"].flag_bits & 1:
        return 1
    with package.open("meta") as content:
        message = content.read(2)
    return message[1] if message[:1] == b"\x08" and len(message) == 2 else 1


def _decompress(source: str, compressed: IO[bytes], database: Path) -> None:
    """Write what a zstd stream of unknown length holds."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(compressed) as content:
            _write(source, content, database)
    except zstandard.ZstdError as error:
        what = f"its compressed collection is damaged ({error})"
        raise ReviewLogError(source, [what], _FETCH_AGAIN) from error


def _write(source: str, content: IO[bytes] | zstandard.ZstdDecompressionReader, to: Path) -> None:
    """Write a stream to a file, unless it is longer than any real collection."""
    written = 0
    with to.open("wb") as file:
        while chunk := content.read(_CHUNK):
            written += len(chunk)
            if written > _BYTES_AT_MOST:
                raise _too_large(source, "unpacks to")
            file.write(chunk)


def _too_large(source: str, verb: str) -> ReviewLogError:
    """Return an error for a collection that is larger than any real one."""
    what = f"{verb} more than {_BYTES_AT_MOST / 2**30:g} GiB"
    hint = "No review log is that large; do you trust where the file comes from?"
    return ReviewLogError(source, [what], hint)
