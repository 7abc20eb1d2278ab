"""Check submissions and leaderboards: every problem at once, on anybody's machine and in CI."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from srs_eval.checks import CheckFailed, check_algorithm
from srs_eval.comparison.identical import find_duplicates
from srs_eval.config.targets import TARGET, Builder
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, User
from srs_eval.submit.about import visible
from srs_eval.submit.logs_check import (
    ReadLogs,
    build_problem,
    is_own,
    logs_of,
    logs_problems,
    own_builder,
    protocol_of,
    rows_problems,
    source_of,
    version_problems,
)
from srs_eval.submit.predictions_check import prediction_problems
from srs_eval.submit.problems import Problem, SubmissionError, caught, shown
from srs_eval.submit.reading import (
    Read,
    board_name,
    boards_of,
    is_submission,
    opened,
    submissions_in,
)
from srs_eval.submit.record import (
    RECORDED,
    Record,
    digest_of_file,
    digests_of,
    frozen_board,
    read_record,
)
from srs_eval.submit.registrations import registration_problems
from srs_eval.submit.results_table import bound_problems
from srs_eval.submit.submission import ABOUT, ACCEPTED, PREDICTIONS, RESULTS, Board, Submission

# Facts of a submission that its algorithm declares.
DECLARED = ("when", "sees_truth")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is checked besides the files."""

    path: Path | None = None  # Path of the review logs, if they are not simulated
    logs: bool = True  # Whether logs that are at hand are read
    code: bool = False  # Whether the algorithm is built and put through the honesty checks
    # Whether to build data of which a submission names more than how files are read
    trust: bool = False
    accepting: bool = False  # Whether new versions of accepted submissions are expected
    # Logs that were read, for further submissions with the same data
    read: ReadLogs = field(default_factory=dict)
    # Submissions that were read to be compared with others, by their folders
    beside: dict[Path, Submission | None] = field(default_factory=dict)


@dataclass(slots=True)
class Checked:
    """The result of a check."""

    submissions: list[Submission] = field(default_factory=list)  # Those that could be read
    problems: list[Problem] = field(default_factory=list)
    # What was checked of each submission besides its files
    done: dict[str, list[str]] = field(default_factory=dict)


def check(folders: Iterable[Path], asked: Asked | None = None) -> Checked:
    """Check submissions, or all submissions of leaderboards."""
    asked = asked or Asked()
    checked = Checked()
    for folder in folders:
        is_whole = not is_submission(folder)
        leaderboard = folder if is_whole else folder.resolve().parent
        each, problems = submissions_in(folder) if is_whole else ([folder], [])
        checked.problems += problems
        try:
            record = read_record(leaderboard)
        except SubmissionError as error:
            checked.problems += error.found
            record = Record()
        if is_whole:
            checked.problems += _withdrawn(folder, record, each)
        submissions = []
        for path in each:
            read = opened(path, record)
            checked.problems += read.problems
            if read.submission is not None:
                done = checked.done.setdefault(read.submission.name, [])
                checked.problems += caught(path, _of_one(read, asked, done))
                submissions.append(read.submission)
        for board in boards_of(submissions):
            places = {problem.file.parent for problem in checked.problems}
            checked.problems += caught(leaderboard, _of_board(board, record, places))
        checked.problems += caught(
            leaderboard,
            _compared(submissions, record) if is_whole else _beside(submissions, record, asked),
        )
        checked.submissions += submissions
    return checked


def checked_submission(folder: Path, asked: Asked) -> Submission:
    """Return a submission without problems; raise `SubmissionError` with every problem."""
    checked = check([folder], asked)
    if checked.problems:
        raise SubmissionError(checked.problems)
    return checked.submissions[0]


def _of_one(read: Read, asked: Asked, done: list[str]) -> Iterator[Problem]:
    """Yield the problems of a submission whose files can be read."""
    submission, results = read.submission, read.results
    if submission is None or results is None:
        return
    file = submission.folder / RESULTS
    if submission.run.has_digests:
        yield from bound_problems(file, results.scores)
    if (submission.folder / PREDICTIONS).exists():
        yield from prediction_problems(submission.folder, results)
        done.append("predictions")
    changed = [*_changed(submission)]
    if not asked.accepting:
        yield from changed
    try:
        protocol = protocol_of(submission)
        others = [*version_problems(submission, protocol)]
        if not submission.history or changed:  # archives stay as they are
            yield from others
            yield from _declared(submission)
        source = source_of(submission, asked.path, trust=asked.trust) if asked.logs else None
        if protocol is not None and source is not None and not others:
            logs = logs_of(submission, source, protocol, asked.read)
            yield from logs_problems(submission, results, logs)
            done.append("review logs")
        if asked.code:
            yield from _honesty(submission)
            done.append("code")
    except SubmissionError:
        raise
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
    if not is_own(options):  # of which `check` has read the class
        yield from _contradicted(submission, algorithm)
    try:
        check_algorithm(algorithm)
    except CheckFailed as failed:
        yield Problem("facts", file, "algorithm", str(failed), "mend the algorithm, and run again")


def _declared(submission: Submission) -> Iterator[Problem]:
    """Yield facts in which a submission differs from its algorithm, if that is one of srs_eval.

    The algorithm is not started: only its class, and those of the algorithms it is made of, are
    asked, so that no option of a stranger reads a file or takes memory.
    """
    options, file = submission.about["algorithm"], submission.folder / ABOUT
    if not is_own(options):
        return
    try:
        own_builder().find(str(options[TARGET]), Algorithm)
        yield from _contradicted(submission, _unstarted(options))
    except ConfigError as error:
        yield build_problem(submission, error)
    except (AttributeError, TypeError, ValueError) as error:
        found = shown(f"{type(error).__name__}: {error}")
        yield Problem("code", file, "algorithm", found, "write the options as the run has them")


