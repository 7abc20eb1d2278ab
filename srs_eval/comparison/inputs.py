"""Read the runs that paths on the command line name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from srs_eval.errors import ConfigError
from srs_eval.results.folder import is_run
from srs_eval.results.published import is_published, read_published
from srs_eval.results.run import Run, load_run, runs_below


def read_runs(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """Read all runs at some paths, and return a note for each that scored no user.

    A path is the folder of a run, a folder with runs somewhere below, a file of published scores,
    or a folder of such files. Raise `ConfigError` with every path that holds no runs.
    """
    runs: list[Run] = []
    problems = []
    for path in paths:
        try:
            found = _runs_at(path, next(iter(runs), None))
        except ConfigError as error:
            problems.append(str(error))
        except (OSError, KeyError, ValueError) as error:
            problems.append(f"{path}: cannot be read ({type(error).__name__}: {error})")
        else:
            runs += found
    if problems:
        raise ConfigError("\n".join(problems))
    nothing = [run for run in runs if not run.rows]
    notes = [f"{run.name} scored no user and was left out: {run.place}" for run in nothing]
    return [run for run in runs if run.rows], notes


def _runs_at(path: Path, like: Run | None) -> list[Run]:
    if not path.exists():
        raise ConfigError(f"{path}: there is no such file or folder")
    if path.is_dir() and is_run(path):
        return [load_run(path, like)]
    if path.is_dir():
        below = runs_below(path)
        if below:
            first = load_run(below[0], like)
            return [first, *(load_run(folder, first) for folder in below[1:])]
        if any(is_published(file) for file in path.iterdir()):
            return read_published(path)
        raise ConfigError(
            f"{path}: no finished runs here or below; a run's folder has summary.json and "
            "scores.parquet"
        )
    if is_published(path):
        return read_published(path)
    raise ConfigError(f"{path}: neither the folder of a run nor a file of published scores")
