"""Review logs in tables of any form: files, folders, addresses, and tables in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa

from srs_eval.data.cells import users_of
from srs_eval.data.files import (
    SPLIT,
    TABLE_SUFFIXES,
    check_columns,
    existing,
    pandas_from_arrow,
    parquet_file,
    read_table,
    table_files,
)
from srs_eval.data.options import Columns, OddRows, Selection, TableOptions, TimeUnit, select
from srs_eval.data.reviews import IntArray, Reviews, User
from srs_eval.data.schema import NEEDED, Fault, draft_of, read_log
from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.places import Place

_NOBODY = "__HIVE_DEFAULT_PARTITION__"
INCOMPLETE = "_incomplete"  # In a folder that is still written to
_LIST = Path("rows.csv")

Rows = tuple[str, pd.DataFrame]


@dataclass(frozen=True)
class Logs:
    """The users of a source, and what reads the rows of one of them."""

    source: str  # Named in errors
    names: Sequence[User]
    columns: Columns
    # Name of the table for errors, and the rows; the index has their numbers in it, from 0
    rows: Callable[[User], Rows]
    # Where they are in memory: all rows, and the number of each row's user
    table: tuple[pd.DataFrame, IntArray] | None = None

    @cached_property
    def by_text(self) -> dict[str, User]:
        """Each user by name."""
        return {str(user): user for user in self.names}


class TableSource(ABC):
    """Base of sources of tables."""

    name: str  # In tables of results
    location: str  # Path, address or pattern; name of a table in memory
    options: TableOptions

    @abstractmethod
    def find(self) -> Logs:
        """Find the users, and where their rows are; raise `ReviewLogError` if there are none."""

    def users(self) -> Sequence[User]:
        """Return the users that are chosen, if the rows of several of them can be read."""
        _found.cache_clear()  # files, or rows, may have been added
        with _fitting(self.location):
            logs = _found(self)
            users = self.options.among(logs.by_text, logs.source)
            _refuse_bad_rows(logs, users, self.options)
            return users

    def remarks(self) -> Sequence[str]:
        """Return remarks on the choice of users and on where days begin."""
        logs = _found(self)
        return self.options.remarks(logs.names, has_times=not logs.columns.day)

    def read(self, user: User) -> Reviews:
        """Read one user's log; raise `ReviewLogError` if it cannot be used, or is not there."""
        with _fitting(self.location):
            logs = _found(self)
            (user,) = select([user], logs.by_text, logs.source)
            source, rows = logs.rows(user)
            source += f", user {user}" if logs.columns.user else ""
            return self.log(user, source, rows, logs.columns)

    def log(self, user: User, source: str, rows: pd.DataFrame, columns: Columns) -> Reviews:
        """Make the log of one user of rows of a table."""
        check_columns(source, [*rows.columns], columns, of_user=False)
        return read_log(user, source, rows, columns, self.options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == other._key

    @property
    def _key(self) -> dict[str, object]:
        """What tells sources apart: their options, and which table in memory they have."""
        return {**vars(self), "_table": id(getattr(self, "_table", None))}

    def __hash__(self) -> int:
        return hash((type(self), self.location))


@contextmanager
def _fitting(source: str) -> Iterator[None]:
    """Name a source that does not fit into memory: a small file may hold billions of rows."""
    try:
        yield
    except MemoryError as error:
        raise ReviewLogError(source, [f"does not fit into memory: {error}"], SPLIT) from error


@lru_cache(maxsize=1)  # once, not for each user that is read
def _found(source: TableSource) -> Logs:
    return source.find()


class ReviewTable(TableSource):
    """Review logs in a table of any form.

    Rows are sorted by time; rows of the same time keep their order. Where the table has day
    numbers instead of times, it has to be in time order already.

    Parameters
    ----------
    path : str, Path or table, optional
        A CSV (comma, semicolon or tab), parquet or JSON lines file, which is one user's log unless
        a column says whose each row is; a folder with one file per user, named after the user; or
        a folder partitioned by user, as ``user=anna/part-0.parquet``. A path, or an address:
        ``s3://``, ``gs://``, ``abfss://`` or ``hf://``. Or a table in memory with
        ``__arrow_c_stream__``, such as a frame of pandas or polars, of which the needed columns
        are copied. With `query`, a DuckDB or SQLite file.
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
        path: Any = None,
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
    ) -> None:
        chosen, odd = (users, sample, first), (missing, duplicates, invalid_times)
        self.options = TableOptions(*chosen, time_unit, time_zone, day_start_hour, ratings, *odd)
        self.columns = None if columns is None else Columns.of(columns)
        self.name = self.location = "frame"  # and of its user if there is no column of users
        self._table, self._query = pd.DataFrame(), None
        self.place: Place | None = None  # Of its files; of a query or a table in memory None
        if query is not None:
            from srs_eval.data.sql import Query  # which loads SQLAlchemy

            file, of_query = None if path is None else str(path), self.columns or Columns()
            self._query = Query(query.strip().rstrip(";"), file, url, of_query)
            self.name = "sql" if file is None else Path(file).name
            self.location = self._query.location
        elif isinstance(path, str | Path):
            place = self.place = Place.of(path)
            self.location = place.address
            self.name = place.name if place.is_remote else place.local.resolve().name
        else:
            self._table = _in_memory(path, self.name, self.columns or Columns())

    def find(self) -> Logs:
        """Find the users of the table, file or query, or the files of a folder."""
        columns = self.columns or Columns()
        if self._query is not None:
            return self._query.find()
        if self.place is None:
            return by_user(self._table, self.name, columns, only_user=self.name)
        place = existing(self.place)
        if place.kind() == "folder":
            return _of_folder(place, self.columns)
        if place.suffix == ".parquet" and columns.user and (logs := _of_row_groups(place, columns)):
            return logs
        table = read_table(place, text=columns.identifiers)
        return by_user(table, str(place), columns, only_user=place.stem)


def is_table(data: object) -> bool:
    """Return whether `ReviewTable` can read an object that is no path.

    >>> is_table(pd.DataFrame()), is_table("log.csv")
    (True, False)
    """
    return hasattr(data, "__arrow_c_stream__")


def to_pandas(table: Any) -> pd.DataFrame:
    """Convert what `is_table` accepts to a pandas frame; raise `ConfigError` for anything else."""
    if isinstance(table, pd.DataFrame):
        return table
    try:
        return pandas_from_arrow(pa.table(table))
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"data: {type(table).__name__} is no table such as a pandas or polars DataFrame"
        raise ConfigError(what) from error


def _in_memory(table: Any, name: str, columns: Columns) -> pd.DataFrame:
    """Copy the columns in use of a table in memory."""
    frame = to_pandas(table).rename(columns=str)
    levels = ", ".join(str(level) for level in frame.index.names if level is not None)
    hint = f"The index ({levels}) is not read: use reset_index()." if levels else ""
    check_columns(name, [*frame.columns], columns, hint=hint)
    return frame[columns.every].reset_index(drop=True).copy()


def _of_row_groups(place: Place, columns: Columns) -> Logs | None:
    """Find the users of a parquet file of several row groups, if the rows of each lie together."""
    with parquet_file(place) as file:
        check_columns(str(place), file.schema_arrow.names, columns)
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        if len(sizes) == 1:
            return None
        column = file.read([columns.user]).column(0).to_pandas().rename(columns.user)
    codes, _ = pd.factorize(column, use_na_sentinel=False)
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(begins) > codes.max(initial=-1) + 1:
        return None
    _, users = users_of(column.iloc[begins], str(place), begins)
    if len(users) < len(begins):
        return None
    runs = dict(zip(users, pairwise([*begins.tolist(), len(codes)]), strict=True))
    ends = np.cumsum(sizes)

    def rows(user: User) -> Rows:
        """Read the row groups that the rows of a user lie in, and select them."""
        begin, end = runs[user]
        first, last = np.searchsorted(ends, [begin, end - 1], side="right").tolist()
        with parquet_file(place) as file:
            table = file.read_row_groups([*range(first, last + 1)], columns.every)
            table = table.slice(begin - int(ends[first] - sizes[first]), end - begin)
            table.validate(full=True)
        return str(place), pandas_from_arrow(table).set_axis(np.arange(begin, end))

    return Logs(str(place), users, columns, rows)


def _of_folder(place: Place, given: Columns | None) -> Logs:
    """Find the users of a folder.

    Each file is of one user and named after the user, or they are in a folder for each user, such
    as ``user=anna/part-0.parquet``; then the columns may be those that are called as nouns.
    """
    folders = [folder for folder in place.folders() if "=" in folder.name]
    places = _partitions(place, folders, given) if folders else _files_by_user(place, given)
    columns, errors = given or Columns(), []

    def rows(user: User) -> Rows:
        own = places[user]
        files = [own] if own.suffix in TABLE_SUFFIXES else table_files(own)
        tables = [read_table(file, text=columns.identifiers) for file in files]
        return str(own), tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)

    for user in places:
        try:  # One that has the columns will do; others fail when they are read.
            source, table = rows(user)
            if folders and given is None:
                nouns: dict[str, Any] = {noun: noun for noun in Columns.__slots__ if noun in table}
                columns = Columns(**{"time": None, **nouns})
            check_columns(source, [*table.columns], columns, of_user=False)
            return Logs(str(place), [*places], columns, rows)
        except ReviewLogError as error:
            errors.append(error)
    raise errors[0]


def _files_by_user(place: Place, columns: Columns | None) -> dict[User, Place]:
    """Find the file of each user in a folder."""
    places, wrong = dict[User, Place](), []
    for file in table_files(place):
        if places.setdefault(file.stem, file) != file:
            wrong.append(f"{places[file.stem]} and {file} are both of user {file.stem}")
    if columns is not None and columns.user is not None:
        wrong.append(f"{len(places)} files, each one user's, and data.columns.user at once")
    if wrong:
        raise ReviewLogError(str(place), wrong)
    return places


def _partitions(place: Place, folders: list[Place], columns: Columns | None) -> dict[User, Place]:
    """Find the folder of each user, called ``user=NAME``."""
    if (place / INCOMPLETE).kind():
        hint = "Remove it and run `python -m srs_eval.prepare` again."
        raise ReviewLogError(str(place), ["was not written to its end"], hint)
    keys, values = zip(*(folder.name.split("=", 1) for folder in folders), strict=True)
    key = columns.user if columns is not None and columns.user else keys[0]
    wrong = [f"{name}=…: expected {key}=USER" for name in dict.fromkeys(keys) if name != key]
    names = [None if value == _NOBODY else unquote(value) for value in values]
    column = pd.Series(names, dtype=object, name=key)
    _, users = users_of(column, str(place), np.arange(len(names)))
    wrong += ["several folders are of one user"] * (len(users) < len(folders))
    if wrong:
        raise ReviewLogError(str(place), wrong)
    places = dict(zip(users, folders, strict=True))
    return dict(sorted(places.items(), key=lambda pair: (isinstance(pair[0], str), pair[0])))


def by_user(table: pd.DataFrame, source: str, columns: Columns, *, only_user: str) -> Logs:
    """Find the rows of each user, in order of appearance; without a column, of `only_user`."""
    check_columns(source, [*table.columns], columns)
    if columns.user is None:
        return Logs(source, [only_user], columns, lambda _: (source, table))
    codes, users = users_of(table[columns.user], source, np.arange(len(table)))
    places = dict(zip(users, pd.Series(codes).groupby(codes).indices.values(), strict=True))
    return Logs(source, users, columns, lambda u: (source, table.iloc[places[u]]), (table, codes))


def _refuse_bad_rows(logs: Logs, users: Sequence[User], options: TableOptions) -> None:
    """Raise one error if rows of several of these users cannot be read, and list the rows."""
    if logs.table is None:
        return
    table, user = logs.table
    rows = np.flatnonzero(pd.Index(logs.names).isin(users)[user])
    nouns = {noun: name for noun, name in logs.columns.used.items() if noun in NEEDED}
    log = draft_of(logs.source, table.iloc[rows].set_axis(rows), nouns, options, user[rows])
    if len({code for fault in log.faults for code in np.unique(user[fault.rows])}) < 2:
        return  # The error of a single user says as much when that is read.
    parts = []
    for nth, (each, rows, hint) in enumerate(log.faults):
        names = [logs.names[code] for code in user[rows]]
        of_users = f"{len({*names}):,} of {len(logs.names):,} users"
        said = f"{len(rows):,} of {len(table):,} rows, of {of_users}: {each}"
        log.faults[nth] = Fault(Violation(said, each.kind, each.column, each.rows), rows, hint)
        part = {"user": names, "row": rows + 1, "column": each.column}
        part["value"] = table[each.column].iloc[rows].to_numpy()
        parts.append(pd.DataFrame({**part, "problem": f"{each.kind}: {each.partition('; ')[2]}"}))
    listed = pd.concat(parts).sort_values("row")
    with suppress(OSError):  # another file of this name stays
        if not _LIST.exists() or _LIST.read_text("utf-8").startswith(",".join(listed.columns)):
            listed.to_csv(_LIST, index=False)
            log.check(f"Each row: {_LIST}.")
    log.check()
