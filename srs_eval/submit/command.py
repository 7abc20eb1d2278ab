"""The command line ``python -m srs_eval.submit``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srs_eval.commands.arguments import Words, carry_out, explained, sort_words
from srs_eval.errors import ConfigError
from srs_eval.text.console import say, shell

PROGRAM = "python -m srs_eval.submit"
KEYS = {
    "out": "folder of the submission, such as leaderboard/NAME; of several runs, the folder that "
    "gets one submission for each",
    "model": "its title in tables (by default the label of the run)",
    "description": "a paragraph on the model",
    "authors": "names, separated by commas",
    "licence": "of the code, such as MIT",
    "code": "address and commit, as in https://example.org/model@1a2b3c4",
    "tuned_on": "data by which constants were chosen, or none",
    "predictions": "true: submit the predictions too, from which every score is recomputed",
    "published": "scores of each user that another project has published, a file, in place of RUN",
}
_BOOLEAN = ("true", "false")
_CHOICES = {"predictions": _BOOLEAN}
_HELP = f"""Submit results to a leaderboard: a folder that is checked and shown on a site.

  {PROGRAM} RUN out=leaderboard/NAME authors='A. Author' licence=MIT tuned_on=none
  {PROGRAM} published=FILE model=NAME out=leaderboard/NAME

RUN is the folder of a finished run. Options, KEY=VALUE:

"""
_HELP_END = """

What is missing in submission.yaml is left empty there, to be written by its author.
Flags: --help, --version. Exit status: 0 if submissions were written, 2 if not."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _write(understood(words)),
        words,
        program=PROGRAM,
        help_page=_HELP + explained(KEYS) + _HELP_END,
    )


def understood(words: Sequence[str]) -> Words:
    """Parse a command line that writes submissions.

    Raises
    ------
    ConfigError
        With all errors in it, and suggestions.
    """
    found = sort_words(words, KEYS, choices=_CHOICES)
    problems = list(found.problems)
    options = found.options
    if not problems and "out" not in options:
        problems.append("the folder of the submission is missing: out=leaderboard/NAME")
    if "published" in options and (found.paths or "model" not in options):
        problems.append("published=FILE needs model=NAME, and no run")
    elif "published" not in options and not found.paths and not problems:
        problems.append("name the folder of a finished run")
    if len(found.paths) > 1 and "model" in options:
        problems.append("model= is the title of one run")
    if problems:
        raise ConfigError(*problems)
    return found


def _write(asked: Words) -> int:
    """Write the submissions, and print what their author has to do."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.results.run import load_run, runs_below
    from srs_eval.submit.writing import submit_published, submit_run

    options, out = asked.options, asked.path("out") or Path()
    given = _given(options)
    published = asked.path("published")
    if published is not None:
        submit_published(published, options["model"], out, given)
        written = [out]
    else:
        runs = [run for path in asked.paths for run in runs_below(path) or [path]]
        written = [out] if len(runs) == 1 else _folders(out, [load_run(run).name for run in runs])
        for run, folder in zip(runs, written, strict=True):
            submit_run(run, folder, given, predictions=options.get("predictions") == "true")
    for folder in written:
        say(f"written   {folder}")
    say(f"next      {shell([*PROGRAM.split(), 'check', *map(str, written)])}")
    return 0


def _given(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of ``submission.yaml`` that the command line has."""
    names = ("model", "description", "licence", "tuned_on")
    given: dict[str, Any] = {name: options[name] for name in names if name in options}
    if "authors" in options:
        given["authors"] = [name.strip() for name in options["authors"].split(",")]
    if "code" in options:
        url, _, commit = options["code"].rpartition("@")
        if not url:
            raise ConfigError(f"code={options['code']}: write URL@COMMIT")
        given["code"] = {"url": url, "commit": commit}
    return given


def _folders(out: Path, labels: Sequence[str]) -> list[Path]:
    """Return a folder for each of several runs, named after their labels."""
    names = [_NOT_IN_NAMES.sub("-", label).strip(".-")[:60] for label in labels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"several runs are called {', '.join(twice)}: submit them one by one")
    return [out / name for name in names]
