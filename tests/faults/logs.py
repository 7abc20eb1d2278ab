"""Review logs in tables, changed: harmlessly, harmfully, or by single bytes."""

from __future__ import annotations

import csv
import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from verdicts import LONGEST_MESSAGE, Verdict, right

from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import SrsEvalError
from srs_eval.nouns import Reviews, Source

Rows = list[dict[str, Any]]
_FIRST = 1_700_000_000
_LAYOUTS: dict[str, tuple[str, Columns]] = {
    "time": ("time", Columns()),
    "day": ("day", Columns(day="day")),
    "user": ("day", Columns(day="day", user="who")),
}
_WORDS = {1: "again", 2: "Hard", 3: "Good", 4: "easy"}
# No layout of reviews has any of these as a value of the column.
_NEVER: dict[str, tuple[Any, ...]] = {
    "card": ("NaN", "null", "None", "", "nan", "<NA>", "NULL"),
    "rating": ("0", "5", "-1", "NaN", "Fine", "3.5", "1e308", "", "99999999999999999999", "maybe"),
    "time": ("now", "today", "-1", "-2024-01-01", "0001-01-01", "2262-01-01", "9999-12-31", "",
             "soon", "1e308", "1677-01-01", "NaT"),
    "day": ("1700000000", "1e18", "36500000", "-9223372036854775808", "now", "", "20240101", "inf",
            "0.5"),
    "who": ("", "NaN", "null", "a\x1b[31m", "x" * 300),
}  # fmt: skip
_BYTES = (b"\0", b"\xff", b"\xfe\xff", b'"', b",", b"\r", b"\n", b"\x1b", b"9" * 400, b";;;", b"\t")


def csv_log(random: Random, folder: Path) -> Verdict:
    """Change a CSV file and read it."""
    layout, rows = _rows(random)
    path = folder / "log.csv"
    names = list(rows[0])
    _write(path, names, rows)
    expected = _read(_source(path, layout))
    family = random.choice(("harmless", "harmful", "bytes", "bytes"))
    if family == "harmless":
        _write_otherwise(random, path, names, rows)
        return _same(path, layout, expected)
    if family == "harmful":
        column = random.choice([name for name in names if name in _NEVER])
        value = random.choice(_NEVER[column])
        random.choice(rows)[column] = value
        _write(path, names, rows)
        return _refused(path, layout, f"{column}={value[:40]!r}")
    path.write_bytes(damaged(random, path.read_bytes()))
    return _consistent(path, layout)


def parquet_log(random: Random, folder: Path) -> Verdict:
    """Change a parquet file and read it."""
    layout, rows = _rows(random)
    path = folder / "log.parquet"
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    pq.write_table(table, path, write_page_checksum=True)
    expected = _read(_source(path, layout))
    family = random.choice(("harmless", "harmful", "bytes", "bytes"))
    if family == "harmless":
        changed = random.choice(_SAME_TABLE)(table)
        size = random.choice((1, 7, 1000))
        pq.write_table(changed, path, row_group_size=size, compression=random.choice(_CODECS))
        return _same(path, layout, expected)
    if family == "harmful":
        column = random.choice(table.column_names)
        kind, make = random.choice(list(_OTHER_KINDS.items()))
        place = table.column_names.index(column)
        pq.write_table(table.set_column(place, column, make(len(table))), path)
        return _refused(path, layout, f"{column} as {kind}")
    content = path.read_bytes()
    path.write_bytes(damaged(random, content))
    return _consistent(path, layout)


