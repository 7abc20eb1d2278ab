"""The folder of a run: one command that writes it at a time, and the one reader of it."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from omegaconf import OmegaConf
from pydantic import TypeAdapter

from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, FolderInUseError
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.predictions import PREDICTION_COLUMNS, Curves, Predictions, select
from srs_eval.runs.summary import Summary

if TYPE_CHECKING:
    from srs_eval.runs.evaluation import Evaluation

SUMMARY, SCORES, FITS = "summary.json", "scores.parquet", "fits.parquet"
PREDICTIONS, CURVES = "predictions.parquet", "curves.parquet"
CONFIG, JOB = ".hydra/config.yaml", "job.json"
FILES = (SUMMARY, SCORES, FITS, PREDICTIONS, CURVES)

_CURVE_COLUMNS = tuple(f.name for f in fields(Curves))
_ABOUT_USER = ("user", "reviews", "rows")
_LOCK = ".lock"
_SECONDS = 10  # That a shard waits for another that is just beginning
_BYTES_IN_GROUP = 8 << 20
_FITS_AT_ONCE = 5_000
_FIT, _ANY = TypeAdapter(Fit), TypeAdapter(Any)
_NUMBERS = pa.list_(pa.float64())
_LISTS = dict.fromkeys(("parameters", "standard_errors"), _NUMBERS)
_STEPS = dict.fromkeys(("training_loss", "test_log_loss"), _NUMBERS)
_PART = {"name": pa.string(), "option": pa.string(), **_LISTS, "n_train": pa.int64()}
_PART |= {"standalone": pa.bool_(), "title": pa.string()}
_CONTRIBUTION = {"name": pa.string(), "gain": pa.float64(), "standard_error": pa.float64()}
_FITS = {
    **{"user": pa.string(), "fold": pa.int64(), "status": pa.string(), "reason": pa.string()},
    **{"seconds": pa.float64(), "n_train": pa.int64(), "n_test": pa.int64()},
    **_LISTS,
    **{"traceback": pa.string(), "parts": pa.list_(pa.struct(_PART)), "converged": pa.bool_()},
    "contributions": pa.list_(pa.struct(_CONTRIBUTION)),
    **_STEPS,
}


@dataclass(frozen=True)
class Run:
    """A finished run: what it says of itself, the scores of each user, and the rest on demand."""

    folder: Path
    facts: Summary
    by_user: Scores

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Read a run; raise `ConfigError` if the folder has none, or a file is damaged."""
        if not is_run(folder):
            raise ConfigError(
                f"{folder}: expected the folder of a finished run, with {SUMMARY} and {SCORES}"
            )
        with reading(folder / SUMMARY):
            facts = Summary.from_json(json.loads((folder / SUMMARY).read_bytes()))
        # `read_table` would load all of pyarrow.dataset
        with reading(folder / SCORES), _checked(folder / SCORES) as file:
            scores = _scores(file.read())
        return cls(folder, facts, scores)

    @property
    def has_predictions(self) -> bool:
        """Whether the file of predictions is there."""
        return (self.folder / PREDICTIONS).is_file()

    def predictions(self, user: User, *, curves: bool = True) -> Predictions | None:
        """Read the predictions of one user in the order of their rows; None if there are none."""
        table = self._predictions.of(user)
        if table is None:
            return None
        present = [name for name in PREDICTION_COLUMNS if name in table.column_names]
        columns: Any = {name: table[name].to_numpy() for name in present}
        sampled = self._curves.of(user) if curves else None
        with reading(self.folder / PREDICTIONS):
            predictions = Predictions(
                users=(user,),
                user=np.zeros(len(table), np.int64),
                curves=None if sampled is None else _read_curves(sampled),
                **columns,
            )
        return select(predictions, np.argsort(predictions.row, kind="stable"))

    def every_prediction(self) -> Iterator[Predictions]:
        """Go through the predictions of the complete users, one user at a time."""
        every = (self.predictions(user) for user in self.by_user.complete)
        return (predictions for predictions in every if predictions is not None)

    def fits(self) -> Iterator[Fit]:
        """Go through all fits."""
        with reading(self.folder / FITS), pq.ParquetFile(self.folder / FITS) as file:
            for batch in file.iter_batches(_FITS_AT_ONCE):
                for row in batch.to_pylist():
                    yield _FIT.validate_python({k: v for k, v in row.items() if v is not None})

    def config(self) -> dict[str, Any]:
        """Read the options of the run."""
        with reading(self.folder / CONFIG):
            file = OmegaConf.load(self.folder / CONFIG)
            content: Any = OmegaConf.to_container(file, resolve=True)
            return dict(content)

    @cached_property
    def _predictions(self) -> _RowsOfUsers:
        return _RowsOfUsers(self.folder / PREDICTIONS)

    @cached_property
    def _curves(self) -> _RowsOfUsers:
        return _RowsOfUsers(self.folder / CURVES)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a finished run."""
    return (folder / SUMMARY).is_file() and (folder / SCORES).is_file()


def runs_below(folder: Path) -> list[Path]:
    """Return the folders of finished runs in a folder, in the order of their job numbers."""
    folders = {path.parent for path in folder.rglob(SUMMARY) if is_run(path.parent)}
    return sorted(folders, key=lambda path: (path.parent, job_number(path)))


def job_number(folder: Path) -> tuple[int, str]:
    """Return what sorts the folders of the jobs of a sweep by their numbers."""
    number = folder.name.partition("_")[0]
    return (int(number) if number.isdigit() else -1, folder.name)


def save(evaluation: Evaluation, folder: Path) -> Run:
    """Write the results; the summary comes last, and marks the run as finished."""
    (folder / SUMMARY).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    kind = user_column(evaluation.users).type
    predictions = evaluation.predictions
    _write(folder / PREDICTIONS, (_predictions(each, kind) for each in predictions()))
    sampled = (_curves(each, kind) for each in predictions() if each.curves is not None)
    _write(folder / CURVES, sampled)
    schema = pa.schema({**_FITS, "user": kind})
    fits = (evaluation.checkpoint.read(user).fits for user in evaluation.users)
    _write(folder / FITS, (fits_table(each, schema) for each in fits))
    scores = evaluation.scores
    about = {"user": user_column(scores.users).cast(kind), "reviews": scores.reviews}
    values = dict(zip(scores.names, scores.values.T, strict=True))
    _write(folder / SCORES, iter([pa.table({**about, "rows": list(scores.rows), **values})]))
    write_json(folder / SUMMARY, asdict(evaluation.summary))
    return Run.read(folder)  # Where some users are numbers and some are text, all become text


@contextmanager
def claimed(folder: Path, shard: str | None = None) -> Iterator[None]:
    """Claim a folder, made if need be; the system ends the claim with the process.

    Shards of a run share the folder, each with a lock of its own. A claim on the same folder by
    the same thread is granted again. Raise `FolderInUseError` if another command has the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    whole = FileLock(place / _LOCK, is_singleton=True)
    with ExitStack() as stack:
        try:
            whole.acquire(timeout=0 if shard is None else _SECONDS)
            stack.callback(whole.release)
            if shard is None:
                for file in place.glob(f"{_LOCK}_*"):
                    stack.enter_context(FileLock(file, is_singleton=True).acquire(timeout=0))
            else:
                mine = place / f"{_LOCK}_{shard.replace('/', '_of_')}"
                stack.enter_context(FileLock(mine, is_singleton=True).acquire(timeout=0))
                whole.release()
        except Timeout as taken:
            raise FolderInUseError(
                f"{folder} is in use by another command that is still running; wait for its end, "
                "or choose another hydra.run.dir (hydra.sweep.dir with -m)"
            ) from taken
        yield


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file gets its name when it is complete and on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON; NaN and infinities become null."""
    with whole(path) as partial:
        partial.write_text(json_text(content) + "\n", encoding="utf-8")


def json_text(content: Mapping[str, Any]) -> str:
    """Return JSON; NaN and infinities become null, and NumPy's arrays lists."""
    return _ANY.dump_json(content, indent=2, fallback=lambda value: value.tolist()).decode()


