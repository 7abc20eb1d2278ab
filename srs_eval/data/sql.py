"""Review logs in the result of an SQL query, run by SQLAlchemy or by DuckDB."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from textwrap import shorten
from threading import Thread
from typing import Any
from urllib.parse import quote

import pandas as pd
import sqlalchemy as sa

from srs_eval.data.files import check_columns, existing, pandas_from_arrow
from srs_eval.data.options import Columns
from srs_eval.errors import ConfigError, ReviewLogError, SrsEvalError
from srs_eval.places import has_secret, masked

_ENVIRONMENT = "env:"
_SQLITE = b"SQLite format 3"
# How drivers end what their connection is doing, called from another thread
_WAYS = ("interrupt", "cancel_safe", "cancel")
_SECONDS_BETWEEN_LOOKS = 0.1
# For an orderly end; a driver that cannot be interrupted is left alone
_SECONDS_TO_END = 1.0


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT statement, and the file or the address of the database that it is for.

    It is used as a subquery, so it can only read; files are opened read-only, and what their
    authors stored in them reaches no other file. Ctrl-C and SIGTERM end a query that is running.
    """

    text: str
    path: str | None
    url: str | None
    columns: Columns

    def __post_init__(self) -> None:
        """Raise `ConfigError` if it has no times, or the address may have a password."""
        if self.path is not None and self.url is not None:
            raise ConfigError("data.path and data.url: give one of them")
        if self.url is not None and has_secret(self.url):
            raise ConfigError(
                "data.url has a password, which would be saved with the run: put the address into "
                "the environment, with data.url=env:NAME"
            )
        if self.columns.day or not self.columns.time:
            raise ConfigError("data=sql needs data.columns.time: rows of a query have no order")

    @property
    def location(self) -> str:
        """Database and beginning of the statement."""
        words = shorten(self.text, 60, placeholder="…")
        return f"{self.path or self.url or 'DuckDB'}: {words}"

    def __call__(self) -> pd.DataFrame:
        """Check the columns, and read them, sorted by user, time and card, then by the others.

        Of rows with one card and time, the first must be the same one each time.
        """
        nothing = self._run(sa.select(sa.text("*")).limit(0))
        check_columns(self.location, [*nothing.columns], self.columns)
        names = self.columns.every
        first = [names[noun] for noun in ("user", "time", "card") if noun in names]
        # Names are quoted in files, because words reserved there differ.
        quoted = None if self.url else True
        order = dict.fromkeys([*first, *names.values()])
        columns: list[Any] = [sa.column(sa.quoted_name(name, quoted)) for name in order]
        return self._run(sa.select(*columns).order_by(*columns))

    def _is_of_duckdb(self) -> bool:
        """Whether DuckDB runs the query."""
        if self.path is None:
            return self.url is None
        with existing(self.path).local.open("rb") as file:
            return file.read(len(_SQLITE)) != _SQLITE

    def _run(self, statement: Any) -> pd.DataFrame:
        """Return the result of a statement, which selects from the query."""
        escaped = self.text.replace(":", "\\:")  # its colons are no parameters
        query = sa.text(f"({escaped}\n) AS srs_eval_rows")  # it may end with a comment
        run = self._by_duckdb if self._is_of_duckdb() else self._by_driver
        try:
            return _interruptible(partial(run, statement.select_from(query)))
        except SrsEvalError:
            raise
        except Exception as error:  # noqa: BLE001 - of any driver
            reason = masked(str(getattr(error, "orig", None) or error))
            if self.url and (password := self._address().password):
                reason = reason.replace(str(password), "…")
            where = self.url or self.path or "DuckDB (`pip install 'srs-eval[sql]'`)"
            raise ReviewLogError(where, [reason.partition("\n")[0]]) from None

    def _address(self) -> sa.URL:
        """Return the address of the database; errors do not quote it: it may have a password."""
        if self.path is not None:
            return sa.URL.create("sqlite", database=self.path)
        address = str(self.url)
        if address.startswith(_ENVIRONMENT):
            address = os.environ.get(address.removeprefix(_ENVIRONMENT), "")
        try:
            return sa.make_url(address)
        except sa.exc.ArgumentError:
            example = "such as postgresql://user@host/database"
            raise ConfigError(f"data.url={self.url}: expected an address {example}") from None

    def _by_driver(self, statement: Any, running: list[Any]) -> pd.DataFrame:
        """Run a statement by SQLAlchemy."""
        url = self._address()
        is_sqlite = url.get_backend_name() == "sqlite"
        if is_sqlite and not url.query:
            name = quote(existing(url.database or "").local.absolute().as_posix(), safe="/:")
            url = url.set(database=f"file:{name}", query={"mode": "ro", "uri": "true"})
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            running.append(driver)
            if is_sqlite:
                driver.execute("pragma trusted_schema = off")
            if engine.dialect.name == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            result = connection.execute(statement)
            # as objects: whole numbers stay whole where some are missing
            return pd.DataFrame(result.fetchall(), columns=list(result.keys()), dtype=object)

    def _by_duckdb(self, statement: Any, running: list[Any]) -> pd.DataFrame:
        """Run a statement by DuckDB."""
        import duckdb

        sql = str(statement.compile(compile_kwargs={"literal_binds": True}))
        is_file = self.path is not None
        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "enable_external_access": not is_file,
        }
        database = duckdb.connect(self.path or ":memory:", read_only=is_file, config=config)
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
        for connection, way in product(running, _WAYS):
            with suppress(Exception):  # it has no such way, or the query has just ended
                getattr(connection, way)()

    Thread(target=run, daemon=True).start()
    try:
        while not future.done():
            wait([future], _SECONDS_BETWEEN_LOOKS)
    except BaseException:
        Thread(target=interrupt, daemon=True).start()
        wait([future], _SECONDS_TO_END)
        raise
    return future.result()
