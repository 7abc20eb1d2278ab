"""Export a run: its fitted parameters to a scheduler, or its scores to the public srs-benchmark.

  python -m srs_eval.export outputs/2026-01-31/12-00-00 to=anki
  python -m srs_eval.export RUN to=py_fsrs user=7 out=scheduler.json
  python -m srs_eval.export RUN to=json user=all out=parameters/     one file per user
  python -m srs_eval.export RUN to=srs_benchmark out=result/         NAME.jsonl, a line per user

RUN is a folder with fits.parquet; to=srs_benchmark also takes a folder with several runs, and
published scores. Nothing is fitted again. What is exported goes to standard output or the file,
notes about it to standard error. A fit that failed or was skipped is not exported: exit status 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote

from annotated_types import Ge

from srs_eval.commands.cli import Argument, Command, Local, Options
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.console import complain, facts, say

if TYPE_CHECKING:
    from srs_eval.exporting.fitted import RunFits
    from srs_eval.exporting.formats import HandOver
    from srs_eval.nouns import User

To = Literal["anki", "py_fsrs", "json"]
ENDINGS: dict[To, str] = {"anki": ".txt", "py_fsrs": ".json", "json": ".json"}
_ALL = "all"
_NAMED = 5  # users without parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Export(Options):
    """Options of the command."""

    run: Argument[Path]
    """the folder of one run"""
    to: Literal[To, "srs_benchmark"]
    """anki, the list for Anki's field "FSRS parameters"; py_fsrs, JSON for py-fsrs's
    Scheduler.from_json; json, for other programs; or srs_benchmark, scores and parameters as lines
    of the public benchmark's result/NAME.jsonl
    """
    user: str | None = None
    """the user (by default the only one); all, with out=FOLDER, for one file per user"""
    fold: Annotated[int | None, Ge(0)] = None
    """the fold (by default the last one, which has most training reviews)"""
    out: Local[str] = ""
    """the file to write, or a folder, as in out=parameters/, for one file per user (by default
    standard output)
    """

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        if self.to == "srs_benchmark" and self.fold is not None:
            yield "fold= goes with parameters: to=srs_benchmark has the scores of all folds"

    @property
    def place(self) -> Path | None:
        """Where to write; None for standard output."""
        return Path(self.out).expanduser() if self.out else None

    @property
    def in_folder(self) -> bool:
        """Whether that is a folder."""
        return self.out.endswith(("/", os.sep)) or (self.place is not None and self.place.is_dir())


def export(options: Export) -> int:
    """Export the run, and return the exit status."""
    if options.to == "srs_benchmark":
        return _export_results(options)
    # Heavy: not for --help and for mistakes.
    from srs_eval.exporting.fitted import RunFits
    from srs_eval.exporting.formats import FORMATS

    run, user = RunFits.read(options.run), options.user
    place, in_folder = options.place, options.in_folder
    every = user == _ALL and _ALL not in map(str, run.users)
    if every and (place is None or (place.suffix in ENDINGS.values() and not in_folder)):
        raise ConfigError("user=all writes a file per user: add a folder, as in out=parameters/")
    if place is not None and (every or (in_folder and user is None)):
        return _export_all(run, options.to, place, options.fold)
    found = run.user(user, otherwise="user=all out=parameters/ writes a file of each")
    made = FORMATS[options.to](run.fitted(found, options.fold))
    if place is not None and in_folder:
        place /= _file_name(found, options.to)
    deliver(made, place)
    return 0


def deliver(made: HandOver, place: Path | None) -> None:
    """Write parameters to a file or to standard output, and notes about them."""
    if place is None:
        say(made.text)
    else:
        _write(place, made.text)
    for note in (made.learned, *made.notes):
        complain(note)
    if place is None:
        complain(made.use(None))
    else:
        say(facts({"written": str(place), "use": made.use(place)}))


def _export_results(options: Export) -> int:
    """Write runs as results of the public benchmark, and return the exit status."""
    from srs_eval.comparison.inputs import read_runs
    from srs_eval.exporting.srs_benchmark import new_place, result_rows

    runs, notes = read_runs([options.run])
    place, in_folder = options.place, options.in_folder
    if len(runs) > 1 and not in_folder:
        raise ConfigError(f"{options.run} has {len(runs)} results: add a folder, as in out=result/")
    user = None if options.user == _ALL else options.user
    made = [result_rows(run, user) for run in runs]
    files = [new_place(place, rows) if place and in_folder else place for rows in made]
    for rows, file in zip(made, files, strict=True):
        if file is None:
            say(rows.text)
        else:
            _write(file, rows.text)
        for note in rows.notes:
            complain(f"{rows.name}: {note}")
    for note in notes:
        complain(note)
    if place is not None:
        say(facts({"written": "\n".join(map(str, files))}))
    return 0


def _export_all(run: RunFits, to: To, folder: Path, fold: int | None) -> int:
    """Write one file per user, report users without one, and return the exit status."""
    from srs_eval.exporting.formats import FORMATS

    written: dict[Path, HandOver] = {}
    refused: list[SrsEvalError] = []
    for user in run.users:
        try:
            made = FORMATS[to](run.fitted(user, fold))
        except SrsEvalError as error:
            refused.append(error)
            continue
        place = folder / _file_name(user, to)
        _write(place, made.text)
        written[place] = made
    if not written:
        raise refused[0]
    users = Counter(note for made in written.values() for note in made.notes)
    for note, count in users.items():
        complain(note if count == len(written) else f"{count} of {len(written)} users: {note}")
    complain("no fit has seen the reviews that it was tested on, which come after all others")
    for problem in refused[:_NAMED]:
        complain(str(problem))
    if len(refused) > _NAMED:
        complain(f"… and {len(refused) - _NAMED:,} more users without parameters: fits.parquet")
    plural = "s" * (len(written) > 1)
    first, made = next(iter(written.items()))
    files = f"{len(written)} file{plural} in {folder}"
    say(facts({"written": files, "use": made.use(first)}))
    return int(bool(refused))


def _write(place: Path, text: str) -> None:
    from srs_eval.results.files import write_text  # heavy: not for --help

    write_text(place, text + "\n")


def _file_name(user: User, to: To) -> str:
    """Return the name of a user's file, with unsafe characters escaped."""
    return f"user_{quote(str(user), safe=' ')}{ENDINGS[to]}"


command = Command("python -m srs_eval.export", __doc__, Export, export)
