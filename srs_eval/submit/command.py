"""The command line ``python -m srs_eval.submit``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srs_eval.commands.arguments import Words, carry_out, explained, sort_words
from srs_eval.errors import ConfigError
from srs_eval.text.console import complain, say, shell

if TYPE_CHECKING:
    from srs_eval.submit.checking import Asked

PROGRAM = "python -m srs_eval.submit"
_PATH = "where the review logs are, if they are not simulated"
_TRUST = "true: run what a submission names besides srs_eval, its queries and its code: read them"
_TOLERANCE = "difference of a score that is allowed (by default 1e-6)"
# Options of each command; "" writes submissions.
KEYS: Mapping[str, Mapping[str, str]] = {
    "": {
        "out": "folder of the submission, such as leaderboard/NAME; of several runs, the folder "
        "that gets one submission for each",
        "model": "its title in tables (by default the label of the run)",
        "description": "a paragraph on the model",
        "authors": "names, separated by commas",
        "licence": "of the code, such as MIT",
        "code": "address and commit, as in https://example.org/model@1a2b3c4",
        "tuned_on": "data by which constants were chosen, or none",
        "predictions": "true: submit the predictions too, from which every score is recomputed",
        "published": "scores of each user that another project has published: a file, in place "
        "of RUN",
    },
    "check": {
        "data.path": _PATH,
        "logs": "false: do not read logs that are at hand",
        "code": "true: build the algorithm and put it through the honesty checks; this runs it",
        "trust": "true: build data of which a submission names more than how files are read",
    },
    "verify": {
        "data.path": _PATH,
        "trust": _TRUST,
        "tolerance": _TOLERANCE,
    },
    "accept": {
        "mark": "reported or verified; published for rows of other projects",
        "note": "one line for the record",
        "data.path": _PATH,
        "trust": _TRUST,
        "tolerance": _TOLERANCE,
    },
}
_BOOLEAN = ("true", "false")
_CHOICES = {
    **dict.fromkeys(("predictions", "logs", "code", "trust"), _BOOLEAN),
    "mark": ("reported", "verified", "published"),
}
_TITLES = {"": "Options, KEY=VALUE:", **{name: f"Options of {name}:" for name in KEYS if name}}
_OPTIONS = "\n\n".join(f"{_TITLES[name]}\n\n{explained(KEYS[name])}" for name in KEYS)
_HELP = f"""Submit results to a leaderboard: a folder that is checked and shown on a site.

  {PROGRAM} RUN… out=leaderboard/NAME       write a submission of a finished run
  {PROGRAM} check FOLDER…                   a submission, or a whole leaderboard
  {PROGRAM} verify FOLDER…                  run it again, and compare the scores
  {PROGRAM} accept FOLDER…                  add it to the record of the leaderboard

{_OPTIONS}

Nothing of a submission is run by check, but for code=true and trust=true. It proves that the files
are in form and do not contradict each other ("reported"); only verify proves the numbers.
Flags: --help, --version. Exit status: 0, or 2 if there are problems."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    what = words[0] if words and words[0] in KEYS else ""
    do = {"": _write, "check": _check, "verify": _verify, "accept": _accept}[what]
    return carry_out(
        lambda: do(understood(what, words[bool(what) :])), words, program=PROGRAM, help_page=_HELP
    )


def understood(what: str, words: Sequence[str]) -> Words:
    """Parse a command line of the command `what`, a key of `KEYS`."""
    keys = KEYS[what]
    choices = {key: _CHOICES[key] for key in keys if key in _CHOICES and (what or key != "code")}
    # the data are at a path, and nothing else of them is an option
    found = sort_words(words, keys, choices=choices)
    problems = [] if what else _writing_problems(found)
    if what and not found.paths:
        problems.append("name the folder of a submission, or of a leaderboard")
    if "tolerance" in found.options:
        problems += _number_problems("tolerance", found.options["tolerance"])
    problems += [
        f"{key}={found.options[key]}: no such key; there is data.path"
        for key in found.options
        if key.startswith("data.") and key != "data.path"
    ]
    return found.usable(*problems)


def _writing_problems(found: Words) -> list[str]:
    problems = []
    options = found.options
    if "out" not in options:
        problems.append("the folder of the submission is missing: out=leaderboard/NAME")
    if "published" in options and (found.paths or "model" not in options):
        problems.append("published=FILE needs model=NAME, and no run")
    if "published" not in options and not found.paths:
        problems.append("name the folder of a finished run")
    if len(found.paths) > 1 and "model" in options:
        problems.append("model= is the title of one run")
    return problems


