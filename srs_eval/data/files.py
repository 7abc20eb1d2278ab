"""Files of tables: CSV, JSON lines and parquet, with errors that say what is wrong with a file."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.data.cells import listed, quoted
from srs_eval.data.options import Columns
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.places import Place, explained

_JSON_LINES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", *_JSON_LINES)
SPLIT = "Make a folder of it with `python -m srs_eval.prepare`, or split it."
_SEPARATORS = (",", ";", "\t")
# Names of columns of users, but for case and what separates words
_USERS, _WORDS = ("user", "userid", "username"), re.compile(r"[\W_]+")
_LARGEST_TABLE = 1_000_000_000  # cells: a small file of equal rows can hold more than any memory
_HEAD_BYTES = 65_536
_KINDS = {
    b"PAR1": "a parquet file: rename it to .parquet",
    b"SQLite format 3": "an SQLite database; for an Anki collection use data=anki",
    b"PK\x03\x04": "a zip file, such as a spreadsheet or an Anki package; export a spreadsheet as "
    "CSV, and for an Anki package use data=anki",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"\xff\xfe\x00\x00": "UTF-32 text: save it as UTF-8",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


def existing(path: str | Path | Place) -> Place:
    """Return the place of a file or folder that is there, and no pipe or device."""
    place = Place.of(path)
    if place.kind():
        return place
    what, hint = "no such file or folder", "Check the address: capital letters count."
    if not place.is_remote:
        parents = place.local.absolute().parents
        hint = f"The last folder above it that is there is {next(filter(Path.is_dir, parents))}."
        if place.local.exists():
            what, hint = "is not a regular file", "Write the data to a file."
    raise ReviewLogError(str(place), [what], hint)


def table_files(place: Place) -> list[Place]:
    """Return the tables in a folder; raise `ReviewLogError` if there are none."""
    files = [file for file in place.files() if file.suffix in TABLE_SUFFIXES]
    if not files:
        hint = f"Expected one file per user: {', '.join(TABLE_SUFFIXES)}."
        raise ReviewLogError(str(place), ["there are no tables here"], hint)
    return files


def check_columns(
    source: str, present: Sequence[str], columns: Columns, *, of_user: bool = True, hint: str = ""
) -> None:
    """Check that a table has each named column once and, if `of_user`, no other one of users.

    All rows would be read as one user's then.
    """
    user = {"user": columns.user} if of_user and columns.user else {}
    wrong = []
    for noun, column in (columns.used | user).items():
        count = present.count(column)
        what = f"there are {count} columns" if count else "there is no column"
        if count != 1:
            said = f"{what} {column!r}, needed for data.columns.{noun.partition(' ')[0]}"
            wrong.append(Violation(said, "duplicate" if count else "missing", column))
    if wrong:
        names = listed([name if len(name) <= 60 else quoted(name) for name in present], 30)
        hint = f"Columns: {names or 'none'}. Name them as data.columns.…=COLUMN. {hint}"
        raise ReviewLogError(source, wrong, hint.strip())
    users = [name for name in present if _WORDS.sub("", name.lower()) in _USERS]
    if users and of_user and columns.user is None:
        what = f"there is a column {users[0]!r}, without whose name all rows are read as one user's"
        unnamed = Violation(what, "unknown", users[0])
        raise ReviewLogError(source, [unnamed], f"Name it as data.columns.user={users[0]}.")


def read_table(path: str | Path | Place, *, text: Collection[str] = ()) -> pd.DataFrame:
    """Read a file of the kind that its suffix says; the columns `text` of a CSV stay text."""
    place = Place.of(path)
    if place.suffix not in TABLE_SUFFIXES:
        expected = ", ".join(TABLE_SUFFIXES)
        raise ReviewLogError(str(place), [f"unknown kind of file; expected one of {expected}"])
    if place.suffix == ".parquet":
        return _read_parquet(place)
    with explained(place):
        return _read_json(place) if place.suffix in _JSON_LINES else next(_read_csv(place, text))


def chunks(place: Place, columns: Columns, rows: int) -> Iterator[pa.Table]:
    """Read columns of a CSV or parquet file by so many rows; cells of a CSV stay text."""
    used, of_user = columns.every, columns.user is not None
    if place.suffix in _JSON_LINES:
        raise ReviewLogError(str(place), ["expected CSV or parquet files"])
    if place.suffix == ".parquet":
        with parquet_file(place) as file:
            check_columns(str(place), file.schema_arrow.names, columns, of_user=of_user)
            for batch in file.iter_batches(batch_size=rows, columns=used):
                yield pa.Table.from_batches([batch])
        return
    with explained(place):
        for part in _read_csv(place, used, rows):
            check_columns(str(place), [*part.columns], columns, of_user=of_user)
            yield pa.Table.from_pandas(part[used], preserve_index=False)


@contextmanager
def parquet_file(place: Place) -> Iterator[pq.ParquetFile]:
    """Open a parquet file; raise `ReviewLogError` if it is none, or damaged."""
    remote = place.is_remote
    with explained(place):
        source = place.filesystem.open_input_file(place.path) if remote else place.local
        try:
            with pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=remote) as file:
                yield file
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            # Arrow's own MemoryError is an ArrowException too.
            if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
                raise
            what = f"not a readable parquet file: {str(error).partition(chr(10))[0]}"
            hint = "The file may be cut short or be no parquet at all: copy or download it again."
            raise ReviewLogError(str(place), [what], hint) from error


def _read_parquet(place: Place) -> pd.DataFrame:
    """Read one parquet file."""
    with parquet_file(place) as file:
        rows = file.metadata.num_rows
        if rows * file.metadata.num_columns > _LARGEST_TABLE:
            raise ReviewLogError(str(place), [f"it has {rows:,} rows, too many"], SPLIT)
        table = file.read()
        table.validate(full=True)
        return pandas_from_arrow(table)


def pandas_from_arrow(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to a pandas frame whose index counts the rows."""
    # What pandas wrote about its index is not needed, and may be damaged.
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas(split_blocks=True)
    return frame


