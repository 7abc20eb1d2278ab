"""Submissions against the review logs: the protocol's own rows, and users learned from before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from srs_eval.algorithms.recurrent.weights import digests_of
from srs_eval.config.targets import TARGET, Builder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FitSkipped, SrsEvalError
from srs_eval.nouns import EvaluationProtocol, Predictions, Reviews, Source, Task, User
from srs_eval.nouns.predictions import reviews_fingerprint, rows_fingerprint
from srs_eval.results.run import Run
from srs_eval.submit.problems import Kind, Problem, shown, some
from srs_eval.submit.submission import ABOUT, RESULTS, Submission
from srs_eval.submit.writing import fingerprint_of

_OWN = "srs_eval"


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """What a protocol scores of review logs.

    Attributes
    ----------
    rows : mapping of user to (int, str)
        Number and digest of the scored reviews of each user who has any.
    people : mapping of user to str
        What users are recognised by, see `fingerprint_of`.
    fingerprint : str
        Digest of the logs.
    """

    rows: Mapping[User, tuple[int, str]]
    people: Mapping[User, str]
    fingerprint: str


def protocol_of(submission: Submission) -> EvaluationProtocol | None:
    """Build the protocol of a submission; None if it is not one of srs_eval."""
    options = submission.about["protocol"]["options"]
    if not is_own(options, "protocol"):
        return None
    return cast(EvaluationProtocol, own_builder().build(options, EvaluationProtocol, "protocol"))


def source_of(submission: Submission, path: Path | None) -> Source | None:
    """Return the review logs of a submission, if they are at hand.

    Simulated users can be read again; other logs need their path.
    """
    options = dict(submission.about["data"]["options"])
    if not is_own(options, "data"):
        return None
    kind = f"{SyntheticUsers.__module__}.{SyntheticUsers.__qualname__}"
    if options[TARGET] != kind:
        if path is None:
            return None
        options["path"] = str(path)
    return cast(Source, own_builder().build(options, Source, "data"))


def is_own(options: Any, part: str = "") -> bool:
    """Whether options build something of srs_eval, or of one part of it, and of nothing else."""
    inside = f"{_OWN}.{part}." if part else f"{_OWN}."
    if not isinstance(options, Mapping) or not str(options.get(TARGET)).startswith(inside):
        return False
    return all(target.startswith(f"{_OWN}.") for target in targets_in(options))


def targets_in(options: Any) -> Iterator[str]:
    """Go through all targets in options."""
    if isinstance(options, Mapping):
        if TARGET in options:
            yield str(options[TARGET])
        options = [*options.values()]
    if isinstance(options, list):
        for value in options:
            yield from targets_in(value)


def own_builder() -> Builder:
    """Return a builder that imports srs_eval and nothing else."""
    return Builder(lambda module: module.partition(".")[0] == _OWN)


def scored_rows(source: Source, protocol: EvaluationProtocol) -> ScoredRows:
    """Read the logs of all users, and find what the protocol scores."""
    rows: dict[User, tuple[int, str]] = {}
    people: dict[User, str] = {}
    logs = hashlib.sha256()
    for user in source.users():
        try:
            log = source.read(user)
            logs.update(reviews_fingerprint(log).encode())
            task = protocol(log, same_day=False)
        except (FitSkipped, SrsEvalError):
            continue
        rows[user], people[user] = _rows_of(task), fingerprint_of(digests_of(log))
    return ScoredRows(rows, people, logs.hexdigest()[:16])


def logs_problems(submission: Submission, logs: ScoredRows) -> Iterator[Problem]:
    """Yield where a submission differs from the logs, and scored users who were learned from."""
    about, run = submission.folder / ABOUT, submission.run
    fingerprint = submission.about["data"]["fingerprint"]
    if fingerprint != logs.fingerprint:
        advice = f"these logs have {logs.fingerprint}; submit a run on them, or name the others"
        yield Problem("rows", about, "data.fingerprint", fingerprint, advice)
    yield from rows_problems(submission.folder / RESULTS, run, logs.rows, "the protocol scores")
    learned = submission.about["pretrained_on"]
    if learned is None:
        return
    known = set(learned["users"])
    both = [user for user in run.rows if logs.people.get(user, "") in known]
    if both:
        advice = "learn from other users than are scored"
        found = f"{len(both):,} of {len(run.rows):,} scored users were learned from: {some(both)}"
        yield Problem("overlap", about, "pretrained_on.users", found, advice)


def rows_problems(
    file: Path, run: Run, rows: Mapping[User, tuple[int, str]], whose: str
) -> Iterator[Problem]:
    """Yield the users, numbers of reviews and rows in which a run differs from others.

    Parameters
    ----------
    whose : str
        What has the other rows, for messages.
    """
    missing = [user for user in rows if user not in run.rows]
    if missing:
        found = f"{len(missing):,} of {len(rows):,} users have no scores: {some(missing)}"
        yield Problem("users", file, "column user", found, "score every user, without failed fits")
    further = [user for user in run.rows if user not in rows]
    if further:
        found = f"{len(further):,} further users: {some(further)}"
        yield Problem("users", file, "column user", found, f"{whose} {len(rows):,} users")
    both = [user for user in run.rows if user in rows]
    kinds: tuple[tuple[Kind, Mapping[User, object]], ...] = (
        ("reviews", run.reviews),
        ("rows", run.rows),
    )
    for number, (kind, given) in enumerate(kinds):
        wrong = [user for user in both if given[user] != rows[user][number]]
        if wrong:
            place = f"column {kind}, user{'s' * (len(wrong) > 1)} {some(wrong)}"
            advice = f"{whose} {rows[wrong[0]][number]} of user {shown(wrong[0])}"
            yield Problem(kind, file, place, shown(given[wrong[0]]), advice)
            break


def version_problems(submission: Submission, protocol: EvaluationProtocol) -> Iterator[Problem]:
    """Yield the differences from the protocol as it is now, and from the options of the data."""
    about = submission.about
    for group, key, found in (
        ("protocol", "name", protocol.name),
        ("protocol", "version", protocol.version),
        ("data", "version", str(about["data"]["options"].get("version", "1"))),
    ):
        stated, place = about[group][key], submission.folder / ABOUT
        if stated != found:
            advice = f"it is {found} in this srs_eval: run it again"
            yield Problem("version", place, f"{group}.{key}", shown(stated), advice)


def build_problem(submission: Submission, error: ConfigError) -> Problem:
    """Return the problem of options that cannot be built."""
    return Problem(
        "code", submission.folder / ABOUT, "", str(error), "write the options as the run has them"
    )


def _rows_of(task: Task) -> tuple[int, str]:
    tested = np.concatenate([fold.test for fold in task.folds])
    return len(tested), rows_fingerprint(_outcomes(task.reviews, task, tested))


def _outcomes(reviews: Reviews, task: Task, rows: np.ndarray[Any, Any]) -> Predictions:
    zeros = np.zeros(len(rows), np.int64)
    return Predictions(
        (reviews.user,),
        zeros,
        zeros,
        task.log_row[rows],
        reviews.card[rows],
        zeros.astype(np.float64),
        reviews.recalled[rows],
    )
