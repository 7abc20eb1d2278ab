"""One command at a time in a folder: two that write the same files would mix their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from srs_eval.errors import FolderInUseError

_LOCK = ".lock"
_SECONDS = 10  # That a shard waits for another that is just beginning


@contextmanager
def claimed(folder: Path, shard: str | None = None) -> Iterator[None]:
    """Claim a folder, made if need be; the system ends the claim with the process.

    Shards of a run share the folder, each with a lock of its own. A claim on the same folder by
    the same thread is granted again. Raise `FolderInUseError` if another command has the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    whole = FileLock(place / _LOCK, is_singleton=True)
    with ExitStack() as stack:
        try:
            whole.acquire(timeout=0 if shard is None else _SECONDS)
            stack.callback(whole.release)
            if shard is None:
                for file in place.glob(f"{_LOCK}_*"):
                    stack.enter_context(FileLock(file, is_singleton=True).acquire(timeout=0))
            else:
                mine = place / f"{_LOCK}_{shard.replace('/', '_of_')}"
                stack.enter_context(FileLock(mine, is_singleton=True).acquire(timeout=0))
                whole.release()
        except Timeout as taken:
            raise FolderInUseError(
                f"{folder} is in use by another command that is still running; wait for its end, "
                "or choose another hydra.run.dir (hydra.sweep.dir with -m)"
            ) from taken
        yield
