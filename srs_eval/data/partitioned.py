"""Parquet files in which the rows of a user lie together, read by row group, and their index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from srs_eval.data.by_user import Rows, UserRows, coded_users, user_named
from srs_eval.data.files import (
    check_columns,
    existing,
    pandas_from_arrow,
    parquet_file,
    readable_parquet,
)
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Duplicates, InvalidTimes, Reading
from srs_eval.data.times import TimeUnit
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import IntArray, User
from srs_eval.place import Entry, Place, patiently

# What is known of each segment: a run of rows of one user within a row group.
SCHEMA = pa.schema(
    [
        ("user", pa.string()),
        ("file", pa.string()),
        ("bytes", pa.int64()),
        ("row_group", pa.int32()),
        ("offset", pa.int64()),
        ("rows", pa.int64()),
    ]
)
_AGAIN = "Copy the files again, or make them and their index again: python -m srs_eval.prepare."
INDEX = "_index.parquet"
_KEY = b"srs_eval"
_VERSION = 1
_FILE = SCHEMA.names.index("file")
_PREPARE = "Make it with `python -m srs_eval.prepare`, which writes the index last."


@dataclass(frozen=True, slots=True, init=False)
class PartitionedLogs(TableSource):
    """Review logs that ``python -m srs_eval.prepare`` has put in order.

    A user is read with the row group that their rows lie in, which is kept for the next user.

    Parameters
    ----------
    path : str or Path
        Folder with `_index.parquet`; a path, or an address: ``s3://``, ``gs://``, ``abfss://`` or
        ``hf://``.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[anna, ben]`` or ``"1-100"``; everyone if None.
    sample : int, optional
        How many of these users at most, chosen by a digest of their names.
    first : int, optional
        How many of these users at most, in their order.
    time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times
        As in `srs_eval.data.table.ReviewTable`; as they were for ``prepare`` if None.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have.
    """

    path: str
    choice: Choice
    changed: Mapping[str, Any] = field(hash=False)

    def __init__(
        self,
        path: str | Path,
        users: Selection = None,
        *,
        sample: int | None = None,
        first: int | None = None,
        time_unit: TimeUnit | None = None,
        time_zone: str | None = None,
        day_start_hour: float | None = None,
        duplicates: Duplicates | None = None,
        ratings: Mapping[Any, int] | None = None,
        invalid_times: InvalidTimes | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "time_unit": time_unit,
            "time_zone": time_zone,
            "day_start_hour": day_start_hour,
            "duplicates": duplicates,
            "ratings": ratings,
            "invalid_times": invalid_times,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        replace(Reading(), **changed)  # which checks them
        choice = Choice(users, sample, first)
        self._set(path=Place.of(path).address, choice=choice, changed=changed)

    def find(self) -> Logs:
        """Read the index of the folder."""
        rows, columns, reading = _index(Place(self.path))
        return Logs(rows, columns, replace(reading, **self.changed))


def write_index(
    folder: Place, found: Iterable[pa.Table], columns: Columns, reading: Reading
) -> None:
    """Write the index of a folder, with which its logs become readable.

    The tables `found` are the segments of each row group, in order.
    """
    about = {"version": _VERSION, "columns": asdict(columns), "reading": asdict(reading)}
    schema = SCHEMA.with_metadata({_KEY: json.dumps(about).encode()})
    form: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    with (folder / INDEX).writing() as path, pq.ParquetWriter(path, schema, **form) as writer:
        for table in found:
            below = [
                address.removeprefix(folder.address).lstrip("/\\").replace("\\", "/")
                for address in table["file"].to_pylist()
            ]
            table = table.set_column(_FILE, "file", pa.array(below, pa.string()))
            writer.write_table(table.cast(schema))


def _index(folder: Place) -> tuple[UserRows, Columns, Reading]:
    """Read the index of a folder."""
    if existing(folder).kind() != "folder":
        raise ReviewLogError(str(folder), ["expected a folder of partitioned logs"], _PREPARE)
    place = folder / INDEX
    if not place.exists():
        raise ReviewLogError(str(folder), [f"there is no {INDEX} in it"], _PREPARE)

    def read() -> pa.Table:
        with parquet_file(place) as file, readable_parquet(place):
            return file.read()

    table = patiently(read)
    try:
        about = json.loads((table.schema.metadata or {})[_KEY])
        if about["version"] != _VERSION or not _is_plausible(table):
            raise ValueError
        columns, reading = Columns(**about["columns"]), Reading(**about["reading"])
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        what = "it is not an index that this release of srs_eval can read"
        raise ReviewLogError(str(place), [what], _PREPARE) from error
    addresses = pc.binary_join_element_wise(str(folder), table["file"], "/")
    table = table.set_column(_FILE, "file", addresses)
    used = columns.in_use().values()
    return by_segment(str(folder), str(columns.user), used, table), columns, reading


def _is_plausible(table: pa.Table) -> bool:
    """Whether an index has the columns of one, and refers to files in its folder."""
    if not table.schema.remove_metadata().equals(SCHEMA) or not len(table):
        return False
    names = table["file"].unique().to_pylist()
    return (
        all(column.null_count == 0 for column in table.columns)
        and all(pc.min(table[name]).as_py() >= 0 for name in ("row_group", "offset", "rows"))
        and not any(".." in name.split("/") or name.startswith("/") for name in names)
    )


def by_segment(
    source: str, user_column: str, columns: Iterable[str], segments: pa.Table
) -> UserRows:
    """Return the users, in order of first appearance, whose rows lie in some segments.

    `segments` is as `SCHEMA` says, with addresses of files. At each read the names in `user_column`
    are compared with the user's.
    """
    codes, users = pd.factorize(segments["user"].to_pandas())
    order = np.argsort(codes, kind="stable")
    names = segments["file"].combine_chunks().dictionary_encode()
    found = segments.set_column(SCHEMA.names.index("file"), "file", names).take(order)
    known = KnownUsers(source, tuple(user_named(name) for name in users))
    first = np.searchsorted(codes[order], np.arange(len(users) + 1))
    number = {user: number for number, user in enumerate(known.users)}
    wanted = tuple(dict.fromkeys([user_column, *columns]))

    def read(user: User) -> Rows:
        """Read the rows of a user; raise `ReviewLogError` if they are not where they should be."""
        begin, end = first[number[user] :][:2]
        parts, numbers = [], []
        for segment in found.slice(begin, end - begin).to_pylist():
            entry = Entry(Place(segment["file"]), segment["bytes"], 0)
            group, offset, rows = (segment[name] for name in ("row_group", "offset", "rows"))
            part = _group(entry, group, wanted).slice(offset, rows)
            if len(part) < rows or not is_of(user, part):
                there = f"row group {group} has other rows than those of user {user}"
                where = f"in the {rows:,} rows from row {offset + 1:,} of it"
                raise ReviewLogError(str(entry.place), [f"{there} {where}"], _AGAIN)
            parts.append(part)
            numbers.append(np.arange(rows) + offset + _kept_open(entry)[1][group])
        used = [name for name in parts[0].column_names if name != user_column]
        table = pandas_from_arrow(pa.concat_tables(parts).select(used).combine_chunks())
        return Rows(source, table, np.concatenate(numbers))

    def is_of(user: User, part: pa.Table) -> bool:
        if user_column not in part.column_names:
            return False
        return coded_users(part[user_column], source, user_column, 0)[1] == [str(user)]

    return UserRows(known, read)


def find_segments(files: Iterable[Entry], user_column: str) -> Iterator[pa.Table]:
    """Find the segments in each file, reading the names of the users and nothing else.

    Yield one table per row group. Raise `ReviewLogError` if a file cannot be read, has no such
    column, or has a row without a user.
    """
    for entry in files:
        source, seen = str(entry.place), 0
        with parquet_file(entry.place) as file, readable_parquet(entry.place):
            check_columns(source, file.schema_arrow.names, [(user_column, "the user")])
            for number in range(file.metadata.num_row_groups):
                (column,) = patiently(partial(file.read_row_group, number, [user_column])).columns
                codes, names = coded_users(column, source, user_column, seen)
                begins = np.flatnonzero(np.r_[len(codes) > 0, codes[1:] != codes[:-1]])
                rows = np.diff(np.r_[begins, len(codes)])
                seen += len(codes)
                users = pa.array(names, pa.string()).take(pa.array(codes[begins]))
                alike = [np.full(len(rows), value) for value in (source, entry.size, number)]
                columns = [users, *alike, begins, rows]
                yield pa.table(
                    [pa.array(one, kind) for one, kind in zip(columns, SCHEMA.types, strict=True)],
                    schema=SCHEMA,
                )


# Users are read in the order in which they lie: most of them are in the group that was read last.
@lru_cache(maxsize=1)
def _group(entry: Entry, number: int, columns: tuple[str, ...]) -> pa.Table:
    """Read a row group, all of its columns if some are missing; the last one is kept in memory."""
    file, _ = _kept_open(entry)
    if number >= file.metadata.num_row_groups:
        there = f"it has {file.metadata.num_row_groups} row groups, and no group {number}"
        raise ReviewLogError(str(entry.place), [there], _AGAIN)

    def read() -> pa.Table:
        with readable_parquet(entry.place):
            is_there = set(columns) <= set(file.schema_arrow.names)
            table = file.read_row_group(number, list(columns) if is_there else None)
            table.validate(full=True)
        return table

    return patiently(read)


@lru_cache(maxsize=1)
def _kept_open(entry: Entry) -> tuple[pq.ParquetFile, IntArray]:
    """Open a file, compare its size with that in the index, and find the row groups' first rows."""
    now = entry.place.entry()
    if now is None:
        raise ReviewLogError(str(entry.place), ["a file of the index is not there"], _AGAIN)
    if now.size != entry.size:
        sizes = f"it has {now.size:,} bytes, in the index {entry.size:,}"
        raise ReviewLogError(str(entry.place), [sizes], _AGAIN)
    file = patiently(partial(parquet_file, entry.place))
    groups = range(file.metadata.num_row_groups)
    rows = [file.metadata.row_group(number).num_rows for number in groups]
    return file, np.cumsum([0, *rows])[:-1]
