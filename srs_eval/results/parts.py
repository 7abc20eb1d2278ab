"""Parts: the results of some consecutive users, written as one by whoever evaluated them."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import PooledSums
from srs_eval.nouns import Fit, Predictions, User
from srs_eval.results import files, tables
from srs_eval.results.files import CURVES, FITS, PREDICTIONS
from srs_eval.results.predicted import Predicted
from srs_eval.results.user_rows import users_of, users_table

# Folder of the parts of a run. It has a folder for each kind, and there a file for each chunk.
PARTS = "parts"
# What pooled scores are computed from.
SUMS = "sums.parquet"
# Written last: it marks a part as whole.
USERS = "users.parquet"
KINDS = (PREDICTIONS, CURVES, FITS, SUMS, USERS)
# With a table for each user who has any; the others are one table.
_BY_USER = (PREDICTIONS, CURVES)

# Tables by kind.
Part = Mapping[str, Sequence[pa.Table]]

_CHUNKS = 1000
_MOST_USERS = 50
_STAMP = b"stamp"
# How many rows of sums a part has.
_SUMS = b"sums"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive users of a source, who are done or not done together."""

    users: tuple[User, ...]

    @property
    def name(self) -> str:
        """Digest of the users, which names their part."""
        return hashlib.sha256(json.dumps(self.users).encode()).hexdigest()[:16]

    def taken_apart(self) -> list[Chunk]:
        """Return a chunk for each of the users."""
        return [Chunk((user,)) for user in self.users]


