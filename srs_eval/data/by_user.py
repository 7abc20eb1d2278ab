"""Tables that hold the logs of one or several users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd
import pyarrow as pa

from srs_eval.data.columns import violations
from srs_eval.data.files import check_columns, read_table
from srs_eval.data.names import EXPECTED, RENAME, read_names
from srs_eval.data.selection import KnownUsers
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import IntArray, User
from srs_eval.place import Entry, Place

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one user, as they are in a table."""

    source: str  # table, named in errors
    table: pd.DataFrame
    numbers: IntArray  # row numbers in `source`, counted from 0, [n]


@dataclass(frozen=True, slots=True)
class UserRows:
    """Tables from which users are read one at a time."""

    known: KnownUsers
    of: Callable[[User], Rows]  # the rows of a user, named as in `known`


def tables_by_user(place: Place, *, user_column: str | None, text: tuple[str, ...]) -> UserRows:
    """Read a CSV, TSV or parquet file and find the rows of each user; keep the last file in memory.

    Without `user_column` the file is the log of one user, named after the file; the columns `text`
    of a CSV are kept as text. Raise `ReviewLogError` if the file cannot be read, or a row has no
    user that can be named.
    """
    return _tables(place, place.entry(), user_column, text)


# Users are read one after the other, mostly from one file: parse it once.
@lru_cache(maxsize=1)
def _tables(
    place: Place, _entry: Entry | None, user_column: str | None, text: tuple[str, ...]
) -> UserRows:
    text = text if user_column is None else (*text, user_column)
    return rows_by_user(
        read_table(place, text=text), str(place), user_column=user_column, only_user=place.stem
    )


def rows_by_user(
    table: pd.DataFrame, source: str, *, user_column: str | None, only_user: str
) -> UserRows:
    """Find the rows of each user of a table with one row per review, in order of appearance.

    Without `user_column` the table is the log of `only_user`. Raise `ReviewLogError`, which names
    `source`, if the column is missing, or a row has no user that can be named.
    """
    if user_column is None:
        numbers: dict[User, IntArray] = {only_user: np.arange(len(table))}
    else:
        check_columns(source, list(table.columns), [(user_column, "the user")])
        names = user_names(table[user_column], source, user_column, np.arange(len(table)))
        codes, _ = pd.factorize(names)
        order = np.argsort(codes, kind="stable")
        begins = np.searchsorted(codes[order], np.arange(1, codes.max(initial=-1) + 1))
        groups = np.split(order, begins) if len(order) else []
        numbers = {user_named(names.iloc[rows[0]]): rows for rows in groups}
    # No closure: frames are sent to worker processes.
    of = partial(_rows_of, source, table, numbers)
    return UserRows(KnownUsers(source, tuple(numbers)), of)


def _rows_of(
    source: str, table: pd.DataFrame, numbers: Mapping[User, IntArray], user: User
) -> Rows:
    return Rows(source, table.iloc[numbers[user]].reset_index(drop=True), numbers[user])


def user_names(column: pd.Series, source: str, name: str, file_rows: IntArray) -> pd.Series:
    """Read a column of users: return the name of each.

    Raise `ReviewLogError` if a row has no user that can be named: the error names `source`, the
    column `name`, and the rows, which have the numbers `file_rows`, int64 [n], counted from 0.
    """
    names = read_names(column)
    unusable = names.bad | names.values.map(_is_unprintable).to_numpy(bool)
    if unusable.any():
        expected = f"a user: {EXPECTED}, at most {_LONGEST} printable characters"
        wrong = violations(
            name, column, unusable, expected, lambda row: f"row {file_rows[row] + 1}"
        )
        raise ReviewLogError(source, wrong, RENAME)
    return names.values


def _is_unprintable(name: object) -> bool:
    """Whether a name would spoil the lines in which it is printed."""
    return isinstance(name, str) and (len(name) > _LONGEST or not name.isprintable())


def coded_users(
    column: pa.ChunkedArray, source: str, name: str, first_row: int
) -> tuple[IntArray, list[str]]:
    """Return the number of the user of each row, [n], and the users of the column, each named once.

    Raise `ReviewLogError` if a row has no user that can be named: the error names `source`, the
    column `name`, and the row, where the first value is row `first_row`, counted from 0.
    """
    encoded = column.combine_chunks().dictionary_encode("encode")
    used, first, codes = np.unique(
        encoded.indices.to_numpy(), return_index=True, return_inverse=True
    )
    values = encoded.dictionary.to_pandas().iloc[used].reset_index(drop=True)
    names = user_names(values, source, name, first + first_row)
    return codes, [str(user_named(value)) for value in names]


def user_named(value: object) -> User:
    """Return a user, as a number where it is one."""
    if isinstance(value, float | np.floating):
        return int(value)
    text = str(value)
    return int(text) if text.isdecimal() and str(int(text)) == text else text
