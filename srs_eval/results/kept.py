"""The parts of a run: all while it goes on, those of a large run for good."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.place import Place
from srs_eval.results import files
from srs_eval.results.from_parts import PartFits, PartPredictions
from srs_eval.results.parts import (
    KINDS,
    PARTS,
    USERS,
    Chunk,
    Part,
    PartsInFolder,
    joined,
)
from srs_eval.results.user_rows import a_fit_worked

# Marks a run that goes on, beside its parts; without a digest, that the parts are being deleted.
_STAMP = "stamp.json"
# In the folder of the run: the list of the parts that are its result, and the address of parts that
# are elsewhere.
_MANIFEST = "parts.json"
# In the list of a run that has results and yet goes on, as its tracker is still to be told.
_GOES_ON = "goes_on"
_DELETED = {"stamp": ""}


@dataclass(frozen=True, slots=True)
class KeptParts:
    """The parts of a run, written by the workers that evaluate its users."""

    # A folder of its own in that of the run; removed when a run is complete whose parts are
    # gathered
    folder: Path
    stamp: str  # digest of settings and code; continuing under another one is refused
    # The parts of more users than this are not gathered: they are the result
    stays_above: int = 1000
    # Where the parts are, if not in `folder`, such as an address in an object store
    at: Place | None = None

    @property
    def place(self) -> Place:
        """Where the parts are."""
        return self.at or Place.of(self.folder)

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun here and not yet come to its end."""
        return bool(self._begun()) and not self._has_ended()

    def check(self, *, resume: bool) -> None:
        """Make sure that `open` will succeed, changing nothing.

        Raise `ConfigError` if there are other files, or a run of other settings is to be continued;
        raise `PlaceError` if the parts are in an object store that cannot be used.
        """
        run, begun, before = self.folder.parent, self._begun(), self._begun_at()
        if resume and before not in (None, self.place.address):
            raise ConfigError(f"resume=true: {run} was begun with its parts in {before}")
        if resume and begun and begun["stamp"] != self.stamp:
            raise ConfigError(
                f"resume=true: {run} was begun with other settings or other code; give the same, "
                "or another hydra.run.dir"
            )
        here = Place.of(self.folder)
        if here.names() and not self._has(_STAMP) and not self._has(_MANIFEST):
            raise ConfigError(
                f"{here} holds files that are not of a run; give another hydra.run.dir"
            )
        is_own = begun and self._manifest().get("at") == self.place.address
        if (resume and begun) or self.at is None or is_own:
            return
        if self.at.names() and self._stamped() != _DELETED:
            hint = ", or resume=true to go on with that run" if begun and not resume else ""
            raise ConfigError(
                f"parts={self.at} holds files that are not of the run in {run}; give another "
                f"address{hint}"
            )

    def open(self, *, resume: bool, chunk: int) -> None:
        """Begin, or continue where an interrupted run of the same settings stopped.

        `chunk` is how many users a part has; a run that is continued goes on with those it began
        with.
        """
        self.check(resume=resume)
        if not (resume and self.is_begun):
            _delete(self.place)
            files.write_json(self.place / _STAMP, {"stamp": self.stamp, "chunk": chunk})
        if self.at is None:
            (self.place / _MANIFEST).remove()  # of results that the run is to have again
        elif self._manifest() != {"at": self.at.address}:
            _delete(Place.of(self.folder))
            files.write_json(Place.of(self.folder) / _MANIFEST, {"at": self.at.address})

    @property
    def chunk(self) -> int:
        """Users in a part."""
        return int(self._begun()["chunk"])

    def users_if_whole(self, chunk: Chunk) -> pa.Table | None:
        """Read the users of a part; None unless all of it is there, and was made by this run.

        Raise `SrsEvalError` if this machine does not see the folder of the run.
        """
        if not self.place.is_remote and not (self.place / _STAMP).local.is_file():
            raise SrsEvalError(
                f"{self.place.local.absolute()}: no run goes on there, as {platform.node()} sees "
                "it; without a folder that all machines share, give parts=s3://…"
            )
        return PartsInFolder(self.place).users_if_whole(chunk, self.stamp)

    def keep(self, chunk: Chunk, part: Part) -> None:
        """Write a part."""
        PartsInFolder(self.place).write(chunk.name, part, self.stamp)

    def receive(self, chunk: Chunk, part: Part | None) -> None:
        """Do nothing: parts do not pass through the parent."""

    def join(self, chunk: Chunk) -> None:
        """Make one part of the parts of its users, where each was evaluated alone."""
        parts, single = PartsInFolder(self.place), chunk.taken_apart()
        self.keep(chunk, joined([parts.whole(each.name) for each in single]))
        for each in single:
            parts.remove(each.name)

    def parts(self) -> PartsInFolder:
        """Return the parts, to be read."""
        return PartsInFolder(self.place)

    def stays(self, users: int) -> bool:
        """Whether the parts of so many users are the result."""
        return users > self.stays_above

    def list_results(self, chunks: Sequence[Chunk]) -> None:
        """List the parts of chunks, which stay, as the result of a run that still goes on."""
        names = [chunk.name for chunk in chunks]
        self.parts().put_on_disk(names)
        self._list(names, goes_on=True)

    def end(self, chunks: Sequence[Chunk] = ()) -> None:
        """End the run: delete the parts, or only what is not of these chunks, which are listed."""
        if not chunks:
            self.remove()
            return
        names, parts = [chunk.name for chunk in chunks], self.parts()
        known = {parts.file(name, kind) for name in names for kind in KINDS}
        left = [self.place / PurePath(kind).stem for kind in KINDS]
        for entry in [entry for place in left for entry in place.files(hidden=True)]:
            if entry.place not in known:
                entry.place.remove()
        for entry in self.place.files(hidden=True):  # what kills have left of them
            if entry.place.name.startswith((f".{_STAMP}.", f".{_MANIFEST}.")):
                entry.place.remove()
        self._list(names, goes_on=False)
        if self.at is None:  # at an address the stamp stays, should the folder be lost
            (self.place / _STAMP).remove()

    def remove(self) -> None:
        """Delete the parts of a run that goes on, and what a kill has left of their removal."""
        if self._has_ended():
            return
        if (self.place / _STAMP).exists():
            _delete(self.place)
        if self.at is not None:
            _delete(Place.of(self.folder))

    def remove_failed(self, chunks: Sequence[Chunk]) -> None:
        """Delete the parts of chunks in which no fit worked."""
        for chunk in chunks:
            users = self.users_if_whole(chunk)
            if users is not None and not a_fit_worked(users):
                PartsInFolder(self.place).remove(chunk.name)

    def _list(self, names: Sequence[str], *, goes_on: bool) -> None:
        elsewhere = {} if self.at is None else {"at": self.at.address}
        manifest: dict[str, Any] = {"stamp": self.stamp, "parts": names, **elsewhere}
        manifest |= {_GOES_ON: True} if goes_on else {}
        files.write_json(Place.of(self.folder) / _MANIFEST, manifest)

    def _begun(self) -> dict[str, Any]:
        """Read the stamp of a run that goes on; empty if none does."""
        stamped = self._stamped()
        return {} if stamped == _DELETED else stamped

    def _stamped(self) -> dict[str, Any]:
        return _content(self.place / _STAMP)

    def _manifest(self) -> dict[str, Any]:
        return _content(Place.of(self.folder) / _MANIFEST)

    def _has_ended(self) -> bool:
        """Whether the parts at an address are the result of the run in the folder."""
        manifest = self._manifest()
        return not _goes_on(manifest) and manifest.get("at") == self.place.address

    def _has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def _begun_at(self) -> str | None:
        """Return where the parts are of the run that goes on in the folder, if one does."""
        manifest = self._manifest()
        if "at" in manifest and _goes_on(manifest):
            return str(manifest["at"])
        here = Place.of(self.folder)
        return here.address if _content(here / _STAMP) not in ({}, _DELETED) else None


