"""Review logs in a table in memory: pandas, polars, Arrow, or whatever can be read as Arrow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.interchange

from srs_eval.data.by_user import UserRows, rows_by_user
from srs_eval.data.files import pandas_from_arrow
from srs_eval.data.selection import Choice, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Reading
from srs_eval.data.table_rows import check_named_columns, columns_needed
from srs_eval.errors import ConfigError, ReviewLogError


def is_table(data: object) -> bool:
    """Return whether `ReviewFrame` can read an object.

    >>> is_table(pd.DataFrame()), is_table("log.csv")
    (True, False)
    """
    return isinstance(data, pd.DataFrame) or any(
        hasattr(data, method) for method in ("__arrow_c_stream__", "__dataframe__")
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReviewFrame(TableSource):
    """Review logs of one or several users in a table in memory.

    The rows are read as those of a file by `srs_eval.data.table.ReviewTable`: sorted by time, rows
    of the same time keeping their order. The columns that are needed are copied; the index of a
    pandas frame is not read.

    Raise `ConfigError` if `table` is no table, and `ReviewLogError` if a column is missing, or a
    row has no user that can be named.

    >>> frame = pd.DataFrame(
    ...     {
    ...         "card": ["a", "b", "a"],
    ...         "rating": [3, 1, 4],
    ...         "time": pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-04"], utc=True),
    ...     }
    ... )
    >>> source = ReviewFrame(frame)
    >>> source.users(), source.read("frame").elapsed_days.tolist()
    (('frame',), [-1, -1, 3])
    """

    # A pandas frame, or anything with ``__arrow_c_stream__`` or ``__dataframe__``, such as a polars
    # frame or an Arrow table.
    table: Any = field(repr=False)
    columns: Columns = field(default_factory=Columns)
    selection: Selection = None  # users to read, as in `wanted_users`; all of them if None
    reading: Reading = field(default_factory=Reading)
    name: str = "frame"  # in results and errors, and of the user if there is no column of users
    sample: int | None = None  # how many of these users at most, by a digest of their names
    first: int | None = None  # how many of these users at most, in their order
    choice: Choice = field(init=False, repr=False)
    _rows: UserRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Copy the columns in use, and find the rows of each user."""
        frame = to_pandas(self.table)
        frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
        user = self.columns.user
        try:
            check_named_columns(self.name, list(frame.columns), self.columns)
        except ReviewLogError as error:
            raise ReviewLogError(
                error.source, error.violations, f"{error.hint} {_advice(self.table)}"
            ) from None
        needed = (name for name, _ in columns_needed(self.columns))
        used = list(dict.fromkeys([*needed, *([user] if user else [])]))
        frame = frame[used].reset_index(drop=True).copy()
        found = rows_by_user(frame, self.name, user_column=user, only_user=self.name)
        choice = Choice(self.selection, self.sample, self.first)
        self._set(table=None, choice=choice, _rows=found)

    @property
    def location(self) -> str:
        """Name of the table: it is in no file."""
        return self.name

    def find(self) -> Logs:
        """Return the rows of each user."""
        return Logs(self._rows, self.columns, self.reading)

    def _logs(self) -> Logs:
        return self.find()  # not kept in memory when the frame is not


def to_pandas(table: Any) -> pd.DataFrame:
    """Convert a table to a pandas frame, values as a parquet file of it would be read.

    Takes what `ReviewFrame` takes; raise `ConfigError` for anything else.
    """
    if isinstance(table, pd.DataFrame):
        frame = table.copy(deep=False)
        for position, dtype in enumerate(frame.dtypes):
            if isinstance(dtype, pd.ArrowDtype):
                column = pa.table({"column": pa.array(frame.iloc[:, position])})
                frame.isetitem(position, pandas_from_arrow(column)["column"].array)
        return frame
    try:
        if hasattr(table, "__arrow_c_stream__"):
            return pandas_from_arrow(pa.table(table))
        if hasattr(table, "__dataframe__"):
            return pandas_from_arrow(pyarrow.interchange.from_dataframe(table))
        reason = ""
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = f" ({error})"
    raise ConfigError(
        f"data: {type(table).__name__} is no table{reason}; give a pandas or polars DataFrame, or "
        "an object with __arrow_c_stream__"
    )


def _advice(table: Any) -> str:
    """Return the advice for a frame without a column that is needed."""
    index = table.index.names if isinstance(table, pd.DataFrame) else ()
    levels = ", ".join(str(name) for name in index if name is not None)
    return "Name the columns by keyword, as in card='item'." + (
        f" The index ({levels}) is not read: use reset_index()." if levels else ""
    )
