"""Review logs in tables of any form: files, folders, addresses, and tables in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.interchange

from srs_eval.data.files import (
    TABLE_SUFFIXES,
    check_columns,
    column_names,
    existing,
    is_pattern,
    pandas_from_arrow,
    parquet_file,
    read_table,
)
from srs_eval.data.options import Columns, OddRows, TableOptions, TimeUnit
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, Rows, TableSource, by_user, user_named, user_names
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import User
from srs_eval.places import Place

_NOBODY = "__HIVE_DEFAULT_PARTITION__"
# In a folder that is still written to
INCOMPLETE = "_incomplete"


class InMemory(Protocol):
    """A table of any library that can be read as Arrow, such as a pandas or polars frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of Arrow's C interface."""


class ReviewTable(TableSource):
    """Review logs in a table of any form.

    Rows are sorted by time; rows of the same time keep their order. Where the table has day
    numbers instead of times, it has to be in time order already.

    Parameters
    ----------
    path : str, Path or table, optional
        A CSV (comma, semicolon or tab), parquet or JSON lines file, which is one user's log unless
        a column says whose each row is; a folder or a pattern such as ``logs/*.csv`` with one file
        per user, named after the user; or a folder partitioned by user, as
        ``user=anna/part-0.parquet``. A path, or an address: ``s3://``, ``gs://``, ``abfss://`` or
        ``hf://``. Or a table in memory: a pandas frame, or anything with ``__arrow_c_stream__`` or
        ``__dataframe__``, such as a polars frame or an Arrow table; its needed columns are copied.
        With `query`, a DuckDB or SQLite file.
    columns : Columns or mapping of str to str, optional
        What the columns are called. By default a partitioned folder has those that are called
        as the fields of `Columns`.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[anna, ben]`` or ``"1-100"``; everyone if None.
    query : str, optional
        A SELECT statement with one row per review, which has times. It can only read. Without
        `path` and `url`, DuckDB runs it, and it may name CSV and parquet files.
    url : str, optional
        Address of the database of the query for SQLAlchemy, without a password; ``env:NAME`` reads
        it from the environment variable NAME, and it may have a password there.
    sample : int, optional
        How many of these users at most, chosen by a digest of their names.
    first : int, optional
        How many of these users at most, in their order.
    time_unit : {"auto", "iso", "s", "ms", "us"}
        What times are: ISO-8601 text, or seconds, milliseconds or microseconds since 1970.
    time_zone : str
        Where days begin at `day_start_hour`, and what a time without an offset refers to.
    day_start_hour : float
        Hour at which a new day begins for the person, from 0 to below 24.
    ratings : mapping, optional
        Rating of each value of the column of ratings, such as ``{"fail": 1, "pass": 3}``; by
        default 1 to 4, and words such as those or again, hard, good and easy.
    missing : {"error", "drop"}
        What to do about rows without a card, a rating or a time.
    duplicates : {"error", "drop"}
        What to do about rows with the card and the time of an earlier row.
    invalid_times : {"error", "drop"}
        What to do about rows of a user whose time is in the future, before 1980, unreadable or
        not a time of its zone. A user without any other row is refused all the same.
    views : bool
        Whether the query may name views, virtual tables, computed columns and macros of `path`,
        which run what the author of the file wrote; by default only ordinary tables.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have, all of them at once; or `path` is no table.
    ReviewLogError
        If a table in memory lacks a column.

    Examples
    --------
    >>> days = ["2024-01-01", "2024-01-01", "2024-01-04"]
    >>> source = ReviewTable(pd.DataFrame({"card": [*"aba"], "rating": [3, 1, 4], "time": days}))
    >>> source.users(), source.read("frame").elapsed_days.tolist()
    (('frame',), [-1, -1, 3])
    """

    def __init__(
        self,
        path: str | Path | InMemory | None = None,
        columns: Columns | Mapping[str, Any] | None = None,
        users: Selection = None,
        *,
        query: str | None = None,
        url: str | None = None,
        sample: int | None = None,
        first: int | None = None,
        time_unit: TimeUnit = "auto",
        time_zone: str = "UTC",
        day_start_hour: float = 4,
        ratings: Mapping[Any, int] | None = None,
        missing: OddRows = "error",
        duplicates: OddRows = "error",
        invalid_times: OddRows = "error",
        views: bool = False,
    ) -> None:
        odd = missing, duplicates, invalid_times
        self.options = TableOptions(time_unit, time_zone, day_start_hour, ratings, *odd)
        self.columns = None if columns is None else Columns.of(columns)
        self.choice = Choice(users, sample, first)
        self.name = self.location = "frame"  # and of its user if there is no column of users
        self._table, self._query = None, None
        if query is not None:
            from srs_eval.data.sql import Query  # which loads SQLAlchemy

            file, of_query = None if path is None else str(path), self.columns or Columns()
            self._query = Query(query.strip().rstrip(";"), file, url, of_query, views)
            self.name = "sql" if file is None else Path(file).name
            self.location = self._query.location
        elif isinstance(path, str | Path):
            place = Place.of(path)
            self.location = place.address
            is_path = not (place.is_remote or is_pattern(place))
            self.name = place.local.resolve().name if is_path else place.name
        else:
            self._table = _in_memory(path, self.name, self.columns or Columns())

    def find(self) -> Logs:
        """Find the users of the table, file or query, or the files of a folder."""
        columns = self.columns or Columns()
        if self._query is not None:
            return self._query.find()
        if self._table is not None:
            return by_user(self._table, self.name, columns, only_user=self.name)
        place = Place(self.location)
        if is_pattern(place) or existing(place).kind() == "folder":
            if not is_pattern(place) and any("=" in folder.name for folder in place.folders()):
                return _of_partitions(place, self.columns)
            return _of_files(place, columns)
        check_columns(str(place), column_names(place), columns)
        if place.suffix == ".parquet" and columns.user and (runs := _runs(place, columns.user)):
            rows = partial(_rows_of_run, place, [*dict.fromkeys(columns.every)], runs)
            return Logs(KnownUsers(str(place), tuple(runs)), columns, rows)
        table = read_table(place, text=columns.identifiers)
        return by_user(table, str(place), columns, only_user=place.stem)

    def _logs(self) -> Logs:
        return super()._logs() if self._table is None else self.find()