def fits_table(fits: Iterable[Fit], schema: pa.Schema | None = None) -> pa.Table:
    """Return one row per fit; `fold` is -1 where a whole user was skipped or failed."""
    fits = list(fits)
    schema = schema or pa.schema({**_FITS, "user": user_column([fit.user for fit in fits]).type})
    name = int if schema.field("user").type == pa.int64() else str
    return pa.Table.from_pylist([{**asdict(fit), "user": name(fit.user)} for fit in fits], schema)


def user_column(users: Sequence[User]) -> pa.Array:
    """Return users as integers where all of them are, as text otherwise."""
    if all(isinstance(user, int) for user in users):
        return pa.array(users, pa.int64())
    return pa.array(map(str, users), pa.string())


_checked = partial(pq.ParquetFile, page_checksum_verification=True)


class _RowsOfUsers:
    """A parquet file with a column of users, read one user at a time; empty without a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._group: tuple[int, pa.Table] | None = None
        self._rows: dict[User, list[tuple[int, int, int]]] = {}
        if not path.is_file():
            return
        with reading(path):
            self._file = _checked(path)
            for number in range(self._file.num_row_groups):
                users = self._file.read_row_group(number, columns=["user"])["user"].to_numpy()
                begins = np.flatnonzero(np.append(True, users[1:] != users[:-1])).tolist()
                for begin, end in pairwise([*begins, len(users)]):
                    rows = self._rows.setdefault(users[begin], [])
                    rows.append((number, begin, end - begin))

    def of(self, user: User) -> pa.Table | None:
        """Read the rows of one user; None if there are none."""
        if user not in self._rows:
            return None
        return pa.concat_tables(self._read(n).slice(b, size) for n, b, size in self._rows[user])

    def _read(self, number: int) -> pa.Table:
        if self._group is None or self._group[0] != number:
            with reading(self._path):
                self._group = number, self._file.read_row_group(number)
        return self._group[1]


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in errors of reading it."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        line = textwrap.shorten(str(error), 300, placeholder=" …")
        raise ConfigError(f"{path}: cannot be read ({type(error).__name__}: {line})") from error


def _scores(table: pa.Table) -> Scores:
    users, reviews, rows = (table[name].to_pylist() for name in _ABOUT_USER)
    names = tuple(name for name in table.column_names if name not in _ABOUT_USER)
    values = np.ascontiguousarray(table.select(names).to_pandas(), np.float64)
    return Scores(tuple(users), np.array(reviews, np.int64), tuple(rows), names, values)


def _predictions(predictions: Predictions, kind: pa.DataType) -> pa.Table:
    columns = {name: getattr(predictions, name) for name in PREDICTION_COLUMNS}
    present = {name: column for name, column in columns.items() if column is not None}
    users = user_column(predictions.users).cast(kind)
    return pa.table({"user": users.take(pa.array(predictions.user)), **present})


def _curves(predictions: Predictions, kind: pa.DataType) -> pa.Table:
    curves = predictions.curves
    assert curves is not None
    times = curves.p.shape[1]
    columns = {name: getattr(curves, name) for name in _CURVE_COLUMNS}
    long = {n: c.ravel() if c.ndim == 2 else np.repeat(c, times) for n, c in columns.items()}
    users = user_column(predictions.users).cast(kind).take(pa.array(long.pop("user")))
    return pa.table({"user": users, **long}, metadata={"times": str(times)})


def _read_curves(table: pa.Table) -> Curves:
    times = int(table.schema.metadata[b"times"])
    wide = {n: table[n].to_numpy().reshape(-1, times) for n in _CURVE_COLUMNS if n != "user"}
    once = {name: wide[name][:, 0] for name in ("fold", "row")}
    return Curves(user=np.zeros(len(once["row"]), np.int64), **{**wide, **once})


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables into one file, in row groups of many rows; no file if there are none."""
    first = next(tables, None)
    if first is None:
        path.unlink(missing_ok=True)
        return
    # networks compute in single precision
    kinds = [f.with_type(pa.float64()) if f.type == pa.float32() else f for f in first.schema]
    schema = pa.schema(kinds, first.schema.metadata)
    options = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
    with whole(path) as partial, pq.ParquetWriter(partial, schema, **options) as file:
        group, size = [first.cast(schema)], first.nbytes
        for table in tables:
            if size >= _BYTES_IN_GROUP:
                file.write_table(pa.concat_tables(group))
                group, size = [], 0
            group.append(table.cast(schema))
            size += table.nbytes
        file.write_table(pa.concat_tables(group))
