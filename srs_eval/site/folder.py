"""The folder of a site: written whole or not at all, and never over other files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from srs_eval.errors import ConfigError

# Which folders are sites of srs_eval.
MARKER = ".srs_eval_site"
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
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        new.mkdir()
        (new / MARKER).write_text(_CONTENT, encoding="utf-8")
        yield new
        if place.exists():
            place.rename(old)
        new.rename(place)


def copy_files(files: Sequence[Path], folder: Path) -> None:
    """Copy files into a folder."""
    folder.mkdir()
    for file in files:
        shutil.copyfile(file, folder / file.name)
