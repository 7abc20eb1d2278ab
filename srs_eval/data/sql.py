"""Review logs in the result of an SQL query, run by SQLAlchemy or by DuckDB."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
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

from srs_eval.data.cells import users_of
from srs_eval.data.files import check_columns, existing, pandas_from_arrow
from srs_eval.data.options import Columns
from srs_eval.data.table import Logs, by_user
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.places import has_secret, masked

_ENVIRONMENT = "env:"
_QUERY_SHOWN = 60
_SQLITE, _DUCKDB = b"SQLite format 3", b"DUCK"  # in the first 15 bytes
# How drivers end what their connection is doing, called from another thread
_WAYS = ("interrupt", "cancel_safe", "cancel")
_SECONDS_BETWEEN_LOOKS = 0.1
# For an orderly end; a driver that cannot be interrupted is left alone
_SECONDS_TO_END = 1.0


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT statement, and the file or the address of the database that it is for.

    It is used as a subquery, so it can only read; files are opened read-only, and what their
    authors stored in them reaches no other file. SQLAlchemy reads the rows of one user at a time,
    DuckDB all of them. Ctrl-C and SIGTERM end a query that is running.
    """

    text: str
    path: str | None
    url: str | None
    columns: Columns

    def __post_init__(self) -> None:
        """Raise `ConfigError` if it has no times, or the address is none or has a password."""
        if self.path is not None and self.url is not None:
            raise ConfigError("data.path and data.url: give one of them")
        if self.url is not None and not self.url.startswith(_ENVIRONMENT):
            if has_secret(self.url):
                raise ConfigError(
                    "data.url has a password, which would be saved with the run: put the address "
                    "into the environment, with data.url=env:NAME"
                )
            _parsed(self.url)
        if self.columns.day or not self.columns.time:
            raise ConfigError("data=sql needs data.columns.time: rows of a query have no order")

    @property
    def location(self) -> str:
        """Database and beginning of the statement."""
        words = " ".join(self.text.split())
        words = words if len(words) <= _QUERY_SHOWN else f"{words[:_QUERY_SHOWN]}…"
        return f"{self.path or self.url or 'DuckDB'}: {words}"

    def find(self) -> Logs:
        """Check the columns, and find the users, in the order of their names."""
        columns, where = self.columns, self.location
        nothing = self._run(sa.select(sa.text("*")).limit(0))
        check_columns(where, [*nothing.columns], columns)
        if columns.user is None or self._is_of_duckdb():
            table = self._run(self._select([columns.user] if columns.user else []))
            only_user = Path(self.path).stem if self.path else "sql"
            return by_user(table, where, columns, only_user=only_user)
        user = self._column(columns.user)
        written = self._run(sa.select(user).distinct().order_by(user)).iloc[:, 0]
        codes, names = users_of(written, where, np.arange(len(written)))
        # as the database writes each user
        values = {name: written[codes == code].tolist() for code, name in enumerate(names)}
        select = self._select()
        rows = lambda name: (where, self._run(select.where(user.in_(values[name]))))  # noqa: E731
        return Logs(where, names, columns, rows)

    def _select(self, first: Sequence[str] = ()) -> Any:
        """Select the columns, sorted by some of them, by time and card, and then by the others.

        Of rows with one card and time, the first must be the same one each time.
        """
        names = dict.fromkeys([*first, *self.columns.used.values()])
        order = dict.fromkeys([*first, str(self.columns.time), self.columns.card, *names])
        return sa.select(*map(self._column, names)).order_by(*map(self._column, order))

    def _column(self, name: str) -> Any:
        """Return a column; in files its name is quoted, because words reserved there differ."""
        return sa.column(sa.quoted_name(name, quote=True if self.url is None else None))

    def _is_of_duckdb(self) -> bool:
        """Whether DuckDB runs the query; raise `ReviewLogError` if its file is no database."""
        if self.path is None:
            return self.url is None
        with existing(self.path).local.open("rb") as file:
            head = file.read(len(_SQLITE))
        if head != _SQLITE and _DUCKDB not in head:
            hint = f"DuckDB reads other files without data.path=, as in FROM '{self.path}'."
            raise ReviewLogError(self.path, ["is no DuckDB or SQLite database"], hint)
        return head != _SQLITE

    def _run(self, statement: Any) -> pd.DataFrame:
        """Return the result of a statement, which selects from the query."""
        escaped = self.text.replace(":", "\\:")  # its colons are no parameters
        query = sa.text(f"({escaped}\n) AS srs_eval_rows")  # it may end with a comment
        errors: tuple[type[Exception], ...] = (sa.exc.SQLAlchemyError, sqlite3.Error, ImportError)
        run = self._by_driver
        if self._is_of_duckdb():
            run, errors = self._by_duckdb, (_duckdb().Error,)
        try:
            return _interruptible(partial(run, statement.select_from(query)))
        except errors as error:
            reason = masked(str(getattr(error, "orig", None) or error))
            if self.url and (password := _parsed(_address(self.url)).password):
                reason = reason.replace(str(password), "…")
            where = self.url or self.path or "DuckDB"
            raise ReviewLogError(where, [reason.partition("\n")[0]]) from None

    def _by_driver(self, statement: Any, running: list[Any]) -> pd.DataFrame:
        """Run a statement by SQLAlchemy."""
        if self.path:
            name = quote(existing(self.path).local.absolute().as_posix(), safe="/:")
            form = {"mode": "ro", "uri": "true"}
            url = sa.URL.create("sqlite", database=f"file:{name}", query=form)
        else:
            url = _parsed(_address(str(self.url)))
            if url.get_backend_name() == "sqlite" and not url.query:
                existing(url.database or "")  # which SQLite would make
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            running.append(driver)
            if self.path:
                driver.execute("pragma trusted_schema = off")
            if engine.dialect.name == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            result = connection.execute(statement)
            return pd.DataFrame(result.fetchall(), columns=list(result.keys()))

    def _by_duckdb(self, statement: Any, running: list[Any]) -> pd.DataFrame:
        """Run a statement by DuckDB."""
        sql = str(statement.compile(compile_kwargs={"literal_binds": True}))
        is_file = self.path is not None
        config = {"autoinstall_known_extensions": False, "enable_external_access": not is_file}
        database = _duckdb().connect(self.path or ":memory:", read_only=is_file, config=config)
        with closing(database) as connection:
            running.append(connection)
            if len(connection.extract_statements(sql)) > 1:
                raise ReviewLogError(self.path or "DuckDB", ["the query has several statements"])
            return pandas_from_arrow(connection.sql(sql).to_arrow_table())


