"""The predictions and fits of a run, read from its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import overload

import pyarrow as pa

from srs_eval.nouns import Fit, Predictions, User
from srs_eval.results import tables
from srs_eval.results.files import CURVES, FITS, PREDICTIONS
from srs_eval.results.parts import USERS, Parts
from srs_eval.results.predicted import Predicted
from srs_eval.results.user_rows import users_of


class PartPredictions(Predicted):
    """The predictions in the parts of a run.

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

    def reopened(self) -> PartPredictions:
        parts = self._parts.reopened()
        return PartPredictions(parts, self._names, self.folder, as_text=self._as_text)

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
        return tables.read_predictions(user, self._parts.read(name, PREDICTIONS, number), sampled)

    def tables(self, file: str) -> Iterator[pa.Table]:
        for name, count in self._counts(file):
            for number in range(count):
                yield self._parts.read(name, file, number)

    def schemas(self, file: str) -> Iterator[pa.Schema]:
        return (self._parts.schema(name, file) for name, count in self._counts(file) if count)

    def _counts(self, file: str) -> Iterator[tuple[str, int]]:
        """Count the tables of each part."""
        column = Path(file).stem
        for name in self._names:
            counted = self._parts.read(name, USERS)[column]
            yield name, len(counted) - counted.null_count

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


class PartFits(Sequence[Fit]):
    """The fits in the parts of a run, read part by part; arguments as for `PartPredictions`."""

    def __init__(self, parts: Parts, names: Sequence[str], *, as_text: bool = False) -> None:
        self._parts = parts
        self._names = names
        self._as_text = as_text

    def __iter__(self) -> Iterator[Fit]:
        """Go through all fits."""
        for name in self._names:
            table = self._parts.read(name, FITS)
            fits = tables.read_fits(table)
            if self._as_text:
                fits = tuple(replace(fit, user=str(fit.user)) for fit in fits)
            elif table.schema.field("user").type == pa.string():  # some user of the part has a name
                users = {str(user): user for user in users_of(self._parts.read(name, USERS))}
                fits = tuple(replace(fit, user=users[str(fit.user)]) for fit in fits)
            yield from fits

    @cached_property
    def _begins(self) -> list[int]:
        begins = [0]
        for name in self._names:
            begins.append(begins[-1] + len(self._parts.read(name, FITS)))
        return begins

    def __len__(self) -> int:
        """Count the fits."""
        return self._begins[-1]

    @overload
    def __getitem__(self, number: int) -> Fit: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Fit, ...]: ...
    def __getitem__(self, number: int | slice) -> Fit | tuple[Fit, ...]:
        """Return one fit, or some."""
        return tuple(self)[number]
