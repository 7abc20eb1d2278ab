"""The predictions of a run, one user at a time, and its fits, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.nouns import PREDICTION_COLUMNS, Fit, Predictions, User
from srs_eval.nouns.predictions import select
from srs_eval.results.files import CURVES, FITS, PREDICTIONS, read_table, reading
from srs_eval.results.parts import USERS, Parts
from srs_eval.results.tables import (
    CURVE_COLUMNS,
    NEEDED,
    curves_table,
    predictions_table,
    read_fits,
    read_predictions,
)
from srs_eval.results.user_rows import users_of


class Predicted(ABC):
    """Predictions of some users, of which one user at a time needs to be in memory.

    A copy has files of its own, which close after use.
    """

    @property
    @abstractmethod
    def users(self) -> Sequence[User]:
        """Users who have predictions, in the order of the source."""

    @abstractmethod
    def read(self, user: User, *, curves: bool = True) -> Predictions | None:
        """Return the predictions of one user, with forgetting curves; None if there are none."""

    @property
    def are_kept(self) -> bool:
        """Whether there is anything to read."""
        return bool(self.users)

    def stay_in(self, folder: Path) -> bool:
        """Whether a folder has the predictions already, in parts that stay there."""
        return False

    def __iter__(self) -> Iterator[Predictions]:
        """Go through the predictions of all users."""
        return self.of(self.users)

    def of(self, users: Iterable[User]) -> Iterator[Predictions]:
        """Go through the predictions of some users."""
        for user in users:
            predictions = self.read(user)
            if predictions is not None:
                yield predictions

    def tables(self, file: str) -> Iterator[pa.Table]:
        """Go through the users' rows of a file, `PREDICTIONS` or `CURVES`."""
        table = {PREDICTIONS: predictions_table, CURVES: curves_table}[file]
        return (rows for predictions in self if (rows := table(predictions)) is not None)

    def schemas(self, file: str) -> Iterator[pa.Schema]:
        """Go through the schemas of `tables`."""
        return (rows.schema for rows in self.tables(file))