def equal_rows(random: Random, folder: Path) -> Verdict:
    """Read a small parquet file that holds more equal rows than there is memory for."""
    path = folder / "log.parquet"
    count = random.choice((20_000_000, 60_000_000))
    group = pa.table({name: np.zeros(1_000_000, np.int8) for name in ("card", "rating", "day")})
    with pq.ParquetWriter(path, group.schema) as writer:
        for _ in range(count // len(group)):
            writer.write_table(group)
    return _refused(path, "day", f"{count:,} equal rows")


def public_log(random: Random, folder: Path) -> Verdict:
    """Change a folder in the layout of the public data set and read it."""
    _, rows = _rows(random)
    path = folder / "revlogs" / "user_id=1" / "data.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    days = list(range(len(rows)))
    columns = {"card_id": [row["card"] for row in rows], "day_offset": days}
    columns |= {"rating": [row["rating"] for row in rows], "state": [1] * len(rows)}
    table = pa.table(columns)
    pq.write_table(table, path, write_page_checksum=True)
    source = RevlogsFolder(folder)
    expected = _read(source)
    if random.random() < 0.5:
        column = random.choice(table.column_names)
        make = random.choice(list(_OTHER_KINDS.values()))
        place = table.column_names.index(column)
        pq.write_table(table.set_column(place, column, make(len(table))), path)
        return judge(source, path, lambda log: [f"{column} was accepted"])
    path.write_bytes(damaged(random, path.read_bytes()))
    return judge(source, path, lambda log: broken(log, len(expected)))


def _rows(random: Random) -> tuple[str, Rows]:
    """Make up a log of some layout."""
    layout = random.choice(list(_LAYOUTS))
    clock, _ = _LAYOUTS[layout]
    rows, now = [], 0
    cards = [f"card {n}" if random.random() < 0.3 else str(n) for n in range(5)]
    for _ in range(random.randint(5, 60)):
        now += random.randint(1, 3)
        row: dict[str, Any] = {"card": random.choice(cards), "rating": random.randint(1, 4)}
        row[clock] = now if clock == "day" else _FIRST + now * 86_400
        if layout == "user":
            row["who"] = "ann"
        rows.append(row)
    return layout, rows


def _source(path: Path, layout: str) -> ReviewTable:
    return ReviewTable(path, _LAYOUTS[layout][1])


def _write(path: Path, names: list[str], rows: Rows, **options: Any) -> None:
    with path.open("w", newline="", encoding=options.pop("encoding", "utf-8")) as file:
        writer = csv.DictWriter(file, names, **options)
        writer.writeheader()
        writer.writerows(rows)


def _write_otherwise(random: Random, path: Path, names: list[str], rows: Rows) -> None:
    """Write the same log as another program might."""
    names = random.sample(names, len(names))
    options: dict[str, Any] = {
        "delimiter": random.choice(",;\t"),
        "lineterminator": random.choice(("\n", "\r\n")),
        "quoting": random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)),
        "encoding": random.choice(("utf-8", "utf-8-sig")),
    }
    words = random.random() < 0.3
    said = [{**row, "rating": _WORDS[row["rating"]]} if words else row for row in rows]
    padded = [
        {name: f"{row[name]}{' ' * random.choice((0, 0, 2))}" for name in row} for row in said
    ]
    _write(path, names, random.choice((rows, padded)), **options)
    if random.random() < 0.3:
        path.write_bytes(path.read_bytes() + b"\n\n")


def damaged(random: Random, content: bytes) -> bytes:
    """Change, insert, remove or repeat a few bytes."""
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(content) or 1)
        end = place + random.choice((0, 1, 8, 100, len(content)))
        inserted = random.choice((b"", bytes([random.randrange(256)]), random.choice(_BYTES)))
        if random.random() < 0.4:  # a single bit
            end, inserted = place + 1, bytes([content[place] ^ 1 << random.randrange(8)])
        content = content[:place] + inserted + content[end:]
        if not content:
            break
    return content


def _same(path: Path, layout: str, expected: Reviews) -> Verdict:
    """Judge a file that means what it meant before."""

    def check(log: Reviews) -> list[str]:
        columns = [f.name for f in fields(Reviews) if isinstance(getattr(log, f.name), np.ndarray)]
        return [
            f"{name} differs after a harmless change"
            for name in columns
            if not np.array_equal(getattr(log, name), getattr(expected, name))
        ]

    return judge(_source(path, layout), path, check)


