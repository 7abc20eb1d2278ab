"""What is wrong with a log is told by kind, column and row, whatever the log is kept in."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from srs_eval.data.frame import ReviewFrame
from srs_eval.data.partitioned import PartitionedLogs
from srs_eval.data.preparing import prepare
from srs_eval.data.sql import SqlQuery
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns, Reading
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import Source
from srs_eval.place import Place

GOOD: dict[str, list[Any]] = {
    "card": [1, 1, 2, 2, 3],
    "rating": [3, 1, 3, 2, 4],
    "time": [f"2024-01-0{day}" for day in (1, 2, 3, 4, 5)],
}
OPTIONAL = {
    "day": "day",
    "elapsed_days": "gap",
    "elapsed_seconds": "secs",
    "duration_ms": "took",
    "state": "state",
    "user": "who",
}
FORMS = ("csv", "parquet", "frame", "sql")


def source_of(form: str, frame: pd.DataFrame, folder: Path, **reading: Any) -> Source:
    columns = Columns(**{noun: name for noun, name in OPTIONAL.items() if name in frame})
    if form == "frame":
        return ReviewFrame(frame, columns, reading=Reading(**reading))
    path = folder / ("log.csv" if form == "csv" else "log.parquet")
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path, index=False)
    if form == "sql":
        return SqlQuery(f"SELECT * FROM '{path}'", columns=columns, **reading)
    table = ReviewTable(path, columns, **reading)
    if form != "partitioned":
        return table
    prepare(table, Place.of(folder / str(reading)))
    return PartitionedLogs(folder / str(reading))


def values_of(text: str) -> list[Any]:
    """Read five values, one for all rows, or none; numbers where all of them are."""
    if text == "none":
        return []
    words = [word.replace(r"\x1b", "\x1b") or None for word in text.split(",")]
    if all(word is None or re.fullmatch(r"-?\d{1,18}(\.\d)?", word) for word in words):
        kind = float if "." in text else int
        words = [None if word is None else kind(word) for word in words]
    return words * (1 if len(words) == 5 else 5)


def table_of(words: tuple[str, ...]) -> pd.DataFrame:
    """Make a log of which columns differ: ``COLUMN=VALUES``, or ``-COLUMN``."""
    table = dict(GOOD)
    for word in words:
        name, _, values = word.partition("=")
        if name == "day" or name.startswith("-"):
            table.pop("time" if name == "day" else name[1:])
        if not name.startswith("-"):
            table[name] = values_of(values)
    return pd.DataFrame(table)


def told(form: str, table: pd.DataFrame, folder: Path) -> ReviewLogError | None:
    """Read the first user, who is the one with something wrong; return the error."""
    try:
        source = source_of(form, table, folder)
        log = source.read(source.users()[0])
    except ReviewLogError as error:
        return error
    assert log.rating.tolist() == GOOD["rating"]
    return None


def facts(error: ReviewLogError | None, *, with_rows: bool = True) -> list[tuple[Any, ...]]:
    found = () if error is None else error.violations
    return [(each.kind, each.column, each.rows if with_rows else ()) for each in found]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wrong_is_told_by_kind_column_and_row(
    tmp_path: Path, transcript: Callable[..., None], form: str
) -> None:
    def told_by(*words: str) -> str:
        table = table_of(words)
        error = told("csv", table, tmp_path)
        if form != "sql" or "day" not in table:  # a query reads times only
            # It is sorted by time, and asked for each user once.
            with_rows = form != "sql" or not any(word.startswith(("time", "who")) for word in words)
            found = error if form == "csv" else told(form, table, tmp_path)
            assert facts(found, with_rows=with_rows) == facts(error, with_rows=with_rows), words
        if error is None:
            return "is read\n"
        assert len(str(error)) < 700
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.hint) == (str(error), error.hint)
        for one, other in zip(error.violations, again.violations, strict=True):
            assert (one, vars(one)) == (other, vars(other))
        lines = [
            ", ".join([kind, *filter(None, [column]), *rows]) for kind, column, rows in facts(error)
        ]
        return "\n".join([*lines, str(error).replace(str(tmp_path), "…"), ""])

    transcript("log_refusals", told_by)


@pytest.mark.parametrize("form", [*FORMS, "partitioned"])
def test_rows_with_impossible_times_can_be_left_out(tmp_path: Path, form: str) -> None:
    later = datetime.now(UTC) + timedelta(days=300)
    good = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (3, 1, 2, 4)]
    odd = [later, datetime(1970, 1, 1, tzinfo=UTC), later]
    frame = pd.DataFrame({"who": "a", "card": range(7), "rating": 3, "time": [*good, *odd]})
    frame = pd.concat([frame, frame.iloc[[4]].assign(who="b")])
    found, strict = (
        source_of(form, frame, tmp_path, invalid_times=each) for each in ("drop", "error")
    )
    log = found.read("a")
    assert log.card.tolist() == [1, 2, 0, 3]
    assert log.left_out == {"time before 1980": 1, "time in the future": 2}
    for source, user, is_advised in ((strict, "a", True), (found, "b", False)):
        with pytest.raises(ReviewLogError) as caught:
            source.read(user)  # of b nothing would be left
        assert {each.kind for each in caught.value.violations} == {"out_of_range"}
        assert ("data.invalid_times=drop" in caught.value.hint) == is_advised
