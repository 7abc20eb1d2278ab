"""Rows of a table of many users that cannot be read: one error for all of them, and a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.data.cells import MAP_RATINGS, are_missing, read_ratings
from srs_eval.data.log import DROP_DUPLICATES, DROP_MISSING, DROP_TIMES, NEEDED
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.times import read_times
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import BoolArray, IntArray, User

LIST = Path("rows.csv")
_HEADER = ["user", "row", "column", "value", "problem"]
_ROWS_QUOTED = 3


@dataclass(frozen=True, slots=True)
class UserTable:
    """A table in memory with the rows of many users."""

    source: str
    rows: pd.DataFrame
    columns: Columns
    names: Sequence[User]
    user: IntArray  # [n]: Number of each row's user

    def refuse_bad_rows(self, options: TableOptions, users: Sequence[User]) -> None:
        """Raise if rows of several of these users cannot be read, and list the rows in a file."""
        chosen = {*users}
        read = np.array([name in chosen for name in self.names], bool)[self.user]
        faults = [replace(fault, rows=fault.rows & read) for fault in self._faults(options)]
        faults = [fault for fault in faults if fault.rows.any()]
        if len({*self.user[np.any([fault.rows for fault in faults], axis=0)]}) < 2:
            return  # The error of one user says as much
        hints = dict.fromkeys(fault.remedy for fault in faults)
        hints |= {f"Each row: {LIST}.": None} if self._list(faults) else {}
        wrong = [self._violation(fault) for fault in faults]
        raise ReviewLogError(self.source, wrong, " ".join(hints))

    def _faults(self, options: TableOptions) -> Iterator[_Fault]:
        """Find the rows that are refused, each for the first reason that there is."""
        good, names = np.ones(len(self.rows), bool), self.columns.used
        for noun, name in names.items():
            empty = are_missing(self.rows[name]) if noun in NEEDED else ~good & False
            good &= ~empty
            if options.missing == "error":
                yield _Fault(empty, name, f"no {noun}", "missing", DROP_MISSING)
        noun = "recalled" if "recalled" in names else "rating"
        values = self.rows[names[noun]]
        ratings, _ = read_ratings(values, options.ratings, outcomes=noun == "recalled")
        unknown = good & ~np.isin(ratings, (1, 2, 3, 4))
        yield _Fault(unknown, names[noun], f"no known {noun}", "wrong_type", MAP_RATINGS)
        if "time" not in names:
            return
        times, impossible = self._times(options, good)
        if options.invalid_times == "error":
            yield _Fault(impossible, names["time"], "no possible time", "out_of_range", DROP_TIMES)
        if options.duplicates == "error":
            keys = {"user": self.user, "card": self.rows[names["card"]].to_numpy(), "time": times}
            repeated = np.zeros(len(good), bool)
            usable = np.flatnonzero(good & ~impossible)
            repeated[usable] = pd.DataFrame(keys).iloc[usable].duplicated()
            said = "the card and time of an earlier row"
            yield _Fault(repeated, names["card"], said, "duplicate", DROP_DUPLICATES)

    def _times(self, options: TableOptions, good: BoolArray) -> tuple[IntArray, BoolArray]:
        """Read all times; what is impossible among all may be possible in its user's log."""
        column = self.rows[self.columns.used["time"]]
        read = partial(read_times, unit=options.time_unit, time_zone=options.time_zone)
        times = read(column)
        microseconds, impossible = times.microseconds, times.bad & good
        for user in np.unique(self.user[impossible]):
            own = np.flatnonzero(self.user == user)
            alone = read(column.iloc[own])
            microseconds[own], impossible[own] = alone.microseconds, alone.bad & good[own]
        return microseconds, impossible

    def _violation(self, fault: _Fault) -> Violation:
        """Describe the rows of a fault in a line."""
        numbers, users = np.flatnonzero(fault.rows), len(np.unique(self.user[fault.rows]))
        places = [f"row {row + 1}" for row in numbers[:_ROWS_QUOTED]]
        more = f" and {len(numbers) - len(places):,} further" * (len(numbers) > len(places))
        of_rows = f"{len(numbers):,} of {len(self.rows):,} rows"
        what = (
            f"{fault.column}: {of_rows}, of {users:,} of {len(self.names):,} users, have "
            f"{fault.problem}: {', '.join(places)}{more}"
        )
        return Violation(what, fault.kind, fault.column, places)

    def _list(self, faults: Sequence[_Fault]) -> bool:
        """Write each row into a file, and return whether that was possible."""
        parts = [
            pd.DataFrame(
                {
                    "user": [self.names[user] for user in self.user[fault.rows]],
                    "row": np.flatnonzero(fault.rows) + 1,
                    "column": fault.column,
                    "value": self.rows[fault.column][fault.rows].to_numpy(),
                    "problem": fault.problem,
                }
            )
            for fault in faults
        ]
        with suppress(OSError):
            if not LIST.exists() or LIST.read_text(encoding="utf-8").startswith(",".join(_HEADER)):
                pd.concat(parts).sort_values("row").to_csv(LIST, columns=_HEADER, index=False)
                return True
        return False


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with some rows, and the option that helps."""

    rows: BoolArray  # [n]
    column: str
    problem: str
    kind: str
    remedy: str
