"""Submissions against the review logs: the protocol's own rows, and users learned from before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from srs_eval.algorithms.recurrent.weights import digests_of
from srs_eval.config.targets import TARGET, Builder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FitSkipped, SrsEvalError
from srs_eval.metrics.intervals import bounds_of
from srs_eval.metrics.sketch import SketchMetric, bare_predictions
from srs_eval.metrics.threshold import ThresholdSums
from srs_eval.nouns import EvaluationProtocol, Source, User
from srs_eval.nouns.predictions import reviews_fingerprint, rows_fingerprint
from srs_eval.results.run import Run
from srs_eval.run.description import targets
from srs_eval.submit.problems import Problem, SubmissionError, shown, some
from srs_eval.submit.results_table import Results, metrics_named, problem_of_users
from srs_eval.submit.submission import ABOUT, RESULTS, Submission
from srs_eval.submit.writing import PLACES, data_version, fingerprint_of, is_simulated

_OWN = "srs_eval"
# Protocols of srs_eval, whose options are parts of their names.
_PROTOCOLS = ("srs_benchmark", "validation", "prequential", "shifted")
# Readers of files, and their options that name no place and no code.
_READERS = (
    "srs_eval.data.anki.collection.AnkiCollection",
    "srs_eval.data.partitioned.PartitionedLogs",
    "srs_eval.data.revlogs_10k.RevlogsFolder",
    "srs_eval.data.table.ReviewTable",
)
_COLUMNS = "srs_eval.data.table_options.Columns"
_OPTIONS = frozenset(
    (
        *("columns", "users", "sample", "first", "user"),
        *("time_unit", "time_zone", "day_start_hour", "rollover_hour", "utc_offset_minutes"),
        *("duplicates", "invalid_times", "invalid_rows", "ratings"),
        *("scheduler", "decks", "presets"),
    )
)
# Users that differ from a submission before no more logs are read.
_MOST_UNLIKE = 100
# Of which metrics may be undefined though reviews were recalled and others forgotten: no prediction
# is above a threshold, or the rate of recall in the training rows is not known.
_MAY_BE_EMPTY = (ThresholdSums,)
# Of an option of a protocol, such as fits per user.
_LARGEST = 10_000


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """What a protocol scores of review logs."""

    # Number and digest of the scored reviews of each user who has any
    rows: dict[User, tuple[int, str]]
    recalled: dict[User, int]  # Number of the scored reviews that were recalled
    people: dict[User, str]  # What users are recognised by, see `fingerprint_of`
    fingerprint: str = ""  # Digest of the logs; "" if not all were read


# Of the submissions of one command, by the options of protocol and data.
ReadLogs = dict[str, ScoredRows]


def protocol_of(submission: Submission) -> EvaluationProtocol | None:
    """Build the protocol of a submission; None if it is not one of srs_eval."""
    options = submission.about["protocol"]["options"]
    if not is_own(options, "protocol"):
        return None
    large = [value for value in _values_in(options) if _is_large(value)]
    if large:
        raise ConfigError(f"protocol.options: {some(large)}; {_LARGEST:,} at most")
    return cast(EvaluationProtocol, own_builder().build(options, EvaluationProtocol, "protocol"))


def _values_in(options: Any) -> Iterator[Any]:
    """Go through the values in options, and in options inside them."""
    if isinstance(options, Mapping | list):
        for value in options.values() if isinstance(options, Mapping) else options:
            yield from _values_in(value)
    else:
        yield options


def _is_large(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) > _LARGEST


def source_of(submission: Submission, path: Path | None, *, trust: bool) -> Source | None:
    """Return the review logs of a submission, if they are at hand.

    Simulated users can be read again. Files are read by the classes of `_READERS`, at the path that
    was given and with options that only say how. Everything else that a submission names, such as
    queries and classes of others, is code: without `trust`, it is a `SubmissionError`.
    """
    options = {
        name: value
        for name, value in submission.about["data"]["options"].items()
        if name not in PLACES
    }
    if not options:
        return None
    if not is_simulated(options):
        if path is None and (is_own(options) or not trust):
            return None
        if not trust and not _is_plain(options):
            file, advice = submission.folder / ABOUT, "read them, and give trust=true"
            found = some([f"{name}: {value}" for name, value in options.items()])
            raise SubmissionError([Problem("code", file, "data.options", found, advice)])
        if path is not None:
            options["path"] = str(path)
    builder = Builder() if trust else own_builder()
    return cast(Source, builder.build(options, Source, "data"))


def _is_plain(options: Mapping[str, Any]) -> bool:
    """Whether options are those of a reader of files, and only say how files are read."""
    inner = [*targets({name: value for name, value in options.items() if name != TARGET})]
    return (
        options[TARGET] in _READERS
        and options.keys() <= {TARGET, *_OPTIONS}
        and all(target == _COLUMNS for target in inner)
    )


def is_own(options: Any, part: str = "") -> bool:
    """Whether options build something of srs_eval, or of one part of it, and of nothing else."""
    inside = f"{_OWN}.{part}." if part else f"{_OWN}."
    if not isinstance(options, Mapping) or not str(options.get(TARGET)).startswith(inside):
        return False
    return all(target.startswith(f"{_OWN}.") for target in targets(options))


def own_builder() -> Builder:
    """Return a builder that imports srs_eval and nothing else."""
    return Builder(lambda module: module.partition(".")[0] == _OWN)


def scored_rows(
    source: Source, protocol: EvaluationProtocol, expected: Mapping[User, int]
) -> ScoredRows:
    """Read the logs of all users, and find what the protocol scores.

    `expected` has the numbers of reviews in a submission. Reading stops when too many users differ:
    the check of a false submission is short, however many users it names.
    """
    found = ScoredRows({}, {}, {})
    logs = hashlib.sha256()
    unlike = 0
    for user in source.users():
        if unlike == _MOST_UNLIKE:
            return found
        try:
            log = source.read(user)
            logs.update(reviews_fingerprint(log).encode())
            task = protocol(log, same_day=False)
        except (FitSkipped, SrsEvalError):
            unlike += user in expected
            continue
        tested = np.concatenate([fold.test for fold in task.folds])
        recalled = task.reviews.recalled[tested]
        outcomes = replace(
            bare_predictions(np.zeros(len(tested)), recalled), row=task.log_row[tested]
        )
        found.rows[user] = (len(tested), rows_fingerprint(outcomes))
        found.recalled[user] = int(recalled.sum())
        found.people[user] = fingerprint_of(digests_of(log))
        unlike += expected.get(user) != len(tested)
    return replace(found, fingerprint=logs.hexdigest()[:16])


def logs_of(
    submission: Submission, source: Source, protocol: EvaluationProtocol, read: ReadLogs
) -> ScoredRows:
    """Return the rows of the logs, from memory if another submission has the same data.

    Raise `SubmissionError` if there are many more users than have scores, before any is read; or if
    many differ.
    """
    key = str([submission.about[group]["options"] for group in ("protocol", "data")])
    if key in read:
        return read[key]
    scored, users = submission.run.reviews, len(source.users())
    if users > 2 * len(scored) + _MOST_UNLIKE:
        place, found = submission.folder / ABOUT, f"{users:,} users"
        advice = f"{RESULTS} has {len(scored):,}"
        raise SubmissionError([Problem("rows", place, "data.options", found, advice)])
    logs = scored_rows(source, protocol, scored)
    if not logs.fingerprint:
        place, advice = submission.folder / RESULTS, "submit a run on these logs"
        found = f"{_MOST_UNLIKE} of the first {len(logs.rows):,} users differ from the logs"
        raise SubmissionError([Problem("rows", place, "", found, advice)])
    return read.setdefault(key, logs)


def logs_problems(submission: Submission, results: Results, logs: ScoredRows) -> Iterator[Problem]:
    """Yield where a submission differs from the logs, and scored users who were learned from."""
    about, run = submission.folder / ABOUT, submission.run
    fingerprint = submission.about["data"]["fingerprint"]
    if fingerprint != logs.fingerprint:
        advice = f"these logs have {logs.fingerprint}; submit a run on them, or name the others"
        yield Problem("rows", about, "data.fingerprint", fingerprint, advice)
    yield from rows_problems(submission.folder / RESULTS, run, logs.rows, "the protocol scores")
    yield from _undefined_problems(submission.folder / RESULTS, results, logs)
    learned = submission.about["pretrained_on"]
    if learned is None:
        return
    known = set(learned["users"])
    both = [user for user in run.rows if logs.people.get(user, "") in known]
    if both:
        advice = "learn from other users than are scored"
        found = f"{len(both):,} of {len(run.rows):,} scored users were learned from: {some(both)}"
        yield Problem("rows", about, "pretrained_on.users", found, advice)


def _undefined_problems(file: Path, results: Results, logs: ScoredRows) -> Iterator[Problem]:
    """Yield scores that are NaN although reviews were recalled and others forgotten."""
    scores = results.scores
    counts = [
        (logs.recalled.get(user, 0), logs.rows.get(user, (0, ""))[0]) for user in scores.users
    ]
    both = np.array([0 < recalled < reviews for recalled, reviews in counts], np.bool_)
    known = metrics_named(scores.names)
    for name, column in zip(scores.names, scores.values.T, strict=True):
        metric = known.get(name)
        if not isinstance(metric, SketchMetric) or not np.isfinite(bounds_of(metric)).any():
            continue
        wrong = both & np.isnan(column)
        if wrong.any() and not any(isinstance(each, _MAY_BE_EMPTY) for each in metric.needs):
            advice = "it is defined where reviews were recalled and forgotten"
            yield problem_of_users("range", file, name, scores.users, wrong, column, advice)


def rows_problems(
    file: Path, run: Run, rows: Mapping[User, tuple[int, str]], whose: str
) -> Iterator[Problem]:
    """Yield users, numbers of reviews and digests in which a run differs from those in `rows`.

    `whose` says in messages what has these, as in ``the logs have``.
    """
    missing = [user for user in rows if user not in run.rows]
    if missing:
        found = f"{len(missing):,} of {len(rows):,} users have no scores: {some(missing)}"
        yield Problem("rows", file, "column user", found, "score every user, without failed fits")
    further = [user for user in run.rows if user not in rows]
    if further:
        found = f"{len(further):,} further users: {some(further)}"
        yield Problem("rows", file, "column user", found, f"{whose} {len(rows):,} users")
    both = [user for user in run.rows if user in rows]
    columns: Mapping[str, Mapping[User, object]] = {"reviews": run.reviews, "rows": run.rows}
    for number, (column, given) in enumerate(columns.items()):
        wrong = [user for user in both if given[user] != rows[user][number]]
        if wrong:
            place = f"column {column}, user{'s' * (len(wrong) > 1)} {some(wrong)}"
            advice = f"{whose} {rows[wrong[0]][number]} of user {shown(wrong[0])}"
            yield Problem("rows", file, place, shown(given[wrong[0]]), advice)
            break


def version_problems(
    submission: Submission, protocol: EvaluationProtocol | None
) -> Iterator[Problem]:
    """Yield names and versions that are not those of the protocol, as it is now, and the data."""
    about, place = submission.about, submission.folder / ABOUT
    options = about["data"]["options"]
    if not options:  # rows of other projects
        return
    facts = [("data", "version", data_version(options))]
    if protocol is not None:
        facts += [("protocol", "name", protocol.name), ("protocol", "version", protocol.version)]
    elif about["protocol"]["name"].startswith(_PROTOCOLS):
        advice = f"{', '.join(_PROTOCOLS)} are protocols of srs_eval: write another"
        yield Problem("facts", place, "protocol.name", shown(about["protocol"]["name"]), advice)
    simulated = SyntheticUsers(users=1).name
    if is_simulated(options):
        facts.append(("data", "name", simulated))
    elif about["data"]["name"] == simulated:
        advice = "these users are not simulated: write another"
        yield Problem("facts", place, "data.name", simulated, advice)
    for group, key, found in facts:
        stated = about[group][key]
        if stated != found:
            advice = f"it is {found} in this srs_eval: run it again"
            yield Problem("facts", place, f"{group}.{key}", shown(stated), advice)


def build_problem(submission: Submission, error: ConfigError) -> Problem:
    """Return the problem of options that cannot be built."""
    return Problem(
        "code", submission.folder / ABOUT, "", str(error), "write the options as the run has them"
    )
