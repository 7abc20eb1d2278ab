"""Scores of a submission against their sums and predictions: recomputed, and otherwise bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.calibration import EqualBinSums
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.intervals import bounds_of
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import SCORES, TrainRateSums
from srs_eval.metrics.sketch import SketchMetric, bare_predictions
from srs_eval.metrics.sums import ResidualSums, Sums
from srs_eval.metrics.threshold import ThresholdSums
from srs_eval.nouns import PREDICTION_COLUMNS, BoolArray, FloatArray, Metric, Predictions
from srs_eval.nouns.predictions import rows_fingerprint
from srs_eval.results.files import PREDICTIONS, reading
from srs_eval.results.predicted import SavedPredictions
from srs_eval.results.tables import NEEDED
from srs_eval.submit.bounds import LOG_LOSS_PER_SQUARE, auc_between, least_by_bins
from srs_eval.submit.problems import Kind, Problem, shown, some
from srs_eval.submit.results_table import SUMS, Results, are_names, bytes_problems, metrics_named
from srs_eval.submit.submission import RESULTS
from srs_eval.submit.sums import kept_sums, name_of, recomputed, sums_of_user

# Relative and absolute difference of numbers that are computed from the same sums.
RELATIVE, ABSOLUTE = 1e-9, 1e-12
# Sums of the same predictions in another order, per review.
_PER_REVIEW = 1e-7
_MOST_ROWS_TOGETHER = 2_000_000
# Of the predictions in memory: of each, and of names of users and the rest.
_BYTES_EACH, _MOST_BYTES = 256, 10_000_000
_ANY = bare_predictions(np.array([0.2, 0.4, 0.6, 0.8]), np.array([False, True, False, True]))
_WIDE_TYPES = (pa.int64(), pa.float32(), pa.float64(), pa.bool_())


def follow_from_sums(names: Sequence[str]) -> list[str]:
    """Return the metrics that are recomputed from sums; the others are only bounded."""
    named = metrics_named(names)
    metrics = [named[name] for name in names if name in named]
    kept = kept_sums(metrics)
    of_user = sums_of_user(kept, _ANY)
    return [
        *recomputed(metrics, {each: sums[None] for each, sums in zip(kept, of_user, strict=True)})
    ]


def sums_problems(file: Path, results: Results) -> Iterator[Problem]:
    """Yield sums that are missing or contradict each other, and scores that contradict them."""
    check = _OfScores(file, results)
    named = metrics_named(results.scores.names)
    metrics = [named[name] for name in results.scores.names if name in named]
    sums = {name_of(each): each for each in kept_sums(metrics)}
    usable: dict[Sums, FloatArray] = {}
    for name, each in sums.items():
        values = results.sums[name][check.scored]
        # the rate of recall in the training rows is not known to every protocol
        known = values[:, :1] if isinstance(each, TrainRateSums) else values
        if np.isinf(values).any() or np.isnan(known).any():
            column = f"column {SUMS}{name}"
            yield Problem("range", file, column, "NaN or infinite", "write finite sums")
        else:
            usable[each] = values
    if SCORES in usable:
        yield from _contradictions(check, usable)
        yield from _bound_problems(check, metrics, usable)
    for name, scores in recomputed(metrics, usable).items():
        yield from check.compared("sums", name, scores, "the sums give {}; submit the run again")


class _OfScores:
    """Compares scores of the scored users of a submission with others."""

    def __init__(self, file: Path, results: Results) -> None:
        self.file, self.results = file, results
        scores = results.scores
        self.scored = np.array([rows != "" for rows in scores.rows], np.bool_)
        self.users = [user for user, rows in zip(scores.users, scores.rows, strict=True) if rows]
        self.reviews = scores.reviews[self.scored]

    def column(self, name: str) -> FloatArray:
        """Return the scores of a metric."""
        values: FloatArray = self.results.scores.values[
            self.scored, self.results.scores.names.index(name)
        ]
        return values

    def compared(
        self, kind: Kind, name: str, expected: FloatArray, advice: str
    ) -> Iterator[Problem]:
        """Yield the difference of a metric from the expected scores."""
        given = self.column(name)
        wrong = ~np.isclose(given, expected, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
        yield from self.of(kind, name, wrong, given, advice, expected)

    def of(
        self,
        kind: Kind,
        column: str,
        wrong: BoolArray,
        given: FloatArray,
        advice: str,
        expected: FloatArray | None = None,
    ) -> Iterator[Problem]:
        """Yield one problem for all users where something is wrong."""
        if not wrong.any():
            return
        who = np.flatnonzero(wrong).tolist()
        at = who[0]
        where = f"column {column}, user{'s' * (len(who) > 1)} {some(self.users[n] for n in who)}"
        advice = advice if expected is None else advice.format(f"{expected[at]:.9g}")
        yield Problem(kind, self.file, where, f"{given[at]:.9g}", advice)


def _contradictions(check: _OfScores, sums: Mapping[Sums, FloatArray]) -> Iterator[Problem]:
    """Yield sums that no predictions of so many reviews have."""
    count, recalled, log_loss, squares, residual, *_ = sums[SCORES].T
    name, n, close = SUMS + name_of(SCORES), check.reviews, _PER_REVIEW * check.reviews
    yield from check.of("sums", name, count != n, count, "expected the number of reviews")
    wrong = (recalled < 0) | (recalled > n) | (recalled != np.rint(recalled))
    yield from check.of("sums", name, wrong, recalled, "expected a count of recalled reviews")
    wrong = (squares > n + close) | (residual**2 > n * squares + n * close)
    yield from check.of("sums", name, wrong, squares, "no predictions have such squared errors")
    least = LOG_LOSS_PER_SQUARE * squares
    advice = f"log loss is at least {LOG_LOSS_PER_SQUARE:.4f} times the squared error, {{}}"
    yield from check.of("sums", name, log_loss < least - close, log_loss, advice, least)
    for each, values in sums.items():
        name = SUMS + name_of(each)
        if isinstance(each, EqualBinSums):
            yield from _below_bins(check, values, log_loss, squares, name)
        if isinstance(each, ResidualSums):
            count, bias = values.reshape(len(values), -1, 2).sum(axis=1).T
            counts = values.reshape(len(values), -1, 2)[:, :, 0]
            wrong = (count != n) | ((counts < 0) | (counts != np.rint(counts))).any(axis=1)
            yield from check.of("sums", name, wrong, count, "expected the number of reviews in all")
            wrong = np.abs(bias - residual) > close
            advice = f"the residuals of {name_of(SCORES)} add up to {{}}"
            yield from check.of("sums", name, wrong, bias, advice, residual)
        elif isinstance(each, ThresholdSums):
            predicted, hit, of_recalled, of_n, near_bias, near = values.T
            counts = values[:, [0, 1, 5]]
            wrong = (
                (of_n != n) | (of_recalled != recalled) | (counts != np.rint(counts)).any(axis=1)
            )
            wrong |= (hit > np.minimum(predicted, recalled)) | (predicted > n) | (near > n)
            wrong |= (hit < np.maximum(0, predicted + recalled - n)) | (np.abs(near_bias) > near)
            advice = f"no predictions have such counts beside {name_of(SCORES)}"
            yield from check.of("sums", name, wrong, hit, advice)
        elif isinstance(each, TrainRateSums):
            wrong = np.abs(values[:, 0] - log_loss) > close
            advice = f"the log loss of {name_of(SCORES)} is {{}}"
            yield from check.of("sums", name, wrong, values[:, 0], advice, log_loss)


def _below_bins(
    check: _OfScores, values: FloatArray, log_loss: FloatArray, squares: FloatArray, name: str
) -> Iterator[Problem]:
    """Yield losses that are lower than the residuals in bins of the prediction allow."""
    counts, residuals = np.moveaxis(values.reshape(len(values), -1, 2), 2, 0)
    least_loss, least_squares, possible = least_by_bins(np.maximum(counts, 0), residuals)
    advice = "no predictions in these bins have such residuals"
    yield from check.of("sums", name, ~possible, residuals[:, 0], advice)
    of_scores, close = SUMS + name_of(SCORES), _PER_REVIEW * check.reviews
    for what, given, least in (
        ("log loss", log_loss, least_loss),
        ("squared error", squares, least_squares),
    ):
        advice = f"by {name.removeprefix(SUMS)} the {what} is at least {{}}"
        wrong = possible & (given < least - close)
        yield from check.of("sums", of_scores, wrong, given, advice, least)


def _bound_problems(
    check: _OfScores, metrics: list[Metric], sums: Mapping[Sums, FloatArray]
) -> Iterator[Problem]:
    """Yield metrics that do not follow from the sums, and contradict them."""
    _, recalled, _, squares, residual, *_ = sums[SCORES].T
    n = check.reviews
    both = (recalled > 0) & (recalled < n)
    with np.errstate(invalid="ignore"):
        rmse, bias = np.sqrt(squares / n), np.abs(residual) / n
    for metric in metrics:
        if not isinstance(metric, SketchMetric):
            continue
        given = check.column(metric.name)
        if not set(metric.needs) <= sums.keys() or not metric.needs:
            wrong = both & np.isnan(given) & np.isfinite(bounds_of(metric)).any()
            advice = "it is defined where reviews were recalled and forgotten"
            yield from check.of("range", metric.name, wrong, given, advice)
        if isinstance(metric, RmseBins):
            with np.errstate(invalid="ignore"):
                wrong = (given > rmse + _PER_REVIEW) | (given < bias - _PER_REVIEW)
            advice = "it lies between the mean bias and the root of the Brier score, {}"
            yield from check.of("sums", metric.name, wrong, given, advice, rmse)
        elif isinstance(metric, Auc):
            yield from _auc_problems(check, metric.name, sums)


def _auc_problems(
    check: _OfScores, name: str, sums: Mapping[Sums, FloatArray]
) -> Iterator[Problem]:
    """Yield areas that the confusion tables do not allow."""
    at = sorted((each for each in sums if isinstance(each, ThresholdSums)), key=_threshold)
    tables = [(sums[each][:, 0], sums[each][:, 1]) for each in at]
    low, high, possible = auc_between(tables, sums[SCORES][:, 1], check.reviews.astype(np.float64))
    for each in at[:1]:
        advice = "at a higher threshold no count is larger"
        wrong = ~possible
        yield from check.of("sums", SUMS + name_of(each), wrong, sums[each][:, 0], advice)
    given = check.column(name)
    with np.errstate(invalid="ignore"):
        for wrong, bound, side in (
            (given < low - _PER_REVIEW, low, "least"),
            (given > high + _PER_REVIEW, high, "most"),
        ):
            advice = f"by the counts at thresholds it is at {side} {{}}"
            yield from check.of("sums", name, possible & wrong, given, advice, bound)


def _threshold(sums: ThresholdSums) -> float:
    return sums.threshold


def prediction_problems(folder: Path, results: Results) -> Iterator[Problem]:
    """Yield predictions that cannot be scored, and scores that do not follow from them.

    Every metric of srs_eval is recomputed but those of forgetting curves, which are not submitted.
    """
    file = folder / PREDICTIONS
    try:
        problems = [*_file_problems(file, int(results.scores.reviews.sum()))]
        yield from problems
        if not problems:
            yield from _recomputed(folder, results)
    except ConfigError as error:
        found = str(error).removeprefix(f"{file}: ")
        yield Problem("unreadable", file, "", found, "copy it again from the run")


def _file_problems(file: Path, reviews: int) -> Iterator[Problem]:
    with reading(file), pq.ParquetFile(file, read_dictionary=["user"]) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        for name in (name for name in NEEDED if name not in schema.names):
            advice = "copy the file from the run"
            yield Problem("missing", file, f"column {name}", "is missing", advice)
        for column in schema:
            if column.name not in ("user", *PREDICTION_COLUMNS):
                advice = "remove it"
                yield Problem("unknown", file, f"column {shown(column.name)}", "unknown", advice)
            elif column.name != "user" and column.type not in _WIDE_TYPES:
                advice = f"expected one of {some(_WIDE_TYPES)}"
                yield Problem("type", file, f"column {column.name}", str(column.type), advice)
        for name in sorted({name for name in schema.names if schema.names.count(name) > 1}):
            yield Problem("repeated", file, f"column {shown(name)}", "is there twice", "keep one")
        yield from bytes_problems(file, metadata, _MOST_BYTES + _BYTES_EACH * reviews)
        if metadata.num_rows != reviews:
            advice = f"{RESULTS} has {reviews:,} scored reviews"
            yield Problem("reviews", file, "", f"{metadata.num_rows:,} predictions", advice)
        for group in range(metadata.num_row_groups):
            if metadata.row_group(group).num_rows > _MOST_ROWS_TOGETHER:
                advice = f"at most {_MOST_ROWS_TOGETHER:,} rows in a row group"
                yield Problem("size", file, f"row group {group}", "too large", advice)
                return
            if "user" in schema.names:
                users = opened.read_row_group(group, columns=["user"]).column("user")
                if not are_names(users):
                    yield Problem("text", file, "column user", "no names", "copy the file again")
                    return


def _recomputed(folder: Path, results: Results) -> Iterator[Problem]:
    """Yield where scores, rows and sums of users do not follow from their predictions."""
    check, scores = _OfScores(folder / RESULTS, results), results.scores
    named = metrics_named(scores.names)
    metrics = [m for name in scores.names if isinstance(m := named.get(name), SketchMetric)]
    sums = [each for each in kept_sums(metrics) if name_of(each) in results.sums]
    found: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    totals: list[list[FloatArray]] = []
    predicted = SavedPredictions(folder)
    digests = [digest for digest in scores.rows if digest]
    users = [user for user, digest in zip(scores.users, scores.rows, strict=True) if digest]
    for user, digest, reviews in zip(users, digests, check.reviews.tolist(), strict=True):
        predictions = predicted.read(user, curves=False)
        problem = _unlike(folder, predictions, str(user), digest, reviews)
        if predictions is None or problem is not None:
            yield from filter(None, [problem])
            return
        try:
            of_user = Panel(metrics).score(predictions)
        except ScoreError as error:
            place = f"user {user}"
            yield Problem(
                "predictions", folder / PREDICTIONS, place, str(error), "submit the run again"
            )
            return
        for name, value in of_user.items():
            found[name].append(value)
        totals.append(sums_of_user(sums, predictions))
    for name, values in found.items():
        yield from check.compared(
            "predictions", name, np.array(values), "the predictions give {}; submit the run again"
        )
    for each, of_users in zip(sums, zip(*totals, strict=True), strict=True):
        given = results.sums[name_of(each)][check.scored]
        close = np.isclose(given, np.stack(of_users), rtol=RELATIVE, atol=1e-9, equal_nan=True)
        advice = "the predictions give other sums; submit the run again"
        yield from check.of(
            "predictions", SUMS + name_of(each), ~close.all(axis=1), given[:, 0], advice
        )


def _unlike(
    folder: Path, predictions: Predictions | None, user: str, digest: str, reviews: int
) -> Problem | None:
    """Return the problem of predictions of other reviews than were scored."""
    file, where = folder / PREDICTIONS, f"user {user}"
    if predictions is None:
        return Problem("missing", file, where, "no predictions", "copy the file from the run")
    if len(predictions) != reviews:
        advice = f"{RESULTS} has {reviews:,}"
        return Problem("reviews", file, where, f"{len(predictions):,} predictions", advice)
    if rows_fingerprint(predictions) != digest:
        advice = "copy the file from the run of these results"
        return Problem("rows", file, where, "predictions of other reviews", advice)
    return None
