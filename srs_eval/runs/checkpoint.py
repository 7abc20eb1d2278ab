"""Users that are done, each in a file that only the same run reads."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from srs_eval.data.reviews import User
from srs_eval.evaluation.scoring import ScoredUser


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The finished users of a run, which its stamp names: a digest of settings and code."""

    folder: Path  # Of the run
    stamp: str

    def write(self, scored: ScoredUser, sums: Any = None) -> None:
        """Keep a user: in one move, so that a kill leaves the file whole or not at all.

        `sums` is what pooled scores are computed from; None where nothing is pooled.
        """
        path = self._path(scored.user)
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = {"scored": replace(scored, predictions=None), "sums": sums}
        partial = path.with_suffix(".partial")
        with ZipFile(partial, "w") as file:
            for name, part in {**parts, "predictions": scored.predictions}.items():
                file.writestr(name, pickle.dumps(part))
        partial.replace(path)

    def read(self, user: User, part: str = "scored") -> Any:
        """Return a part of a user who is done: ``scored``, ``sums`` or ``predictions``."""
        with ZipFile(self._path(user)) as file:
            return pickle.loads(file.read(part))

    def find(self, user: User) -> ScoredUser | None:
        """Return a user without the predictions; None if the user is not done."""
        with suppress(OSError, BadZipFile):  # a damaged file is no file
            scored: ScoredUser = self.read(user)
            return scored
        return None

    def remove(self, user: User | None = None) -> None:
        """Remove a user, or all files, also those of other settings."""
        if user is None:
            shutil.rmtree(self.folder / "checkpoint", ignore_errors=True)
        else:
            self._path(user).unlink(missing_ok=True)

    def _path(self, user: User) -> Path:
        digest = hashlib.sha256(f"{type(user).__name__} {user}".encode()).hexdigest()[:24]
        return self.folder / "checkpoint" / self.stamp / f"{digest}.pkl"
