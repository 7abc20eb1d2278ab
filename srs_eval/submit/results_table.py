"""``results.parquet``: scores of each user, and how the fits ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.intervals import bounds_of
from srs_eval.metrics.panel import SAFE_NAME, full_panel
from srs_eval.metrics.sketch import ReviewMean
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Metric, User
from srs_eval.results.files import reading, write_table
from srs_eval.results.fit_counts import FitCounts
from srs_eval.results.tables import read_scores, scores_table
from srs_eval.submit.about import TAG
from srs_eval.submit.problems import Kind, Problem, shown, some
from srs_eval.text.plain import cleaned
from srs_eval.text.suggestion import suggestion

LARGEST = 64_000_000
MOST_USERS, MOST_COLUMNS, MOST_VALUES = 200_000, 500, 20_000_000
_MOST_BYTES = 400_000_000
FIT_COUNTS = tuple(each.name for each in fields(FitCounts))
_SECONDS = "seconds"
# Names of metrics have no dots. Sums are of earlier releases, and are not read.
FIT, _SUMS = "fit.", "sums."
_ABOUT_USER = {"user": (pa.int64(), pa.string()), "reviews": (pa.int64(),), "rows": (pa.string(),)}
_ROWS = re.compile(r"[0-9a-f]{16}")
_THRESHOLD = re.compile(r"(?:confusion_[a-z]+|threshold_bias)_at_(0(?:_\d{1,6})?|1)")
_LONGEST_USER, _MOST_REVIEWS = 100, 10**9
# Rounding of scores at their bounds, and of those that bound each other.
_CLOSE, _CLOSE_TO_OTHERS = 1e-9, 1e-6
# The log loss of a review is at least this times its squared error: the minimum of
# -ln(1 - x) / x**2 over errors x from 0 to 1.
LOG_LOSS_PER_SQUARE = 2.45540748


@dataclass(frozen=True, slots=True)
class Results:
    """The content of ``results.parquet``."""

    scores: Scores  # Reviews, digest of the rows and metrics of each user
    # [n_users]: Counts of fits, as in `FitCounts`; empty for published scores
    fits: Mapping[str, IntArray] = field(default_factory=dict)
    seconds: FloatArray | None = None  # [n_users]: CPU time of the fits


def metrics_named(names: Iterable[str]) -> dict[str, Metric]:
    """Return the metrics of srs_eval, with the thresholds that occur in some names."""
    found = {match[1] for name in names if (match := _THRESHOLD.fullmatch(name))}
    thresholds = sorted(float(text.replace("_", ".")) for text in found) or DEFAULT_THRESHOLDS
    return {metric.name: metric for metric in full_panel(thresholds=thresholds)}


def write_results(file: Path, results: Results) -> None:
    """Write the table."""
    table = scores_table(results.scores)
    for name, counts in results.fits.items():
        table = table.append_column(FIT + name, pa.array(counts, pa.int64()))
    if results.seconds is not None:
        table = table.append_column(FIT + _SECONDS, pa.array(results.seconds, pa.float64()))
    write_table(file, table)


def read_results(file: Path, *, published: bool = False) -> tuple[Results | None, list[Problem]]:
    """Read and check the table; None if it is too large, damaged, or of other columns.

    A `published` table is of another project, which may have metrics of its own.
    """
    with reading(file), pq.ParquetFile(file, page_checksum_verification=True) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        problems = [*_size_problems(file, metadata, schema)]
        problems = problems or [*_column_problems(file, schema, published=published)]
        problems = problems or [*bytes_problems(file, metadata, _MOST_BYTES)]
        if problems:
            return None, problems
    names = [name for name in schema.names if not name.startswith(_SUMS)]
    texts = [name for name in names if schema.field(name).type == pa.string()]
    with reading(file):
        # A text that occurs in every row is small in the file, and must stay so in memory.
        table = pq.read_table(
            file, columns=names, read_dictionary=texts, page_checksum_verification=True
        )
        problems = [*_text_problems(file, table)]
        if problems:
            return None, problems
        for name in texts:
            table = table.set_column(
                table.schema.get_field_index(name), name, table.column(name).cast(pa.string())
            )
        results = _results(table)
    return results, [*value_problems(file, results)]


def problem_of_users(
    kind: Kind,
    file: Path,
    column: str,
    users: Sequence[User],
    wrong: BoolArray,
    values: NDArray[Any],
    advice: str,
) -> Problem:
    """Return one problem for all users where something is wrong, with the value of the first."""
    at = np.flatnonzero(wrong).tolist()
    who = f"user{'s' * (len(at) > 1)} {some(users[number] for number in at)}"
    return Problem(kind, file, f"column {column}, {who}", shown(values[at[0]].item()), advice)


def value_problems(file: Path, results: Results) -> Iterator[Problem]:
    """Yield what is wrong with the numbers of a table."""
    scores = results.scores
    users = scores.users
    scored = np.array([rows != "" for rows in scores.rows], np.bool_)
    if not scored.any():  # of another project, which does not say which reviews were scored
        scored[:] = True

    def of(kind: Kind, column: str, wrong: BoolArray, values: NDArray[Any], advice: str) -> Problem:
        return problem_of_users(kind, file, column, users, wrong, values, advice)

    if twice := [user for user, count in Counter(users).items() if count > 1]:
        place = f"column user, {some(twice)}"
        yield Problem("form", file, place, "more than one row", "keep one row of a user")
    reviews = scores.reviews
    wrong = (reviews < scored) | (reviews > _MOST_REVIEWS) | (~scored & (reviews != 0))
    if wrong.any():
        advice = "write the number of scored reviews, at least 1; 0 without a digest of rows"
        yield of("rows", "reviews", wrong, reviews, advice)
    known = metrics_named(scores.names)
    for name, column in zip(scores.names, scores.values.T, strict=True):
        low, high = bounds_of(known[name]) if name in known else (-np.inf, np.inf)
        infinite = np.isinf(column)
        if infinite.any():
            yield of("range", name, infinite, column, "scores are finite, or NaN if not defined")
        with np.errstate(invalid="ignore"):
            outside = ~infinite & ((column < low - _CLOSE) | (column > high + _CLOSE))
        if outside.any():
            yield of("range", name, outside, column, f"it lies between {low:g} and {high:g}")
        missing = np.isnan(column) & scored
        if isinstance(known.get(name), ReviewMean) and missing.any():
            yield of("range", name, missing, column, "it is defined for every scored user")
        given = ~np.isnan(column) & ~scored
        if given.any():
            yield of("rows", name, given, column, "a score needs the digest of its rows")
    for name, counts in results.fits.items():
        wrong = (counts < 0) | (counts > results.fits.get("fits", counts))
        if wrong.any():
            yield of("range", FIT + name, wrong, counts, "a count, at most that of all fits")
    if results.seconds is not None:
        wrong = ~(np.isfinite(results.seconds) & (results.seconds >= 0))
        if wrong.any():
            yield of("range", FIT + _SECONDS, wrong, results.seconds, "seconds, 0 or more")


def bound_problems(file: Path, scores: Scores) -> Iterator[Problem]:
    """Yield scores that no predictions have together, whatever the predictions are.

    All follow from convexity: the mean loss of some reviews is at least the loss of their mean
    error. NaN is within all bounds.
    """
    columns = dict(zip(scores.names, scores.values.T, strict=True))
    unknown, inf = (np.full(len(scores.users), value) for value in (np.nan, np.inf))
    bias, brier = np.abs(columns.get("mbe", unknown)), columns.get("brier", unknown)
    with np.errstate(invalid="ignore"):
        rmse, of_bias = np.sqrt(brier), -np.log1p(_CLOSE_TO_OTHERS - np.minimum(bias, 1))
    bounds = [
        ("log_loss", LOG_LOSS_PER_SQUARE * brier, inf, "2.4554 times the Brier score"),
        ("log_loss", of_bias, inf, "the log loss of the mean bias"),
        ("brier", bias**2, inf, "the square of the mean bias"),
    ]
    known = metrics_named(scores.names)
    for name in ("ece", *(name for name, each in known.items() if isinstance(each, RmseBins))):
        bounds.append((name, bias, rmse, "the mean bias, and at most the root of the Brier score"))
    for name, low, high, what in bounds:
        if name not in columns:
            continue
        given = columns[name]
        wrong = (given < low - _CLOSE_TO_OTHERS) | (given > high + _CLOSE_TO_OTHERS)
        if wrong.any():
            advice = f"it is at least {what}"
            yield problem_of_users("scores", file, name, scores.users, wrong, given, advice)


def _results(table: pa.Table) -> Results:
    fits = {name: FIT + name for name in FIT_COUNTS if FIT + name in table.column_names}
    seconds = FIT + _SECONDS
    return Results(
        read_scores(table.select([name for name in table.column_names if "." not in name])),
        {name: table.column(column).to_numpy() for name, column in fits.items()},
        table.column(seconds).to_numpy() if seconds in table.column_names else None,
    )


def _size_problems(file: Path, metadata: pq.FileMetaData, schema: pa.Schema) -> Iterator[Problem]:
    """Yield what is too large to be read, by the metadata alone."""
    rows, columns = metadata.num_rows, metadata.num_columns
    numbers = sum(not name.startswith(_SUMS) for name in schema.names)
    for what, found, most in (
        ("users", rows, MOST_USERS),
        ("columns", columns, MOST_COLUMNS),
        ("values", rows * numbers, MOST_VALUES),
    ):
        if found > most:
            yield Problem("file", file, "", f"{found:,} {what}", f"{most:,} at most")
    if rows == 0:
        yield Problem("form", file, "", "no users", "submit a run that scored users")


def bytes_problems(file: Path, metadata: pq.FileMetaData, most: int) -> Iterator[Problem]:
    """Yield columns that are small in a file and large in memory."""
    text = metadata.num_rows * 4 * (_LONGEST_USER + 1) + 1_000_000
    sizes: Counter[str] = Counter()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if not column.path_in_schema.startswith(_SUMS):
                sizes[column.path_in_schema] += column.total_uncompressed_size
    for name, found, largest in (
        *((name, sizes[name], text) for name in ("user", "rows") if name in sizes),
        ("", sum(sizes.values()), most),
    ):
        if found > largest:
            where, advice = f"column {name}" * bool(name), f"{largest:,} at most"
            yield Problem("file", file, where, f"{found:,} bytes in memory", advice)


def _column_problems(file: Path, schema: pa.Schema, *, published: bool) -> Iterator[Problem]:
    def of(kind: Kind, name: str, found: str, advice: str) -> Problem:
        return Problem(kind, file, f"column {shown(name)}", found, advice)

    for name in sorted({name for name in schema.names if schema.names.count(name) > 1}):
        yield of("form", name, "is there twice", "keep one of them")
    for name, types in _ABOUT_USER.items():
        if name not in schema.names:
            yield of("form", name, "is missing", "write the table with srs_eval.submit")
        elif schema.field(name).type not in types:
            expected = " or ".join(map(str, types))
            yield of("form", name, str(schema.field(name).type), f"expected {expected}")
    named = metrics_named(schema.names)
    known = [FIT + name for name in (*FIT_COUNTS, _SECONDS)]
    if "log_loss" not in schema.names and not published:
        yield of("form", "log_loss", "is missing", "submit a run that has this metric")
    for column in schema:
        name, kind = column.name, column.type
        if name in _ABOUT_USER or name.startswith(_SUMS):
            continue
        if name in known:
            expected = pa.float64() if name == FIT + _SECONDS else pa.int64()
        elif name in named or (published and SAFE_NAME.fullmatch(name)):
            expected = pa.float64()
        else:
            listed = "; keep metrics of srs_eval"
            meant = suggestion(name, [*known, *named], otherwise=listed)
            yield of("form", name, "no such column", meant[2:])
            continue
        if kind != expected:
            yield of("form", name, str(kind), f"expected {expected}")


def _text_problems(file: Path, table: pa.Table) -> Iterator[Problem]:
    """Yield missing values, and texts that are no names of users or digests."""
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if column.null_count:
            advice = "write a value for every user"
            yield Problem("form", file, f"column {shown(name)}", "has missing values", advice)
        if not pa.types.is_dictionary(column.type):
            continue
        for text in _distinct(column):
            if name == "rows" and text and not _ROWS.fullmatch(text):
                advice = "expected 16 digits from 0 to f"
                yield Problem("form", file, "column rows", shown(text), advice)
                break
            if name == "user" and not _is_name(text):
                advice = f"a name has 1 to {_LONGEST_USER} characters, without markup and controls"
                yield Problem("form", file, "column user", shown(text), advice)
                break


def are_names(users: pa.ChunkedArray) -> bool:
    """Whether a column that was read as a dictionary, or as numbers, can be that of users."""
    if not pa.types.is_dictionary(users.type):
        return bool(users.type == pa.int64())
    return all(_is_name(text) for chunk in users.chunks for text in _distinct(chunk))


def _distinct(column: pa.DictionaryArray) -> Iterator[str]:
    """Yield the distinct texts of a column; one that is too long in place of those that are."""
    for piece in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        for value in piece.dictionary:
            if value.as_buffer() is None or value.as_buffer().size > 4 * _LONGEST_USER:
                yield "x" * (_LONGEST_USER + 1)
            else:
                yield value.as_py()


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_USER and not TAG.search(text) and text == cleaned(text)
