"""Write a table of many users into a folder with a folder for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.dataset as ds

from srs_eval.data.by_user import coded_users
from srs_eval.data.files import check_columns, csv_chunks, parquet_file, readable_parquet
from srs_eval.data.partitioned import INCOMPLETE, files_by_user
from srs_eval.data.selection import Choice
from srs_eval.data.table import ReviewTable, table_files
from srs_eval.data.table_options import Columns
from srs_eval.data.table_rows import HINT, columns_needed
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.place import Place, explained, patiently

_CHUNK_ROWS = 500_000
_OPEN_FILES = 200


def prepare(source: ReviewTable, out: Place) -> tuple[int, int]:
    """Write the rows of each user in the order of the table; return how many users and rows.

    The columns that are read keep their names. One chunk of rows is in memory at a time. Raise
    `ConfigError` if some users are chosen, `ReviewLogError` if the table cannot be read or the
    folder `out` is not empty, and `PlaceError` if an object store cannot be used.
    """
    if source.choice != Choice():
        raise ConfigError("data.users, sample and first choose from what is written: use them then")
    if out.kind() == "file" or out.files(recursive=True, hidden=True):
        hint = "Name a new folder, or remove this one."
        raise ReviewLogError(str(out), ["is not an empty folder"], hint)
    places = [entry.place for entry in table_files(Place.of(source.path))]
    tables = chain.from_iterable(_tables(place, source.columns) for place in places)
    first = next(tables, None)
    if first is None:
        raise ReviewLogError(str(places[0]), ["there are no reviews in it"])
    users: set[str] = set()
    rows = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for table in chain([first], tables):
            users.update(table["user"].unique().to_pylist())
            rows += len(table)
            yield from _as_before(table, first.schema, source.location).to_batches()

    (out / INCOMPLETE).write(b"")
    with explained(out):
        ds.write_dataset(
            batches(),
            out.path if out.is_remote else out.local,
            schema=first.schema,
            filesystem=out.filesystem if out.is_remote else None,
            format="parquet",
            partitioning=ds.partitioning(pa.schema([("user", pa.string())]), flavor="hive"),
            basename_template="part-{i}.parquet",
            existing_data_behavior="overwrite_or_ignore",
            use_threads=False,
            preserve_order=True,
            max_partitions=_CHUNK_ROWS,
            max_open_files=_OPEN_FILES,
        )
    if len(files_by_user(out)) < len(users):
        what = "names of users differ in capital letters alone, which this file system takes as one"
        raise ReviewLogError(str(out), [what], "Write to another file system, or rename them.")
    (out / INCOMPLETE).remove()
    return len(users), rows


def _tables(place: Place, columns: Columns) -> Iterator[pa.Table]:
    """Read the columns in use of a file in chunks, those of a CSV as text, with the users."""
    wanted = list(dict.fromkeys(columns.in_use().values()))
    if "user" in wanted:
        raise ConfigError("a column that is not that of users is called user: rename it")
    needed = [*columns_needed(columns), *([(columns.user, "the user")] if columns.user else [])]
    read = _row_groups if place.suffix == ".parquet" else _csv_chunks
    seen = 0
    for table in read(place, needed):
        users = pa.repeat(place.stem, len(table))
        if columns.user is not None:
            codes, names = coded_users(table[columns.user], str(place), columns.user, seen)
            users = pa.array(names, pa.string()).take(pa.array(codes))
        seen += len(table)
        if len(table):
            yield table.select(wanted).append_column("user", users)


def _row_groups(place: Place, needed: list[tuple[str, str]]) -> Iterator[pa.Table]:
    with parquet_file(place) as file:
        check_columns(str(place), file.schema_arrow.names, needed, hint=HINT)
        names = list({name for name, _ in needed})
        for number in range(file.metadata.num_row_groups):
            with readable_parquet(place):
                table = patiently(partial(file.read_row_group, number, names))
                table.validate(full=True)
            for begin in range(0, len(table), _CHUNK_ROWS):
                yield table.slice(begin, _CHUNK_ROWS)


def _csv_chunks(place: Place, needed: list[tuple[str, str]]) -> Iterator[pa.Table]:
    with closing(csv_chunks(place, None, size=_CHUNK_ROWS)) as frames:
        for frame in frames:
            check_columns(str(place), list(frame.columns), needed, hint=HINT)
            texts = {name: pa.array(frame[name], pa.string()) for name, _ in needed}
            yield pa.table(texts)


def _as_before(table: pa.Table, schema: pa.Schema, source: str) -> pa.Table:
    """Cast the columns to the types of the first rows."""
    try:
        return table.cast(schema)
    except pa.ArrowException as error:
        differing = [
            f"column {field.name} is {field.type}, in rows before {was.type}"
            for field, was in zip(table.schema, schema, strict=True)
            if field.type != was.type
        ]
        raise ReviewLogError(source, differing) from error
