"""Review logs of any number of users: parquet files, and an index of whose rows lie where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from srs_eval.data.by_user import UserRows
from srs_eval.data.files import existing, parquet_file, readable_parquet
from srs_eval.data.segments import SCHEMA, by_segment
from srs_eval.data.selection import Choice, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Duplicates, InvalidTimes, Reading
from srs_eval.data.times import TimeUnit
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.place import Place, patiently

INDEX = "_index.parquet"
_KEY = b"srs_eval"
_VERSION = 1
_FILE = SCHEMA.names.index("file")
_PREPARE = "Make it with `python -m srs_eval.prepare`, which writes the index last."


@dataclass(frozen=True, slots=True, init=False)
class PartitionedLogs(TableSource):
    """Review logs that ``python -m srs_eval.prepare`` has put in order.

    A user is read with the row group that their rows lie in, which is kept for the next user.

    Parameters
    ----------
    path : str or Path
        Folder with `_index.parquet`; a path, or an address: ``s3://``, ``gs://``, ``abfss://`` or
        ``hf://``.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[anna, ben]`` or ``"1-100"``; everyone if None.
    sample : int, optional
        How many of these users at most, chosen by a digest of their names.
    first : int, optional
        How many of these users at most, in their order.
    time_unit, time_zone, day_start_hour, duplicates, ratings, invalid_times
        As in `srs_eval.data.table.ReviewTable`; as they were for ``prepare`` if None.

    Raises
    ------
    ConfigError
        If an option has a value it cannot have.
    """

    path: str
    choice: Choice
    changed: Mapping[str, Any] = field(hash=False)

    def __init__(
        self,
        path: str | Path,
        users: Selection = None,
        *,
        sample: int | None = None,
        first: int | None = None,
        time_unit: TimeUnit | None = None,
        time_zone: str | None = None,
        day_start_hour: float | None = None,
        duplicates: Duplicates | None = None,
        ratings: Mapping[Any, int] | None = None,
        invalid_times: InvalidTimes | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "time_unit": time_unit,
            "time_zone": time_zone,
            "day_start_hour": day_start_hour,
            "duplicates": duplicates,
            "ratings": ratings,
            "invalid_times": invalid_times,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        replace(Reading(), **changed)  # which checks them
        choice = Choice(users, sample, first)
        self._set(path=Place.of(path).address, choice=choice, changed=changed)

    def find(self) -> Logs:
        """Read the index of the folder."""
        rows, columns, reading = _index(Place(self.path))
        return Logs(rows, columns, replace(reading, **self.changed))


def write_index(
    folder: Place, found: Iterable[pa.Table], columns: Columns, reading: Reading
) -> None:
    """Write the index of a folder, with which its logs become readable.

    The tables `found` are the segments of each row group, in order.
    """
    about = {"version": _VERSION, "columns": asdict(columns), "reading": asdict(reading)}
    schema = SCHEMA.with_metadata({_KEY: json.dumps(about).encode()})
    form: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    with (folder / INDEX).writing() as path, pq.ParquetWriter(path, schema, **form) as writer:
        for table in found:
            below = [
                address.removeprefix(folder.address).lstrip("/\\").replace("\\", "/")
                for address in table["file"].to_pylist()
            ]
            table = table.set_column(_FILE, "file", pa.array(below, pa.string()))
            writer.write_table(table.cast(schema))


def _index(folder: Place) -> tuple[UserRows, Columns, Reading]:
    """Read the index of a folder."""
    if existing(folder).kind() != "folder":
        raise ReviewLogError(str(folder), ["expected a folder of partitioned logs"], _PREPARE)
    place = folder / INDEX
    if not place.exists():
        raise ReviewLogError(str(folder), [f"there is no {INDEX} in it"], _PREPARE)

    def read() -> pa.Table:
        with parquet_file(place) as file, readable_parquet(place):
            return file.read()

    table = patiently(read)
    try:
        about = json.loads((table.schema.metadata or {})[_KEY])
        if about["version"] != _VERSION or not _is_plausible(table):
            raise ValueError
        columns, reading = Columns(**about["columns"]), Reading(**about["reading"])
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        what = "it is not an index that this release of srs_eval can read"
        raise ReviewLogError(str(place), [what], _PREPARE) from error
    addresses = pc.binary_join_element_wise(str(folder), table["file"], "/")
    table = table.set_column(_FILE, "file", addresses)
    used = columns.in_use().values()
    return by_segment(str(folder), str(columns.user), used, table), columns, reading


def _is_plausible(table: pa.Table) -> bool:
    """Whether an index has the columns of one, and refers to files in its folder."""
    if not table.schema.remove_metadata().equals(SCHEMA) or not len(table):
        return False
    names = table["file"].unique().to_pylist()
    return (
        all(column.null_count == 0 for column in table.columns)
        and all(pc.min(table[name]).as_py() >= 0 for name in ("row_group", "offset", "rows"))
        and not any(".." in name.split("/") or name.startswith("/") for name in names)
    )
