"""Review logs in tables of any form: files, folders, addresses, and tables in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.data.cells import as_whole, column_of, listed
from srs_eval.data.files import (
    SPLIT,
    check_columns,
    chunks,
    existing,
    pandas_from_arrow,
    read_table,
    table_files,
)
from srs_eval.data.options import Columns, OddRows, Selection, TableOptions, TimeUnit, select
from srs_eval.data.reviews import GROUPS, IntArray, Reviews, User
from srs_eval.data.schema import draft_of, read_log, users_of
from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.places import Place, explained

INCOMPLETE = "_incomplete"  # In a folder that is still written to
_LIST = Path("rows.csv")
_ROWS_IN_MEMORY = 1_000_000

Rows = tuple[str, pd.DataFrame]  # Name of the table for errors, and rows as `by_noun` returns them


@dataclass(frozen=True)
class Logs:
    """The users of a source, and what reads the rows of one of them."""

    source: str  # Named in errors
    names: Sequence[User]
    columns: Columns
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
        logs = _found(self)
        users = self.options.among(logs.by_text, logs.source)
        _refuse_bad_rows(logs, users, self.options)
        return users

    def remarks(self) -> Sequence[str]:
        """Return remarks on the choice of users and on where days begin."""
        logs, options = _found(self), self.options
        count = len(logs.names if options.users is None else options.users)
        some = f"{min(count, options.first or options.sample or count):,} of {count:,} users"
        begin = pd.Timestamp(0) + pd.Timedelta(hours=options.day_start_hour)
        remarks = {
            f"the first {some}": options.first,
            f"a sample of {some}, chosen by a digest of their names": options.sample,
            f"days begin at {begin:%H:%M} in {options.time_zone} (data.day_start_hour, "
            "data.time_zone); times with another offset are converted to it": not logs.columns.day,
        }
        return tuple(remark for remark, is_true in remarks.items() if is_true)

    def read(self, user: User) -> Reviews:
        """Read one user's log; raise `ReviewLogError` if it cannot be used, or is not there."""
        logs = _found(self)
        (user,) = select([user], logs.by_text, logs.source)
        source, rows = logs.rows(user)
        source += f", user {user}" if logs.columns.user else ""
        return self.log(user, source, rows, logs.columns)

    def log(self, user: User, source: str, rows: pd.DataFrame, columns: Columns) -> Reviews:
        """Make the log of one user of rows of a table."""
        return read_log(user, source, rows, columns, self.options)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.location))


@lru_cache(maxsize=1)  # once, not for each user that is read
def _found(source: TableSource) -> Logs:
    try:
        return source.find()
    except MemoryError as error:  # a small file may hold billions of rows
        what = f"does not fit into memory: {error}"
        raise ReviewLogError(source.location, [what], SPLIT) from error


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
        What the columns are called.
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
        self.columns = columns if isinstance(columns, Columns) else Columns(**(columns or {}))
        self.name = self.location = "frame"  # and of its user if there is no column of users
        self.content: Place | Callable[[], pd.DataFrame]  # What is read
        if query is not None:
            from srs_eval.data.sql import Query  # which loads SQLAlchemy

            file = None if path is None else str(path)
            statement = self.content = Query(query.strip().rstrip(";"), file, url, self.columns)
            self.name = "sql" if file is None else Path(file).name
            self.location = statement.location
        elif isinstance(path, str | Path):
            place = self.content = Place.of(path)
            self.location = place.address
            self.name = place.name if place.is_remote else place.local.resolve().name
        else:
            frame = to_pandas(path)
            frame = frame.set_axis([*map(str, frame.columns)], axis=1).reset_index(drop=True)
            check_columns(self.name, [*frame.columns], self.columns)
            own = frame[[*self.columns.every.values()]].copy()
            self.content = partial(own.copy, deep=False)  # like no other

    def find(self) -> Logs:
        """Find the users of the table, file or query, or the files of a folder."""
        columns, source, user = self.columns, self.location, Path(self.name).stem
        if not isinstance(self.content, Place):
            table = self.content()
        else:
            place = existing(self.content)
            if place.kind() == "folder":
                return _of_folder(place, columns)
            source, user, table = str(place), place.stem, read_table(place)
        return by_user(by_noun(source, table, columns), source, columns, only_user=user)