def is_table(data: object) -> bool:
    """Return whether `ReviewTable` can read an object that is no path.

    >>> is_table(pd.DataFrame()), is_table("log.csv")
    (True, False)
    """
    return isinstance(data, pd.DataFrame) or any(
        hasattr(data, method) for method in ("__arrow_c_stream__", "__dataframe__")
    )


def to_pandas(table: Any) -> pd.DataFrame:
    """Convert a table to a pandas frame, values as a parquet file of it would be read.

    Takes what `is_table` accepts; raise `ConfigError` for anything else.
    """
    if isinstance(table, pd.DataFrame):
        frame = table.copy(deep=False)
        for position, dtype in enumerate(frame.dtypes):
            if isinstance(dtype, pd.ArrowDtype):
                column = pa.table({"column": pa.array(frame.iloc[:, position])})
                frame.isetitem(position, pandas_from_arrow(column)["column"].array)
        return frame
    try:
        if hasattr(table, "__arrow_c_stream__"):
            return pandas_from_arrow(pa.table(table))
        if hasattr(table, "__dataframe__"):
            return pandas_from_arrow(pyarrow.interchange.from_dataframe(table))
        reason = ""
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = f" ({error})"
    raise ConfigError(
        f"data: {type(table).__name__} is no table{reason}; give a pandas or polars DataFrame, or "
        "an object with __arrow_c_stream__"
    )


def _in_memory(table: Any, name: str, columns: Columns) -> pd.DataFrame:
    """Copy the columns in use of a table in memory."""
    frame = to_pandas(table)
    frame.columns = pd.Index([str(column) for column in frame.columns], dtype=object)
    levels = table.index.names if isinstance(table, pd.DataFrame) else ()
    unread = ", ".join(str(level) for level in levels if level is not None)
    hint = f"The index ({unread}) is not read: use reset_index()." if unread else ""
    check_columns(name, [*frame.columns], columns, hint=hint)
    return frame[[*dict.fromkeys(columns.every)]].reset_index(drop=True).copy()


def _runs(place: Place, column: str) -> dict[User, tuple[int, int]] | None:
    """Return the first row and the number of rows of each user, where these lie together.

    None if they do not, or the file has one row group: then it is read as a whole.
    """
    with parquet_file(place) as file:
        if file.metadata.num_row_groups == 1:
            return None
        users = file.read([column]).column(0).combine_chunks().dictionary_encode("encode")
    codes = users.indices.to_numpy()
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(begins) > len(users.dictionary):
        return None
    values = users.dictionary.to_pandas().iloc[codes[begins]].rename(column)
    sizes = np.diff(np.append(begins, len(codes)))
    names = map(user_named, user_names(values, str(place), begins))
    runs = dict(zip(names, zip(begins.tolist(), sizes.tolist(), strict=True), strict=True))
    return runs if len(runs) == len(begins) else None


