"""Private temporary folders that are removed even if the process was killed."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

_PREFIX = "srs_eval_copy_"
# Names that `tempfile.mkdtemp` makes of the prefix.
_OURS = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")
_REMOVED_AT_MOST = 64
_ENTRIES_LOOKED_AT = 100_000
# An empty folder may have been created just now, by a process that is about to lock it.
_EMPTY_KEPT_SECONDS = 60


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it afterwards.

    A killed process leaves its folder behind. Folders in use are locked, and the system releases
    the lock when the process ends: the next call removes the folders that are not locked. Windows
    cannot lock folders; leftovers stay there.
    """
    remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        lock = _lock(folder, wait=True)
        try:
            yield Path(folder)
        finally:
            if lock is not None:
                os.close(lock)


def remove_leftovers() -> None:
    """Remove the temporary folders that killed processes of this user left behind.

    Files, symbolic links, folders of other users and folders in use stay, as does everything that
    is not named like these folders. At most 64 folders are removed at once.
    """
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        ours = (entry.path for entry in islice(entries, _ENTRIES_LOOKED_AT) if _is_ours(entry.name))
        for folder in islice(ours, _REMOVED_AT_MOST):
            lock = _lock(folder, wait=False)
            if lock is not None:
                if not _may_be_new(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _is_ours(name: str) -> bool:
    """Whether a folder is named like those of `temporary_folder`."""
    return _OURS.fullmatch(name) is not None


def _may_be_new(folder: str) -> bool:
    """Whether a process may have created the folder without having locked it yet."""
    with suppress(OSError), os.scandir(folder) as entries:
        age = time.time() - Path(folder).lstat().st_mtime
        return next(entries, None) is None and 0 <= age < _EMPTY_KEPT_SECONDS
    return True


if sys.platform == "win32":

    def _lock(folder: str, *, wait: bool) -> int | None:
        """Windows cannot lock folders."""
        return None

else:
    import fcntl

    def _lock(folder: str, *, wait: bool) -> int | None:
        """Lock a folder of this user; return its descriptor, or None if that is not possible."""
        with suppress(OSError):
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            with suppress(OSError):
                if os.fstat(opened).st_uid == os.geteuid():
                    fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                    return opened
            os.close(opened)
        return None
