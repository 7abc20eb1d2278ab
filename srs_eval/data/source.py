"""The source of review logs that lie in tables: who is there is found once, then users are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from srs_eval.data.cells import A_NAME, column_of, read_names, violations
from srs_eval.data.files import check_columns
from srs_eval.data.log import UserTable, read_log
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.reviews import IntArray, Reviews, User
from srs_eval.data.selection import Choice, select
from srs_eval.errors import ReviewLogError

_LONGEST_NAME = 200
_SPLIT = "Make a folder of it with `python -m srs_eval.prepare`, or split it."

Rows = tuple[str, pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Logs:
    """The users of a source, and what reads the rows of one of them."""

    source: str  # Named in errors
    names: Sequence[User]
    columns: Columns
    # Name of the table for errors, and the rows; the index has their numbers in it, from 0
    rows: Callable[[User], Rows]
    table: UserTable | None = None  # Where the rows of all users are in memory
    by_text: dict[str, User] = field(init=False)

    def __post_init__(self) -> None:
        """Index the users by their names."""
        object.__setattr__(self, "by_text", {str(user): user for user in self.names})


class TableSource(ABC):
    """Base of sources of tables."""

    name: str  # In tables of results
    location: str  # Path, address or pattern; name of a table in memory
    choice: Choice
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
            users = self.choice.among(logs.by_text, logs.source)
            if logs.table is not None:
                logs.table.refuse_bad_rows(self.options, users)
            return users

    def remarks(self) -> Sequence[str]:
        """Return remarks on the choice of users and on where days begin."""
        logs = _found(self)
        of_days = () if logs.columns.day else (self.options.remark,)
        return *self.choice.remarks(logs.names), *of_days

    def read(self, user: User) -> Reviews:
        """Read one user's log.

        Raise `ReviewLogError` if there is no such user, or the log cannot be used.
        """
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
        raise ReviewLogError(source, [f"does not fit into memory: {error}"], _SPLIT) from error


# Users are looked up once, not for each user that is read.
@lru_cache(maxsize=1)
def _found(source: TableSource) -> Logs:
    return source.find()


def by_user(table: pd.DataFrame, source: str, columns: Columns, *, only_user: str) -> Logs:
    """Find the rows of each user of a table, in order of appearance.

    Without a column of users the table is the log of `only_user`. Raise `ReviewLogError`, which
    names `source`, if a row has no user that can be named.
    """
    if columns.user is None:
        return Logs(source, [only_user], columns, lambda _: (source, table))
    codes, users = users_of(table[columns.user], source, np.arange(len(table)))
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(order) else []
    places = dict(zip(users, groups, strict=True))
    of_all = UserTable(source, table, columns, users, codes)
    return Logs(source, users, columns, lambda user: (source, table.iloc[places[user]]), of_all)


def users_of(column: pd.Series, source: str, rows: NDArray[np.intp]) -> tuple[IntArray, list[User]]:
    """Read a column of users, which are in the rows [n] of a source.

    Return the number of the user of each row, and the users, as numbers where they are some. Raise
    `ReviewLogError` if a row has no user that can be named.
    """
    column = column_of(column)
    names, bad = read_names(column)
    codes, distinct = pd.factorize(names)
    unprintable = [
        isinstance(user, str) and (len(user) > _LONGEST_NAME or not user.isprintable())
        for user in distinct
    ]
    unusable = bad | np.array([*unprintable, False], bool)[codes]
    if unusable.any():
        expected = f"a user: {A_NAME}, at most {_LONGEST_NAME} printable characters"
        name, place = str(column.name), lambda row: f"row {rows[row] + 1}"
        hint = "Leave rows without one out, or give what is really called so another name."
        raise ReviewLogError(source, violations(name, column, unusable, expected, place), hint)
    texts = [str(int(name) if isinstance(name, float) else name) for name in distinct]
    return codes, [
        int(text) if text.isdecimal() and str(int(text)) == text else text for text in texts
    ]