def _rows_of_run(
    place: Place, columns: Sequence[str], runs: Mapping[User, tuple[int, int]], user: User
) -> Rows:
    """Read the row groups that the rows of a user lie in, and select them."""
    begin, count = runs[user]
    with parquet_file(place) as file:
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [begin, begin + count - 1], side="right").tolist()
        table = file.read_row_groups([*range(first, last + 1)], columns)
        table = table.slice(begin - int(ends[first] - sizes[first]), count)
        table.validate(full=True)
    return str(place), pandas_from_arrow(table).set_axis(np.arange(begin, begin + count))


def _of_files(place: Place, columns: Columns) -> Logs:
    """Find the files of a folder or pattern, each one user's and named after the user."""
    files = table_files(place)
    of_user: dict[User, Place] = {}
    wrong = [
        f"{of_user[file.stem]} and {file} are both of user {file.stem}"
        for file in files
        if of_user.setdefault(file.stem, file) != file
    ]
    if columns.user is not None:
        wrong.append(f"{len(files)} files, each one user's, and data.columns.user at once")
    if wrong:
        raise ReviewLogError(str(place), wrong)
    errors = []
    for file in files:  # One that has the columns will do; others fail when they are read.
        try:
            check_columns(str(file), column_names(file), columns, of_user=False)
            break
        except ReviewLogError as error:
            errors.append(error)
    else:
        raise errors[0]
    rows = partial(_rows_of_file, of_user, columns)
    return Logs(KnownUsers(str(place), tuple(of_user)), columns, rows)


def _rows_of_file(files: Mapping[User, Place], columns: Columns, user: User) -> Rows:
    return str(files[user]), read_table(files[user], text=columns.identifiers)


def table_files(place: Place) -> list[Place]:
    """Return the tables in a folder or of a pattern; raise `ReviewLogError` if there are none."""
    if not is_pattern(place):
        files = [file for file in place.files() if file.suffix in TABLE_SUFFIXES]
    elif place.is_remote:
        folder = Place(re.split(r"/[^/]*[*?\[]", place.address)[0])
        below = folder.files(recursive=True)
        files = [file for file in below if fnmatch(file.address, place.address)]
    else:
        anchor = Path(place.local.anchor)
        paths = sorted(anchor.glob(str(place.local.relative_to(anchor))))
        files = [Place.of(path) for path in paths if path.name[0] != "." and path.is_file()]
    if not files:
        hint = f"Expected one file per user: {', '.join(TABLE_SUFFIXES)}."
        raise ReviewLogError(str(place), ["there are no tables here"], hint)
    return files


def _of_partitions(place: Place, columns: Columns | None) -> Logs:
    """Find the users of a folder partitioned by user, as ``user=anna/part-0.parquet``."""
    folders = [folder for folder in place.folders() if "=" in folder.name]
    if (place / INCOMPLETE).kind():
        hint = "Remove it and run `python -m srs_eval.prepare` again."
        raise ReviewLogError(str(place), ["was not written to its end"], hint)
    keys, values = zip(*(folder.name.split("=", 1) for folder in folders), strict=True)
    key = keys[0]
    wrong = [f"{other}=…: expected {key}=USER" for other in keys if other != key]
    if columns is not None and columns.user not in (None, key):
        wrong.append(f"its folders are called {key}=…, and data.columns.user={columns.user}")
    if wrong:
        raise ReviewLogError(str(place), wrong)
    names = [None if value == _NOBODY else unquote(value) for value in values]
    column = pd.Series(names, dtype=object, name=key)
    user_names(column, str(place), np.arange(len(names)))  # which refuses unusable ones
    of_user = {user_named(name): folder for name, folder in zip(names, folders, strict=True)}
    users = sorted(of_user, key=lambda user: (isinstance(user, str), user))
    first = table_files(of_user[users[0]])[0]
    present = column_names(first)
    if columns is None:
        nouns: dict[str, Any] = {f.name: f.name for f in fields(Columns) if f.name in present}
        columns = Columns(**{"rating": None, "time": None, **nouns})
    check_columns(str(first), present, columns, of_user=False)
    rows = partial(_rows_of_partition, of_user, columns)
    return Logs(KnownUsers(str(place), tuple(users)), columns, rows)


def _rows_of_partition(folders: Mapping[User, Place], columns: Columns, user: User) -> Rows:
    tables = [read_table(file, text=columns.identifiers) for file in table_files(folders[user])]
    table = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
    return str(folders[user]), table