def _read_json(place: Place) -> pd.DataFrame:
    """Read one file of JSON lines in UTF-8."""
    objects, number = list[dict[str, Any]](), 0
    with place.reading() as file:
        try:
            for line in TextIOWrapper(file, encoding="utf-8-sig"):
                number += 1
                objects += [dict(json.loads(line))] if line.strip() else []
        except (ValueError, TypeError) as error:
            what = f"not JSON lines, an object in each: line {number}: {error}"
            raise ReviewLogError(str(place), [what]) from error
    return pd.DataFrame(objects)


def _read_csv(
    place: Place, text: Collection[str], size: int | None = None
) -> Iterator[pd.DataFrame]:
    """Read a CSV file in UTF-8 as a whole, or by `size` rows; the columns `text` stay text."""
    sign, above = _header_form(place)
    form: dict[str, Any] = {"sep": sign, "skiprows": above, "encoding": "utf-8-sig"}
    form |= {"index_col": False, "skipinitialspace": True}
    form |= {"keep_default_na": False, "na_values": [""]}
    try:
        with warnings.catch_warnings():
            # A row longer than the header must not lose its last fields.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with place.reading() as file:
                header = pd.read_csv(file, nrows=1, header=None, dtype="str", **form)
            # As they are in the file: pandas renames the second of two columns of one name.
            names = header.iloc[0].fillna("").tolist()
            form["dtype"] = {name: "str" for name in names if name.strip() in text}
            # A path is read faster than an open file.
            source: Any = place.reading() if place.is_remote else nullcontext(place.local)
            with source as file:
                table: Any = pd.read_csv(file, chunksize=size, low_memory=False, **form)
                with nullcontext([table]) if size is None else table as parts:
                    for part in parts:
                        part.columns = pd.Index([name.strip() for name in names], dtype=object)
                        yield part
            return
    except UnicodeDecodeError as error:
        what = f"not UTF-8 text: byte 0x{error.object[error.start]:02x} cannot be decoded"
    except pd.errors.ParserWarning:
        named = listed([*map(quoted, names)])
        what = f"rows have more values than line {above + 1} has names: {named}"
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        what = f"not a well-formed CSV file: {str(error).strip().splitlines()[0]}"
    hint = "Save it as CSV in UTF-8, names of columns first, values with a separator in quotes."
    raise ReviewLogError(str(place), [what], hint)


def _header_form(place: Place) -> tuple[str, int]:
    """Return the separator of a CSV file, and the number of lines above its header."""
    with place.reading() as file:
        head = bytes(file.read(_HEAD_BYTES))
    kinds = [
        f"this is not CSV but {kind}" for sign, kind in _KINDS.items() if head.startswith(sign)
    ]
    kinds += ["this is not CSV but a binary file"] * (b"\0" in head)
    kinds += ["the file is empty"] * (not head.strip())
    if kinds:
        raise ReviewLogError(str(place), kinds[:1])
    header = head.lstrip(b"\r\n").splitlines()[0].decode("utf-8-sig", errors="replace")
    if header[:-1] == "sep=" and header[-1] in _SEPARATORS:  # which Excel writes
        return header[-1], 1
    return max(_SEPARATORS, key=header.count), 0
