"""Parquet files in which the rows of a user lie together, read by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.data.by_user import Rows, UserRows, coded_users, user_named
from srs_eval.data.files import check_columns, pandas_from_arrow, parquet_file, readable_parquet
from srs_eval.data.selection import KnownUsers
from srs_eval.errors import ReviewLogError
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
