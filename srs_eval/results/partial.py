"""Results of single users, kept while a run goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.evaluate import ReviewLog
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.nouns import Predictions, User
from srs_eval.results import files, tables
from srs_eval.results.predicted import Predicted

# The file that a user has once it is finished.
FINISHED = "user.json"

_STAMP = "stamp.json"
_PREDICTIONS = "predictions.arrow"
_CURVES = "curves.arrow"
# How many rows each file of a user has, so that none is lost without a word.
_COUNTS = "counts"
_NAMES = {files.PREDICTIONS: _PREDICTIONS, files.CURVES: _CURVES}


@dataclass(frozen=True, slots=True)
class FinishedUsers:
    """The result of each user, kept as soon as the user is done.

    So a run can be continued, and never more than a few users are in memory. The files are
    made to be written and read quickly, not to stay.

    Parameters
    ----------
    folder : Path
        A folder of its own; removed when the run is complete.
    stamp : str
        Digest of settings and code; continuing under another one is refused.
    """

    folder: Path
    stamp: str

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun here and not yet come to its end."""
        return (self.folder / _STAMP).is_file()

    def check(self, *, resume: bool) -> None:
        """Make sure that `open` will succeed, changing nothing.

        Raises
        ------
        ConfigError
            If the folder holds other files, or a run of other settings is to be continued.
        """
        begun = self.folder / _STAMP
        if self.is_begun:
            if resume and files.read_json(begun)["stamp"] != self.stamp:
                raise ConfigError(
                    f"resume=true: {self.folder.parent} was begun with other settings or other "
                    "code; give the same, or another hydra.run.dir"
                )
            return
        ours = {begun.with_name(f"{_STAMP}.partial")}  # of a run that was killed as it began
        if self.folder.is_dir() and not set(self.folder.iterdir()) <= ours:
            raise ConfigError(
                f"{self.folder} holds files that are not of a run; give another hydra.run.dir"
            )

    def open(self, *, resume: bool) -> None:
        """Begin, or continue where an interrupted run of the same settings stopped."""
        self.check(resume=resume)
        if resume and self.is_begun:
            return
        self.remove()
        self.folder.mkdir(parents=True, exist_ok=True)
        files.write_json(self.folder / _STAMP, {"stamp": self.stamp})

    def save(self, number: int, scored: ScoredUser) -> None:
        """Keep a user; its scores are written last and mark it as complete."""
        place = self._place(number)
        if place.is_dir():  # what an interrupted attempt left there
            shutil.rmtree(place)
        place.mkdir()
        kept = {}
        if scored.predictions is not None:
            kept[_PREDICTIONS] = tables.predictions_table(scored.predictions)
            curves = tables.curves_table(scored.predictions)
            if curves is not None:
                kept[_CURVES] = curves
        for name, table in kept.items():
            _write(place / name, table)
        counts = {name: table.num_rows for name, table in kept.items()}
        with files.whole_file(place / FINISHED) as partial:
            partial.write_text(json.dumps({**_as_json(scored), _COUNTS: counts}), encoding="utf-8")

    def load(self, number: int, user: User) -> ScoredUser | None:
        """Read a finished user, without the predictions.

        None if the user is not finished, or if it is another user's place.
        """
        try:
            content = files.read_json(self._place(number) / FINISHED)
        except FileNotFoundError:
            return None
        return _from_json(content) if content["user"] == user else None

    def predicted(self, users: Sequence[User]) -> Predicted:
        """Return the predictions that are kept of the users of the run, in their order."""
        return _Kept(self, users)

    def remove(self) -> None:
        """Delete the folder, if it is one that this class made.

        It is renamed first, so that a kill meanwhile leaves a run that has ended.
        """
        removed = self.folder.with_name(f".{self.folder.name}.removed")
        if removed.is_dir():
            shutil.rmtree(removed)
        if self.is_begun:
            self.folder.rename(removed)
            shutil.rmtree(removed)

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def rows(self, number: int, name: str) -> tuple[Path, int] | None:
        """Return a file of a finished user and how many rows it has; None if there is none.

        Raises
        ------
        SrsEvalError
            If what was kept of the user is no longer there.
        """
        place = self._place(number)
        try:
            counts: dict[str, int] = files.read_json(place / FINISHED)[_COUNTS]
        except FileNotFoundError as error:
            raise _lost(place / FINISHED) from error
        return (place / name, counts[name]) if name in counts else None


class _Kept(Predicted):
    """Predictions that are kept while a run goes on; their tables are not decoded."""

    def __init__(self, kept: FinishedUsers, users: Sequence[User]) -> None:
        self._kept = kept
        self._numbers = {user: number for number, user in enumerate(users)}

    @property
    def users(self) -> Sequence[User]:
        return tuple(u for u, n in self._numbers.items() if self._kept.rows(n, _PREDICTIONS))

    def read(self, user: User, *, curves: bool = True) -> Predictions | None:
        predictions = self._table(user, _PREDICTIONS)
        if predictions is None:
            return None
        sampled = self._table(user, _CURVES) if curves else None
        return tables.read_predictions(user, predictions, sampled)

    def _table(self, user: User, name: str) -> pa.Table | None:
        rows = self._kept.rows(self._numbers[user], name)
        return None if rows is None else _counted(*rows)

    def tables(self, file: str) -> Iterator[pa.Table]:
        return (_counted(*rows) for rows in self._files(file))

    def schemas(self, file: str) -> Iterator[pa.Schema]:
        for path, _ in self._files(file):
            with _opened(path) as source:
                yield pa.ipc.open_file(source).schema

    def _files(self, file: str) -> list[tuple[Path, int]]:
        found = (self._kept.rows(number, _NAMES[file]) for number in self._numbers.values())
        return [rows for rows in found if rows is not None]


def _lost(file: Path) -> SrsEvalError:
    return SrsEvalError(
        f"{file} is not what this run has written there: another program has changed the folder"
    )


def _counted(file: Path, rows: int) -> pa.Table:
    with _opened(file) as source:
        table = pa.ipc.open_file(
            source, options=pa.ipc.IpcReadOptions(use_threads=False)
        ).read_all()
    if table.num_rows != rows:
        raise _lost(file)
    return table


def _as_json(scored: ScoredUser) -> dict[str, Any]:
    """Everything but the predictions; the numbers come back as they are, NaN included."""
    small = {f.name: getattr(scored, f.name) for f in fields(ScoredUser) if f.name != "predictions"}
    return {**small, "fits": [asdict(fit) for fit in scored.fits], "log": asdict(scored.log)}


def _from_json(content: Mapping[str, Any]) -> ScoredUser:
    content = {name: value for name, value in content.items() if name != _COUNTS}
    whole = {
        "fits": tuple(tables.fit_from(fit) for fit in content["fits"]),
        "log": ReviewLog(**{**content["log"], "notes": tuple(content["log"]["notes"])}),
        "values": tuple(content["values"]),
    }
    return ScoredUser(**{**content, **whole})


def _write(file: Path, table: pa.Table) -> None:
    """Write a table quickly rather than small; `FINISHED`, written last, marks it whole."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def _opened(file: Path) -> pa.OSFile:
    try:
        return pa.OSFile(str(file))
    except FileNotFoundError as error:
        raise _lost(file) from error
