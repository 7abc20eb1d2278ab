"""Read the runs that paths on the command line name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from srs_eval.comparison.entry import Entry, read_entry
from srs_eval.comparison.published import is_published, read_published
from srs_eval.errors import ConfigError
from srs_eval.runs.folder import SCORES, SUMMARY, runs_below


def read_runs(paths: Iterable[Path]) -> tuple[list[Entry], list[str]]:
    """Read all runs at some paths, and return a note for each that scored no user.

    A path is the folder of a run, a folder with runs somewhere below, a file of published scores,
    or a folder of such files. Raise `ConfigError` with every path that holds no runs.
    """
    entries: list[Entry] = []
    problems = []
    for path in paths:
        if below := runs_below(path):
            entries += [read_entry(folder) for folder in below]
        elif any(is_published(file) for file in (path.iterdir() if path.is_dir() else [path])):
            entries += read_published(path)
        else:
            expected = f"a folder with runs ({SUMMARY}, {SCORES}), or published scores"
            what = "expected" if path.exists() else "there is no such file or folder; expected"
            problems.append(f"{path}: {what} {expected}")
    if problems:
        raise ConfigError("\n".join(problems))
    nothing = [entry for entry in entries if not entry.rows]
    notes = [f"{entry.name} scored no user and was left out: {entry.place}" for entry in nothing]
    return [entry for entry in entries if entry.rows], notes