def _contradicted(submission: Submission, algorithm: Any) -> Iterator[Problem]:
    """Yield facts in which a submission differs from an algorithm."""
    for key in DECLARED:
        stated, found = submission.about[key], getattr(algorithm, key)
        if stated != found:
            advice = f"the algorithm says {found}"
            yield Problem("facts", submission.folder / ABOUT, key, shown(stated), advice)


def _unstarted(value: Any) -> Any:
    """Return options in which instances that were not initialised stand for classes of srs_eval."""
    if isinstance(value, list):
        return [_unstarted(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    given = {name: _unstarted(each) for name, each in value.items() if name != TARGET}
    if TARGET not in value:
        return given
    found = own_builder().find(str(value[TARGET]))
    made = object.__new__(found)
    for each in fields(found) if is_dataclass(found) else ():
        usual = each.default if each.default_factory is MISSING else each.default_factory()
        if (option := given.get(each.name, usual)) is not MISSING:
            object.__setattr__(made, each.name, option)
    return made


def _changed(submission: Submission) -> Iterator[Problem]:
    """Yield the difference from the version that was accepted last."""
    if not submission.history:
        return
    accepted = submission.history[-1]
    for key, digest in digests_of(submission.folder).items():
        expected, file = getattr(accepted, key), submission.folder / RECORDED[key]
        if digest != expected:
            was = f"{expected[:16]}…" if expected else "none"
            advice = f"{was} was accepted on {accepted.date}; restore it, or have it accepted"
            found = f"SHA-256 {digest[:16]}…" if digest else "no such file"
            yield Problem("facts", file, "", found, advice)


def _withdrawn(folder: Path, record: Record, there: Sequence[Path]) -> Iterator[Problem]:
    """Yield accepted submissions that are not there any more."""
    names = {path.name for path in there}
    for name in record.submissions:
        if name not in names:
            advice = f"restore {name}: accepted submissions stay"
            yield Problem("form", folder / ACCEPTED, shown(name), "no such folder", advice)


def _of_board(board: Board, record: Record, bad: Collection[Path]) -> Iterator[Problem]:
    """Yield submissions on another board than was accepted, or with other reviews than theirs.

    Before a submission is accepted, the board is what the first one scored that is not `bad`.
    """
    for submission in board.submissions:
        if submission.history and board.name != submission.history[-1].board:
            advice = f"it stays on {submission.history[-1].board}; submit under another name"
            file = submission.folder / ABOUT
            yield Problem("facts", file, "protocol, data", shown(board.name), advice)
    with_rows = [each for each in board.submissions if each.run.has_digests]
    with_rows = with_rows or list(board.submissions)  # of other projects alone, without digests
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
        yield Problem("rows", file, "", found, f"{advice}, of digest {frozen.digest[:16]}…")


def _beside(submissions: Sequence[Submission], record: Record, asked: Asked) -> Iterator[Problem]:
    """Yield where one submission has the name, title or scores of others of its leaderboard."""
    for submission in submissions:
        folder = submission.folder.resolve()
        others, problems = submissions_in(folder.parent)
        yield from (problem for problem in problems if problem.file == folder)
        for path in others:
            if path != folder and path not in asked.beside and is_submission(path):
                asked.beside[path] = opened(path, record).submission
        known = [asked.beside.get(path) for path in others if path != folder]
        for problem in _compared([submission, *filter(None, known)], record, submission):
            if problem.file.parent == submission.folder:
                yield problem


def _compared(
    submissions: Sequence[Submission], record: Record, last: Submission | None = None
) -> Iterator[Problem]:
    """Yield submissions with the title or the scores of another, and verdicts that are wrong.

    Of two, the one that was accepted stays; of two that were not, `last` has the problem.
    """

    def order(each: Submission) -> tuple[bool, bool, str]:
        is_new = each.name not in record.submissions
        return is_new, is_new and each is last, each.name

    first = sorted(submissions, key=order)
    of_boards: dict[str, list[Submission]] = {}
    for submission in first:
        of_boards.setdefault(board_name(submission.about), []).append(submission)
    for of_board in of_boards.values():
        yield from _duplicates(of_board)
    if submissions:
        yield from registration_problems(submissions[0].folder.resolve().parent, submissions)


def _duplicates(submissions: Sequence[Submission]) -> Iterator[Problem]:
    """Yield submissions of a board with the title or the scores of an earlier one."""
    titles: dict[str, Submission] = {}
    files: dict[str, Submission] = {}
    users: dict[frozenset[User], list[Submission]] = {}
    twins: dict[str, Submission] = {}
    for submission in submissions:
        title = unicodedata.normalize("NFKC", visible(submission.run.name))
        first = titles.setdefault(" ".join(title.casefold().split()), submission)
        if first is not submission:
            advice = f"{first.name} has this title: write another"
            file = submission.folder / ABOUT
            yield Problem("form", file, "model", shown(submission.run.name), advice)
        twin = files.setdefault(digest_of_file(submission.folder / RESULTS), submission)
        if twin is not submission:
            twins[submission.name] = twin
        users.setdefault(frozenset(submission.run.rows), []).append(submission)
    for scored, alike in users.items():
        of_run = {id(each.run): each for each in alike}
        for found in find_duplicates([each.run for each in alike], [*scored]):
            twins.setdefault(of_run[id(found.run)].name, of_run[id(found.twin)])
    for submission in submissions:
        if submission.name in twins:
            value, advice = f"the scores of {twins[submission.name].name}", "submit a model once"
            yield Problem("scores", submission.folder / RESULTS, "", value, advice)