def is_table(data: object) -> bool:
    """Return whether `ReviewTable` can read an object that is no path.

    >>> is_table(pd.DataFrame()), is_table("log.csv")
    (True, False)
    """
    return hasattr(data, "__arrow_c_stream__")


def to_pandas(table: Any) -> pd.DataFrame:
    """Convert what `is_table` accepts to a pandas frame."""
    return table if isinstance(table, pd.DataFrame) else pandas_from_arrow(pa.table(table))


def by_noun(
    source: str, table: pd.DataFrame, columns: Columns, *, of_user: bool = True
) -> pd.DataFrame:
    """Return the columns that are read as cells, by their nouns; raise `ReviewLogError` without."""
    check_columns(source, [*table.columns], columns, of_user=of_user)
    names = columns.every if of_user else columns.used
    cells = {noun: column_of(table[name]) for noun, name in names.items()}
    named = {"card", "user", *GROUPS}  # and numbered in each log by itself
    return pd.DataFrame({n: cells[n] if n in named else as_whole(cells[n]) for n in cells})


def by_user(table: pd.DataFrame, source: str, columns: Columns, only_user: str) -> Logs:
    """Find the rows of each user, in order of appearance; without a column, of `only_user`."""
    if columns.user is None:
        return Logs(source, [only_user], columns, lambda _: (source, table))
    codes, users = users_of(table["user"], source, columns.user)
    table = table.drop(columns="user")
    places = dict(zip(users, pd.Series(codes).groupby(codes).indices.values(), strict=True))
    return Logs(source, users, columns, lambda u: (source, table.iloc[places[u]]), (table, codes))


def _of_folder(place: Place, columns: Columns) -> Logs:
    """Find the users of a folder.

    Each file is of one user and named after the user, or they are in a folder for each user, such
    as ``user=anna/part-0.parquet``.
    """
    folders = [folder for folder in place.folders() if "=" in folder.name]
    places = _partitions(place, folders, columns) if folders else _files_by_user(place, columns)

    def rows(user: User) -> Rows:
        files = table_files(places[user]) if folders else [places[user]]
        table = pd.concat(map(read_table, files), ignore_index=True)
        return str(places[user]), by_noun(str(places[user]), table, columns, of_user=False)

    rows(next(iter(places)))  # columns that are not there are told before any user is evaluated
    return Logs(str(place), [*places], columns, rows)


def _files_by_user(place: Place, columns: Columns) -> dict[User, Place]:
    """Find the file of each user in a folder."""
    files = table_files(place)
    places: dict[User, Place] = {file.stem: file for file in files}
    if columns.user is not None or len(places) < len(files):
        what = f"expected one file for each user, without data.columns.user: {listed(files)}"
        raise ReviewLogError(str(place), [what])
    return places


def _partitions(place: Place, folders: list[Place], columns: Columns) -> dict[User, Place]:
    """Find the folder of each user, called ``user=NAME``."""
    if (place / INCOMPLETE).kind():
        hint = "Remove it and run `python -m srs_eval.prepare` again."
        raise ReviewLogError(str(place), ["was not written to its end"], hint)
    keys, values = zip(*(folder.name.split("=", 1) for folder in folders), strict=True)
    key = columns.user or keys[0]
    _, users = users_of(column_of([*map(unquote, values)]), str(place), key)
    if {*keys} != {key} or len(users) < len(folders):
        what = f"expected a folder {key}=USER for each user, found {listed(folders)}"
        raise ReviewLogError(str(place), [what])
    places = dict(zip(users, folders, strict=True))
    return dict(sorted(places.items(), key=lambda pair: (isinstance(pair[0], str), pair[0])))