class SavedPredictions(Predicted):
    """The predictions and fits in the folder of a run, read user by user.

    Runs of one source keep their users in the same order, and then each row group is read once;
    never more than one of them is in memory. Without a file of predictions there are no users.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def users(self) -> Sequence[User]:
        """Users who have predictions, in the order of the file."""
        return tuple(self._rows.parts)

    @property
    def are_kept(self) -> bool:
        """Whether there is a file of predictions, which is not opened to tell."""
        return (self._folder / PREDICTIONS).is_file()

    def __reduce__(self) -> tuple[type[SavedPredictions], tuple[Path]]:
        """Pickle, and copy, none of the open files."""
        return SavedPredictions, (self._folder,)

    def read(self, user: User, *, curves: bool = True) -> Predictions | None:
        """Read the predictions of one user in order of their rows; None if there are none."""
        table = self._rows.read(user)
        if table is None:
            return None
        found = read_predictions(user, table, self._curves.read(user) if curves else None)
        in_order = bool((np.diff(found.row) > 0).all())
        return found if in_order else select(found, np.argsort(found.row, kind="stable"))

    def fits(self) -> Iterator[Fit]:
        """Go through all fits."""
        file = self._folder / FITS
        with reading(file):
            fits = read_fits(read_table(file))
        yield from fits

    @cached_property
    def _rows(self) -> _RowsOfUsers:
        return _RowsOfUsers(self._folder / PREDICTIONS, PREDICTION_COLUMNS, NEEDED)

    @cached_property
    def _curves(self) -> _RowsOfUsers:
        return _RowsOfUsers(self._folder / CURVES, CURVE_COLUMNS[1:], CURVE_COLUMNS)


class _RowsOfUsers:
    """A parquet file with a column of users, read one user at a time; of none if there is none."""

    def __init__(self, path: Path, columns: Sequence[str], needed: Sequence[str]) -> None:
        self._path = path
        self._held: tuple[int, pa.Table] | None = None
        self.parts: dict[User, list[tuple[int, int, int]]] = {}
        if not path.is_file():
            return
        with reading(path):
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            names = self._file.schema_arrow.names
            lacking = [name for name in needed if name not in names]
            if lacking:
                raise KeyError(*lacking)
            self._columns = [name for name in columns if name in names]
            for group in range(self._file.num_row_groups):
                self._note_users(group)

    def read(self, user: User) -> pa.Table | None:
        """Read the rows of one user; None if there are none."""
        parts = self.parts.get(user)
        if not parts:
            return None
        return pa.concat_tables([self._group(n).slice(begin, size) for n, begin, size in parts])

    def _note_users(self, group: int) -> None:
        column = self._file.read_row_group(group, columns=["user"]).column("user")
        if not len(column):
            return
        encoded = column.combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices)
        begins = np.flatnonzero(np.diff(codes, prepend=-1))
        sizes = np.diff(np.append(begins, len(codes)))
        names = encoded.dictionary.to_pylist()
        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
            self.parts.setdefault(names[codes[begin]], []).append((group, begin, size))

    def _group(self, number: int) -> pa.Table:
        if self._held is None or self._held[0] != number:
            with reading(self._path):
                self._held = (number, self._file.read_row_group(number, columns=self._columns))
        return self._held[1]


class PartPredictions(Predicted):
    """The predictions and fits in the parts of a run.

    `names` are those of the parts, in the order of the source. `folder` is that of the run, where
    the parts stay; None where they are gathered into files. With `as_text`, users go by text
    although they are numbers.
    """

    def __init__(
        self,
        parts: Parts,
        names: Sequence[str],
        folder: Path | None = None,
        *,
        as_text: bool = False,
    ) -> None:
        self._parts = parts
        self._names = names
        self.folder = folder
        self._as_text = as_text

    def __getstate__(self) -> dict[str, Any]:
        """Pickle, and copy, none of the open files."""
        return {**vars(self), "_parts": copy(self._parts)}

    def stay_in(self, folder: Path) -> bool:
        return self.folder is not None and self.folder.resolve() == folder.resolve()

    @property
    def users(self) -> Sequence[User]:
        return tuple(self._places)

    def read(self, user: User, *, curves: bool = True) -> Predictions | None:
        if user not in self._places:
            return None
        name, number, curve = self._places[user]
        sampled = self._parts.read(name, CURVES, curve) if curves and curve >= 0 else None
        return read_predictions(user, self._parts.read(name, PREDICTIONS, number), sampled)

    def fits(self) -> Iterator[Fit]:
        """Go through all fits."""
        for name in self._names:
            table = self._parts.read(name, FITS)
            users: dict[str, User] = {}
            if not self._as_text and table.schema.field("user").type == pa.string():
                users = {str(user): user for user in users_of(self._parts.read(name, USERS))}
            for fit in read_fits(table):
                user = str(fit.user) if self._as_text else users.get(str(fit.user), fit.user)
                yield fit if user == fit.user else replace(fit, user=user)

    def tables(self, file: str) -> Iterator[pa.Table]:
        return (self._parts.read(name, file, number) for name, number in self._tables(file))

    def schemas(self, file: str) -> Iterator[pa.Schema]:
        names = dict.fromkeys(name for name, _ in self._tables(file))
        return (self._parts.schema(name, file) for name in names)

    def _tables(self, file: str) -> Iterator[tuple[str, int]]:
        """Go through the part and the number of each table of predictions, or of curves."""
        for name, number, curve in self._places.values():
            found = number if file == PREDICTIONS else curve
            if found >= 0:
                yield name, found

    @cached_property
    def _places(self) -> dict[User, tuple[str, int, int]]:
        """Part of each user, and the numbers of its tables there; -1 without curves."""
        places: dict[User, tuple[str, int, int]] = {}
        for name in self._names:
            table = self._parts.read(name, USERS)
            number = curve = 0
            kinds = (table["predictions"].is_valid(), table["curves"].is_valid())
            has = zip(users_of(table), *(kind.to_pylist() for kind in kinds), strict=True)
            for user, has_predictions, has_curves in has:
                if has_predictions:
                    known = str(user) if self._as_text else user
                    places[known] = name, number, curve if has_curves else -1
                number, curve = number + has_predictions, curve + has_curves
        return places


class SavedFits(Sequence[Fit]):
    """The fits of a run, which `read` goes through whenever they are asked for."""

    def __init__(self, read: Callable[[], Iterator[Fit]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Fit]:
        """Go through all fits."""
        return self._read()

    def __len__(self) -> int:
        """Count the fits."""
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, number: int) -> Fit: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Fit, ...]: ...
    def __getitem__(self, number: int | slice) -> Fit | tuple[Fit, ...]:
        """Return one fit, or some."""
        return tuple(self)[number]
