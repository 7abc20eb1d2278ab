"""Read submissions and leaderboards: files of strangers, checked before anything is believed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.errors import ConfigError
from srs_eval.nouns import User
from srs_eval.results.coverage import Coverage
from srs_eval.results.predicted import SavedPredictions
from srs_eval.results.run import Run
from srs_eval.results.summary import Summary
from srs_eval.submit.about import GAPS, about_problems, read_about
from srs_eval.submit.problems import ERRORS, Problem, SubmissionError, caught, shown
from srs_eval.submit.record import Record, read_record
from srs_eval.submit.results_table import LARGEST, Results, read_results
from srs_eval.submit.submission import (
    ABOUT,
    PREDICTIONS,
    RESULTS,
    Accepted,
    Board,
    Submission,
)
from srs_eval.text.yaml_files import LARGEST as LARGEST_YAML

# Largest size of each file in bytes.
SIZES = {ABOUT: LARGEST_YAML, RESULTS: LARGEST, PREDICTIONS: 1_000_000_000}
NAME = re.compile(r"(?![.-])[A-Za-z0-9._-]{1,60}")
# Folders of a leaderboard that hold no submission.
PREREGISTRATIONS = "prereg"
# Of a folder, in bytes, on all usual file systems.
_LONGEST_FOLDER = 255
_NOT_IN_ADDRESSES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Read:
    """A submission as far as it can be read, and its problems."""

    problems: Sequence[Problem]
    submission: Submission | None = None
    results: Results | None = None


def read_leaderboard(folder: Path) -> tuple[Board, ...]:
    """Read the boards of a leaderboard, in the order of their names."""
    record = read_record(folder)
    folders, problems = submissions_in(folder)
    like: Run | None = None
    submissions = []
    for each in folders:
        read = opened(each, record, like)
        problems += read.problems
        if read.submission is not None:
            submissions.append(read.submission)
            like = read.submission.run
    if serious := [problem for problem in problems if problem.kind != "gap"]:
        raise SubmissionError(serious)
    return boards_of(submissions)


def boards_of(submissions: Iterable[Submission]) -> tuple[Board, ...]:
    """Group submissions by what they have scored."""
    found: dict[str, list[Submission]] = {}
    for submission in sorted(submissions, key=lambda each: each.name):
        found.setdefault(board_name(submission.about), []).append(submission)
    return tuple(_board(name, found[name]) for name in sorted(found))


def board_name(about: Mapping[str, Any]) -> str:
    """Return the name of the board a submission belongs to, for addresses."""
    protocol, data = about["protocol"], about["data"]
    fingerprint = data["fingerprint"][:8] or "published"
    parts = (f"{each['name']}-{each['version']}" for each in (protocol, data))
    return _NOT_IN_ADDRESSES.sub("-", "_".join([*parts, fingerprint]))


def is_submission(folder: Path) -> bool:
    """Whether a folder is a submission, good or bad, rather than a leaderboard."""
    if folder.is_symlink() or not folder.is_dir():
        return True
    return any((folder / name).exists() for name in (ABOUT, RESULTS))


def submissions_in(folder: Path) -> tuple[list[Path], list[Problem]]:
    """Return the folders of the submissions of a leaderboard, and what must not be there."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder")
    problems = []
    folders = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            problems.append(_is_link(path))
        elif path.is_dir() and path.name != PREREGISTRATIONS and not path.name.startswith("."):
            folders.append(path)
    alike = Counter(path.name.casefold() for path in folders)
    for path in folders:
        if alike[path.name.casefold()] > 1:
            found = "the name of another folder, but for upper and lower case"
            problems.append(Problem("file", path, "", found, "rename it"))
    if not any(map(is_submission, folders)):
        raise ConfigError(f"{folder}: no submissions; each is a folder with {ABOUT} and {RESULTS}")
    return folders, problems


def opened(folder: Path, record: Record, like: Run | None = None) -> Read:
    """Read a submission as far as its files can be read.

    If another run, `like`, scored the same reviews, both share the list of them in memory.
    """
    problems = [*caught(folder, _file_problems(folder))]
    try:
        return Read(problems) if problems else _read(folder, record, like)
    except ERRORS as error:
        found, advice = f"{type(error).__name__}: {shown(str(error))}", "write it again"
        return Read([Problem("file", folder, "", found, advice)])


def _read(folder: Path, record: Record, like: Run | None) -> Read:
    """Read a submission that has its files."""
    about, file, content = read_about(folder / ABOUT), folder / RESULTS, None
    problems = [about] if isinstance(about, Problem) else [*about_problems(folder / ABOUT, about)]
    if not isinstance(about, Problem) and all(problem.kind == "gap" for problem in problems):
        content = {**dict.fromkeys(GAPS), **about.content}
    published = content is not None and content["data"]["fingerprint"] == ""
    try:
        results, further = read_results(file, published=published)
    except ConfigError as error:
        found = str(error).removeprefix(f"{file}: ")
        results, further = None, [Problem("file", file, "", found, "write it again")]
    problems += further
    if content is None or results is None or further:
        return Read(problems)
    problems += _count_problems(folder, content, results)
    history = record.submissions.get(folder.resolve().name, ())
    return Read(problems, _submission(folder, content, results, history, like), results)


