"""Sort the rows of any table of reviews by user, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.data.by_user import coded_users, user_named
from srs_eval.data.files import (
    check_columns,
    csv_chunks,
    parquet_file,
    readable_parquet,
)
from srs_eval.data.partitioned import INDEX, find_segments, write_index
from srs_eval.data.selection import KnownUsers
from srs_eval.data.table import ReviewTable, table_files
from srs_eval.data.table_options import Columns
from srs_eval.data.table_rows import HINT, columns_needed
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import User
from srs_eval.place import Entry, Place, patiently

_CHUNK_ROWS = 500_000
_GROUP_ROWS = 100_000
_PART_ROWS = 5_000_000
_ORDER = "number"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `prepare` has written: how many users, rows and parts."""

    users: int
    rows: int
    parts: int


def prepare(
    source: ReviewTable,
    out: Place,
    *,
    renamed: Callable[[User], str] = str,
    memory: str = "2GB",
) -> Prepared:
    """Write the rows of a table in order of users, in the order of the table within a user.

    The folder `out` gets ``bucket=0000/part.parquet`` and so on, and the index, which comes last;
    where it is the folder of `source` itself, only the index. Users are written under the names
    that `renamed` returns. DuckDB may take `memory`, such as ``2GB``, and beyond that uses
    temporary files.

    Raise `ConfigError` if DuckDB is not installed or does not understand `memory`, `ReviewLogError`
    if the table cannot be read or `out` has other files, and `PlaceError` if an object store cannot
    be used.
    """
    if Place.of(source.path) == out:
        return _index_only(source, out)
    _check_empty(out)
    files = [entry.place for entry in table_files(Place.of(source.path))]
    names = _nouns(source.columns)
    with TemporaryDirectory(prefix="srs_eval_prepare_") as folder:
        connection = _connected(Path(folder), memory)
        try:
            _stage(connection, files, source.columns, names)
            users = _choose(connection, source, renamed)
            found = [segments for part in _parts(connection, names, out) for segments in part]
        finally:
            connection.close()
    written = {name for table in found for name in table["file"].to_pylist()}
    for entry in out.files(recursive=True):
        if entry.place.address not in written:
            entry.place.remove()
    nouns: dict[str, Any] = dict.fromkeys(each.name for each in fields(Columns))
    p = [noun for noun in names if noun in (source.columns.p or ())]
    named = {noun: noun for noun in names if noun not in p}
    columns = Columns(**{**nouns, **named, "user": "user", "p": p})
    write_index(out, found, columns, source.reading)
    rows = sum(int(np.sum(table["rows"].to_numpy())) for table in found)
    return Prepared(len(users), rows, len({table["file"][0].as_py() for table in found}))


def _index_only(source: ReviewTable, out: Place) -> Prepared:
    """Write the index of parquet files that a warehouse has written in order of users."""
    if source.columns.user is None:
        raise ConfigError("data.columns.user is missing: the column with the users")
    files = [
        entry
        for entry in out.files(recursive=True)
        if entry.place.suffix == ".parquet" and entry.place.name != INDEX
    ]
    if not files:
        raise ReviewLogError(str(out), ["there are no parquet files in this folder"])
    with parquet_file(files[0].place) as file:
        present = file.schema_arrow.names
    check_columns(str(files[0].place), present, columns_needed(source.columns), hint=HINT)
    found = list(find_segments(files, source.columns.user))
    users = pd.concat([table["user"].to_pandas() for table in found])
    groups, distinct = len(found), users.nunique()
    if len(users) > 2 * (distinct + groups):
        what = f"the rows of the {distinct:,} users are in {len(users):,} places"
        hint = "Sort the table by user and time, or give another folder as out=FOLDER."
        raise ReviewLogError(str(out), [what], hint)
    write_index(out, found, source.columns, source.reading)
    rows = sum(int(np.sum(table["rows"].to_numpy())) for table in found)
    return Prepared(distinct, rows, len(files))


def _check_empty(out: Place) -> None:
    """Refuse a folder with files other than those that an interrupted call has left."""
    names = [entry.place.address.removeprefix(out.address) for entry in out.files(recursive=True)]
    hint = "Name a new folder, or remove this one."
    if any(name.endswith(INDEX) for name in names):
        raise ReviewLogError(str(out), ["the folder has an index already"], hint)
    other = [name for name in names if not name.endswith("part.parquet")]
    if other or out.kind() == "file":
        raise ReviewLogError(
            str(out), [f"is not an empty folder: {(other or ['a file'])[0]}"], hint
        )


def _nouns(columns: Columns) -> Mapping[str, str]:
    """Return the name in the table of each column that is written."""
    used = {noun.removeprefix("p "): name for noun, name in columns.in_use().items()}
    if len(used) < len(columns.in_use()):
        raise ConfigError(
            "data.columns.p has a column that is called like a column of every log: rename it"
        )
    return used if columns.user is None else {**used, "user": columns.user}