def _refuse_bad_rows(logs: Logs, users: Sequence[User], options: TableOptions) -> None:
    """Raise one error if rows of several of these users cannot be read, and list the rows."""
    if logs.table is None:
        return
    table, user = logs.table
    chosen = np.flatnonzero(pd.Index(logs.names).isin(users)[user])
    rows_of_users = table.iloc[chosen].assign(user=user[chosen])
    log = draft_of(logs.source, rows_of_users, logs.columns, options)
    if len({code for _, _, rows, _ in log.faults for code in np.unique(user[rows])}) < 2:
        return  # The error of a single user says as much when that is read.
    wrong, parts = [], []
    for noun, each, rows, _ in log.faults:
        names = [logs.names[code] for code in user[rows]]
        of_users = f"{len({*names}):,} of {len(logs.names):,} users"
        said = f"{len(rows):,} of {len(table):,} rows, of {of_users}: {each}"
        wrong.append(Violation(said, each.kind, each.column, each.rows))
        part = {"user": names, "row": rows + 1, "column": each.column, "value": table[noun][rows]}
        parts.append(pd.DataFrame({**part, "problem": f"{each.kind}: {each.partition('; ')[2]}"}))
    table, hints = pd.concat(parts).sort_values("row"), [hint for *_, hint in log.faults]
    with suppress(OSError):  # another file of this name stays
        if not _LIST.exists() or _LIST.read_text("utf-8").startswith(",".join(table.columns)):
            table.to_csv(_LIST, index=False)
            hints.append(f"Each row: {_LIST}.")
    raise ReviewLogError(logs.source, wrong, " ".join(filter(None, dict.fromkeys(hints))))


def prepare(source: ReviewTable, out: Place) -> tuple[int, int]:
    """Write the rows of each user into a folder; return how many users and rows there are.

    Rows stay in the order of the table, and columns that are read keep their names; a million rows
    are in memory at a time. Raise `ConfigError` if some users are chosen, and `ReviewLogError` if
    the table cannot be read or the folder `out` is not empty or cannot be written.
    """
    options, columns = source.options, source.columns
    if any(chosen is not None for chosen in (options.users, options.sample, options.first)):
        raise ConfigError("data.users, sample and first choose from what is written: use them then")
    if not isinstance(source.content, Place):
        raise ConfigError("only files are prepared: let the database write CSV or parquet first")
    place = existing(source.content)
    if out.kind() == "file" or out.files(recursive=True):
        raise ReviewLogError(str(out), ["is not an empty folder"], "Name another folder.")
    users, rows, number = set[User](), 0, 0
    for file in [place] if place.kind() == "file" else table_files(place):
        first = rows
        for table in chunks(file, columns, _ROWS_IN_MEMORY):
            parts: dict[User, pa.Table] = {file.stem: table}
            if columns.user is not None:
                names = column_of(pandas_from_arrow(table.select([columns.user]))[columns.user])
                codes, own = users_of(
                    names.set_axis(names.index + rows - first), str(file), columns.user
                )
                places = pd.Series(codes).groupby(codes).indices
                others = table.drop_columns(columns.user)
                parts = {user: others.take(places[code]) for code, user in enumerate(own)}
            if not number:
                with (out / INCOMPLETE).writing():
                    pass
            for user, part in parts.items():  # the files of a user are in order of their numbers
                folder = out / f"user={quote(str(user), safe='')}"
                with (folder / f"part-{number:06}.parquet").writing() as stream:
                    pq.write_table(part, stream, write_page_checksum=True)
            users |= parts.keys()
            rows += len(table)
            number += 1
    if not rows:
        raise ReviewLogError(str(place), ["there are no reviews in it"])
    with explained(out):
        out.filesystem.delete_file((out / INCOMPLETE).path)
    return len(users), rows
