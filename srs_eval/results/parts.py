"""Parts: the results of some consecutive users, written together by the worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import PooledSums
from srs_eval.nouns import User
from srs_eval.place import Place, patiently, put_on_disk
from srs_eval.results import files, tables
from srs_eval.results.files import CURVES, FITS, PREDICTIONS
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
# Whose rows are counted by user.
_COUNTED = (*_BY_USER, FITS)

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
        kind: [tables.concatenated(found[kind])] for kind in (FITS, SUMS, USERS) if found[kind]
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


class Parts:
    """The parts of a run, kept as soon as there are any: in memory, of a run that is not saved."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}

    def in_worker(self) -> Parts:
        """Return what a worker keeps parts in, without those that are in memory already."""
        return Parts()

    def users_if_whole(self, chunk: Chunk) -> pa.Table | None:
        """Read the users of a part in a worker; None if it is to be made."""
        return None

    def keep(self, chunk: Chunk, part: Part) -> Part | None:
        """Keep a part in a worker; return it if it is to be sent to the parent."""
        return part

    def receive(self, chunk: Chunk, part: Part | None) -> None:
        """Keep in the parent what `keep` returned in a worker."""
        if part is not None:
            self._parts[chunk.name] = part

    def join(self, chunk: Chunk) -> None:
        """Make one part of the parts of its users, where each was evaluated alone."""
        single = [each.name for each in chunk.taken_apart()]
        self.receive(chunk, self.keep(chunk, joined([self.whole(name) for name in single])))
        for name in single:
            self.drop(name)

    def drop(self, name: str) -> None:
        """Delete a part."""
        del self._parts[name]

    def whole(self, name: str) -> Part:
        """Read all tables of a part."""
        return self._parts[name]

    def read(self, name: str, kind: str, number: int = 0) -> pa.Table:
        """Read one of the tables of a part; fits and users are one table."""
        return self._parts[name][kind][number]

    def schema(self, name: str, kind: str) -> pa.Schema:
        """Return the schema of the tables of a part, of which there is at least one."""
        return tables.common_schema([table.schema for table in self._parts[name][kind]])


