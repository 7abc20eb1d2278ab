"""Review logs in any CSV or parquet table, its columns named by the person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from srs_eval.data.by_user import Rows, UserRows, tables_by_user
from srs_eval.data.files import (
    TABLE_SUFFIXES,
    column_names,
    existing,
    is_pattern,
)
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Duplicates, InvalidTimes, Reading
from srs_eval.data.table_rows import check_named_columns
from srs_eval.data.times import TimeUnit
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import User
from srs_eval.place import Entry, Place


@dataclass(frozen=True, slots=True, init=False)
class ReviewTable(TableSource):
    """Review logs in tables of any form: CSV (comma, semicolon or tab) or parquet.

    Rows are sorted by time; rows of the same time keep their order. Where the table has day
    numbers instead of times, it has to be in time order already.

    Parameters
    ----------
    path : str or Path
        A file, which is one user's log unless a column says whose each row is; or a folder
        or a pattern such as ``logs/*.csv``, with one file per user, named after the user. A path,
        or an address: ``s3://``, ``gs://``, ``abfss://`` or ``hf://``.
    columns : Columns or mapping of str to str
        What the columns are called.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[anna, ben]`` or ``"1-100"``; everyone if None.
    sample : int, optional
        How many of these users at most, chosen by a digest of their names.
    first : int, optional
        How many of these users at most, in their order.
    time_unit : {"auto", "iso", "s", "ms"}
        What times are: ISO-8601 text, or seconds or milliseconds since 1970.
    time_zone : str
        Where days begin at `day_start_hour`, and what a time without an offset refers to.
    day_start_hour : float
        Hour at which a new day begins for the person, from 0 to below 24.
    duplicates : {"error", "drop"}
        What to do about rows with the card and the time of an earlier row.
    ratings : mapping, optional
        Rating of each value of the column of ratings, such as ``{"fail": 1, "pass": 3}``; by
        default 1 to 4, and words such as those or again, hard, good and easy.
    invalid_times : {"error", "drop"}
        What to do about rows of a user whose time is in the future, before 1980 or unreadable.
        A user without any other row is refused all the same.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have; all of them at once.
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
        reading = Reading(time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times)
        self._set(
            path=Place.of(path).address,
            columns=Columns.of(columns),
            choice=Choice(users, sample, first),
            reading=reading,
        )

    def find(self) -> Logs:
        """Find the users of the file, or the files of a folder."""
        return Logs(_rows(Place(self.path), self.columns), self.columns, self.reading)


def _rows(place: Place, columns: Columns) -> UserRows:
    if not is_pattern(place) and existing(place).kind() == "file":
        _check_columns([place], columns, by_user=False)
        return tables_by_user(place, user_column=columns.user, text=columns.named_things())
    found = table_files(place)
    if columns.user is not None:
        violation = f"{len(found)} files, each one user's, and data.columns.user at once"
        hint = (
            "Give the path of one file, leave data.columns.user=null, or make one table of them "
            "with `python -m srs_eval.prepare`."
        )
        raise ReviewLogError(str(place), [violation], hint)
    files = _by_stem(str(place), [entry.place for entry in found])
    _check_columns(list(files.values()), columns, by_user=True)

    def read(user: User) -> Rows:
        """Read the file that is named after a user."""
        file = files[user]
        tables = tables_by_user(file, user_column=None, text=columns.named_things())
        return tables.of(file.stem)

    return UserRows(KnownUsers(str(place), tuple(files)), read)


def _check_columns(files: Sequence[Place], columns: Columns, *, by_user: bool) -> None:
    """Raise the error of the first file if no file has the columns; others fail when read."""
    errors = []
    for file in files:
        if file.suffix not in TABLE_SUFFIXES:
            return  # an error when it is read
        try:
            check_named_columns(str(file), column_names(file), columns, has_one_user=by_user)
        except ReviewLogError as error:
            errors.append(error)
        else:
            return
    if errors:
        raise errors[0]


def table_files(place: Place) -> list[Entry]:
    """Return a table, or those in a folder or of a pattern; raise `ReviewLogError` if none."""
    if not is_pattern(place):
        entry = existing(place).entry()
        if entry is not None:
            return [entry]
        found = place.files()
    elif place.is_remote:
        folder = Place(re.split(r"/[^/]*[*?\[]", place.address)[0])
        below = folder.files(recursive=True)
        found = [each for each in below if fnmatch(each.place.address, place.address)]
    else:
        anchor = Path(place.local.anchor)
        paths = sorted(anchor.glob(str(place.local.relative_to(anchor))))
        entries = [Place.of(path).entry() for path in paths if not path.name.startswith(".")]
        found = [entry for entry in entries if entry is not None]
    if not is_pattern(place):
        found = [each for each in found if each.place.suffix in TABLE_SUFFIXES]
    if not found:
        hint = f"Expected one file per user: {', '.join(TABLE_SUFFIXES)}."
        raise ReviewLogError(str(place), ["there are no tables here"], hint)
    return found


def _by_stem(location: str, files: Sequence[Place]) -> Mapping[User, Place]:
    """Return the users, named after their files; refuse two files of one name."""
    named: dict[User, Place] = {}
    twice = []
    for file in files:
        if file.stem in named:
            twice.append(f"{named[file.stem]} and {file} are both of user {file.stem}")
        named.setdefault(file.stem, file)
    if twice:
        raise ReviewLogError(location, twice)
    return named
