"""What is kept of each user while a run goes on, and the predictions file made of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.evaluate import ReviewLog
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.nouns import Fit, Predictions, User
from srs_eval.results import files, tables

# The file that a user has once it is finished.
FINISHED = "user.json"

_STAMP = "stamp.json"
_PREDICTIONS = "predictions.arrow"
_CURVES = "curves.arrow"
# How many rows each file of a user has, so that none is lost without a word.
_COUNTS = "counts"
# Row groups of the results: many users of few reviews share one.
_ROWS_IN_GROUP = 100_000


@dataclass(frozen=True, slots=True)
class FinishedUsers:
    """What is kept of each user as soon as it is done.

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

    def predictions(self, numbers: Iterable[int]) -> Iterator[Predictions]:
        """Read what was predicted for some users, one after the other."""
        for number in numbers:
            predictions = self._predictions_of(number)
            if predictions is not None:
                yield predictions

    def gather(self, numbers: Iterable[int], folder: Path) -> None:
        """Write what was predicted for some users, in order, into the folder of the run.

        Raises
        ------
        SrsEvalError
            If what was kept of a user is no longer there.
        """
        counts = {number: self._counts(number) for number in numbers}
        for name, result in ((_PREDICTIONS, files.PREDICTIONS), (_CURVES, files.CURVES)):
            rows = {
                self._place(n) / name: count[name] for n, count in counts.items() if name in count
            }
            if rows:
                schema = _common_schema([_schema(file) for file in rows])
                parts = (_counted(_read(file), file, count) for file, count in rows.items())
                files.write_reviews(
                    folder / result, schema, _grouped(part.cast(schema) for part in parts)
                )

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

    def _predictions_of(self, number: int) -> Predictions | None:
        counts = self._counts(number)
        if _PREDICTIONS not in counts:
            return None
        predictions, curves = (
            _counted(_read(self._place(number) / name), self._place(number) / name, counts[name])
            if name in counts
            else None
            for name in (_PREDICTIONS, _CURVES)
        )
        return tables.read_predictions(predictions, curves)

    def _counts(self, number: int) -> dict[str, int]:
        """Numbers of rows in the files of a finished user."""
        try:
            counts: dict[str, int] = files.read_json(self._place(number) / FINISHED)[_COUNTS]
        except FileNotFoundError as error:
            raise _lost(self._place(number) / FINISHED) from error
        return counts


def _lost(file: Path) -> SrsEvalError:
    return SrsEvalError(
        f"{file} is not what this run has written there: another program has changed the folder"
    )


def _counted(table: pa.Table, file: Path, rows: int) -> pa.Table:
    if table.num_rows != rows:
        raise _lost(file)
    return table


def _as_json(scored: ScoredUser) -> dict[str, Any]:
    """Everything but the predictions; the numbers come back as they are, NaN included."""
    small = {f.name: getattr(scored, f.name) for f in fields(ScoredUser) if f.name != "predictions"}
    rows = [{f.name: getattr(fit, f.name) for f in fields(Fit)} for fit in scored.fits]
    for row in rows:
        row["parts"] = [asdict(part) for part in row["parts"]]
    return {**small, "fits": rows, "log": asdict(scored.log)}


def _from_json(content: Mapping[str, Any]) -> ScoredUser:
    content = {name: value for name, value in content.items() if name != _COUNTS}
    whole = {
        "fits": tuple(tables.fit_from(fit) for fit in content["fits"]),
        "log": ReviewLog(**{**content["log"], "notes": tuple(content["log"]["notes"])}),
        "values": tuple(content["values"]),
    }
    return ScoredUser(**{**content, **whole})


def _write(file: Path, table: pa.Table) -> None:
    """Write a table quickly rather than small; halves are told by the file that comes last."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def _read(file: Path) -> pa.Table:
    with _opened(file) as source:
        options = pa.ipc.IpcReadOptions(use_threads=False)
        return pa.ipc.open_file(source, options=options).read_all()


def _schema(file: Path) -> pa.Schema:
    with _opened(file) as source:
        return pa.ipc.open_file(source).schema


def _opened(file: Path) -> pa.OSFile:
    try:
        return pa.OSFile(str(file))
    except FileNotFoundError as error:
        raise _lost(file) from error


def _common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Find a schema that holds all: text if any user has a name, the highest precision of p."""
    common = schemas[0]
    for position, field in enumerate(common):
        kinds = {schema.field(field.name).type for schema in schemas}
        if len(kinds) > 1:
            wider = pa.string() if pa.string() in kinds else pa.float64()
            common = common.set(position, field.with_type(wider))
    return common


def _grouped(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put small tables together, a few at a time."""
    group: list[pa.Table] = []
    for part in parts:
        group.append(part)
        if sum(map(len, group)) >= _ROWS_IN_GROUP:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)
