"""Submit results to a leaderboard: a folder that is checked and shown on a site.

  python -m srs_eval.submit RUN… out=leaderboard/NAME       write a submission of a finished run
  python -m srs_eval.submit check FOLDER…                   a submission, or a whole leaderboard
  python -m srs_eval.submit verify FOLDER…                  run it again, and compare the scores
  python -m srs_eval.submit accept FOLDER…                  add it to the record of the leaderboard

Nothing of a submission is run by check, but for code=true and trust=true. It proves that the files
are in form and do not contradict each other ("reported"); only verify proves the numbers. The exit
status is 2 if there are problems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Lt

from srs_eval.commands.cli import Argument, Command, Key, Local, Options
from srs_eval.errors import ConfigError
from srs_eval.text.console import complain, say, shell

if TYPE_CHECKING:
    from srs_eval.submit.checking import Asked
    from srs_eval.submit.verifying import Rerun

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Options):
    """Options of the command that writes submissions."""

    runs: Argument[tuple[Path, ...]] = ()
    """folders of finished runs"""
    out: Local[Path]
    """folder of the submission, such as leaderboard/NAME; of several runs, the folder that gets one
    submission for each
    """
    model: str | None = None
    """its title in tables (by default the label of the run)"""
    description: str | None = None
    """a paragraph on the model"""
    authors: tuple[str, ...] = ()
    """names, separated by commas"""
    licence: str | None = None
    """of the code, such as MIT"""
    code: str | None = None
    """address and commit, as in https://example.org/model@1a2b3c4"""
    tuned_on: str | None = None
    """data by which constants were chosen, or none"""
    predictions: bool = False
    """true: submit the predictions too, from which every score is recomputed"""
    published: Path | None = None
    """scores of each user that another project has published: a file, in place of RUN"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        if self.published and (self.runs or not self.model):
            yield "published=FILE needs model=NAME, and no run"
        if not self.published and not self.runs:
            yield "name the folder of a finished run"
        if len(self.runs) > 1 and self.model:
            yield "model= is the title of one run"
        if self.code and not self.code.rpartition("@")[0]:
            yield f"code={self.code}: write URL@COMMIT"

    @property
    def about(self) -> dict[str, Any]:
        """The values of ``submission.yaml`` that the command line has."""
        given: dict[str, Any] = {
            name: getattr(self, name) for name in ("model", "description", "licence", "tuned_on")
        }
        given["authors"] = list(self.authors)
        if self.code:
            url, _, commit = self.code.rpartition("@")
            given["code"] = {"url": url, "commit": commit}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Submissions(Options):
    """What the commands on submissions have in common."""

    folders: Argument[tuple[Path, ...]]
    """the folder of a submission, or of a leaderboard"""
    path: Annotated[Path | None, Key("data.path")] = None
    """where the review logs are, if they are not simulated"""
    trust: bool = False
    """true: build and run what a submission names besides srs_eval, its queries and its code: read
    them
    """

    def each(self, do: Callable[[Path, Asked], None]) -> int:
        """Do something with each submission, print its problems, and return the exit status."""
        from srs_eval.submit.checking import Asked
        from srs_eval.submit.problems import SubmissionError
        from srs_eval.submit.reading import is_submission, submissions_in

        status, found = 0, list[Path]()
        asked = Asked(path=self.path, trust=self.trust)
        for path in self.folders:
            folders, problems = ([path], []) if is_submission(path) else submissions_in(path)
            if problems:
                raise SubmissionError(problems)
            found += folders
        for folder in found:
            try:
                do(folder, asked)
            except SubmissionError as error:
                status = 2
                for problem in error.found:
                    complain(str(problem))
        return status


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Submissions):
    """Options of ``check``."""

    logs: bool = True
    """false: do not read logs that are at hand"""
    code: bool = False
    """true: build the algorithm and put it through the honesty checks; this runs it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify(Submissions):
    """Options of ``verify``."""

    tolerance: Annotated[float, Ge(0), Lt(1)] = 1e-06
    """difference of a score that is allowed"""

    def rerun(self, folder: Path, asked: Asked) -> Rerun:
        """Run a submission again; raise `SubmissionError` if it has problems."""
        from srs_eval.submit.problems import SubmissionError
        from srs_eval.submit.verifying import verify

        rerun = verify(folder, asked, tolerance=self.tolerance)
        if rerun.problems:
            raise SubmissionError(rerun.problems)
        return rerun


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept(Verify):
    """Options of ``accept``."""

    mark: Literal["reported", "verified", "published"] | None = None
    """reported or verified; published for rows of other projects"""
    note: str = ""
    """one line for the record"""


def write(options: Write) -> int:
    """Write submissions, and print the next command."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.comparison.judging import about_prereg
    from srs_eval.results.run import load_run, runs_below
    from srs_eval.submit.writing import submit_published, submit_run

    given, written = options.about, [options.out]
    if options.published:
        submit_published(options.published, given["model"], options.out, given)
    else:
        runs = [load_run(run) for path in options.runs for run in runs_below(path) or [path]]
        if len(runs) != 1:
            written = _folders(options.out, [run.name for run in runs])
        for run, folder in zip(runs, written, strict=True):
            registered = about_prereg(run, runs)
            about = {**given, "prereg": registered} if registered else given
            submit_run(run.place, folder, about, predictions=options.predictions)
    for folder in written:
        say(f"written   {folder}")
    say(f"next      {shell([*command.program.split(), 'check', *map(str, written)])}")
    return 0


def check(options: Check) -> int:
    """Check submissions, and print their problems."""
    from srs_eval.submit.checking import Asked, check

    asked = Asked(options.path, logs=options.logs, code=options.code, trust=options.trust)
    checked = check(options.folders, asked)
    for submission in checked.submissions:
        places = {place for each in checked.problems for place in (each.file, *each.file.parents)}
        if submission.folder not in places:
            done = ", ".join(["files", *checked.done[submission.name]])
            say(f"{submission.mark:<10}{submission.name}: no problems ({done})")
    for problem in checked.problems:
        complain(str(problem))
    return 2 if checked.problems else 0


def verify(options: Verify) -> int:
    """Run submissions again, and print how their scores differ."""
    from srs_eval.submit.verifying import NOT_VERIFIED

    def one(folder: Path, asked: Asked) -> None:
        rerun = options.rerun(folder, asked)
        say(
            f"equal     {rerun.submission.name}: {rerun.metrics} metrics of "
            f"{len(rerun.submission.run.rows):,} users, to within {rerun.largest:.1g}"
        )
        say(f"{'':<10}not verified: {', '.join(NOT_VERIFIED)}")

    return options.each(one)


def accept(options: Accept) -> int:
    """Append submissions to the record of their leaderboard."""
    from srs_eval.submit.verifying import accept

    def one(folder: Path, asked: Asked) -> None:
        expected = options.rerun(folder, asked).digests if options.mark == "verified" else None
        entry = accept(folder, options.mark, options.note, asked, expected=expected)
        say(f"{entry.mark:<10}{folder}: {entry.digest[:16]}… on {entry.date}")

    return options.each(one)


def _folders(out: Path, labels: Sequence[str]) -> list[Path]:
    """Return a folder for each of several runs, named after their labels."""
    names = [_NOT_IN_NAMES.sub("-", label).strip(".-")[:60] for label in labels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"several runs are called {', '.join(twice)}: submit them one by one")
    return [out / name for name in names]


command = Command(
    "python -m srs_eval.submit",
    __doc__,
    Write,
    write,
    {"check": (Check, check), "verify": (Verify, verify), "accept": (Accept, accept)},
)
