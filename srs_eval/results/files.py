"""The files of a run: their names, and how each is written whole or not at all.

A file is put on the disk before it gets its name, and the summary comes last, so that a result
survives a power cut. That takes a few milliseconds for a file, which is too long for each user:
parts of a run that goes on are written without it, checked when it is resumed and made again where
they are damaged. Those that stay are put on the disk before the list that makes them the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError
from srs_eval.place import Place, renamed
from srs_eval.text.plain import json_values

PREDICTIONS = "predictions.parquet"
CURVES = "curves.parquet"
FITS = "fits.parquet"
SCORES = "scores.parquet"
SUMMARY = "summary.json"
RESULTS = (PREDICTIONS, CURVES, FITS, SCORES, SUMMARY)
FIGURES = "figures"
# How the job ended; there is none of a job that an earlier sweep has left in the folder.
OUTCOME = "job.json"
# The configuration of the run, written by Hydra.
CONFIG = ".hydra/config.yaml"

# Quicker than zstd, most of all for the small tables of parts, and files are hardly larger.
_COMPRESSION = "lz4"
# What is raised where a file is damaged, besides Arrow's own errors.
_DAMAGED = (OSError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError)


@contextmanager
def reading(file: Path | Place) -> Iterator[None]:
    """Turn what readers of files raise into a `ConfigError` of one line that names the file."""
    try:
        yield
    except (*_DAMAGED, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{file}: cannot be read ({type(error).__name__}: {reason})") from error


def whole_file(path: Path | Place, *, durable: bool = True) -> AbstractContextManager[Path]:
    """Return a path to write to, and put the file at `path` once it is complete."""
    if isinstance(path, Place):
        return path.writing(durable=durable)
    return renamed(path.with_name(path.name + ".partial"), path, durable=durable)


def write_text(path: Path, text: str) -> None:
    """Write a text file, and the folder it is in."""
    if path.exists() and not path.is_file():
        path.write_bytes(text.encode())  # to /dev/stdout or a pipe, which is not to be replaced
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial:
        partial.write_bytes(text.encode())


def write_table(
    path: Path | Place, table: pa.Table, group: int | None = None, *, durable: bool = True
) -> None:
    """Write a parquet file, with at most `group` rows in a row group (default: a million)."""
    with whole_file(path, durable=durable) as partial:
        pq.write_table(table, partial, group, compression=_COMPRESSION, write_page_checksum=True)


def read_table(path: Path | Place) -> pa.Table:
    """Read a parquet file, and compare its pages with their checksums if they have any."""
    return pq.read_table(opened(path), page_checksum_verification=True)


def opened(path: Path | Place) -> Path | pa.BufferReader:
    """Return the path of a local file, and the content of an object, read in one request."""
    if isinstance(path, Place):
        return pa.BufferReader(path.read()) if path.is_remote else path.local
    return path


def write_reviews(
    path: Path | Place,
    schema: pa.Schema,
    parts: Iterable[pa.Table],
    *,
    group: int | None = None,
    durable: bool = True,
) -> None:
    """Write tables of predictions, or of curves, into one file; each is a row group of its own.

    A table of more rows than `group` is several row groups; by default `group` is what pyarrow
    takes, about a million. `durable` is as for `srs_eval.place.renamed`.
    """
    encoding = {field.name: kind for field in schema if (kind := _encoding(field))}
    dictionaries = [name for name in schema.names if name not in encoding]
    with (
        whole_file(path, durable=durable) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            compression=_COMPRESSION,
            use_dictionary=dictionaries,
            column_encoding=encoding,
            write_page_checksum=True,
        ) as writer,
    ):
        for part in parts:
            writer.write_table(part, group)


def write_json(path: Path | Place, content: Mapping[str, Any]) -> None:
    """Write JSON; NaN and infinities, which JSON does not have, become null."""
    with whole_file(path) as partial:
        text = json.dumps(json_values(content), indent=2, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path | Place) -> dict[str, Any]:
    """Read a JSON object."""
    text = path.read() if isinstance(path, Place) else path.read_bytes()
    content: dict[str, Any] = json.loads(text)
    if not isinstance(content, dict):
        raise TypeError(f"expected an object, found a {type(content).__name__}")
    return content


def _encoding(field: pa.Field) -> str | None:
    """Return what is smaller, and quicker to write, than a dictionary."""
    if field.name == "p":
        return "BYTE_STREAM_SPLIT"
    return "DELTA_BINARY_PACKED" if field.type == pa.int64() and field.name != "user" else None
