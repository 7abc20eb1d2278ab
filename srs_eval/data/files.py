"""Files of tables: CSV, JSON lines and parquet, with errors that say what is wrong with a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from csv import reader as split_line
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from srs_eval.data.cells import listed, quoted
from srs_eval.data.options import Columns
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.places import Place, explained

_JSON_LINES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", *_JSON_LINES)
SPLIT = "Make a folder of it with `python -m srs_eval.prepare`, or split it."
_SEPARATORS = (",", ";", "\t")
# Names of columns of users, but for case and what separates words
_USERS, _WORDS = re.compile("(user|learner|student|account)(id|name)?"), re.compile(r"[\W_]+")
_LARGEST_TABLE = 1_000_000_000  # cells: a small file of equal rows can hold more than any memory
_HEAD_BYTES, _BLOCK_BYTES, _BYTES_OF_ROW = 1 << 16, 1 << 24, 64


def existing(path: str | Path | Place) -> Place:
    """Return the place of a file or folder that is there, and no pipe or device."""
    place = Place.of(path)
    if place.kind():
        return place
    what = "no such file or folder; pipes and devices are not read"
    raise ReviewLogError(str(place), [what], "Check the address: capital letters count.")


def table_files(place: Place) -> list[Place]:
    """Return the tables in a folder; raise `ReviewLogError` if there are none."""
    files = [file for file in place.files() if file.suffix in TABLE_SUFFIXES]
    if not files:
        hint = f"Expected one file per user: {', '.join(TABLE_SUFFIXES)}."
        raise ReviewLogError(str(place), ["there are no tables here"], hint)
    return files


def check_columns(
    source: str, present: Sequence[str], columns: Columns, *, of_user: bool = True
) -> None:
    """Check that a table has each named column once and, if `of_user`, no other one of users.

    All rows would be read as one user's then.
    """
    wrong = []
    for noun, column in (columns.every if of_user else columns.used).items():
        count = present.count(column)
        what = f"there are {count} columns" if count else "there is no column"
        if count != 1:
            said = f"{what} {quoted(column)}, needed for data.columns.{noun.partition(' ')[0]}"
            wrong.append(Violation(said, "duplicate" if count else "missing", column))
    if wrong:
        names = listed([*map(quoted, present)], 30)
        hint = f"Columns: {names or 'none'}. Name them as data.columns.…=COLUMN."
        raise ReviewLogError(source, wrong, hint)
    users = [name for name in present if _USERS.fullmatch(_WORDS.sub("", name.lower()))]
    if users and of_user and columns.user is None:
        what = f"there is a column {users[0]!r}, without whose name all rows are read as one user's"
        unnamed = Violation(what, "unknown", users[0])
        raise ReviewLogError(source, [unnamed], f"Name it as data.columns.user={users[0]}.")


def read_table(path: str | Path | Place) -> pd.DataFrame:
    """Read a file of the kind that its suffix says; the cells of a CSV are text."""
    place = Place.of(path)
    if place.suffix not in TABLE_SUFFIXES:
        expected = ", ".join(TABLE_SUFFIXES)
        raise ReviewLogError(str(place), [f"unknown kind of file; expected one of {expected}"])
    if place.suffix in _JSON_LINES:
        return _read_json(place)
    if place.suffix != ".parquet":
        return pandas_from_arrow(pa.concat_tables(_read_csv(place, _BLOCK_BYTES)))
    with parquet_file(place) as file:
        rows = file.metadata.num_rows
        if rows * file.metadata.num_columns > _LARGEST_TABLE:
            raise ReviewLogError(str(place), [f"it has {rows:,} rows, too many"], SPLIT)
        table = file.read()
        table.validate(full=True)
        return pandas_from_arrow(table)


def chunks(place: Place, columns: Columns, rows: int) -> Iterator[pa.Table]:
    """Read columns of a CSV or parquet file by about so many rows; cells of a CSV are text."""
    used, of_user = [*columns.every.values()], columns.user is not None
    if place.suffix in _JSON_LINES:
        raise ReviewLogError(str(place), ["expected CSV or parquet files"])
    if place.suffix != ".parquet":
        for table in _read_csv(place, rows * _BYTES_OF_ROW):
            check_columns(str(place), table.column_names, columns, of_user=of_user)
            if len(table):
                yield table.select(used)
        return
    with parquet_file(place) as file:
        check_columns(str(place), file.schema_arrow.names, columns, of_user=of_user)
        for batch in file.iter_batches(batch_size=rows, columns=used):
            yield pa.Table.from_batches([batch])


@contextmanager
def parquet_file(place: Place) -> Iterator[pq.ParquetFile]:
    """Open a parquet file; raise `ReviewLogError` if it is none, or damaged."""
    remote = place.is_remote
    with explained(place):
        source = place.filesystem.open_input_file(place.path) if remote else place.local
        try:
            with pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=remote) as file:
                yield file
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            # Arrow's own MemoryError is an ArrowException too.
            if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
                raise
            what = f"not a readable parquet file: {str(error).partition(chr(10))[0]}"
            hint = "The file may be cut short or be no parquet at all: copy or download it again."
            raise ReviewLogError(str(place), [what], hint) from error


def pandas_from_arrow(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to a pandas frame whose index counts the rows.

    Whole numbers stay whole where some are missing.
    """
    # What pandas wrote about its index is not needed, and may be damaged.
    bare = table.replace_schema_metadata(None)
    frame: pd.DataFrame = bare.to_pandas(split_blocks=True, integer_object_nulls=True)
    return frame


def _read_json(place: Place) -> pd.DataFrame:
    """Read one file of JSON lines in UTF-8."""
    objects, number = list[dict[str, Any]](), 0
    with place.reading() as file:
        try:
            for line in TextIOWrapper(file, encoding="utf-8-sig"):
                number += 1
                objects += [dict(json.loads(line))] if line.strip() else []
        except (ValueError, TypeError) as error:
            what = f"not JSON lines, an object in each: line {number}: {error}"
            raise ReviewLogError(str(place), [what]) from error
    return pd.DataFrame(objects, dtype=object)


def _read_csv(place: Place, block_bytes: int) -> Iterator[pa.Table]:
    """Read a CSV file in UTF-8 by so many bytes, the first time no rows; its cells are text."""
    with place.reading() as file:
        head = bytes(file.read(_HEAD_BYTES))
    text = head.decode("utf-8-sig", errors="replace").lstrip("\r\n")
    lines = [*text.splitlines()[:2], "", ""]
    above = int(lines[0].startswith("sep="))  # which Excel writes
    header = lines[above]
    sign = max(_SEPARATORS, key=header.count)
    reading = csv.ReadOptions(use_threads=False, skip_rows=above, block_size=block_bytes)
    parsing = csv.ParseOptions(delimiter=sign, newlines_in_values=True)
    types = dict.fromkeys(next(split_line([header], delimiter=sign), []), pa.string())
    as_text = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    try:
        if b"\0" in head:
            raise ValueError("it is a binary file")
        with place.reading() as file, csv.open_csv(file, reading, parsing, as_text) as reader:
            names = [name.strip() for name in reader.schema.names]
            yield reader.schema.empty_table().rename_columns(names)
            for batch in reader:
                yield pa.Table.from_batches([batch]).rename_columns(names)
    except ValueError as error:  # of Arrow too
        what = f"not a CSV file in UTF-8: {repr(str(error).partition(chr(10))[0])[1:-1]}"
        hint = "Names of columns come first. Parquet ends in .parquet; for Anki use data=anki."
        raise ReviewLogError(str(place), [what], hint) from error