def kept_for_good(folder: Path, *, as_text: bool) -> tuple[PartPredictions, PartFits] | None:
    """Return the predictions and fits of a run that stay in parts, or None if none do.

    `as_text` is whether the users of the run go by text, because one of them is a text. Raise
    `ConfigError` if the list of parts cannot be read.
    """
    manifest = _content(Place.of(folder) / PARTS / _MANIFEST)
    if "parts" not in manifest:
        return None
    names = [str(name) for name in manifest["parts"]]
    place = Place.of(manifest.get("at", folder / PARTS))
    parts = PartsInFolder(place, ConfigError)
    fits = PartFits(parts, names, as_text=as_text)
    return PartPredictions(parts, names, folder, as_text=as_text), fits


def has_parts(folder: Path) -> bool:
    """Whether an interrupted run has parts in its folder, or somewhere else."""
    manifest = _content(Place.of(folder) / PARTS / _MANIFEST)
    users = (folder / PARTS / Path(USERS).stem).glob("*.parquet")
    return any(users) or ("at" in manifest and _goes_on(manifest))


def forget_parts(folder: Path) -> None:
    """Delete the parts of a finished run from its folder, if there are any."""
    if "parts" in _content(Place.of(folder) / PARTS / _MANIFEST):
        shutil.rmtree(folder / PARTS)


def _goes_on(manifest: Mapping[str, Any]) -> bool:
    """Whether the run of a manifest has not come to its end."""
    return "parts" not in manifest or bool(manifest.get(_GOES_ON))


def _content(file: Place) -> dict[str, Any]:
    """Read a JSON object; empty if there is no such file."""
    if file.entry() is None:
        return {}
    with files.reading(file):
        return files.read_json(file)


def _delete(place: Place) -> None:
    """Delete parts, and mark them first: a kill meanwhile leaves a run that has ended."""
    if not place.names():
        return
    files.write_json(place / _STAMP, _DELETED)
    for name in place.names():
        if name != _STAMP:
            (place / name).remove()
    place.remove()
