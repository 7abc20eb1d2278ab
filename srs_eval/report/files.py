"""The output folder of a run: written whole or not at all, readable ever after."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError
from srs_eval.evaluate import ReviewLog, UserEvaluation
from srs_eval.nouns import Fit, Predictions, User
from srs_eval.report import tables

PREDICTIONS = "predictions.parquet"
CURVES = "curves.parquet"
FITS = "fits.parquet"
SCORES = "scores.parquet"
SUMMARY = "summary.json"
FIGURES = "figures"
RESULTS = (PREDICTIONS, CURVES, FITS, SCORES, SUMMARY)

_ABOUT = "srs_eval"
_STAMP = "stamp.json"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write beside `path`, and put it there once it is complete."""
    beside = path.with_name(path.name + ".partial")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a parquet file."""
    with whole_file(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON; NaN and infinities, which JSON does not have, become null."""
    with whole_file(path) as partial:
        text = json.dumps(_finite(content), indent=2, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def write_predictions(folder: Path, predictions: Predictions) -> None:
    """Write the scored reviews, and the sampled curves if there are any."""
    write_table(folder / PREDICTIONS, tables.predictions_table(predictions))
    curves = tables.curves_table(predictions)
    if curves is not None:
        write_table(folder / CURVES, curves)


def load_predictions(folder: Path) -> Predictions:
    """Read what `write_predictions` wrote."""
    curves = folder / CURVES
    return tables.read_predictions(
        pq.read_table(folder / PREDICTIONS),
        pq.read_table(curves) if curves.is_file() else None,
    )


def write_fits(folder: Path, fits: Sequence[Fit]) -> None:
    """Write the status of every fit."""
    write_table(folder / FITS, tables.fits_table(fits))


def load_fits(folder: Path) -> tuple[Fit, ...]:
    """Read what `write_fits` wrote."""
    return tables.read_fits(pq.read_table(folder / FITS))


@dataclass(frozen=True, slots=True)
class FinishedUsers:
    """What is kept of each user as soon as it is done, so that a run can be continued.

    Parameters
    ----------
    folder : Path
        A folder of its own; removed when the run is complete.
    stamp : str
        Digest of settings and code; continuing under another one is refused.
    """

    folder: Path
    stamp: str

    def open(self, *, resume: bool) -> None:
        """Begin, or continue where an interrupted run of the same settings stopped."""
        begun = self.folder / _STAMP
        if self.folder.is_dir() and not begun.is_file() and any(self.folder.iterdir()):
            raise ConfigError(
                f"{self.folder} holds files that are not of a run; give another hydra.run.dir"
            )
        if resume and begun.is_file():
            if read_json(begun)["stamp"] != self.stamp:
                raise ConfigError(
                    f"resume=true: {self.folder.parent} was begun with other settings or other "
                    "code; give the same, or another hydra.run.dir"
                )
            return
        self.remove()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(begun, {"stamp": self.stamp})

    def save(self, number: int, evaluation: UserEvaluation) -> None:
        """Keep a user's evaluation; the fits are written last and mark it as complete."""
        place = self._place(number)
        if place.is_dir():  # what an interrupted attempt left there
            shutil.rmtree(place)
        place.mkdir()
        if evaluation.predictions is not None:
            write_predictions(place, evaluation.predictions)
        table = tables.fits_table(evaluation.fits)
        about = {"user": evaluation.user, "log": dataclasses.asdict(evaluation.log)}
        metadata = {_ABOUT: json.dumps(about)}
        write_table(place / FITS, table.replace_schema_metadata(metadata))

    def load(self, number: int, user: User) -> UserEvaluation | None:
        """Read a finished user; None if it is not finished, or if it is another user's place."""
        place = self._place(number)
        if not (place / FITS).is_file():
            return None
        table = pq.read_table(place / FITS)
        about = json.loads(table.schema.metadata[_ABOUT.encode()])
        if about["user"] != user:
            return None
        predictions = load_predictions(place) if (place / PREDICTIONS).is_file() else None
        return UserEvaluation(user, tables.read_fits(table), predictions, ReviewLog(**about["log"]))

    def remove(self) -> None:
        """Delete the folder, if it is one that this class made."""
        if (self.folder / _STAMP).is_file():
            shutil.rmtree(self.folder)

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:06d}"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(content) for name, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(content) for content in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
