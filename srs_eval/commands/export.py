"""`python -m srs_eval.export`: the fitted parameters of a run in the formats of schedulers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from srs_eval.commands.arguments import Words, carry_out, explained, sort_words
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.console import complain, facts, say

if TYPE_CHECKING:
    from srs_eval.exporting.fitted import RunFits
    from srs_eval.exporting.formats import HandOver
    from srs_eval.nouns import User

PROGRAM = "python -m srs_eval.export"
_ALL = "all"
_NAMED = 5  # users without parameters
# Endings of the files in a folder.
ENDINGS = {"anki": ".txt", "py_fsrs": ".json", "json": ".json"}
KEYS = {
    "to": "anki: the list for Anki's field \"FSRS parameters\"; py_fsrs: JSON for py-fsrs's "
    "Scheduler.from_json; json: for other programs",
    "user": "the user (by default the only one); all, with out=FOLDER, for one file per user",
    "fold": "the fold (by default the last one, which has most training reviews)",
    "out": "the file to write, or a folder, as in out=parameters/, for one file per user "
    "(by default standard output)",
}
_HELP = f"""Export the fitted parameters of a run to a scheduler; nothing is fitted again.

  {PROGRAM} outputs/2026-01-31/12-00-00 to=anki
  {PROGRAM} RUN to=py_fsrs user=7 out=scheduler.json
  {PROGRAM} RUN to=json user=all out=parameters/     one file per user

RUN is a folder with fits.parquet. Options, KEY=VALUE:

{explained(KEYS)}

The parameters go to standard output or the file, notes about them to standard error.
Flags: --help, --version. Exit status: 0 if parameters were exported, 1 if the fit failed, was
skipped or cannot be written, 2 if the command was not understood or no scheduler reads it."""


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(lambda: _export(understood(words)), words, program=PROGRAM, help_page=_HELP)


def understood(words: Sequence[str]) -> Words:
    """Parse a command line."""
    found = sort_words(words, KEYS, choices={"to": tuple(ENDINGS)}, path_keys=("run",))
    runs, fold = found.paths, found.options.get("fold")
    if fold and not (fold.isascii() and fold.isdigit()):
        found.usable(f"fold={fold}: folds are numbers, from 0")
    if not found.problems and len(runs) != 1:
        found.usable("name the folder of one run" + f", not {len(runs)}" * (len(runs) > 1))
    if not found.problems and "to" not in found.options:
        found.usable(f"the format is missing: to={', '.join(ENDINGS)}")
    return found.usable()


def _export(asked: Words) -> int:
    """Export the parameters, and return the exit status."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.exporting.fitted import RunFits
    from srs_eval.exporting.formats import FORMATS

    run, hand_over = RunFits.read(asked.paths[0]), FORMATS[asked.options["to"]]
    place, fold = asked.path("out"), asked.options.get("fold")
    separators = tuple(filter(None, ("/", os.sep, os.altsep)))
    in_folder = asked.options.get("out", "").endswith(separators) or (place and place.is_dir())
    number = None if fold is None else int(fold)
    wanted = asked.options.get("user")
    every = wanted == _ALL and _ALL not in map(str, run.users)
    if every and (place is None or (place.suffix in ENDINGS.values() and not in_folder)):
        raise ConfigError("user=all writes a file per user: add a folder, as in out=parameters/")
    if place is not None and (every or (in_folder and wanted is None)):
        return _export_all(run, asked.options["to"], place, number)
    user = run.user(wanted)
    made = hand_over(run.fitted(user, number))
    if place is not None and in_folder:
        place /= _file_name(user, asked.options["to"])
    deliver(made, place)
    return 0


def deliver(made: HandOver, place: Path | None) -> None:
    """Write parameters to a file or to standard output, and notes about them."""
    if place is None:
        say(made.text)
    else:
        _write(place, made)
    for note in (made.learned, *made.notes):
        complain(note)
    if place is None:
        complain(made.use(None))
    else:
        say(facts({"written": str(place), "use": made.use(place)}))


def _export_all(run: RunFits, to: str, folder: Path, fold: int | None) -> int:
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
        _write(place, made)
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


def _write(place: Path, made: HandOver) -> None:
    from srs_eval.results.files import whole_file

    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as partial:
        partial.write_text(made.text + "\n", encoding="utf-8")


def _file_name(user: User, to: str) -> str:
    """Return the name of a user's file, with unsafe characters escaped."""
    return f"user_{quote(str(user), safe=' ')}{ENDINGS[to]}"
