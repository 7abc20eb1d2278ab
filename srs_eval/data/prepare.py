"""A table with the logs of many users, written into a folder with a folder for each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from srs_eval.data.files import (
    JSON_LINES,
    check_columns,
    column_names,
    existing,
    header_form,
    parquet_file,
)
from srs_eval.data.options import Columns
from srs_eval.data.selection import Choice
from srs_eval.data.source import user_named, user_names
from srs_eval.data.table import INCOMPLETE, ReviewTable, table_files
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.places import Place, explained

_ROWS_IN_MEMORY = 5_000_000

Parts = Mapping[str, list[pa.RecordBatch]]


def prepare(source: ReviewTable, out: Place) -> tuple[int, int]:
    """Write the rows of each user in the order of the table; return how many users and rows.

    Columns that are read keep their names; some million rows are in memory at a time. Raise
    `ConfigError` if some users are chosen, and `ReviewLogError` if the table cannot be read or the
    folder `out` is not empty or cannot be written.
    """
    if source.choice != Choice():
        raise ConfigError("data.users, sample and first choose from what is written: use them then")
    columns, place = source.columns or Columns(), Place(source.location)
    if "user" in (*columns.used.values(), *(columns.p or ())):
        raise ConfigError("a column that is not that of users is called user: rename it")
    if out.kind() == "file" or out.files(recursive=True):
        raise ReviewLogError(str(out), ["is not an empty folder"], "Name another folder.")
    is_file = existing(place).kind() == "file"
    users, rows, number = set[str](), 0, 0
    parts: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for file in [place] if is_file else table_files(place):
        rows_of_file = 0
        for batch in _batches(file, columns):
            for user, own in _by_user(batch, columns.user, file, rows_of_file).items():
                parts[user].append(own)
            rows_of_file += len(batch)
            users |= parts.keys()
            if rows + rows_of_file >= (number + 1) * _ROWS_IN_MEMORY:
                _write(parts, out, number)
                parts.clear()
                number += 1
        rows += rows_of_file
    if not rows:
        raise ReviewLogError(str(place), ["there are no reviews in it"])
    _write(parts, out, number)
    with explained(out):
        out.filesystem.delete_file((out / INCOMPLETE).path)
    return len(users), rows


def _batches(file: Place, columns: Columns) -> Iterator[pa.RecordBatch]:
    """Read the columns in use of a file; cells of CSV stay text, as they are read again later."""
    names = column_names(file)
    check_columns(str(file), names, columns, of_user=columns.user is not None)
    used = [*dict.fromkeys(columns.every)]
    if file.suffix in JSON_LINES:
        raise ReviewLogError(str(file), ["expected CSV or parquet files"])
    if file.suffix == ".parquet":
        with parquet_file(file) as parquet:
            yield from parquet.iter_batches(columns=used)
        return
    sign, above = header_form(file)
    text = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        include_columns=used,
    )
    parsed = pyarrow.csv.ParseOptions(delimiter=sign, newlines_in_values=True)
    begin = pyarrow.csv.ReadOptions(skip_rows=above)
    try:
        with file.reading() as stream:
            yield from pyarrow.csv.open_csv(stream, begin, parsed, text)
    except pa.ArrowException as error:
        raise ReviewLogError(str(file), [str(error).partition("\n")[0]]) from error


def _by_user(
    batch: pa.RecordBatch, column: str | None, file: Place, first_row: int
) -> dict[str, pa.RecordBatch]:
    """Divide rows by user, each in the order of the file, which is named after its only user."""
    if column is None:
        return {file.stem: batch}
    at = batch.schema.get_field_index(column)
    encoded = batch.column(at).dictionary_encode("encode")
    codes, distinct = encoded.indices.to_numpy(), encoded.dictionary.to_pandas().rename(column)
    _, first = np.unique(codes, return_index=True)
    names = user_names(distinct.iloc[codes[first]], str(file), first + first_row)
    rows = batch.remove_column(at).take(pa.array(np.argsort(codes, kind="stable")))
    sizes = np.bincount(codes)[codes[first]].tolist()
    begins = np.cumsum([0, *sizes]).tolist()
    parts: dict[str, pa.RecordBatch] = {}
    for name, begin, size in zip(names, begins, sizes, strict=False):
        parts[str(user_named(name))] = rows.slice(begin, size)
    return parts


def _write(parts: Parts, out: Place, number: int) -> None:
    """Write a file of each user's rows; files of a user are in order of their numbers."""
    with (out / INCOMPLETE).writing():
        pass
    for user, batches in parts.items():
        file = out / f"user={quote(user, safe='')}" / f"part-{number:06}.parquet"
        with file.writing() as stream:
            pq.write_table(pa.Table.from_batches(batches), stream, write_page_checksum=True)