def _number_problems(key: str, text: str) -> list[str]:
    try:
        wrong = not 0 <= float(text) < 1
    except ValueError:
        wrong = True
    return [f"{key}={text}: expected a number from 0 to 1"] * wrong


def _write(asked: Words) -> int:
    """Write submissions, and print the next command."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.comparison.judging import about_prereg
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
        loaded = [load_run(run) for run in runs]
        written = [out] if len(runs) == 1 else _folders(out, [run.name for run in loaded])
        for run, folder in zip(loaded, written, strict=True):
            registered = about_prereg(run, loaded)
            about = {**given, "prereg": registered} if registered else given
            submit_run(run.place, folder, about, predictions=options.get("predictions") == "true")
    for folder in written:
        say(f"written   {folder}")
    say(f"next      {shell([*PROGRAM.split(), 'check', *map(str, written)])}")
    return 0


def _check(asked: Words) -> int:
    """Check submissions, and print their problems."""
    from srs_eval.submit.checking import check

    checked = check(asked.paths, _asked(asked))
    for submission in checked.submissions:
        places = {place for each in checked.problems for place in (each.file, *each.file.parents)}
        if submission.folder not in places:
            done = ", ".join(["files", *checked.done[submission.name]])
            say(f"{submission.mark:<10}{submission.name}: no problems ({done})")
    for problem in checked.problems:
        complain(str(problem))
    return 2 if checked.problems else 0


def _verify(asked: Words) -> int:
    """Run submissions again, and print how their scores differ."""
    from srs_eval.submit.problems import SubmissionError
    from srs_eval.submit.verifying import NOT_VERIFIED, verify

    status, wanted = 0, _asked(asked)
    for folder in _submissions(asked.paths):
        try:
            rerun = verify(folder, wanted, tolerance=_tolerance(asked))
            problems = rerun.problems
        except SubmissionError as error:
            problems = error.found
        for problem in problems:
            complain(str(problem))
        if problems:
            status = 2
            continue
        say(
            f"equal     {rerun.submission.name}: {rerun.metrics} metrics of "
            f"{len(rerun.submission.run.rows):,} users, to within {rerun.largest:.1g}"
        )
        say(f"{'':<10}not verified: {', '.join(NOT_VERIFIED)}")
    return status


def _accept(asked: Words) -> int:
    """Append submissions to the record of their leaderboard."""
    from srs_eval.submit.problems import SubmissionError
    from srs_eval.submit.verifying import accept, verify

    mark: Any = asked.options.get("mark")
    status, wanted, note = 0, _asked(asked), asked.options.get("note", "")
    for folder in _submissions(asked.paths):
        try:
            expected = None
            if mark == "verified":
                rerun = verify(folder, wanted, tolerance=_tolerance(asked))
                if rerun.problems:
                    raise SubmissionError(rerun.problems)
                expected = rerun.digests
            entry = accept(folder, mark, note, wanted, expected=expected)
        except SubmissionError as error:
            status = 2
            for problem in error.found:
                complain(str(problem))
            continue
        say(f"{entry.mark:<10}{folder}: {entry.digest[:16]}… on {entry.date}")
    return status


def _asked(asked: Words) -> Asked:
    """Return what is checked, by the options of a command."""
    from srs_eval.submit.checking import Asked

    options = asked.options
    return Asked(
        path=asked.path("data.path"),
        logs=options.get("logs") != "false",
        code=options.get("code") == "true",
        trust=options.get("trust") == "true",
    )


def _tolerance(asked: Words) -> float:
    from srs_eval.submit.verifying import TOLERANCE

    return float(asked.options.get("tolerance", TOLERANCE))


def _submissions(paths: Sequence[Path]) -> list[Path]:
    """Return submissions, and those of leaderboards."""
    from srs_eval.submit.problems import SubmissionError
    from srs_eval.submit.reading import is_submission, submissions_in

    found: list[Path] = []
    for path in paths:
        if is_submission(path):
            found.append(path)
            continue
        folders, problems = submissions_in(path)
        if problems:
            raise SubmissionError(problems)
        found += folders
    return found


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
