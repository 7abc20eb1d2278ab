"""A folder with a folder for each user, named after the user as in Hive: ``user=ann/*.parquet``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd

from srs_eval.data.by_user import Rows, UserRows, user_named, user_names
from srs_eval.data.files import column_names, existing, read_table
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Duplicates, InvalidTimes, Reading
from srs_eval.data.table_rows import check_named_columns
from srs_eval.data.times import TimeUnit
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import User
from srs_eval.place import Place

INCOMPLETE = "_incomplete"  # A file of a folder that is being written
_FOLDER = re.compile(r"user=([^/\\]+)[/\\][^/\\]*\.parquet$")
_NO_USER = "__HIVE_DEFAULT_PARTITION__"
_HINT = "Write it with `python -m srs_eval.prepare`, or by a query: see docs/scale.md."


@dataclass(frozen=True, slots=True, init=False)
class PartitionedLogs(TableSource):
    """Review logs in parquet files, of which each user has a folder ``user=NAME``.

    `python -m srs_eval.prepare` writes such a folder, and many warehouses do.

    Parameters
    ----------
    path : str or Path
        The folder with the folders of users; a path, or an address: ``s3://``, ``gs://``,
        ``abfss://`` or ``hf://``.
    columns : Columns or mapping of str to str
        What the columns are called.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[anna, ben]`` or ``"1-100"``; everyone if None.
    sample : int, optional
        How many of these users at most, chosen by a digest of their names.
    first : int, optional
        How many of these users at most, in their order: numbers, then names.
    time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times
        As in `srs_eval.data.table.ReviewTable`.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have.
    """

    path: str
    columns: Columns
    choice: Choice
    reading: Reading

    def __init__(
        self,
        path: str | Path,
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
    ) -> None:
        self._set(
            path=Place.of(path).address,
            columns=Columns.of(columns),
            choice=Choice(users, sample, first),
            reading=Reading(
                time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times
            ),
        )

    def find(self) -> Logs:
        """List the folder: the names of its folders are the users."""
        folder = Place(self.path)
        if (folder / INCOMPLETE).exists():
            what = "it is being written, or what wrote it was interrupted"
            raise ReviewLogError(str(folder), [what], "Remove it, and write it again.")
        files = files_by_user(folder)
        first = next(iter(files.values()))[0]
        check_named_columns(str(first), column_names(first), self.columns, has_one_user=True)

        def rows_of(user: User) -> Rows:
            parts = [read_table(file) for file in files[user]]
            table = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
            return Rows(str(folder), table, np.arange(len(table)))

        return Logs(
            UserRows(KnownUsers(str(folder), tuple(files)), rows_of), self.columns, self.reading
        )


def files_by_user(folder: Place) -> dict[User, list[Place]]:
    """Return the files of each user, in the order of their numbers."""
    if existing(folder).kind() != "folder":
        raise ReviewLogError(str(folder), ["expected a folder with a folder for each user"], _HINT)
    named: dict[str, list[Place]] = {}
    for entry in folder.files(recursive=True):
        if match := _FOLDER.search(entry.place.address):
            named.setdefault(unquote(match[1]), []).append(entry.place)
    if not named:
        raise ReviewLogError(str(folder), ["there is no user=NAME/*.parquet in it"], _HINT)
    names = pd.Series([None if name == _NO_USER else name for name in named], dtype=object)
    user_names(names, str(folder), "user", np.arange(len(names)))  # which refuses unusable ones
    files = {
        user_named(name): sorted(places, key=lambda place: _numbers(place.name))
        for name, places in named.items()
    }
    return dict(sorted(files.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def _numbers(name: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", name)[:1]], name