def _interruptible(query: Callable[[list[Any]], pd.DataFrame]) -> pd.DataFrame:
    """Return the result of a query in a thread, which adds its connection to a list.

    Most drivers return only when they have a result, and Python handles Ctrl-C and SIGTERM between
    its own instructions in the main thread.
    """
    running: list[Any] = []
    future = Future[pd.DataFrame]()

    def run() -> None:
        try:
            future.set_result(query(running))
        except Exception as error:  # noqa: BLE001 - raised in the other thread
            future.set_exception(error)

    def interrupt() -> None:
        for connection in running:
            ways = (getattr(connection, way, None) for way in _WAYS)
            with suppress(Exception):  # the query may just have ended
                next(filter(callable, ways))()

    Thread(target=run, daemon=True).start()
    try:
        while not future.done():
            wait([future], _SECONDS_BETWEEN_LOOKS)
    finally:
        until = monotonic() + _SECONDS_TO_END
        while not future.done() and monotonic() < until:
            Thread(target=interrupt, daemon=True).start()
            wait([future], _SECONDS_BETWEEN_LOOKS)
    return future.result()


def _duckdb() -> Any:
    try:
        return import_module("duckdb")
    except ImportError as error:
        hint = "data=sql needs the package duckdb here: run `pip install 'srs-eval[sql]'`"
        raise ConfigError(hint) from error


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