def _connected(folder: Path, memory: str) -> Any:
    """Open a database in temporary files."""
    try:
        duckdb = import_module("duckdb")
    except ImportError as error:
        message = "needs the package duckdb: run `pip install 'srs-eval[prepare]'`"
        raise ConfigError(message) from error
    config = {
        "memory_limit": memory,
        "temp_directory": str(folder / "spilled"),
        "autoinstall_known_extensions": False,
    }
    try:
        connection = duckdb.connect(str(folder / "rows.duckdb"), config=config)
    except duckdb.Error as error:
        raise ConfigError(f"memory={memory}: expected a size such as 2GB ({error})") from error
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _stage(
    connection: Any, files: Sequence[Place], columns: Columns, names: Mapping[str, str]
) -> None:
    """Copy the columns in use into the database, each row with its number."""
    seen, schema = 0, None
    for file in files:
        before = seen
        with closing(_chunks(file, columns, names)) as chunks:
            for table in chunks:
                users: Any = pa.repeat(file.stem, len(table))
                if columns.user is not None:
                    first = seen - before
                    codes, users = coded_users(table["user"], str(file), columns.user, first)
                    users = pa.array(users, pa.string()).take(pa.array(codes))
                rows = pa.array(np.arange(seen, seen + len(table)))
                table = table.select([noun for noun in names if noun != "user"])
                table = table.append_column("user", users).append_column("row", rows)
                connection.register("chunk", _as_before(table, schema or table.schema, str(file)))
                into = "INSERT INTO staged" if schema else "CREATE TABLE staged AS"
                connection.execute(f"{into} SELECT * FROM chunk")
                connection.unregister("chunk")
                schema, seen = schema or table.schema, seen + len(table)
    if not seen:
        raise ReviewLogError(str(files[0]), ["there are no reviews in it"])


def _as_before(table: pa.Table, schema: pa.Schema, source: str) -> pa.Table:
    """Cast the columns to the types of the first rows."""
    differing = [
        f"column {field.name} is {field.type}, in rows before {was.type}"
        for field, was in zip(table.schema, schema, strict=True)
        if field.type != was.type
    ]
    try:
        return table.cast(schema)
    except pa.ArrowException as error:
        raise ReviewLogError(source, differing) from error


def _chunks(
    file: Place, columns: Columns, names: Mapping[str, str]
) -> Generator[pa.Table, None, None]:
    """Read the columns in use of a file, named by their nouns; those of a CSV as text."""
    needed = [*columns_needed(columns), *([(columns.user, "the user")] if columns.user else [])]
    if file.suffix == ".parquet":
        with parquet_file(file) as parquet:
            check_columns(str(file), parquet.schema_arrow.names, needed, hint=HINT)
            for number in range(parquet.metadata.num_row_groups):
                read = partial(parquet.read_row_group, number, list(set(names.values())))
                with readable_parquet(file):
                    table = patiently(read)
                    table.validate(full=True)
                yield pa.table({noun: table[name] for noun, name in names.items()})
        return
    with closing(csv_chunks(file, None, size=_CHUNK_ROWS)) as frames:
        for frame in frames:
            check_columns(str(file), list(frame.columns), needed, hint=HINT)
            texts = {noun: frame[name] for noun, name in names.items()}
            yield pa.table({noun: pa.array(each, pa.string()) for noun, each in texts.items()})


def _choose(connection: Any, source: ReviewTable, renamed: Callable[[User], str]) -> Sequence[User]:
    """Write down the chosen users in order of first appearance, with their new names."""
    query = 'SELECT "user" FROM staged GROUP BY "user" ORDER BY min("row")'
    names = connection.execute(query).fetchnumpy()["user"]
    known = KnownUsers(source.location, tuple(user_named(name) for name in names))
    chosen = set(source.choice.among(known))
    users = [user for user in known.users if user in chosen]
    written: dict[str, User] = {}
    for user in users:
        if (other := written.setdefault(renamed(user), user)) != user:
            raise ConfigError(f"users {other} and {user} would have the same name")
    table = pa.table(
        {
            "user": pa.array(map(str, users), pa.string()),
            "name": pa.array(list(written), pa.string()),
            _ORDER: pa.array(np.arange(len(users))),
        }
    )
    connection.register("arrow", table)
    connection.execute("CREATE TABLE chosen AS SELECT * FROM arrow")
    return users


def _parts(connection: Any, nouns: Iterable[str], out: Place) -> Iterator[list[pa.Table]]:
    """Write the rows of each user one after the other into parts; yield the segments of each."""
    columns = ", ".join(f'staged."{noun}"' for noun in nouns if noun != "user")
    groups: pa.RecordBatchReader = connection.sql(
        f'SELECT name AS "user", {columns} FROM staged JOIN chosen USING ("user") '
        f'ORDER BY {_ORDER}, "row"'
    ).to_arrow_reader(_GROUP_ROWS)
    form: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    for number, first in enumerate(groups):
        place = out / f"bucket={number:04d}" / "part.parquet"
        with place.writing() as path:
            with pq.ParquetWriter(path, groups.schema, **form) as writer:
                for group in chain([first], islice(groups, _PART_ROWS // _GROUP_ROWS - 1)):
                    writer.write_batch(group)
            entry = Entry(Place.of(path), path.stat().st_size, 0)
            found = list(find_segments([entry], "user"))
        names = [pa.repeat(place.address, len(table)) for table in found]
        file = found[0].column_names.index("file")
        yield [
            table.set_column(file, "file", name) for table, name in zip(found, names, strict=True)
        ]
