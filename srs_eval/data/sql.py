"""Review logs in the result of an SQL query, run by SQLAlchemy or by DuckDB."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, suppress
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

from srs_eval.data.files import check_columns, existing_path, pandas_from_arrow
from srs_eval.data.options import Columns, OddRows, TableOptions, TimeUnit
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, TableSource, user_named, user_names
from srs_eval.data.untrusted_database import programs_in_duckdb, programs_in_sqlite
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import User
from srs_eval.places import has_secret, masked

_ENVIRONMENT = "env:"
_QUERY_SHOWN = 60
_SQLITE, _DUCKDB = b"SQLite format 3", b"DUCK"  # in the first 15 bytes
# How drivers end what their connection is doing, called from another thread
_WAYS = ("interrupt", "cancel_safe", "cancel")
_SECONDS_BETWEEN_LOOKS = 0.1
# For an orderly end; a driver that cannot be interrupted is left alone
_SECONDS_TO_END = 1.0


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
    time_unit, time_zone, day_start_hour, ratings, missing, duplicates, invalid_times
        As in `srs_eval.data.table.ReviewTable`.
    views : bool
        Whether the query may name views, virtual tables, computed columns and macros of `path`,
        which run what the author of the file wrote; by default only ordinary tables.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have, or the address has a password.
    """

    def __init__(
        self,
        query: str,
        path: str | Path | None = None,
        url: str | None = None,
        columns: Columns | Mapping[str, Any] | None = None,
        users: Selection = None,
        *,
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
        if path is not None and url is not None:
            raise ConfigError("data.path and data.url: give one of them")
        if url is not None and not url.startswith(_ENVIRONMENT):
            if has_secret(url):
                raise ConfigError(
                    "data.url has a password, which would be saved with the run: put the address "
                    "into the environment, with data.url=env:NAME"
                )
            _parsed(url)
        odd = missing, duplicates, invalid_times
        self.options = TableOptions(time_unit, time_zone, day_start_hour, ratings, *odd)
        self.columns, self.choice = Columns.of(columns), Choice(users, sample, first)
        if self.columns.day or not self.columns.time:
            raise ConfigError("data=sql needs data.columns.time: rows of a query have no order")
        self.query, self.url, self.views = query.strip().rstrip(";"), url, views
        self.path = None if path is None else str(path)
        self.name = "sql" if path is None else Path(path).name
        words = " ".join(self.query.split())
        words = words if len(words) <= _QUERY_SHOWN else f"{words[:_QUERY_SHOWN]}…"
        self.location = f"{self.path or self.url or 'DuckDB'}: {words}"

    def find(self) -> Logs:
        """Check the columns of the query, and find its users, in the order of their names."""
        rows, columns = self._rows(), self.columns
        nothing = self._run(sa.select(sa.text("*")).select_from(rows).limit(0))
        check_columns(self.location, [*nothing.columns], columns)
        values: dict[User, list[Any]] = {}  # as the database writes each user
        if columns.user is None:
            values[Path(self.path).stem if self.path else "sql"] = []
        else:
            column = self._column(columns.user)
            statement = sa.select(column).select_from(rows).distinct().order_by(column)
            users = self._run(statement).iloc[:, 0]
            names = user_names(users, self.location, np.arange(len(users)))
            for name, value in zip(names, users.astype(object), strict=True):
                values.setdefault(user_named(name), []).append(value)
        return Logs(KnownUsers(self.location, tuple(values)), columns, partial(self._read, values))

    def _read(self, values: Mapping[User, list[Any]], user: User) -> tuple[str, pd.DataFrame]:
        """Read the rows of a user."""
        used = dict.fromkeys([*self.columns.used.values(), *(self.columns.p or ())])
        # The others too: of rows with one card and time, the first must be the same one each time.
        in_order = dict.fromkeys((str(self.columns.time), self.columns.card, *used))
        statement: Any = sa.select(*map(self._column, used)).select_from(self._rows())
        if self.columns.user is not None:
            statement = statement.where(self._column(self.columns.user).in_(values[user]))
        return self.location, self._run(statement.order_by(*map(self._column, in_order)))

    def _rows(self) -> Any:
        """Return the query as something to select from; its colons are no parameters."""
        escaped = self.query.replace(":", "\\:")
        return sa.text(f"({escaped}\n) AS srs_eval_rows")  # it may end with a comment

    def _column(self, name: str) -> Any:
        """Return a column; in files its name is quoted, because words reserved there differ."""
        return sa.column(sa.quoted_name(name, quote=True if self.url is None else None))

    def _run(self, statement: Any) -> pd.DataFrame:
        """Return the result of a statement."""
        return _interruptible(partial(self._result, statement))

    def _result(self, statement: Any, running: list[Any]) -> pd.DataFrame:
        if self.url is not None:
            return self._by_driver(_address(self.url), statement, running)
        if self.path is None:
            return self._by_duckdb(statement, running)
        path = existing_path(self.path)
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
        if head == _SQLITE:
            name = quote(path.absolute().as_posix(), safe="/:")
            connect = partial(sqlite3.connect, f"file:{name}?mode=ro", uri=True)
            return self._by_driver("sqlite://", statement, running, creator=connect)
        if _DUCKDB not in head:
            hint = f"DuckDB reads other files without data.path=, as in FROM '{path}'."
            raise ReviewLogError(self.path, ["is no DuckDB or SQLite database"], hint)
        return self._by_duckdb(statement, running, path=str(path), read_only=True)

    def _by_driver(
        self, address: str, statement: Any, running: list[Any], **options: Any
    ) -> pd.DataFrame:
        """Run a statement by SQLAlchemy."""
        url = _parsed(address)
        if url.get_backend_name() == "sqlite" and not (url.query or options):
            existing_path(url.database or "")  # which SQLite would make
        try:
            engine = sa.create_engine(url, poolclass=sa.pool.NullPool, **options)
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                running.append(driver)
                if options and not self.views:
                    self._refuse(programs_in_sqlite(driver, self.query))
                if engine.dialect.name == "postgresql":
                    connection = connection.execution_options(postgresql_readonly=True)
                result = connection.execute(statement)
                return pd.DataFrame(result.fetchall(), columns=list(result.keys()))
        except (sa.exc.SQLAlchemyError, sqlite3.Error, ImportError) as error:
            reason = masked(str(getattr(error, "orig", None) or error))
            if url.password:
                reason = reason.replace(str(url.password), "…")
            raise ReviewLogError(self.url or str(self.path), [reason.partition("\n")[0]]) from None

    def _by_duckdb(
        self, statement: Any, running: list[Any], path: str = ":memory:", *, read_only: bool = False
    ) -> pd.DataFrame:
        """Run a statement by DuckDB."""
        try:
            duckdb: Any = import_module("duckdb")
        except ImportError as error:
            hint = "data=sql needs the package duckdb here: run `pip install 'srs-eval[sql]'`"
            raise ConfigError(hint) from error
        compiled = statement.compile(
            dialect=sqlite.dialect(), compile_kwargs={"render_postcompile": True}
        )
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        config = {"autoinstall_known_extensions": False}
        try:
            with closing(duckdb.connect(path, read_only=read_only, config=config)) as connection:
                running.append(connection)
                if read_only and not self.views:
                    self._refuse(programs_in_duckdb(connection, self.query))
                if len(connection.extract_statements(str(compiled))) > 1:
                    what = "the query has several statements"
                    raise ReviewLogError(self.path or "DuckDB", [what])
                found = connection.sql(str(compiled), params=values)
                return pandas_from_arrow(found.to_arrow_table())
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise ReviewLogError(self.path or "DuckDB", [reason]) from None

    def _refuse(self, programs: Sequence[str]) -> None:
        """Raise if a query names parts of a file that run what its author wrote."""
        if programs:
            hint = "If you trust where this file comes from: data.views=true"
            raise ReviewLogError(str(self.path), programs, hint)


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


def _interrupt(connections: Sequence[Any]) -> None:
    """End what connections are doing, as far as their drivers can."""
    for connection in connections:
        ways = (getattr(connection, way, None) for way in _WAYS)
        with suppress(Exception):  # the query may just have ended
            next(filter(callable, ways))()


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
