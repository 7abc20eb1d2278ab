"""The folder of a site: written whole or not at all, and never over other files."""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from srs_eval.errors import ConfigError

# Which folders are sites of srs_eval.
MARKER = ".srs_eval_site"
# Held while a site is written beside its place.
_LOCK = ".lock"
_NEW, _OLD = "new", "old"
_CONTENT = "A site made by srs_eval; another one may replace it.\n"


@contextmanager
def whole_site(out: Path) -> Iterator[Path]:
    """Return a folder to write to, and put it at `out` once it is complete.

    Raise `ConfigError` if there are files at `out` that are not a site.
    """
    place = out.expanduser().resolve()
    is_site = (place / MARKER).is_file()
    if place.exists() and not is_site and not (place.is_dir() and not any(place.iterdir())):
        raise ConfigError(f"out={out}: has files that are not a site of srs_eval; name another")
    place.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{place.name}."
    _clear(place, prefix)
    with tempfile.TemporaryDirectory(
        prefix=prefix, dir=place.parent, ignore_cleanup_errors=True
    ) as beside:
        new, old = Path(beside, _NEW), Path(beside, _OLD)
        with FileLock(Path(beside, _LOCK)):
            new.mkdir()
            (new / MARKER).write_text(_CONTENT, encoding="utf-8")
            yield new
            if place.exists():
                place.rename(old)
            try:
                new.rename(place)
            finally:
                if old.exists() and not place.exists():
                    old.rename(place)


def _clear(place: Path, prefix: str) -> None:
    """Remove what killed commands have left, and put back a site that one had just moved away."""
    for left in place.parent.glob(f"{glob.escape(prefix)}*"):
        sites = [left / name for name in (_OLD, _NEW) if (left / name / MARKER).is_file()]
        if left.is_symlink() or not sites:
            continue
        try:
            with FileLock(left / _LOCK, timeout=0):
                if sites[0].name == _OLD and not place.exists():
                    sites[0].rename(place)
                shutil.rmtree(left)
        except (Timeout, OSError):  # written by another command, or not ours to remove
            continue
