"""One table that holds the logs of one or several users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.data.columns import violations
from srs_eval.data.files import check_columns, read_table
from srs_eval.data.names import EXPECTED, RENAME, read_names
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import IntArray, User

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class UserTables:
    """A table and the row numbers of each of its users, in order of first appearance."""

    table: pd.DataFrame
    rows: Mapping[User, IntArray]


def tables_by_user(path: Path, *, user_column: str | None, card_column: str) -> UserTables:
    """Read a file and find the rows of each user; the last file read is kept in memory.

    Parameters
    ----------
    path : Path
        CSV, TSV or parquet file.
    user_column : str or None
        None where the file is the log of one user, named after the file.
    card_column : str
        Kept as text in a CSV.

    Raises
    ------
    ReviewLogError
        If the file cannot be read, or a row has no user that can be named.
    """
    status = path.stat()
    return _tables(path, (status.st_mtime_ns, status.st_size), user_column, card_column)


# Users are read one after the other, mostly from one file: parse it once.
@lru_cache(maxsize=1)
def _tables(
    path: Path, _stamp: tuple[int, int], user_column: str | None, card_column: str
) -> UserTables:
    text = (card_column,) if user_column is None else (card_column, user_column)
    return rows_by_user(
        read_table(path, text=text), str(path), user_column=user_column, only_user=path.stem
    )


def rows_by_user(
    table: pd.DataFrame, source: str, *, user_column: str | None, only_user: str
) -> UserTables:
    """Find the rows of each user of a table.

    Parameters
    ----------
    table : DataFrame
        One row per review.
    source : str
        Named in errors.
    user_column : str or None
        None where the table is the log of one user.
    only_user : str
        Name of the user where there is no such column.

    Raises
    ------
    ReviewLogError
        If the column is missing, or a row has no user that can be named.
    """
    if user_column is None:
        return UserTables(table, {only_user: np.arange(len(table))})
    check_columns(source, list(table.columns), [(user_column, "the user")])
    column = table[user_column]
    names = read_names(column)
    unusable = names.bad | names.values.map(_is_unprintable).to_numpy(bool)
    if unusable.any():
        expected = f"a user: {EXPECTED}, at most {_LONGEST} printable characters"
        wrong = violations(user_column, column, unusable, expected, lambda row: f"row {row + 1}")
        raise ReviewLogError(source, wrong, RENAME)
    codes, _ = pd.factorize(names.values)
    order = np.argsort(codes, kind="stable")
    begins = np.searchsorted(codes[order], np.arange(1, codes.max(initial=-1) + 1))
    groups = np.split(order, begins) if len(order) else []
    return UserTables(table, {_name(names.values.iloc[rows[0]]): rows for rows in groups})


def _is_unprintable(name: object) -> bool:
    """Whether a name would spoil the lines in which it is printed."""
    return isinstance(name, str) and (len(name) > _LONGEST or not name.isprintable())


def _name(value: object) -> User:
    """Return the name of a user, as a number where it is one."""
    if isinstance(value, float | np.floating):
        return int(value)
    text = str(value)
    return int(text) if text.isdecimal() and str(int(text)) == text else text
