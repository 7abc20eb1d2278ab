"""Scores of a submission against its predictions, from which they are computed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.sketch import SketchMetric
from srs_eval.nouns import PREDICTION_COLUMNS, Predictions
from srs_eval.nouns.predictions import rows_fingerprint
from srs_eval.results.files import PREDICTIONS, reading
from srs_eval.results.predicted import SavedPredictions
from srs_eval.results.tables import NEEDED
from srs_eval.submit.problems import Problem, shown, some
from srs_eval.submit.results_table import (
    Results,
    are_names,
    bytes_problems,
    metrics_named,
    problem_of_users,
)
from srs_eval.submit.submission import RESULTS

# Relative and absolute difference of scores that are computed from the same predictions.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_MOST_ROWS_TOGETHER = 2_000_000
# Of the predictions in memory: of each, and of names of users and the rest.
_BYTES_EACH, _MOST_BYTES = 256, 10_000_000
_WIDE_TYPES = (pa.int64(), pa.float32(), pa.float64(), pa.bool_())


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
        yield Problem("file", file, "", found, "copy it again from the run")


def _file_problems(file: Path, reviews: int) -> Iterator[Problem]:
    with reading(file), pq.ParquetFile(file, read_dictionary=["user"]) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        for name in (name for name in NEEDED if name not in schema.names):
            advice = "copy the file from the run"
            yield Problem("form", file, f"column {name}", "is missing", advice)
        for column in schema:
            if column.name not in ("user", *PREDICTION_COLUMNS):
                advice = "remove it"
                yield Problem("form", file, f"column {shown(column.name)}", "unknown", advice)
            elif column.name != "user" and column.type not in _WIDE_TYPES:
                advice = f"expected one of {some(_WIDE_TYPES)}"
                yield Problem("form", file, f"column {column.name}", str(column.type), advice)
        for name in sorted({name for name in schema.names if schema.names.count(name) > 1}):
            yield Problem("form", file, f"column {shown(name)}", "is there twice", "keep one")
        yield from bytes_problems(file, metadata, _MOST_BYTES + _BYTES_EACH * reviews)
        if metadata.num_rows != reviews:
            advice = f"{RESULTS} has {reviews:,} scored reviews"
            yield Problem("rows", file, "", f"{metadata.num_rows:,} predictions", advice)
        for group in range(metadata.num_row_groups):
            if metadata.row_group(group).num_rows > _MOST_ROWS_TOGETHER:
                advice = f"at most {_MOST_ROWS_TOGETHER:,} rows in a row group"
                yield Problem("file", file, f"row group {group}", "too large", advice)
                return
            if "user" in schema.names:
                users = opened.read_row_group(group, columns=["user"]).column("user")
                if not are_names(users):
                    yield Problem("form", file, "column user", "no names", "copy the file again")
                    return


def _recomputed(folder: Path, results: Results) -> Iterator[Problem]:
    """Yield where scores and rows of users do not follow from their predictions."""
    scores, named = results.scores, metrics_named(results.scores.names)
    metrics = [m for name in scores.names if isinstance(m := named.get(name), SketchMetric)]
    panel = Panel(metrics)
    found: list[dict[str, float]] = []
    predicted = SavedPredictions(folder)
    scored = [number for number, digest in enumerate(scores.rows) if digest]
    users = [scores.users[number] for number in scored]
    for user, number in zip(users, scored, strict=True):
        predictions = predicted.read(user, curves=False)
        reviews = int(scores.reviews[number])
        problem = _unlike(folder, predictions, str(user), scores.rows[number], reviews)
        if predictions is None or problem is not None:
            yield from filter(None, [problem])
            return
        try:
            found.append(panel.score(predictions))
        except ScoreError as error:
            file, advice = folder / PREDICTIONS, "submit the run again"
            yield Problem("scores", file, f"user {user}", str(error), advice)
            return
    for metric in metrics:
        given = scores.values[scored, scores.names.index(metric.name)]
        expected = np.array([each[metric.name] for each in found])
        close = np.isclose(given, expected, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)
        if not close.all():
            first = expected[int(np.argmin(close))]
            advice = f"the predictions give {first:.9g}; submit the run again"
            yield problem_of_users(
                "scores", folder / RESULTS, metric.name, users, ~close, given, advice
            )


def _unlike(
    folder: Path, predictions: Predictions | None, user: str, digest: str, reviews: int
) -> Problem | None:
    """Return the problem of predictions of other reviews than were scored."""
    file, where = folder / PREDICTIONS, f"user {user}"
    if predictions is None:
        return Problem("form", file, where, "no predictions", "copy the file from the run")
    if len(predictions) != reviews:
        advice = f"{RESULTS} has {reviews:,}"
        return Problem("rows", file, where, f"{len(predictions):,} predictions", advice)
    if rows_fingerprint(predictions) != digest:
        advice = "copy the file from the run of these results"
        return Problem("rows", file, where, "predictions of other reviews", advice)
    return None
