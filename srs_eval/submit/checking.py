"""Check submissions and leaderboards: every problem at once, on anybody's machine and in CI."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from srs_eval.checks import CheckFailed, check_algorithm
from srs_eval.comparison.identical import find_duplicates
from srs_eval.config.targets import TARGET, Builder
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm
from srs_eval.submit.logs_check import (
    ScoredRows,
    build_problem,
    logs_problems,
    protocol_of,
    rows_problems,
    scored_rows,
    source_of,
    version_problems,
)
from srs_eval.submit.problems import Kind, Problem, SubmissionError, shown
from srs_eval.submit.reading import (
    Read,
    boards_of,
    is_submission,
    opened,
    record_beside,
    submissions_in,
)
from srs_eval.submit.record import Record, digest_of_file, frozen_board, read_record
from srs_eval.submit.scores_check import prediction_problems, sums_problems
from srs_eval.submit.submission import ABOUT, ACCEPTED, PREDICTIONS, RESULTS, Board, Submission


@dataclass(frozen=True, slots=True)
class Asked:
    """What is checked besides the files.

    Attributes
    ----------
    path : Path, optional
        Path of the review logs, if they are not simulated.
    logs : bool
        Whether logs that are at hand are read.
    code : bool
        Whether the algorithm is built and put through the honesty checks.
    accepting : bool
        Whether new versions of accepted submissions are expected.
    """

    path: Path | None = None
    logs: bool = True
    code: bool = False
    accepting: bool = False


@dataclass(slots=True)
class Checked:
    """The result of a check.

    Attributes
    ----------
    submissions : list of Submission
        Those that could be read.
    problems : list of Problem
    done : dict of str to list of str
        What was checked of each submission besides its files.
    """

    submissions: list[Submission] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    done: dict[str, list[str]] = field(default_factory=dict)


_USUAL = Asked()


def check(folders: Iterable[Path], asked: Asked = _USUAL) -> Checked:
    """Check submissions, or all submissions of leaderboards.

    Parameters
    ----------
    folders : iterable of Path
        Of submissions or leaderboards.

    Raises
    ------
    ConfigError
        If a folder is neither.
    """
    checked = Checked()
    logs: dict[str, ScoredRows] = {}
    for folder in folders:
        if is_submission(folder):
            record, each, is_whole = record_beside(folder), [folder], False
        else:
            record, is_whole = read_record(folder), True
            each, problems = submissions_in(folder)
            checked.problems += problems
            checked.problems += _withdrawn(folder, record, each)
        submissions = []
        for path in each:
            read = opened(path, record, sums=True)
            checked.problems += read.problems
            if read.submission is not None:
                done = checked.done.setdefault(read.submission.name, [])
                checked.problems += _of_one(read, asked, logs, done)
                submissions.append(read.submission)
        for board in boards_of(submissions):
            places = {problem.file.parent for problem in checked.problems}
            checked.problems += _of_board(board, record, places, is_whole=is_whole)
        checked.submissions += submissions
    return checked


def checked_submission(folder: Path, asked: Asked) -> Submission:
    """Return a submission without problems.

    Raises
    ------
    SubmissionError
        With every problem.
    """
    checked = check([folder], asked)
    if checked.problems:
        raise SubmissionError(checked.problems)
    return checked.submissions[0]


def _of_one(
    read: Read, asked: Asked, logs: dict[str, ScoredRows], done: list[str]
) -> Iterator[Problem]:
    """Yield the problems of a submission whose files can be read.

    `logs` has the rows of logs that were read before, for other submissions of a board.
    """
    submission, results = read.submission, read.results
    if submission is None or results is None:
        return
    file = submission.folder / RESULTS
    if submission.run.has_digests:
        yield from sums_problems(file, results)
        done.append("sums")
    if (submission.folder / PREDICTIONS).exists():
        yield from prediction_problems(submission.folder, results)
        done.append("predictions")
    yield from _changed(submission, asked)
    try:
        protocol = protocol_of(submission)
        source = source_of(submission, asked.path) if asked.logs else None
        others = [] if protocol is None else [*version_problems(submission, protocol)]
        if not submission.history:  # archives stay as they are
            yield from others
        if protocol is not None and source is not None and not others:
            key = str([submission.about[group]["options"] for group in ("protocol", "data")])
            if key not in logs:
                logs[key] = scored_rows(source, protocol)
            yield from logs_problems(submission, logs[key])
            done.append("review logs")
        if asked.code:
            yield from _honesty(submission)
            done.append("code")
    except ConfigError as error:
        yield build_problem(submission, error)


def _honesty(submission: Submission) -> Iterator[Problem]:
    """Build the algorithm, and put it through the honesty checks."""
    options, file = submission.about["algorithm"], submission.folder / ABOUT
    if not options or TARGET not in options:
        advice = "name the class of the algorithm, or leave out code=true"
        yield Problem("code", file, "algorithm", "no _target_", advice)
        return
    algorithm = cast(Algorithm, Builder().build(options, Algorithm, "algorithm"))
    for key, found in (("when", algorithm.when), ("sees_truth", algorithm.sees_truth)):
        if submission.about[key] != found:
            yield Problem(
                "honesty", file, key, shown(submission.about[key]), f"the algorithm says {found}"
            )
    try:
        check_algorithm(algorithm)
    except CheckFailed as failed:
        yield Problem(
            "honesty", file, "algorithm", str(failed), "mend the algorithm, and run again"
        )


def _changed(submission: Submission, asked: Asked) -> Iterator[Problem]:
    """Yield the difference from the version that was accepted last."""
    if not submission.history or asked.accepting:
        return
    accepted = submission.history[-1]
    for name, expected in ((RESULTS, accepted.digest), (ABOUT, accepted.about)):
        digest = digest_of_file(submission.folder / name)
        if digest != expected:
            advice = (
                f"{expected[:16]}… was accepted on {accepted.date}; restore it, or have the new "
                "version accepted"
            )
            found = f"SHA-256 {digest[:16]}…"
            yield Problem("changed", submission.folder / name, "", found, advice)


def _withdrawn(folder: Path, record: Record, there: Sequence[Path]) -> Iterator[Problem]:
    """Yield accepted submissions that are not there any more."""
    names = {path.name for path in there}
    for name in record.submissions:
        if name not in names:
            advice = f"restore {name}: accepted submissions stay"
            yield Problem("missing", folder / ACCEPTED, shown(name), "no such folder", advice)


def _of_board(
    board: Board, record: Record, bad: Collection[Path], *, is_whole: bool
) -> Iterator[Problem]:
    """Yield submissions that scored other reviews than their board, and the same ones twice.

    Before a submission is accepted, the board is what the first one scored that is not `bad`.
    """
    for submission in board.submissions:
        if submission.history and board.name not in record.boards:
            advice = "an accepted submission stays on its board; submit under another name"
            file = submission.folder / ABOUT
            yield Problem("changed", file, "protocol, data", shown(board.name), advice)
    with_rows = [each for each in board.submissions if each.run.has_digests]
    frozen = record.boards.get(board.name)
    if frozen is None and with_rows:
        usable = [each for each in with_rows if each.folder not in bad]
        frozen = frozen_board((usable or with_rows)[0].run)
    same = [each for each in with_rows if frozen_board(each.run) == frozen]
    for submission in with_rows:
        if frozen is None or submission in same:
            continue
        file = submission.folder / RESULTS
        if same:
            run = same[0].run
            rows = {user: (run.reviews[user], digest) for user, digest in run.rows.items()}
            yield from rows_problems(file, submission.run, rows, f"{same[0].name} has")
            continue
        users, reviews = len(submission.run.rows), sum(submission.run.reviews.values())
        found = f"{users:,} users with {reviews:,} reviews"
        advice = f"the board {board.name} has {frozen.users:,} with {frozen.reviews:,}"
        kind: Kind = "reviews" if reviews != frozen.reviews else "rows"
        kind = "users" if users != frozen.users else kind
        yield Problem(kind, file, "", found, f"{advice}, of digest {frozen.digest[:16]}…")
    if is_whole:
        yield from _duplicates(board)


def _duplicates(board: Board) -> Iterator[Problem]:
    """Yield submissions with the title or the scores of another."""
    titles: dict[str, Submission] = {}
    for submission in board.submissions:
        first = titles.setdefault(submission.run.name, submission)
        if first is not submission:
            advice = f"{first.name} has this title: write another"
            file = submission.folder / ABOUT
            yield Problem("repeated", file, "model", shown(submission.run.name), advice)
    of_run = {id(each.run): each for each in board.submissions}
    runs = [each.run for each in board.submissions]
    users = [user for user in runs[0].rows if all(user in run.rows for run in runs)]
    for duplicate in find_duplicates(runs, users):
        submission, twin = of_run[id(duplicate.run)], of_run[id(duplicate.twin)]
        yield Problem(
            "duplicate",
            submission.folder / RESULTS,
            "",
            f"the scores of {twin.name}",
            "submit a model once",
        )
