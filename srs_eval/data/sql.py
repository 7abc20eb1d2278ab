"""Review logs in the result of an SQL query, run by DuckDB or by SQLAlchemy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from srs_eval.data.by_user import Rows, UserRows, user_named, user_names
from srs_eval.data.files import existing_path, pandas_from_arrow
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Duplicates, InvalidTimes, Reading
from srs_eval.data.table_rows import check_named_columns
from srs_eval.data.times import TimeUnit
from srs_eval.data.untrusted_database import programs_in_duckdb, programs_in_sqlite
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import User
from srs_eval.text.addresses import has_secret, masked, secret_problem

_ENVIRONMENT = "env:"
_QUERY_SHOWN = 60
_SQLITE, _DUCKDB = b"SQLite format 3", b"DUCK"  # in the first 15 bytes
_OFFLINE = {"autoinstall_known_extensions": False}
# How drivers end what their connection is doing, called from another thread.
_WAYS = ("interrupt", "cancel_safe", "cancel")
_SECONDS_BETWEEN_LOOKS = 0.1
# For an orderly end; a driver that cannot be interrupted is left alone.
_SECONDS_TO_END = 1.0


@dataclass(frozen=True, slots=True, init=False)
class SqlQuery(TableSource):
    """Review logs in the result of an SQL query, read one user at a time.

    The query is used as a subquery that selects the rows of one user, so it can only read; files
    are opened read-only. Rows are sorted by time and card, and then by the other columns. Ctrl-C
    and SIGTERM end a query that is running.

    Parameters
    ----------
    query : str
        A SELECT statement with one row per review.
    path : str or Path, optional
        DuckDB or SQLite file. Without `path` and `url`, DuckDB runs the query, which may name CSV
        and parquet files.
    url : str, optional
        Address of a database for SQLAlchemy, without a password; ``env:NAME`` reads it from the
        environment variable NAME, and it may have a password there.
    columns, users, sample, first
        As in `srs_eval.data.table.ReviewTable`. There must be a column of times.
    time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times
        As in `srs_eval.data.table.ReviewTable`.
    views : bool
        Whether the query may name views, virtual tables, computed columns and macros of `path`,
        which run what the author of the file wrote; by default only ordinary tables.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have, or the address has a password.
    """

    query: str
    path: str | None
    url: str | None
    columns: Columns
    choice: Choice
    reading: Reading
    views: bool

    def __init__(
        self,
        query: str,
        path: str | Path | None = None,
        url: str | None = None,
        columns: Columns | Mapping[str, str | None] | None = None,
        users: Selection = None,
        *,
        sample: int | None = None,
        first: int | None = None,
        time_unit: TimeUnit = "auto",
        time_zone: str = "UTC",
        day_start_hour: float = 4,
        duplicates: Duplicates = "error",
        ratings: Mapping[Any, int] | None = None,
        invalid_times: InvalidTimes = "error",
        views: bool = False,
    ) -> None:
        if path is not None and url is not None:
            raise ConfigError("data.path and data.url: give one of them")
        if url is not None and not url.startswith(_ENVIRONMENT):
            if has_secret(url):
                raise ConfigError(secret_problem("data.url"))
            _parsed(url)
        columns = Columns.of(columns)
        if columns.time is None or columns.day is not None:
            raise ConfigError(
                "data=sql needs data.columns.time, and no data.columns.day: the rows of a query "
                "have no order of their own"
            )
        self._set(
            query=query.strip().rstrip(";"),
            path=None if path is None else str(path),
            url=url,
            columns=columns,
            choice=Choice(users, sample, first),
            reading=Reading(
                time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times
            ),
            views=views,
        )

    @property
    def name(self) -> str:
        """Name of the file, or ``sql``."""
        return "sql" if self.path is None else Path(self.path).name

    @property
    def location(self) -> str:
        """The file or address, and the beginning of the query."""
        query = " ".join(self.query.split())
        shown = query if len(query) <= _QUERY_SHOWN else f"{query[:_QUERY_SHOWN]}…"
        return f"{self.path or self.url or 'DuckDB'}: {shown}"

    def find(self) -> Logs:
        """Check the columns of the query, and find its users, in the order of their names."""
        database = _Database(self.path, self.url, None if self.views else self.query)
        rows = _rows(database, self.location, self.query, self.columns)
        return Logs(rows, self.columns, self.reading)


@dataclass(frozen=True, slots=True)
class _Database:
    """Where queries are run: each on a connection of its own."""

    path: str | None
    url: str | None
    tables_only: str | None  # A query that may name no views of the file; None: any may

    def run(self, statement: Any) -> pd.DataFrame:
        """Return the result of a statement."""
        return _interruptible(partial(self._run, statement))

    def _run(self, statement: Any, running: list[Any]) -> pd.DataFrame:
        if self.url is not None:
            return self._run_by_driver(_address(self.url), statement, running)
        if self.path is None:
            return self._run_in_duckdb(statement, ":memory:", running, read_only=False)
        path = existing_path(self.path)
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
        if head == _SQLITE:
            name = quote(path.absolute().as_posix(), safe="/:")
            connect = partial(sqlite3.connect, f"file:{name}?mode=ro", uri=True)
            return self._run_by_driver("sqlite://", statement, running, creator=connect)
        if _DUCKDB not in head:
            hint = f"DuckDB reads other files without data.path=, as in FROM '{path}'."
            raise ReviewLogError(self.path, ["is no DuckDB or SQLite database"], hint)
        return self._run_in_duckdb(statement, str(path), running, read_only=True)

    def column(self, name: str) -> Any:
        """Return a column; in files its name is quoted, because words reserved there differ."""
        return sa.column(sa.quoted_name(name, quote=True if self.url is None else None))

    def _run_by_driver(
        self, address: str, statement: Any, running: list[Any], **options: Any
    ) -> pd.DataFrame:
        url = _parsed(address)
        if url.get_backend_name() == "sqlite" and not (url.query or options):
            existing_path(url.database or "")  # which SQLite would make
        try:
            engine = sa.create_engine(url, poolclass=sa.pool.NullPool, **options)
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                running.append(driver)
                if options and self.tables_only is not None:
                    self._refuse(programs_in_sqlite(driver, self.tables_only))
                if engine.dialect.name == "postgresql":
                    connection = connection.execution_options(postgresql_readonly=True)
                result = connection.execute(statement)
                return pd.DataFrame(result.fetchall(), columns=list(result.keys()))
        except (sa.exc.SQLAlchemyError, sqlite3.Error, ImportError) as error:
            reason = masked(str(getattr(error, "orig", None) or error), address)
            raise ReviewLogError(self.url or str(self.path), [reason.partition("\n")[0]]) from None

    def _refuse(self, programs: Sequence[str]) -> None:
        """Raise if a query names parts of a file that run what its author wrote."""
        if programs:
            hint = "If you trust where this file comes from: data.views=true"
            raise ReviewLogError(str(self.path), programs, hint)

    def _run_in_duckdb(
        self, statement: Any, path: str, running: list[Any], *, read_only: bool
    ) -> pd.DataFrame:
        try:
            duckdb: Any = import_module("duckdb")
        except ImportError as error:
            message = "data=sql needs the package duckdb here: run `pip install 'srs-eval[sql]'`"
            raise ConfigError(message) from error
        compiled = statement.compile(
            dialect=sqlite.dialect(), compile_kwargs={"render_postcompile": True}
        )
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        try:
            with closing(duckdb.connect(path, read_only=read_only, config=_OFFLINE)) as connection:
                running.append(connection)
                if read_only and self.tables_only is not None:
                    self._refuse(programs_in_duckdb(connection, self.tables_only))
                if len(connection.extract_statements(str(compiled))) > 1:
                    what = "the query has several statements"
                    raise ReviewLogError(self.path or "DuckDB", [what])
                found = connection.sql(str(compiled), params=values)
                return pandas_from_arrow(found.to_arrow_table())
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise ReviewLogError(self.path or "DuckDB", [reason]) from None


def _rows(database: _Database, source: str, query: str, columns: Columns) -> UserRows:
    """Check the columns of a query, and find its users."""
    everything = sa.select(sa.text("*")).select_from(_subquery(query))
    check_named_columns(source, list(database.run(everything.limit(0)).columns), columns)
    values: dict[User, list[Any]] = {}  # as the database writes each user
    if columns.user is None:
        values[Path(database.path).stem if database.path else "sql"] = []
    else:
        column = database.column(columns.user)
        distinct = sa.select(column).select_from(_subquery(query)).distinct().order_by(column)
        found = database.run(distinct).iloc[:, 0]
        names = user_names(found, source, columns.user, np.arange(len(found)))
        for name, value in zip(names, found.astype(object), strict=True):
            values.setdefault(user_named(name), []).append(value)
    used = dict.fromkeys(columns.in_use().values())
    # The others too: of rows with one card and time, the first must be the same one each time.
    in_order = dict.fromkeys((str(columns.time), columns.card, *used))

    def read(user: User) -> Rows:
        """Read the rows of a user."""
        statement: Any = sa.select(*map(database.column, used)).select_from(_subquery(query))
        if columns.user is not None:
            statement = statement.where(database.column(columns.user).in_(values[user]))
        table = database.run(statement.order_by(*map(database.column, in_order)))
        return Rows(source, table, np.arange(len(table)))

    return UserRows(KnownUsers(source, tuple(values)), read)


def _interrupt(connections: Sequence[Any]) -> None:
    """End what connections are doing, as far as their drivers can."""
    for connection in connections:
        ways = (getattr(connection, way, None) for way in _WAYS)
        # The query may just have ended.
        with suppress(Exception):
            next(filter(callable, ways))()


def _interruptible(query: Callable[[list[Any]], pd.DataFrame]) -> pd.DataFrame:
    """Return the result of a query; Ctrl-C and SIGTERM end it while its driver waits or computes.

    Python handles signals between its own instructions in the main thread, and most drivers return
    only when they have a result. A query therefore runs in a thread of its own, and adds the
    connection that it runs on to a list.
    """
    running: list[Any] = []
    future = Future[pd.DataFrame]()

    def run() -> None:
        try:
            future.set_result(query(running))
        except Exception as error:  # noqa: BLE001 - raised in the other thread
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        while not future.done():
            wait([future], _SECONDS_BETWEEN_LOOKS)
    finally:
        until = monotonic() + _SECONDS_TO_END
        while not future.done() and monotonic() < until:
            Thread(target=_interrupt, args=(running,), daemon=True).start()
            wait([future], _SECONDS_BETWEEN_LOOKS)
    return future.result()


def _subquery(query: str) -> Any:
    """Return a query as something to select from; its colons are no parameters."""
    escaped = query.replace(":", "\\:")
    # The query may end with a comment.
    return sa.text(f"({escaped}\n) AS srs_eval_rows")


def _address(url: str) -> str:
    """Return an address, read from the environment if it is there."""
    if not url.startswith(_ENVIRONMENT):
        return url
    name = url.removeprefix(_ENVIRONMENT)
    if not os.environ.get(name):
        raise ConfigError(f"data.url={url}: the environment variable {name} is not set")
    return os.environ[name]


def _parsed(url: str) -> Any:
    """Parse an address; errors do not quote it, because it may have a password."""
    try:
        return sa.make_url(url)
    except sa.exc.ArgumentError:
        example = "expected an address such as postgresql://user@host/database"
        raise ConfigError(f"data.url: {example}, or env:NAME") from None
