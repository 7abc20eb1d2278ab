"""One command at a time in a folder: two that write the same files would mix their results."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from srs_eval.errors import FolderInUseError

# Stays when the command has ended: who removed it could take it from one that has just begun.
_LOCK = ".lock"


def claim(folder: Path, *, wait: float = 0) -> AbstractContextManager[object]:
    """Claim a folder, made if need be, for this process; leaving the context ends the claim.

    The operating system ends the claim with the process, also if it is killed. A claim on the same
    folder by the same thread is granted again. Raise `FolderInUseError` if another command still
    has the folder after `wait` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder.resolve() / _LOCK, timeout=wait, is_singleton=True).acquire()
    except Timeout as taken:
        raise FolderInUseError(
            f"{folder} is in use by another command that is still running; wait for its end, or "
            "give another hydra.run.dir (hydra.sweep.dir with -m)"
        ) from taken
