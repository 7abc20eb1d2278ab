"""The source of review logs that lie in tables: who is there is found once, then users are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from srs_eval.data.by_user import UserRows
from srs_eval.data.files import enough_memory, is_pattern
from srs_eval.data.selection import Choice
from srs_eval.data.table_options import Columns, Reading
from srs_eval.data.table_rows import read_user
from srs_eval.nouns import Reviews, User
from srs_eval.place import Place


@dataclass(frozen=True, slots=True)
class Logs:
    """The rows of some users, and how they are read."""

    rows: UserRows
    columns: Columns
    reading: Reading


class TableSource(ABC):
    """Base of sources of tables, which are frozen dataclasses with these fields among others."""

    __slots__ = ()
    path: str | None  # Path, address or pattern
    choice: Choice

    @abstractmethod
    def find(self) -> Logs:
        """Find the users, and where their rows are; raise `ReviewLogError` if there are none."""

    @property
    def name(self) -> str:
        """Name of the file, folder or pattern."""
        place = Place(self.location)
        return place.name if place.is_remote or is_pattern(place) else place.local.resolve().name

    @property
    def location(self) -> str:
        """Address of the file or folder, or the pattern."""
        return str(self.path)

    def users(self) -> Sequence[User]:
        """Return the users, in the order of the source, unless others are asked for.

        Raise `ReviewLogError` if there is no such file, table or column, or not the users asked
        for, and `PlaceError` if an object store cannot be used.
        """
        _found.cache_clear()  # files, or rows, may have been added
        return self.choice.among(self._logs().rows.known)

    def remarks(self) -> Sequence[str]:
        """Return remarks on the choice of users and on where days begin."""
        logs = self._logs()
        return *self.choice.remarks(logs.rows.known), *logs.reading.remarks(logs.columns)

    def read(self, user: User) -> Reviews:
        """Read one user's log.

        Raise `ReviewLogError` if there is no such user, or the log cannot be used, and `PlaceError`
        if an object store cannot be used.
        """
        with enough_memory(self.location):
            return self.read_rows(user, self._logs())

    def read_rows(self, user: User, logs: Logs) -> Reviews:
        """Build one user's log from their rows."""
        return read_user(user, logs.rows, logs.columns, logs.reading)

    def _logs(self) -> Logs:
        with enough_memory(self.location):
            return _found(self, self._stamp())

    def _stamp(self) -> object:
        """Return what changes with a local file or folder; others are not asked each time."""
        with suppress(OSError):
            place = None if self.path is None else Place(self.path)
            status = None if place is None or place.is_remote else place.local.stat()
            return status and (status.st_mtime_ns, status.st_size)
        return None

    def _set(self, **fields: Any) -> None:
        """Set the fields, once."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)


# Users are looked up once, not for each user that is read.
@lru_cache(maxsize=1)
def _found(source: TableSource, _stamp: object) -> Logs:
    return source.find()
