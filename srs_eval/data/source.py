"""The source of review logs that lie in tables: who is there is found once, then users are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from srs_eval.data.cells import A_NAME, column_of, read_names, violations
from srs_eval.data.files import SPLIT, check_columns
from srs_eval.data.options import Columns, TableOptions, select
from srs_eval.data.reviews import IntArray, Reviews, User
from srs_eval.data.schema import NEEDED, Fault, draft_of, read_log
from srs_eval.errors import ReviewLogError, Violation

_LONGEST_NAME = 200
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
    # Where the rows of all users are in memory: they, and the number of each row's user
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
        """Return the users, in the order of the source, unless others are asked for.

        Raise `ReviewLogError` if there is no such file, table or column, or not the users asked
        for, or if rows of several of them cannot be read.
        """
        _found.cache_clear()  # files, or rows, may have been added
        with _in_memory(self.location):
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
        with _in_memory(self.location):
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
        return {name: id(v) if name == "_table" else v for name, v in vars(self).items()}

    def __hash__(self) -> int:
        return hash((type(self), self.location))


@contextmanager
def _in_memory(source: str) -> Iterator[None]:
    """Name a source that does not fit into memory: a small file may hold billions of rows."""
    try:
        yield
    except MemoryError as error:
        raise ReviewLogError(source, [f"does not fit into memory: {error}"], SPLIT) from error


# Users are looked up once, not for each user that is read.
@lru_cache(maxsize=1)
def _found(source: TableSource) -> Logs:
    return source.find()


def by_user(table: pd.DataFrame, source: str, columns: Columns, *, only_user: str) -> Logs:
    """Find the rows of each user, in order of appearance; without a column, of `only_user`."""
    check_columns(source, [*table.columns], columns)
    if columns.user is None:
        return Logs(source, [only_user], columns, lambda _: (source, table))
    codes, users = users_of(table[columns.user], source, np.arange(len(table)))
    places = dict(zip(users, pd.Series(codes).groupby(codes).indices.values(), strict=True))
    rows = lambda user: (source, table.iloc[places[user]])  # noqa: E731
    return Logs(source, users, columns, rows, (table, codes))


def users_of(column: pd.Series, source: str, rows: NDArray[np.intp]) -> tuple[IntArray, list[User]]:
    """Return the number of each row's user, and the users, as numbers where they are some."""
    column = column_of(column)
    names, bad = read_names(column)
    codes, distinct = pd.factorize(names)
    texts = [str(int(name) if isinstance(name, float) else name) for name in distinct]
    is_odd = [len(text) > _LONGEST_NAME or not text.isprintable() for text in texts]
    unusable = bad | np.array([*is_odd, False], bool)[codes]
    if unusable.any():
        expected = f"a user: {A_NAME}, at most {_LONGEST_NAME} printable characters"
        name, place = str(column.name), lambda row: f"row {rows[row] + 1}"
        hint = "Leave rows without one out, or give what is really called so another name."
        raise ReviewLogError(source, violations(name, column, unusable, expected, place), hint)
    return codes, [
        int(text) if text.isdecimal() and str(int(text)) == text else text for text in texts
    ]


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
        if not _LIST.exists() or _LIST.read_text("utf-8").startswith(",".join(listed)):
            listed.to_csv(_LIST, index=False)
            log.check(f"Each row: {_LIST}.")
    log.check()
