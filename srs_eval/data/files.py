"""Read CSV and parquet tables, with errors that say what is wrong with the file."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.data.columns import cut
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.place import Place, explained, is_uri, patiently

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")

_SEPARATORS = (",", ";", "\t")
_COLUMNS_QUOTED, _NAMES_TOLD = 30, 5
_LARGEST_TABLE = 1_000_000_000  # cells: a small file of equal rows can hold more than any memory
_SPLIT = "Prepare it with `python -m srs_eval.prepare`, which needs little memory, or split it."
_HEAD_BYTES = 65_536
_KINDS = {
    b"PAR1": "a parquet file: rename it to .parquet",
    b"SQLite format 3": "an SQLite database; for an Anki collection use data=anki",
    b"PK\x03\x04": "a zip file, such as a spreadsheet or an Anki package; export a spreadsheet as "
    "CSV, and for an Anki package use data=anki",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


def existing(given: str | Path | Place) -> Place:
    """Check that a file or folder is there, and return its place.

    Raise `ReviewLogError` if not, naming what comes closest to it; also for pipes and devices, on
    which reading may never end. Raise `PlaceError` if an object store cannot be used.
    """
    place = Place.of(given)
    if place.kind():
        return place
    if place.is_remote:
        hint = (
            "Check the address: capital letters count, and folders of object stores are not empty."
        )
        raise ReviewLogError(place.address, ["no such file or folder"], hint)
    found = place.local
    if found.exists():
        what = "is a pipe, socket or device, not a regular file"
        raise ReviewLogError(str(given), [what], "Write the data to a file and give its path.")
    folder = next(parent for parent in found.absolute().parents if parent.is_dir())
    missing = found.absolute().relative_to(folder).parts[0]
    near = difflib.get_close_matches(missing, [entry.name for entry in folder.iterdir()])
    hint = f"The folder {folder} has no {missing}."
    if near:
        hint += f" Did you mean {folder / near[0]}?"
    raise ReviewLogError(str(given), ["no such file or folder"], hint)


def is_pattern(place: Place) -> bool:
    """Whether a path has wildcards and is not itself a file or folder."""
    return any(sign in place.address for sign in "*?[") and not place.exists()


def existing_path(given: str | Path) -> Path:
    """Check that a file or folder of this machine is there, and return its path.

    Raise `ReviewLogError` as `existing` does, and for addresses.
    """
    if is_uri(str(given)):
        hint = "Copy the file to this machine first, and give its path."
        raise ReviewLogError(str(given), ["is an address, and a path is needed here"], hint)
    return existing(given).local


def read_table(given: str | Path | Place, *, text: Collection[str] = ()) -> pd.DataFrame:
    """Read a whole CSV, TSV or parquet file; its suffix says which it is.

    The columns `text` of a CSV stay text, so that 007 and 7 stay different. Raise `ReviewLogError`
    if the file cannot be read as what its suffix says, and `PlaceError` if an object store cannot
    be used.
    """
    place = Place.of(given)
    if place.suffix not in TABLE_SUFFIXES:
        expected = ", ".join(TABLE_SUFFIXES)
        raise ReviewLogError(str(place), [f"unknown kind of file; expected one of {expected}"])
    with _readable(place):
        return _read_parquet(place) if place.suffix == ".parquet" else _read_csv(place, text)


@contextmanager
def _readable(place: Place) -> Iterator[None]:
    """Raise a `ReviewLogError` where the system refuses a file."""
    try:
        yield
    except OSError as error:
        raise ReviewLogError(str(place), [f"cannot be read: {error.strerror or error}"]) from error


@contextmanager
def enough_memory(path: object) -> Iterator[None]:
    """Raise a `ReviewLogError` where a file does not fit into memory."""
    try:
        yield
    except MemoryError as error:
        raise ReviewLogError(str(path), ["it does not fit into memory"], _SPLIT) from error


def column_names(given: str | Path | Place) -> list[str]:
    """Names of the columns of a file, without reading the rest."""
    place = Place.of(given)
    with _readable(place):
        if place.suffix == ".parquet":
            with parquet_file(place) as file:
                return list(file.schema_arrow.names)
        return list(_read_csv(place, (), rows=0).columns)


def check_columns(
    source: str, present: Sequence[str], wanted: Sequence[tuple[str, str]], *, hint: str = ""
) -> None:
    """Check that a table has the columns it should have, each given with what it is needed for.

    Raise `ReviewLogError` if not, naming `source`, each column that is missing or not the only one
    of its name, the one closest to it, and the columns of the table.
    """
    violations = []
    for column, purpose in wanted:
        count = present.count(column)
        if count > 1:
            what = f"there are {count} columns {column!r}, needed for {purpose}"
            violations.append(Violation(what, "duplicate", column))
        if not count:
            near = difflib.get_close_matches(column, present, n=1, cutoff=0.5)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            what = f"there is no column {column!r}, needed for {purpose}{guess}"
            violations.append(Violation(what, "missing", column))
    if violations:
        shown = [name if len(name) <= 60 else cut(name) for name in present[:_COLUMNS_QUOTED]]
        further = len(present) - len(shown)
        names = ", ".join(shown) + (f" and {further:,} further" if further else "")
        raise ReviewLogError(
            source, violations, " ".join(filter(None, [f"Columns: {names or 'none'}.", hint]))
        )


def parquet_file(place: Place) -> pq.ParquetFile:
    """Open a parquet file, without guessing columns from the names of its folders.

    Raise `ReviewLogError` if it is not a parquet file, and `PlaceError` if an object store cannot
    be used.
    """
    with readable_parquet(place):
        source = place.filesystem.open_input_file(place.path) if place.is_remote else place.local
        return pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=place.is_remote)


@contextmanager
def readable_parquet(place: Place) -> Iterator[None]:
    """Raise a `ReviewLogError` where a file is not parquet or is damaged."""
    try:
        with explained(place):
            yield
    except MemoryError:  # Arrow's own is both
        raise
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _not_parquet(place, error) from error
    except OSError as error:
        if error.errno is None:  # Arrow's own, of bytes that mean nothing
            raise _not_parquet(place, error) from error
        raise ReviewLogError(str(place), [f"cannot be read: {error.strerror}"]) from error


def _read_parquet(place: Place) -> pd.DataFrame:
    """Read one parquet file."""

    def read() -> pd.DataFrame:
        with parquet_file(place) as file, readable_parquet(place):
            cells = file.metadata.num_rows * file.metadata.num_columns
            if cells > _LARGEST_TABLE:
                what = f"it has {file.metadata.num_rows:,} rows, too many"
                raise ReviewLogError(str(place), [what], _SPLIT)
            table = file.read()
            table.validate(full=True)
            return pandas_from_arrow(table)

    return patiently(read)


def pandas_from_arrow(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to a pandas frame whose index counts the rows."""
    # What pandas wrote about its index is not needed, and may be damaged. Columns are taken one
    # by one: no need to gather them by their types.
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas(split_blocks=True)
    return frame


