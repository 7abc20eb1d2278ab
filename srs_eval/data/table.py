"""Review logs in any CSV or parquet table, its columns named by the person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from srs_eval.data.by_user import UserTables, tables_by_user
from srs_eval.data.files import TABLE_SUFFIXES, enough_memory, existing
from srs_eval.data.selection import Selection, select_users, wanted_users
from srs_eval.data.table_options import Columns, Duplicates, Reading
from srs_eval.data.table_rows import read_rows, read_user, with_namesake
from srs_eval.data.times import TimeUnit
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import Reviews, User


@dataclass(frozen=True, slots=True, init=False)
class ReviewTable:
    """Review logs in tables of any form: CSV (comma, semicolon or tab) or parquet.

    Rows are sorted by time; rows of the same time keep their order. Where the table has day
    numbers instead of times, it has to be in time order already.

    Parameters
    ----------
    path : str or Path
        A file, which is one user's log unless a column says whose each row is; or a folder
        or a pattern such as ``logs/*.csv``, with one file per user, named after the user.
    columns : Columns or mapping of str to str
        What the columns are called.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[anna, ben]`` or ``"1-100"``; everyone if None.
    time_unit : {"auto", "iso", "s", "ms"}
        What times are: ISO-8601 text, or seconds or milliseconds since 1970.
    time_zone : str
        Where days begin at `day_start_hour`, and what a time without an offset refers to.
    day_start_hour : float
        Hour at which a new day begins for the person, from 0 to below 24.
    duplicates : {"error", "drop"}
        What to do about rows with the card and the time of an earlier row.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have; all of them at once.
    """

    path: Path
    columns: Columns
    wanted: tuple[User, ...] | None
    reading: Reading

    def __init__(
        self,
        path: str | Path,
        columns: Columns | Mapping[str, str | None] | None = None,
        users: Selection = None,
        *,
        time_unit: TimeUnit = "auto",
        time_zone: str = "UTC",
        day_start_hour: float = 4,
        duplicates: Duplicates = "error",
    ) -> None:
        if not isinstance(columns, Columns):
            columns = Columns.named(columns or {})
        object.__setattr__(self, "path", Path(path).expanduser())
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "wanted", wanted_users(users))
        reading = Reading(time_unit, time_zone, day_start_hour, duplicates)
        object.__setattr__(self, "reading", reading)

    @property
    def name(self) -> str:
        """Name of the file, folder or pattern."""
        return self.path.name if self._is_pattern else self.path.resolve().name

    @property
    def location(self) -> str:
        """Path of the file or folder, or the pattern."""
        return str(self.path)

    def users(self) -> Sequence[User]:
        """Return the users, in the order of the file or of the file names.

        Raises
        ------
        ReviewLogError
            If the path does not exist, holds no tables, or not the users asked for.
        """
        files = self._files()
        if files is None:
            with enough_memory(self.path):
                tables = self._tables(self.path)
            return select_users(self.location, list(tables.rows), self.wanted)
        return select_users(self.location, list(files), self.wanted)

    def read(self, user: User) -> Reviews:
        """Read one user's log.

        Raises
        ------
        ReviewLogError
            If there is no such user, or the log cannot be used.
        """
        with enough_memory(self.path):
            return self._read(user)

    def _read(self, user: User) -> Reviews:
        files = self._files()
        if files is None:
            tables = self._tables(self.path)
            return read_user(user, self.location, tables, self.columns, self.reading)
        (user,) = select_users(self.location, list(files), (user,))
        file = files[str(user)]
        tables = self._tables(file)
        (rows,) = tables.rows.values()
        reviews = read_rows(user, str(file), tables.table, rows, self.columns, self.reading)
        return with_namesake(reviews, files)

    @property
    def _is_pattern(self) -> bool:
        """Whether the path has wildcards and is not itself a file."""
        return any(sign in str(self.path) for sign in "*?[") and not self.path.exists()

    def _files(self) -> Mapping[str, Path] | None:
        """File of each user; None if the path is a single file."""
        if self._is_pattern:
            anchor = Path(self.path.anchor)
            found = sorted(anchor.glob(str(self.path.relative_to(anchor))))
        elif existing(self.path).is_dir():
            entries = sorted(self.path.iterdir())
            found = [entry for entry in entries if entry.suffix.lower() in TABLE_SUFFIXES]
        else:
            return None
        found = [file for file in found if file.is_file() and not file.name.startswith(".")]
        if not found:
            hint = f"Expected one file per user: {', '.join(TABLE_SUFFIXES)}."
            raise ReviewLogError(self.location, ["there are no tables here"], hint)
        if self.columns.user is not None:
            violation = f"{len(found)} files, each one user's, and data.columns.user at once"
            hint = "Give the path of one file, or leave data.columns.user=null."
            raise ReviewLogError(self.location, [violation], hint)
        return _by_stem(self.location, found)

    def _tables(self, file: Path) -> UserTables:
        """Read a file and find the rows of its users."""
        return tables_by_user(file, user_column=self.columns.user, card_column=self.columns.card)


def _by_stem(location: str, files: Sequence[Path]) -> Mapping[str, Path]:
    """Return the users, named after their files; refuse two files of one name."""
    named: dict[str, Path] = {}
    twice = []
    for file in files:
        if file.stem in named:
            twice.append(f"{named[file.stem]} and {file} are both of user {file.stem}")
        named.setdefault(file.stem, file)
    if twice:
        raise ReviewLogError(location, twice)
    return named
