"""Users that are done, each in a file that only the same run reads."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.nouns import Predictions, User

CHECKPOINT = "checkpoint"  # Its folder in that of the run
_SIZE = 8  # Bytes that hold the length of a file


@dataclass(frozen=True, slots=True)
class Done:
    """A user who has been evaluated and scored."""

    scored: ScoredUser
    # What pooled scores are computed from; None where nothing is pooled, or a fold is missing
    sums: Mapping[str, NDArray[Any]] | None = None
    is_double: bool = False  # Whether predictions have double precision


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The finished users of a run, which its stamp names: a digest of settings and code."""

    folder: Path  # Of the run
    stamp: str

    @property
    def place(self) -> Path:
        """Folder of the files."""
        return self.folder / CHECKPOINT / self.stamp

    def write(self, done: Done) -> None:
        """Keep a user: in one move, so that a kill leaves the file whole or not at all."""
        path = self._path(done.scored.user)
        path.parent.mkdir(parents=True, exist_ok=True)
        head = replace(done, scored=replace(done.scored, predictions=None))
        parts = head, done.scored.predictions
        content = b"".join(pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts)
        partial = path.with_suffix(".partial")
        partial.write_bytes(len(content).to_bytes(_SIZE, "little") + content)
        partial.replace(path)

    def read(self, user: User) -> Done | None:
        """Return a user without the predictions; None if the user is not done."""
        try:
            with self._path(user).open("rb") as file:
                size = int.from_bytes(file.read(_SIZE), "little")
                if size != self._path(user).stat().st_size - _SIZE:
                    return None
                done: Done = pickle.load(file)
                return done
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def predictions(self, user: User) -> Predictions | None:
        """Return the predictions of a user who is done; None if there are none."""
        with self._path(user).open("rb") as file:
            file.seek(_SIZE)
            pickle.load(file)
            predictions: Predictions | None = pickle.load(file)
            return predictions

    @property
    def is_begun(self) -> bool:
        """Whether a user was done with these settings and this code."""
        return self.place.is_dir()

    @property
    def others(self) -> int:
        """Count users who were done with other settings or other code."""
        files = (self.folder / CHECKPOINT).glob("*/*.pkl")
        return sum(file.parent != self.place for file in files)

    def remove(self) -> None:
        """Remove all files, also those of other settings."""
        shutil.rmtree(self.folder / CHECKPOINT, ignore_errors=True)

    def remove_failed(self, users: list[User]) -> None:
        """Remove users."""
        for user in users:
            self._path(user).unlink(missing_ok=True)

    def _path(self, user: User) -> Path:
        name = user.item() if isinstance(user, np.generic) else user
        digest = hashlib.sha256(f"{type(name).__name__} {name}".encode()).hexdigest()[:24]
        return self.place / f"{digest}.pkl"
