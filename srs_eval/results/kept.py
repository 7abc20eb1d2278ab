"""The parts of a run: all while it goes on, those of a large run for good.

A file ``parts.json`` beside the parts has the state of the run: it is ``begun``, with the list of
its parts once they are its result, or ``ended``, or is ``deleting`` its parts. Where
the parts are elsewhere, the folder of the run has such a file too, with their address.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.place import Place
from srs_eval.results import files
from srs_eval.results.parts import KINDS, PARTS, USERS, Chunk, PartsInFolder
from srs_eval.results.predicted import PartPredictions
from srs_eval.results.user_rows import a_fit_worked

_STATE = "parts.json"
# Where release 0.2 kept the digest of settings and code of a run that goes on; "" while its parts
# are deleted.
_FORMER = "stamp.json"
_STATES = ("begun", "ended", "deleting")
_KINDS = {"stamp": str, "chunk": int, "at": str, "parts": list}


class KeptParts(PartsInFolder):
    """The parts of a run, written by the workers that evaluate its users.

    `folder` is their own in that of the run, removed when a run is complete whose parts are
    gathered; continuing under another `stamp` is refused. The parts of more users than
    `stays_above` are not gathered: they are the result. `at` is where the parts are, if not in
    `folder`, such as an address in an object store.
    """

    def __init__(
        self, folder: Path, stamp: str, stays_above: int = 1000, at: Place | None = None
    ) -> None:
        super().__init__(at or Place.of(folder), stamp)
        self.folder = folder
        self.stays_above = stays_above
        self.at = at

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun here and not yet come to its end."""
        return self._there["state"] == "begun" and not self._has_ended

    def check(self, *, resume: bool) -> None:
        """Make sure that `open` will succeed, changing nothing.

        Raise `ConfigError` if there are other files, or a run of other settings is to be continued;
        raise `PlaceError` if the parts are in an object store that cannot be used.
        """
        run, own, there, here = self.folder.parent, Place.of(self.folder), self._there, self._here
        before = here.get("at", own.address) if here["state"] == "begun" else self.place.address
        if resume and before != self.place.address:
            raise ConfigError(f"resume=true: {run} was begun with its parts in {before}")
        is_begun = there["state"] == "begun"
        if resume and is_begun and there["stamp"] != self.stamp:
            raise ConfigError(
                f"resume=true: {run} was begun with other settings or other code; give the same, "
                "or another hydra.run.dir"
            )
        if own.names() and not here["state"]:
            raise ConfigError(
                f"{own} holds files that are not of a run; give another hydra.run.dir"
            )
        if self.at is None or (is_begun and (resume or here.get("at") == self.at.address)):
            return
        if self.at.names() and there["state"] != "deleting":
            hint = ", or resume=true to go on with that run" if is_begun and not resume else ""
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
        if resume and self.is_begun:
            chunk = self.chunk
        else:
            _delete(self.place)
        # also in place of a list of results, which the run is to have again
        _write(self.place, {"state": "begun", "stamp": self.stamp, "chunk": chunk})
        here = {} if self.at is None else {"state": "begun", "at": self.at.address}
        if here and self._here != here:
            _delete(Place.of(self.folder))
            _write(Place.of(self.folder), here)

    @property
    def chunk(self) -> int:
        """Users in a part."""
        return int(self._there["chunk"])

    def users_if_whole(self, chunk: Chunk) -> pa.Table | None:
        """Read the users of a part; None unless all of it is there, and was made by this run.

        Raise `SrsEvalError` if this machine does not see the folder of the run.
        """
        if not self.place.is_remote and not (self.place / _STATE).local.is_file():
            raise SrsEvalError(
                f"{self.place.local.absolute()}: no run goes on there, as {platform.node()} sees "
                "it; without a folder that all machines share, give parts=s3://…"
            )
        return super().users_if_whole(chunk)

    def stays(self, users: int) -> bool:
        """Whether the parts of so many users are the result."""
        return users > self.stays_above

    def list_results(self, chunks: Sequence[Chunk]) -> None:
        """List the parts of chunks, which stay, as the result of a run that still goes on."""
        names = [chunk.name for chunk in chunks]
        self.put_on_disk(names)
        _write(Place.of(self.folder), {**self._here, "parts": names})

    def end(self, chunks: Sequence[Chunk] = ()) -> None:
        """End the run: delete the parts, or only what is not of these chunks, which are listed."""
        if not chunks:
            self.remove()
            return
        known = {self.file(chunk.name, kind) for chunk in chunks for kind in KINDS}
        left = [self.place / PurePath(kind).stem for kind in KINDS]
        for entry in [entry for place in left for entry in place.files(hidden=True)]:
            if entry.place not in known:
                entry.place.remove()
        for entry in self.place.files(hidden=True):  # what kills have left of it
            if entry.place.name.startswith(f".{_STATE}."):
                entry.place.remove()
        # at an address the run is still begun, should the folder be lost
        ended = {"state": "ended", "parts": [chunk.name for chunk in chunks]}
        _write(Place.of(self.folder), {**self._here, **ended})

    def remove(self) -> None:
        """Delete the parts of a run that goes on, and what a kill has left of their removal."""
        if self._has_ended:
            return
        if self._there["state"]:
            _delete(self.place)
        if self.at is not None:
            _delete(Place.of(self.folder))

    def remove_failed(self, chunks: Sequence[Chunk]) -> None:
        """Delete the parts of chunks in which no fit worked."""
        for chunk in chunks:
            users = self.users_if_whole(chunk)
            if users is not None and not a_fit_worked(users):
                self.drop(chunk.name)

    @property
    def _here(self) -> dict[str, Any]:
        """What the folder of the run says."""
        return _read(Place.of(self.folder))

    @property
    def _there(self) -> dict[str, Any]:
        """What is said where the parts are, if they are there."""
        found = _read(self.place)
        return {"state": ""} if "at" in found else found

    @property
    def _has_ended(self) -> bool:
        """Whether the parts are the result of the run in the folder."""
        at = None if self.at is None else self.at.address
        return self._here["state"] == "ended" and self._here.get("at") == at