def chunk_size(users: int, wanted: int | None = None) -> int:
    """Return how many users form a chunk, by default so that there are at least 1,000 chunks.

    The default is at most 50 users: a worker has the predictions of a chunk in memory.
    """
    return wanted or min(max(users // _CHUNKS, 1), _MOST_USERS)


def cut(users: Sequence[User], size: int) -> list[Chunk]:
    """Cut the list of all users into chunks."""
    return [Chunk(tuple(users[begin : begin + size])) for begin in range(0, len(users), size)]


def part_of(users: Sequence[ScoredUser], panel: Panel) -> Part:
    """Return the results of the users of a chunk as tables."""
    predicted = [user.predictions for user in users if user.predictions is not None]
    curves = [tables.curves_table(predictions) for predictions in predicted]
    return {
        PREDICTIONS: [tables.predictions_table(predictions) for predictions in predicted],
        CURVES: [table for table in curves if table is not None],
        FITS: [tables.fits_table([fit for user in users for fit in user.fits])],
        SUMS: [_sums_table(users, panel)] if panel.pooled else [],
        USERS: [users_table(users)],
    }


def joined(parts: Sequence[Part]) -> Part:
    """Return one part of several."""
    found = {kind: [table for part in parts for table in part[kind]] for kind in KINDS}
    of_all = {
        kind: [pa.concat_tables(found[kind], promote_options="permissive")]
        for kind in (FITS, SUMS, USERS)
        if found[kind]
    }
    return {**found, **of_all}


def _sums_table(users: Sequence[ScoredUser], panel: Panel) -> pa.Table:
    """Return a row with the sums of the users without a missing fold."""
    complete = (user.predictions for user in users if user.is_complete)
    sums = PooledSums(panel, (found for found in complete if found is not None))
    return pa.table({name: [array] for name, array in sums.arrays().items()})


def pooled_sums(parts: Parts, names: Iterable[str], panel: Panel) -> PooledSums:
    """Add up the sums of parts, in the order of the source."""
    total = PooledSums(panel)
    for name in names:
        table = parts.read(name, SUMS)
        for row in range(len(table)):
            sums = {each: table[each][row] for each in table.column_names}
            # a user without sums lacks most of them
            total.extend({k: v.values.to_numpy() for k, v in sums.items() if v.is_valid})
    return total


class Parts(ABC):
    """The parts of a run, wherever they are."""

    @abstractmethod
    def whole(self, name: str) -> Part:
        """Read all tables of a part."""

    @abstractmethod
    def read(self, name: str, kind: str, number: int = 0) -> pa.Table:
        """Read one of the tables of a part."""

    @abstractmethod
    def schema(self, name: str, kind: str) -> pa.Schema:
        """Return the schema of the tables of a part, of which there is at least one."""

    def reopened(self) -> Parts:
        """Return the same parts, of which no file is open yet."""
        return self


class PartsInMemory(Parts):
    """Parts that workers send back to the parent, for runs that are not saved."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}

    def __reduce__(self) -> tuple[type[PartsInMemory], tuple[()]]:
        """Send workers none of the parts."""
        return PartsInMemory, ()

    def users_if_whole(self, chunk: Chunk) -> None:
        """Return None: no part was made before."""

    def keep(self, chunk: Chunk, part: Part) -> Part:
        """Return a part, which is sent to the parent."""
        return part

    def receive(self, chunk: Chunk, part: Part | None) -> None:
        """Keep a part in the parent."""
        if part is not None:
            self._parts[chunk.name] = part

    def join(self, chunk: Chunk) -> None:
        """Make one part of the parts of its users, where each was evaluated alone."""
        single = [self._parts.pop(each.name) for each in chunk.taken_apart()]
        self._parts[chunk.name] = joined(single)

    def parts(self) -> PartsInMemory:
        """Return the parts, to be read."""
        return self

    def whole(self, name: str) -> Part:
        """Read all tables of a part."""
        return self._parts[name]

    def read(self, name: str, kind: str, number: int = 0) -> pa.Table:
        """Read one of the tables of a part."""
        return self._parts[name][kind][number]

    def schema(self, name: str, kind: str) -> pa.Schema:
        """Return the schema of the tables of a part."""
        return tables.common_schema([table.schema for table in self._parts[name][kind]])


class PartsInFolder(Parts):
    """Parts in a folder: ``KIND/part-NAME.parquet``, with a row group for each table.

    Parameters
    ----------
    folder : Path
    error : type of SrsEvalError
        Raised where a part cannot be read.
    """

    def __init__(self, folder: Path, error: type[SrsEvalError] = SrsEvalError) -> None:
        self._folder = folder
        self._error = error
        # the last file of each kind: users are read in order
        self._open: dict[str, tuple[str, pq.ParquetFile]] = {}

    def reopened(self) -> PartsInFolder:
        """Return the same parts, of which no file is open yet."""
        return PartsInFolder(self._folder, self._error)

    def file(self, name: str, kind: str) -> Path:
        """Return the file of a part."""
        return self._folder / Path(kind).stem / f"part-{name}.parquet"

    def write(self, name: str, part: Part, stamp: str) -> None:
        """Write a part whole or not at all.

        Parameters
        ----------
        stamp : str
            Digest of settings and code, which marks the part as one of this run.
        """
        self.file(name, USERS).unlink(missing_ok=True)
        for kind in KINDS:
            file, found = self.file(name, kind), part[kind]
            if not found:
                file.unlink(missing_ok=True)
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            if kind in _BY_USER:
                schema = tables.common_schema([table.schema for table in found])
                rows = (table.cast(schema) for table in found)
                files.write_reviews(file, schema, rows, group=max(map(len, found)))
            else:
                (table,) = found
                mark = {_STAMP: stamp.encode(), _SUMS: str(sum(map(len, part[SUMS])))}
                mark = mark if kind == USERS else None
                files.write_table(file, table.replace_schema_metadata(mark))

    def is_written(self, name: str) -> bool:
        """Whether there is a part; it may have been damaged since."""
        return self.file(name, USERS).is_file()

    def users_if_whole(self, chunk: Chunk, stamp: str) -> pa.Table | None:
        """Read the users of a part; None unless all of it is there, and was made by this run."""
        file = self.file(chunk.name, USERS)
        if not file.is_file():
            return None
        try:
            with files.reading(file):
                found = files.read_table(file)
                if found.schema.metadata[_STAMP] != stamp.encode():
                    return None
                if tuple(users_of(found)) != chunk.users:
                    return None
                rows = {Path(kind).stem: found[Path(kind).stem] for kind in (*_BY_USER, FITS)}
                counts = {kind: pc.sum(column).as_py() for kind, column in rows.items()}
                counts["sums"] = int(found.schema.metadata[_SUMS]) or None
                for kind in KINDS[:-1]:
                    count = counts[Path(kind).stem]
                    if count is not None and count != self._rows(chunk.name, kind):
                        return None
        except ConfigError:
            return None
        return found

    def whole(self, name: str) -> Part:
        """Read all tables of a part."""
        users = self.read(name, USERS)
        counts = {kind: len(users) - users[Path(kind).stem].null_count for kind in _BY_USER}
        by_user = {k: [self.read(name, k, n) for n in range(counts[k])] for k in _BY_USER}
        sums = [self.read(name, SUMS)] if int(users.schema.metadata[_SUMS]) else []
        return {**by_user, FITS: [self.read(name, FITS)], SUMS: sums, USERS: [users]}

    def remove(self, name: str) -> None:
        """Delete a part."""
        for kind in reversed(KINDS):
            self.file(name, kind).unlink(missing_ok=True)

    def read(self, name: str, kind: str, number: int = 0) -> pa.Table:
        """Read one of the tables of a part; fits and users are one table."""
        try:
            with files.reading(self.file(name, kind)):
                opened = self._opened(name, kind)
                if kind in _BY_USER:
                    return opened.read_row_group(number, use_threads=False)
                return opened.read(use_threads=False)
        except ConfigError as error:
            raise self._lost(name, kind, error) from error

    def schema(self, name: str, kind: str) -> pa.Schema:
        """Return the schema of the tables of a part."""
        try:
            with files.reading(self.file(name, kind)):
                return self._opened(name, kind).schema_arrow
        except ConfigError as error:
            raise self._lost(name, kind, error) from error

    def _opened(self, name: str, kind: str) -> pq.ParquetFile:
        if kind not in self._open or self._open[kind][0] != name:
            file = pq.ParquetFile(self.file(name, kind), page_checksum_verification=True)
            self._open[kind] = name, file
        return self._open[kind][1]

    def _rows(self, name: str, kind: str) -> int:
        return int(pq.read_metadata(self.file(name, kind)).num_rows)

    def _lost(self, name: str, kind: str, error: ConfigError) -> SrsEvalError:
        return self._error(
            f"{error}\n{self.file(name, kind)} is not what this run has written there: another "
            "program has changed the folder"
        )


class PartPredictions(Predicted):
    """The predictions in the parts of a run.

    Parameters
    ----------
    parts : Parts
    names : sequence of str
        Names of the parts, in the order of the source.
    folder : Path, optional
        Folder of the run, where the parts stay; None where they are gathered into files.
    as_text : bool
        Whether users go by text although they are numbers.
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
        """Return the same predictions, of which no file is open yet."""
        parts = self._parts.reopened()
        return PartPredictions(parts, self._names, self.folder, as_text=self._as_text)

    def stay_in(self, folder: Path) -> bool:
        """Whether a folder has the predictions already, in parts."""
        return self.folder is not None and self.folder.resolve() == folder.resolve()

    @property
    def users(self) -> Sequence[User]:
        """Users who have predictions, in the order of the source."""
        return tuple(self._places)

    def read(self, user: User, *, curves: bool = True) -> Predictions | None:
        """Return the predictions of one user, with forgetting curves; None if there are none."""
        if user not in self._places:
            return None
        name, number, curve = self._places[user]
        sampled = self._parts.read(name, CURVES, curve) if curves and curve >= 0 else None
        return tables.read_predictions(user, self._parts.read(name, PREDICTIONS, number), sampled)

    def tables(self, file: str) -> Iterator[pa.Table]:
        """Go through the users' rows of a file, `PREDICTIONS` or `CURVES`."""
        for name, count in self._counts(file):
            for number in range(count):
                yield self._parts.read(name, file, number)

    def schemas(self, file: str) -> Iterator[pa.Schema]:
        """Go through the schemas of `tables`, once for each part."""
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
    """The fits in the parts of a run, read part by part.

    Parameters
    ----------
    parts, names, as_text
        As for `PartPredictions`.
    """

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