def _not_parquet(path: Place, error: Exception) -> ReviewLogError:
    """Return an error for a file whose content does not match its suffix."""
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    hint = "The file may be cut short or may not be parquet at all: copy or download it again."
    return ReviewLogError(str(path), [f"not a readable parquet file: {reason}"], hint)


def _read_csv(path: Place, text: Collection[str], *, rows: int | None = None) -> pd.DataFrame:
    """Read one CSV or TSV file in UTF-8."""
    (table,) = csv_chunks(path, text, rows=rows)
    return table


def csv_chunks(
    path: Place, text: Collection[str] | None, *, rows: int | None = None, size: int | None = None
) -> Generator[pd.DataFrame, None, None]:
    """Read one CSV or TSV file in UTF-8, and yield its rows in chunks.

    The columns `text` are kept as text, all of them if None. At most `rows` rows are read, `size`
    of them in a chunk; the whole file is one chunk if `size` is None. Raise `ReviewLogError` if it
    is not such a file.
    """
    form: dict[str, Any] = {"sep": _separator(path), "encoding": "utf-8-sig", "index_col": False}
    form |= {"keep_default_na": False, "na_values": [""], "skipinitialspace": True}
    names: list[str] = []
    try:
        with warnings.catch_warnings():
            # A row longer than the header must not lose its last fields.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with _bytes_of(path) as file:
                header = pd.read_csv(file, nrows=1, header=None, dtype="str", **form)
            # As they are in the file: pandas renames the second of two columns of one name.
            names = header.iloc[0].fillna("").tolist()
            kinds = {name: "str" for name in names if text is None or name.strip() in text}
            form |= {"nrows": rows, "dtype": kinds, "low_memory": False}
            with _bytes_of(path) as file:
                if size is None:
                    chunks: Any = nullcontext([pd.read_csv(file, **form)])
                else:
                    chunks = pd.read_csv(file, chunksize=size, **form)
                with chunks as tables:
                    for table in tables:
                        table.columns = [name.strip() for name in names]
                        yield table
    except pd.errors.EmptyDataError as error:
        raise ReviewLogError(str(path), ["the file is empty"]) from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        what = f"not UTF-8 text: byte 0x{byte:02x} cannot be decoded"
        hint = "Save it as CSV in UTF-8, or check that it is a text file."
        raise ReviewLogError(str(path), [what], hint) from error
    except pd.errors.ParserWarning as error:
        first = ", ".join(map(cut, names[:_NAMES_TOLD]))
        what = f"not a well-formed CSV file: rows have more values than line 1 has names: {first}"
        hint = "Remove what is above the names of the columns; quote values with a separator."
        raise ReviewLogError(str(path), [what], hint) from error
    except pd.errors.ParserError as error:
        reason = str(error).strip().splitlines()[0]
        raise ReviewLogError(str(path), [f"not a well-formed CSV file: {reason}"]) from error


@contextmanager
def _bytes_of(place: Place) -> Iterator[Any]:
    """Return what pandas reads a file from."""
    if not place.is_remote:
        yield place.local
        return
    with place.reading() as file:
        yield file


def _separator(path: Place) -> str:
    """Look at the first bytes: refuse other kinds of files, and find what splits the header."""
    with path.reading() as file:
        head = bytes(file.read(_HEAD_BYTES))
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            raise ReviewLogError(str(path), [f"this is not CSV but {kind}"])
    if b"\0" in head:
        raise ReviewLogError(str(path), ["this is not CSV but a binary file"])
    if not head.strip():
        raise ReviewLogError(str(path), ["the file is empty"])
    header = head.lstrip(b"\r\n").splitlines()[0].decode("utf-8-sig", errors="replace")
    return max(_SEPARATORS, key=header.count)
