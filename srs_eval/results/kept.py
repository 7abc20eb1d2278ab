"""The parts in the folder of a run: all while it goes on, those of a large run for good."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from srs_eval.errors import ConfigError
from srs_eval.results import files
from srs_eval.results.from_parts import PartFits, PartPredictions
from srs_eval.results.parts import (
    KINDS,
    PARTS,
    Chunk,
    Part,
    PartsInFolder,
    joined,
)

# What marks a run that goes on, and the parts of one that has ended.
_STAMP = "stamp.json"
_MANIFEST = "parts.json"


@dataclass(frozen=True, slots=True)
class KeptParts:
    """The parts of a run, written by the workers that evaluate its users.

    Parameters
    ----------
    folder : Path
        A folder of its own; removed when a run is complete whose parts are gathered.
    stamp : str
        Digest of settings and code; continuing under another one is refused.
    stays_above : int
        The parts of more users than this are not gathered: they are the result.
    """

    folder: Path
    stamp: str
    stays_above: int = 1000

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun here and not yet come to its end."""
        return (self.folder / _STAMP).is_file()

    def check(self, *, resume: bool) -> None:
        """Make sure that `open` will succeed, changing nothing.

        Raises
        ------
        ConfigError
            If the folder holds other files, or a run of other settings is to be continued.
        """
        begun = self.folder / _STAMP
        if self.is_begun:
            if resume and files.read_json(begun)["stamp"] != self.stamp:
                raise ConfigError(
                    f"resume=true: {self.folder.parent} was begun with other settings or other "
                    "code; give the same, or another hydra.run.dir"
                )
            return
        ours = {begun.with_name(f"{_STAMP}.partial")}  # of a run that was killed as it began
        has_ended = (self.folder / _MANIFEST).is_file()
        if self.folder.is_dir() and not has_ended and not set(self.folder.iterdir()) <= ours:
            raise ConfigError(
                f"{self.folder} holds files that are not of a run; give another hydra.run.dir"
            )

    def open(self, *, resume: bool, chunk: int) -> None:
        """Begin, or continue where an interrupted run of the same settings stopped.

        Parameters
        ----------
        chunk : int
            Users in a part; a run that is continued goes on with those it began with.
        """
        self.check(resume=resume)
        if resume and self.is_begun:
            return
        self.remove()
        if (self.folder / _MANIFEST).is_file():
            self._delete()
        self.folder.mkdir(parents=True, exist_ok=True)
        files.write_json(self.folder / _STAMP, {"stamp": self.stamp, "chunk": chunk})

    @property
    def chunk(self) -> int:
        """Users in a part."""
        return int(files.read_json(self.folder / _STAMP)["chunk"])

    def done(self, chunks: Sequence[Chunk]) -> int:
        """Count the users whose part is there, be it damaged or of a log that has changed."""
        parts = PartsInFolder(self.folder)
        return sum(len(chunk.users) for chunk in chunks if parts.is_written(chunk.name))

    def users_if_whole(self, chunk: Chunk) -> pa.Table | None:
        """Read the users of a part; None unless all of it is there, and was made by this run."""
        return PartsInFolder(self.folder).users_if_whole(chunk, self.stamp)

    def keep(self, chunk: Chunk, part: Part) -> None:
        """Write a part."""
        PartsInFolder(self.folder).write(chunk.name, part, self.stamp)

    def receive(self, chunk: Chunk, part: Part | None) -> None:
        """Do nothing: parts do not pass through the parent."""

    def join(self, chunk: Chunk) -> None:
        """Make one part of the parts of its users, where each was evaluated alone."""
        parts, single = PartsInFolder(self.folder), chunk.taken_apart()
        self.keep(chunk, joined([parts.whole(each.name) for each in single]))
        for each in single:
            parts.remove(each.name)

    def parts(self) -> PartsInFolder:
        """Return the parts, to be read."""
        return PartsInFolder(self.folder)

    def stays(self, users: int) -> bool:
        """Whether the parts of so many users are the result."""
        return users > self.stays_above

    def end(self, chunks: Sequence[Chunk] = ()) -> None:
        """End the run: delete the parts, or only what is not of these chunks, which stay."""
        if not chunks:
            self.remove()
            return
        names = [chunk.name for chunk in chunks]
        known = {PartsInFolder(self.folder).file(name, kind) for name in names for kind in KINDS}
        for file in self.folder.glob("*/*"):
            if file not in known:
                file.unlink()
        files.write_json(self.folder / _MANIFEST, {"stamp": self.stamp, "parts": names})
        (self.folder / _STAMP).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder of a run that goes on, and what a kill has left of its removal."""
        if self._removed.is_dir():
            shutil.rmtree(self._removed)
        if self.is_begun:
            self._delete()

    @property
    def _removed(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.removed")

    def _delete(self) -> None:
        """Rename the folder, then delete it: a kill meanwhile leaves a run that has ended."""
        self.folder.rename(self._removed)
        shutil.rmtree(self._removed)


def kept_for_good(folder: Path, *, as_text: bool) -> tuple[PartPredictions, PartFits] | None:
    """Return the predictions and fits of a finished run that stayed in parts, if it did.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    as_text : bool
        Whether the users of the run go by text, because one of them is a text.

    Raises
    ------
    ConfigError
        If the list of parts cannot be read.
    """
    manifest = folder / PARTS / _MANIFEST
    if not manifest.is_file():
        return None
    with files.reading(manifest):
        names = [str(name) for name in files.read_json(manifest)["parts"]]
    parts = PartsInFolder(folder / PARTS, ConfigError)
    fits = PartFits(parts, names, as_text=as_text)
    return PartPredictions(parts, names, folder, as_text=as_text), fits


def forget_parts(folder: Path) -> None:
    """Delete the parts of a finished run from its folder, if there are any."""
    if (folder / PARTS / _MANIFEST).is_file():
        shutil.rmtree(folder / PARTS)