class PartsInFolder(Parts):
    """Parts in a folder: ``KIND/part-NAME.parquet``, with a row group for each table.

    `stamp` is the digest of settings and code, which marks each file as one of this run; `error` is
    raised where a part cannot be read.
    """

    def __init__(
        self, place: Place, stamp: str = "", error: type[SrsEvalError] = SrsEvalError
    ) -> None:
        super().__init__()
        self.place = place
        self.stamp = stamp
        self._error = error
        # the last file of each kind: users are read in order
        self._open: dict[str, tuple[str, pq.ParquetFile]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Pickle, and copy, none of the open files."""
        return {**vars(self), "_open": {}}

    def in_worker(self) -> PartsInFolder:
        return self

    def file(self, name: str, kind: str) -> Place:
        """Return the file of a part."""
        return self.place / PurePath(kind).stem / f"part-{name}.parquet"

    def keep(self, chunk: Chunk, part: Part) -> None:
        """Write a part whole or not at all, unless power is cut: see `put_on_disk`."""
        self.file(chunk.name, USERS).remove()
        of_part = {_STAMP: self._of_part(chunk.name)}
        for kind in KINDS:
            file, found = self.file(chunk.name, kind), part[kind]
            if not found:
                file.remove()
                continue
            if kind in _BY_USER:
                schema = tables.common_schema([table.schema for table in found])
                schema = schema.with_metadata({**(schema.metadata or {}), **of_part})
                rows = (table.cast(schema) for table in found)
                most = max(map(len, found))
                files.write_reviews(file, schema, rows, group=most, durable=False)
            else:
                (table,) = found
                if kind == USERS:
                    sums = str(sum(map(len, part[SUMS]))).encode()
                    of_part = {_STAMP: self.stamp.encode(), _SUMS: sums}
                files.write_table(file, table.replace_schema_metadata(of_part), durable=False)

    def put_on_disk(self, names: Iterable[str]) -> None:
        """Wait until parts would survive a power cut, as objects of a store do at once."""
        if self.place.is_remote:
            return
        folders = [self.place / PurePath(kind).stem for kind in KINDS]
        parts = [self.file(name, kind) for name in names for kind in KINDS]
        for place in [*parts, *folders]:
            if place.local.exists():
                put_on_disk(place.local)

    def users_if_whole(self, chunk: Chunk) -> pa.Table | None:
        """Read the users of a part; None unless all of it is there, and was made by this run."""
        file = self.file(chunk.name, USERS)
        if not file.exists():
            return None
        with suppress(ConfigError), files.reading(file):
            found = files.read_table(file)
            told = found.schema.metadata
            if told[_STAMP] == self.stamp.encode() and tuple(users_of(found)) == chunk.users:
                rows = {kind: pc.sum(found[PurePath(kind).stem]).as_py() for kind in _COUNTED}
                rows[SUMS] = int(told[_SUMS]) or None
                if all(
                    self._has(chunk.name, *each) for each in rows.items() if each[1] is not None
                ):
                    return found
        return None

    def whole(self, name: str) -> Part:
        users = self.read(name, USERS)
        counts = {kind: len(users) - users[PurePath(kind).stem].null_count for kind in _BY_USER}
        by_user = {k: [self.read(name, k, n) for n in range(counts[k])] for k in _BY_USER}
        sums = [self.read(name, SUMS)] if int(users.schema.metadata[_SUMS]) else []
        return {**by_user, FITS: [self.read(name, FITS)], SUMS: sums, USERS: [users]}

    def drop(self, name: str) -> None:
        for kind in reversed(KINDS):
            self.file(name, kind).remove()

    def read(self, name: str, kind: str, number: int = 0) -> pa.Table:
        stopping.check()  # also in a thread, which signals do not reach
        with self._opened(name, kind) as opened:
            if kind in _BY_USER:
                table = opened.read_row_group(number, use_threads=False)
                return table.replace_schema_metadata(_without_stamp(table.schema).metadata)
            return opened.read(use_threads=False)

    def schema(self, name: str, kind: str) -> pa.Schema:
        with self._opened(name, kind) as opened:
            return _without_stamp(opened.schema_arrow)

    @contextmanager
    def _opened(self, name: str, kind: str) -> Iterator[pq.ParquetFile]:
        """Open the file of a part, if it is not open, to be read."""
        place = self.file(name, kind)
        try:
            with files.reading(place):
                if kind not in self._open or self._open[kind][0] != name:
                    content = files.opened(place)
                    file = pq.ParquetFile(content, page_checksum_verification=True)
                    self._open[kind] = name, file
                yield self._open[kind][1]
        except ConfigError as error:
            raise self._error(
                f"{error}\n{place} is not what this run has written there: another program has "
                "changed the folder"
            ) from error

    def _has(self, name: str, kind: str, rows: int) -> bool:
        """Whether a file of a part has so many rows, and was written with its users."""
        file = self.file(name, kind)

        def has() -> bool:
            with file.reading() as opened:
                metadata = pq.read_metadata(opened)
            made_by = (metadata.metadata or {}).get(_STAMP, b"")  # none by earlier versions
            return metadata.num_rows == rows and made_by in (b"", self._of_part(name))

        return file.exists() and patiently(has)

    def _of_part(self, name: str) -> bytes:
        """Return what marks the files of a part, besides that of its users."""
        return f"{self.stamp} {name}".encode()


def _without_stamp(schema: pa.Schema) -> pa.Schema:
    """Return the schema that tables of a part had when they were written."""
    rest = {key: value for key, value in (schema.metadata or {}).items() if key != _STAMP}
    return schema.with_metadata(rest) if rest else schema.remove_metadata()