def kept_for_good(folder: Path, *, as_text: bool) -> PartPredictions | None:
    """Return the predictions and fits of a run that stay in parts, or None if none do.

    `as_text` is whether the users of the run go by text, because one of them is a text. Raise
    `ConfigError` if the list of parts cannot be read.
    """
    found = _read(Place.of(folder) / PARTS)
    if "parts" not in found:
        return None
    names = [str(name) for name in found["parts"]]
    parts = PartsInFolder(Place.of(found.get("at", folder / PARTS)), error=ConfigError)
    return PartPredictions(parts, names, folder, as_text=as_text)


def has_parts(folder: Path) -> bool:
    """Whether an interrupted run has parts in its folder, or somewhere else."""
    found = _read(Place.of(folder) / PARTS)
    users = (folder / PARTS / Path(USERS).stem).glob("*.parquet")
    return any(users) or (found["state"] == "begun" and "at" in found)


def forget_parts(folder: Path) -> None:
    """Delete the parts of a finished run from its folder, if there are any."""
    if "parts" in _read(Place.of(folder) / PARTS):
        shutil.rmtree(folder / PARTS)


def _read(place: Place) -> dict[str, Any]:
    """Read the state of the parts in a place: "" in one that has none."""
    found = _content(place / _STATE)
    if "state" in found:
        return found
    if former := _content(place / _FORMER):
        return {"state": "begun" if former["stamp"] else "deleting", **former}
    ended = "parts" in found and not found.get("goes_on")
    return {"state": ("ended" if ended else "begun") if found else "", **found}


def _content(file: Place) -> dict[str, Any]:
    """Read what was written about parts; empty if there is no such file.

    Raise `ConfigError` if it was damaged or written by another program.
    """
    if file.entry() is None:
        return {}
    with files.reading(file):
        found = files.read_json(file)
        for name, kind in _KINDS.items():
            if not isinstance(found.get(name, kind()), kind):
                raise TypeError(f"{name}: expected {kind.__name__}")
        if found.get("state", _STATES[0]) not in _STATES:
            raise ValueError(f"state: expected one of {', '.join(_STATES)}")
        if not {"at", "parts", "stamp"} & found.keys() and found.get("state") != "deleting":
            raise KeyError("stamp")
        if found.get("stamp") and not {"chunk", "parts"} & found.keys():
            raise KeyError("chunk")
        return found


def _write(place: Place, state: Mapping[str, Any]) -> None:
    """Write the state of the parts in a place, unless it is there."""
    if _content(place / _STATE) != state:
        files.write_json(place / _STATE, state)


def _delete(place: Place) -> None:
    """Delete parts, and mark them first: a kill meanwhile leaves a run that has ended."""
    if not place.names():
        return
    _write(place, {"state": "deleting"})
    for name in place.names():
        if name != _STATE:
            (place / name).remove()
    place.remove()