def _refused(path: Path, layout: str, what: str) -> Verdict:
    """Judge a file that no log can be read from."""
    return judge(_source(path, layout), path, lambda log: [f"{what} was accepted"])


def _consistent(path: Path, layout: str) -> Verdict:
    """Judge a damaged file: what is read of it has to hold together."""
    rows = pq.read_metadata(path).num_rows if _is_parquet(path) else None
    return judge(_source(path, layout), path, lambda log: broken(log, rows))


def _is_parquet(path: Path) -> bool:
    try:
        return path.suffix == ".parquet" and pq.read_metadata(path).num_rows >= 0
    except (pa.ArrowException, OSError):
        return False


def broken(log: Reviews, rows: int | None) -> list[str]:
    """Return the invariants that a log violates."""
    problems = []
    if rows is not None and len(log) + sum(log.left_out.values()) != rows:
        problems.append(f"{len(log)} of {rows} rows kept, {dict(log.left_out)} left out")
    if not np.isin(log.rating, (1, 2, 3, 4)).all():
        problems.append("ratings outside 1 to 4")
    if (log.day[1:] < log.day[:-1]).any() or log.elapsed_days.min() < -1:
        problems.append("days run backwards")
    return problems


def _read(source: Source) -> Reviews:
    """Read the first of its users; a damaged name of the column may have made more."""
    return source.read(source.users()[0])


def judge(source: Source, path: Path, check: Callable[[Reviews], list[str]]) -> Verdict:
    """Read a log, and see whether it is right or rightly refused, and nothing else is changed."""
    before = hashlib.sha256(path.read_bytes()).digest()
    copies, outcome = set(Path(tempfile.gettempdir()).iterdir()), "accepted"
    try:
        log = _read(source)
        problems = [] if len(source.users()) > 1 else check(log)
    except SrsEvalError as error:
        problems, outcome = unclear(str(error), path), "clear error"
    if hashlib.sha256(path.read_bytes()).digest() != before:
        problems.append("the source was changed")
    if left := set(Path(tempfile.gettempdir()).iterdir()) - copies:
        problems.append(f"left in the temporary folder: {sorted(map(str, left))[:3]}")
    return right(problems, outcome)


def unclear(message: str, path: Path) -> list[str]:
    """Return what a message lacks."""
    problems = []
    if path.name not in message:
        problems.append(f"the message does not name the file: {message[:200]}")
    if len(message) > LONGEST_MESSAGE:
        problems.append(f"a message of {len(message):,} characters")
    return problems


def _nested(count: int) -> pa.Array:
    return pa.array([[1]] * count)


_CODECS = ("snappy", "zstd", "none")
_OTHER_KINDS: dict[str, Callable[[int], pa.Array]] = {
    "list": _nested,
    "struct": lambda count: pa.array([{"a": 1}] * count),
    "map": lambda count: pa.array([[(1, 2)]] * count, pa.map_(pa.int8(), pa.int8())),
    "binary": lambda count: pa.array([b"\xff"] * count),
    "nothing": pa.nulls,
    "far moments": lambda count: pa.array([2**62] * count, pa.timestamp("us", "Europe/Vienna")),
    "durations": lambda count: pa.array([1] * count, pa.duration("s")),
    "infinity": lambda count: pa.array([float("inf")] * count),
}
_SAME_TABLE: tuple[Callable[[pa.Table], pa.Table], ...] = (
    lambda table: table.select(table.column_names[::-1]),
    lambda table: table.append_column("other", _nested(len(table))),
    lambda table: table.replace_schema_metadata({"pandas": "{garbage"}),
    lambda table: table.set_column(
        table.column_names.index("card"), "card", table["card"].dictionary_encode()
    ),
    lambda table: table.set_column(
        table.column_names.index("rating"), "rating", table["rating"].cast(pa.float32())
    ),
    lambda table: table.append_column("why", table["card"]).append_column("why", table["card"]),
)
