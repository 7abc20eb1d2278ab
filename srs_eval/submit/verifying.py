"""Run submissions again, and accept them into the record of their leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np

from srs_eval.config.targets import Builder
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Algorithm
from srs_eval.results.fit_counts import FitCounts
from srs_eval.results.result import Result
from srs_eval.results.run import Run, run_of
from srs_eval.run.evaluate import evaluate
from srs_eval.run.experiment import CURVES_PER_USER, Experiment
from srs_eval.submit.checking import Asked, checked_submission
from srs_eval.submit.logs_check import (
    build_problem,
    is_own,
    own_builder,
    protocol_of,
    rows_problems,
    source_of,
    version_problems,
)
from srs_eval.submit.problems import Problem, SubmissionError, shown, some
from srs_eval.submit.reading import board_name
from srs_eval.submit.record import (
    RECORDED,
    digests_of,
    frozen_board,
    only_one,
    read_record,
    write_record,
)
from srs_eval.submit.results_table import FIT, FIT_COUNTS, metrics_named
from srs_eval.submit.submission import ABOUT, RESULTS, Accepted, Mark, Submission
from srs_eval.submit.writing import fits_by_user, learned_from, parameters_of, read_by

TOLERANCE = 1e-6
# Whether an optimiser converges depends on the last digits, which differ between machines.
COMPARED_FITS = tuple(name for name in FIT_COUNTS if name != "not_converged")
# What a rerun cannot show.
NOT_VERIFIED = ("authors", "licence", "code", "tuned_on", "hardware", "seconds", "convergence")


@dataclass(frozen=True, slots=True)
class Rerun:
    """A submission that was run again."""

    submission: Submission
    metrics: int  # Number of metrics that were computed again
    largest: float  # Largest difference of a score
    # Scores that differ by more than the tolerance; users and rows that differ
    problems: tuple[Problem, ...]
    digests: Mapping[str, str]  # SHA-256 of its files before the rerun, by field in the record


def verify(folder: Path, asked: Asked | None = None, *, tolerance: float = TOLERANCE) -> Rerun:
    """Check a submission, run it again by its ``submission.yaml``, and compare the scores.

    The difference of a score that is allowed is absolute, and relative to the score. Raise
    `SubmissionError` if the submission has problems, or cannot be run here.
    """
    asked = asked or Asked()
    digests = digests_of(folder) if folder.is_dir() else {}
    submission = checked_submission(folder, replace(asked, accepting=True))
    experiment = _experiment(submission, asked)
    result = evaluate(experiment)
    again = run_of(result)
    problems = [
        *_claims(submission, again, result, experiment.algorithm),
        *_differences(submission, again, tolerance),
    ]
    users = [user for user in submission.run.rows if user in again.rows]
    gaps = [
        np.abs(submission.run.values(name, users) - again.values(name, users))
        for name in again.scores
    ]
    largest = max((float(np.nanmax(gap, initial=0.0)) for gap in gaps), default=0.0)
    return Rerun(submission, len(again.scores), largest, tuple(problems), digests)


def accept(
    folder: Path,
    mark: Mark | None,
    note: str,
    asked: Asked | None = None,
    *,
    expected: Mapping[str, str] | None = None,
) -> Accepted:
    """Check a submission, and append it to the record of the leaderboard it is in.

    The mark is ``reported`` by default, or ``published`` for rows of other projects. ``verified``
    is for submissions that `verify` has found equal; `expected` has the digests of what it read.
    The entry may have been there before. Raise `SubmissionError` if the files change meanwhile.
    """
    if expected is None:
        expected = digests_of(folder) if folder.is_dir() else {}
    leaderboard = folder.resolve().parent
    # The record that the submission is checked against is the one that is written.
    with only_one(leaderboard) if leaderboard.is_dir() else nullcontext():
        submission = checked_submission(folder, replace(asked or Asked(), accepting=True))
        digests = digests_of(folder)
        if changed := [key for key in digests if digests[key] != expected.get(key)]:
            raise SubmissionError(_meanwhile(folder / RECORDED[key]) for key in changed)
        for last in submission.history[-1:]:
            if digests.items() <= asdict(last).items() and mark in (None, last.mark):
                return last
        usual: Mark = "reported" if submission.run.has_digests else "published"
        mark = mark or usual
        if (mark == "published") != (usual == "published"):
            raise ConfigError(f"{folder}: mark={mark}; rows {_WITH[usual]} digests are {usual}")
        board = board_name(submission.about)
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        entry = Accepted(date=day, mark=mark, note=note, board=board, **digests)
        record = read_record(leaderboard)
        record = record.with_accepted(submission.name, entry, board, frozen_board(submission.run))
        write_record(leaderboard, record)
    return entry


def _meanwhile(file: Path) -> Problem:
    return Problem("facts", file, "", "has changed since the check began", "accept it again")


_WITH = {"reported": "with", "published": "without"}


def _experiment(submission: Submission, asked: Asked) -> Experiment:
    """Build what a submission was made with."""
    about, file = submission.about, submission.folder / ABOUT
    options = about["algorithm"]
    problems: list[Problem] = []
    if not options:
        advice = "published rows are not run again"
        raise SubmissionError([_not_run(file, "algorithm", "null", advice)])
    if about["seed"] is None:
        problems.append(_not_run(file, "seed", "null", "write the seed of the run"))
    if not asked.trust and not is_own(options):
        advice = "read the code, install it, and give trust=true"
        problems.append(_not_run(file, "algorithm", some(options.values()), advice))
    try:
        protocol = protocol_of(submission)
        source = source_of(submission, asked.path, trust=asked.trust)
        builder = Builder() if asked.trust else own_builder()
        if protocol is not None:
            problems += version_problems(submission, protocol)
        else:
            found = some(about["protocol"]["options"].values())
            problems.append(_not_run(file, "protocol", found, "only those of srs_eval are run"))
        if source is None:
            advice = "give data.path=…"
            problems.append(_not_run(file, "data", about["data"]["name"], advice))
        if problems or protocol is None or source is None:
            raise SubmissionError(problems)
        algorithm = cast(Algorithm, builder.build(options, Algorithm, "algorithm"))
    except SubmissionError:
        raise
    except ConfigError as error:
        raise SubmissionError([build_problem(submission, error)]) from error
    known = metrics_named(submission.run.scores)
    panel = Panel([known[name] for name in submission.run.scores if name in known], pooled=False)
    curves = about.get("curves_per_user", CURVES_PER_USER)
    return Experiment(algorithm, source, protocol, panel, about["seed"], curves)


def _not_run(file: Path, where: str, value: str, advice: str) -> Problem:
    return Problem("code", file, where, value, advice)


def _claims(
    submission: Submission, again: Run, result: Result, algorithm: Algorithm
) -> Iterator[Problem]:
    """Yield facts of the algorithm and of its fits that differ in a rerun."""
    about, run = submission.about, submission.run
    learned = about["pretrained_on"]
    facts: list[tuple[str, object, object]] = [
        (key, about[key], getattr(again.facts, key)) for key in ("when", "sees_truth")
    ]
    facts += [
        ("pretrained_on", run.facts.pretrained, again.facts.pretrained),
        ("parameters", about["parameters"], parameters_of(result.fitted)),
    ]
    if about["data"].get("read"):
        facts.append(("data.read", about["data"]["read"], read_by(result.facts.coverage)))
    file = submission.folder / ABOUT
    if learned and sorted(learned["users"]) != sorted(known := learned_from(algorithm)):
        found = f"{len(learned['users']):,} users"
        advice = f"the weights were learned from {len(known):,} others"
        yield Problem("scores", file, "pretrained_on.users", found, advice)
    for where, stated, computed in facts:
        if stated != computed:
            advice = f"run again, it is {computed}"
            yield Problem("scores", file, where, shown(stated), advice)
    ended = FitCounts.of([fit for fits in fits_by_user(result) for fit in fits])
    for name in COMPARED_FITS:
        given, number = getattr(run.facts, name), getattr(ended, name)
        if given != number:
            place, advice = submission.folder / RESULTS, f"run again, they are {number:,}"
            yield Problem("scores", place, f"column {FIT}{name}", shown(given), advice)


def _differences(submission: Submission, again: Run, tolerance: float) -> Iterator[Problem]:
    """Yield users and rows that differ, and the metrics whose scores do."""
    run, file = submission.run, submission.folder / RESULTS
    for name in run.scores.keys() - again.scores.keys():
        yield Problem("scores", file, f"column {name}", "is not computed again", "leave it out")
    rows = {user: (again.reviews[user], digest) for user, digest in again.rows.items()}
    yield from rows_problems(file, run, rows, "the rerun scores")
    users = [user for user in run.rows if user in again.rows]
    for name in again.scores:
        given, found = run.values(name, users), again.values(name, users)
        wrong = ~np.isclose(given, found, rtol=tolerance, atol=tolerance, equal_nan=True)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            where = f"column {name}, user {users[at]}"
            advice = f"run again it is {found[at]:.9g}; {wrong.sum():,} users differ"
            yield Problem("scores", file, where, f"{given[at]:.9g}", advice)
