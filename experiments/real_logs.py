"""The real logs that several studies can use, as far as their paths are given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import ConfigError
from srs_eval.nouns import Source


def given_path(options: SimpleNamespace, name: str) -> Path | None:
    """Return the path that an option names; None where it is null.

    Raises
    ------
    ConfigError
        If nothing is there.
    """
    value = getattr(options, name)
    if value is None:
        return None
    path = Path(str(value)).expanduser()
    if not path.exists():
        raise ConfigError(f"study.{name}={value}: no such file or folder")
    return path


def real_logs(options: SimpleNamespace) -> tuple[dict[str, Source], list[str]]:
    """Return the logs by name, and what is left out for lack of a path.

    ``study.josh`` is the log of py-fsrs' author in the columns of anki-revlogs-10k,
    ``study.anki_mit`` a folder in the layout of that data set.
    """
    found: dict[str, Source] = {}
    josh, folder = given_path(options, "josh"), given_path(options, "anki_mit")
    if josh is not None:
        columns = Columns(
            card="card_id",
            time=None,
            day="day_offset",
            elapsed_days="elapsed_days",
            elapsed_seconds="elapsed_seconds",
            duration_ms="duration",
        )
        found["josh"] = ReviewTable(path=str(josh), columns=columns)
    if folder is not None:
        found["anki-mit"] = RevlogsFolder(folder)
    paths = {"josh": josh, "anki_mit": folder}
    return found, [f"study.{name} (no path given)" for name, path in paths.items() if path is None]
