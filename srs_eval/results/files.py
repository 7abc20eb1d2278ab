"""The output folder of a run: written whole or not at all, readable ever after."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.nouns import Fit, Predictions
from srs_eval.results import tables

PREDICTIONS = "predictions.parquet"
CURVES = "curves.parquet"
FITS = "fits.parquet"
SCORES = "scores.parquet"
SUMMARY = "summary.json"
FIGURES = "figures"
RESULTS = (PREDICTIONS, CURVES, FITS, SCORES, SUMMARY)

# Quicker to write than dictionaries, and smaller.
_ENCODING = {
    **dict.fromkeys(
        ("fold", "row", "card", "day", "nth_review", "lapses", "last_rating"), "DELTA_BINARY_PACKED"
    ),
    "p": "BYTE_STREAM_SPLIT",
}


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write beside `path`, and put it there once it is complete."""
    beside = path.with_name(path.name + ".partial")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a parquet file."""
    with whole_file(path) as partial:
        pq.write_table(table, partial, compression="zstd", write_page_checksum=True)


def read_table(path: Path) -> pa.Table:
    """Read a parquet file, and compare its pages with their checksums if they have any."""
    return pq.read_table(path, page_checksum_verification=True)


def write_reviews(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Write tables of predictions, or of curves, into one file; each is a row group of its own."""
    encoding = {name: kind for name, kind in _ENCODING.items() if name in schema.names}
    dictionaries = [name for name in schema.names if name not in encoding]
    with (
        whole_file(path) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            compression="zstd",
            use_dictionary=dictionaries,
            column_encoding=encoding,
            write_page_checksum=True,
        ) as writer,
    ):
        for part in parts:
            writer.write_table(part)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON; NaN and infinities, which JSON does not have, become null."""
    with whole_file(path) as partial:
        text = json.dumps(_finite(content), indent=2, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def write_predictions(folder: Path, predictions: Predictions) -> None:
    """Write the scored reviews, and the sampled curves if there are any."""
    table, curves = tables.predictions_table(predictions), tables.curves_table(predictions)
    write_reviews(folder / PREDICTIONS, table.schema, [table])
    if curves is not None:
        write_reviews(folder / CURVES, curves.schema, [curves])


def load_predictions(folder: Path) -> Predictions:
    """Read what `write_predictions` wrote."""
    curves = folder / CURVES
    return tables.read_predictions(
        read_table(folder / PREDICTIONS),
        read_table(curves) if curves.is_file() else None,
    )


def write_fits(folder: Path, fits: Sequence[Fit]) -> None:
    """Write the status of every fit."""
    write_table(folder / FITS, tables.fits_table(fits))


def load_fits(folder: Path) -> tuple[Fit, ...]:
    """Read what `write_fits` wrote."""
    return tables.read_fits(read_table(folder / FITS))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(content) for name, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(content) for content in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