def _submission(
    folder: Path,
    about: Mapping[str, Any],
    results: Results,
    history: tuple[Accepted, ...],
    like: Run | None,
) -> Submission:
    scores, data = results.scores, about["data"]
    is_published = not any(scores.rows)
    digests = zip(scores.users, scores.rows, strict=True)
    rows: Mapping[User, str] = {user: of for user, of in digests if of or is_published}
    kept = [user in rows for user in scores.users]
    reviews: Mapping[User, int] = dict(zip(rows, scores.reviews[kept].tolist(), strict=True))
    is_alike = like is not None and (rows, reviews) == (like.rows, like.reviews)
    if like is not None and is_alike and [*rows] == [*like.rows]:
        rows, reviews = like.rows, like.reviews
    fits: dict[str, Any] = {name: int(n.sum()) for name, n in results.fits.items()}
    read, of_data = data.get("read"), (data["users"], data["reviews"])
    run = Run(
        name=about["model"],
        place=folder,
        rows=rows,
        reviews=reviews,
        scores=dict(zip(scores.names, scores.values[kept].T, strict=True)),
        incomplete=tuple(user for user in scores.users if user not in rows),
        facts=Summary(
            label=about["model"],
            data=data["name"],
            protocol=about["protocol"]["name"],
            when=about["when"],
            sees_truth=about["sees_truth"],
            pretrained=about["pretrained_on"] is not None,
            users=len(rows),
            reviews=sum(reviews.values()),
            data_fingerprint=data["fingerprint"],
            coverage=Coverage(read["users"], read["reviews"], *of_data) if read else None,
            **fits,
        ),
        predicted=SavedPredictions(folder) if (folder / PREDICTIONS).is_file() else None,
    )
    return Submission(folder.resolve().name, folder, about, run, history)


def _board(name: str, submissions: list[Submission]) -> Board:
    about = submissions[0].about
    protocol, data = about["protocol"], about["data"]
    return Board(
        name=name,
        protocol=protocol["name"],
        protocol_version=protocol["version"],
        data=data["name"],
        data_version=data["version"],
        fingerprint=data["fingerprint"],
        submissions=tuple(submissions),
    )


def _file_problems(folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with the files of a submission, by their names and sizes."""
    name = folder.resolve().name
    if folder.is_symlink():
        yield _is_link(folder)
        return
    if not folder.is_dir():
        yield Problem("form", folder, "", "there is no such folder", "name that of a submission")
        return
    if not NAME.fullmatch(name) or name == PREREGISTRATIONS:
        advice = "1 to 60 letters, digits, dots, underscores and hyphens, and a letter first"
        yield Problem("file", folder, "", shown(name), advice)
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            yield _is_link(path)
        elif path.name not in SIZES or not path.is_file():
            yield Problem("file", path, "", "no file of a submission", "remove it")
        elif (size := path.stat().st_size) > SIZES[path.name]:
            found, advice = f"{size:,} bytes", f"{SIZES[path.name]:,} at most"
            yield Problem("file", path, "", found, advice)
    for needed in (ABOUT, RESULTS):
        if not (folder / needed).exists():
            advice = "write it with python -m srs_eval.submit"
            yield Problem("form", folder / needed, "", "there is no such file", advice)


def _count_problems(folder: Path, about: Mapping[str, Any], results: Results) -> Iterator[Problem]:
    """Yield where the two files do not say the same, and a board that cannot be a folder."""
    scores = results.scores
    if (length := len(board_name(about))) > _LONGEST_FOLDER:
        what = f"the name of the board has {length:,} characters"
        advice = f"names and versions of both have at most {_LONGEST_FOLDER} together"
        yield Problem("file", folder / ABOUT, "protocol, data", what, advice)
    reviews = int(scores.reviews.sum())
    users = int((scores.reviews > 0).sum())
    for key, found in (("users", users), ("reviews", reviews)):
        if about["data"][key] != found:
            advice = f"{RESULTS} has {found:,}"
            yield Problem("rows", folder / ABOUT, f"data.{key}", shown(about["data"][key]), advice)
        read = (about["data"].get("read") or {}).get(key, found)
        if read < found:
            advice = f"at least the {found:,} that have scores"
            yield Problem("rows", folder / ABOUT, f"data.read.{key}", shown(read), advice)
    for group in ("protocol", "data"):
        if any(scores.rows) and not about[group]["options"]:
            advice = "write them as the run has them"
            yield Problem("form", folder / ABOUT, f"{group}.options", "no options", advice)
    if any(scores.rows) != bool(about["data"]["fingerprint"]):
        advice = "write both with srs_eval.submit; rows of other projects have neither"
        what = "a fingerprint of the data goes with digests of rows"
        yield Problem("rows", folder / ABOUT, "data.fingerprint", what, advice)


def _is_link(path: Path) -> Problem:
    return Problem("file", path, "", "a symbolic link", "put the file or folder itself there")
