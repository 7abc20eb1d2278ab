"""What is wrong with a log is told by kind, column and row, whatever the log is kept in."""

from __future__ import annotations

import pickle
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
from srs_eval.nouns import Reviews, Source
from srs_eval.place import Place

Told = tuple[str, str, tuple[int, ...]]

TIMES = [f"2024-01-0{day}T10:00:00Z" for day in (1, 2, 3, 4, 5)]
GOOD: dict[str, list[Any]] = {"card": [1, 1, 2, 2, 3], "rating": [3, 1, 3, 2, 4], "time": TIMES}
DAY = {"time": None, "day": [0, 1, 1, 2, 2]}
USERS = ["a", "b", "a", "a", "b"]
FIRST = [-1, 1, -1, 1, -1]
DIGITS = "9" * 400  # no float is as large
CENTURY = 36_525


def but(column: str, *values: Any) -> dict[str, list[Any]]:
    """Replace the last values of a column."""
    return {column: [*GOOD.get(column, [None] * 5)[: 5 - len(values)], *values]}


# name -> (columns of the good log that differ, kind, column and rows of all that is told)
BAD: dict[str, tuple[dict[str, list[Any] | None], list[Told]]] = {
    "no rating": (but("rating", None, 2, 4), [("missing", "rating", (3,))]),
    "rating of 5": (but("rating", 5, 4), [("out_of_range", "rating", (4,))]),
    "rating of 0": (but("rating", 0, 4), [("out_of_range", "rating", (4,))]),
    "unknown word": ({"rating": [*"313x4"]}, [("wrong_type", "rating", (4,))]),
    "many ratings": ({"rating": [9] * 5}, [("out_of_range", "rating", (1, 2, 3))]),
    "long words": (
        {"rating": ["y" * 100_000] * 5},
        [("wrong_type", "rating", (1, 2, 3))],
    ),
    "rating of 400 digits": (
        {"rating": [*"3132", DIGITS]},
        [("wrong_type", "rating", (5,))],
    ),
    "no card": (but("card", None, 3), [("missing", "card", (4,))]),
    "word for no card": (
        {"card": ["a", "NaN", "b", "null", "c"]},
        [("wrong_type", "card", (2, 4))],
    ),
    "no time": (but("time", None), [("missing", "time", (5,))]),
    "no date": (but("time", "tomorrow"), [("wrong_type", "time", (5,))]),
    "year alone": (but("time", "2024"), [("wrong_type", "time", (5,))]),
    "early": ({"time": ["1979-12-31T23:59:59Z", *TIMES[1:]]}, [("out_of_range", "time", (1,))]),
    "to come": (but("time", "2262-01-01"), [("out_of_range", "time", (5,))]),
    "far year": (but("time", "9999-12-31T12:00:00+02:00"), [("out_of_range", "time", (5,))]),
    "same time": (
        {"card": [1, 1, 1, 2, 3], "time": [TIMES[0], *TIMES[1:2] * 2, *TIMES[3:]]},
        [("duplicate", "", (3,))],
    ),
    "same time many times": (
        {"card": [1] * 5, "time": TIMES[:1] * 5},
        [("duplicate", "", (2, 3, 4))],
    ),
    "no rows": ({name: [] for name in GOOD}, [("empty", "", ())]),
    "no columns": (
        {"card": None, "rating": None, "grade": [3] * 5, "h" * 100_000: [1] * 5},
        [("missing", "card", ()), ("missing", "rating", ())],
    ),
    "no user": ({"who": [*USERS[:4], None]}, [("missing", "who", (5,))]),
    "word for no user": ({"who": [*USERS[:4], "N/A"]}, [("wrong_type", "who", (5,))]),
    "unprintable user": ({"who": [*USERS[:4], "a\x1b[31m"]}, [("wrong_type", "who", (5,))]),
    "long user": ({"who": [*USERS[:4], "x" * 201]}, [("wrong_type", "who", (5,))]),
    "users without name": ({"user_id": USERS}, [("unknown", "user_id", ())]),
    "row of one user": (
        {**but("rating", 9, 4), "who": USERS},
        [("out_of_range", "rating", (4,))],
    ),
    "all at once": (
        {"card": ["a", "a", None, "b", "b"], "rating": [3, 9, 3, 2, 4], "time": [*TIMES[:4], "-1"]},
        [
            ("missing", "card", (3,)),
            ("out_of_range", "rating", (2,)),
            ("wrong_type", "time", (5,)),
        ],
    ),
    "no day": ({**DAY, "day": [0, 1, 1, None, 2]}, [("missing", "day", (4,))]),
    "half a day": ({**DAY, "day": [0, 1, 1.5, 2, 2]}, [("wrong_type", "day", (3,))]),
    "day of 400 digits": ({**DAY, "day": [*"0112", DIGITS]}, [("wrong_type", "day", (5,))]),
    "dates as days": ({**DAY, "day": [20240101, *range(4)]}, [("out_of_range", "day", (1,))]),
    "101 years": ({**DAY, "day": [0, 1, 2, 3, 36_526]}, [("out_of_range", "day", (5,))]),
    "backwards": ({**DAY, "day": [0, 1, 0, 2, 1]}, [("order", "day", (3, 5))]),
    "first gap of 0": ({**DAY, "gap": [0, *FIRST[1:]]}, [("out_of_range", "gap", (1,))]),
    "negative gap": ({**DAY, "gap": [-1, -1, *FIRST[2:]]}, [("out_of_range", "gap", (2,))]),
    "other gap": ({**DAY, "gap": [-1, 2, *FIRST[2:]]}, [("order", "gap", (2,))]),
    "later gap empty": ({**DAY, "gap": [None, None, -1, 1, -1]}, [("missing", "gap", (2,))]),
    "negative seconds": ({**DAY, "secs": [-1, -1, -1, 9, -1]}, [("out_of_range", "secs", (2,))]),
    "101 years of seconds": (
        {**DAY, "secs": [-1, 36_526 * 86_400, -1, 9, -1]},
        [("out_of_range", "secs", (2,))],
    ),
    "negative duration": ({"took": [1, 2, 3, -1, 0]}, [("out_of_range", "took", (4,))]),
    "some durations": ({"took": [1, None, 3, 4, 0]}, [("missing", "took", (2,))]),
    "state of 5": ({"state": [0, 1, 4, 5, 2]}, [("out_of_range", "state", (4,))]),
}
TAKEN: list[dict[str, list[Any] | None]] = [
    {**DAY, "day": [-3, -2, 0, 1, CENTURY - 3], "gap": [-1, 1, -1, 1, None]},
    {**DAY, "secs": [-1, CENTURY * 86_400, -1, 0, None]},
    {"took": [0, CENTURY * 86_400_000, 3, 4, 0.5], "state": [0, 1, 2, 3, 4]},
    {"took": [None] * 5, "who": ["x" * 200] * 5},
    {"time": ["1980-01-01T00:00:00Z", *TIMES[1:]], "card": [*"1122", DIGITS]},
]
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


def read(form: str, changes: dict[str, list[Any] | None], folder: Path) -> Reviews:
    """Read the first user, who is the one with something wrong."""
    table = {name: values for name, values in (GOOD | changes).items() if values is not None}
    source = source_of(form, pd.DataFrame(table), folder)
    return source.read(source.users()[0])


def refused(form: str, changes: dict[str, list[Any] | None], folder: Path) -> ReviewLogError:
    with pytest.raises(ReviewLogError) as caught:
        read(form, changes, folder)
    return caught.value


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wrong_is_told_by_kind_column_and_row(tmp_path: Path, form: str) -> None:
    for name, (changes, expected) in BAD.items():
        if form == "sql" and "day" in changes:
            continue  # it reads times only
        error = refused(form, changes, tmp_path)
        assert len(str(error)) < 700, name
        if form == "sql" and {"time", "who"} & changes.keys():
            # A query is sorted by time, and asked for each user once.
            found = [(each.kind, each.column) for each in error.violations]
            assert found == [(kind, column) for kind, column, _ in expected], name
            continue
        told = [(each.kind, each.column, each.rows) for each in error.violations]
        assert told == [
            (kind, column, tuple(f"row {row}" for row in rows)) for kind, column, rows in expected
        ], name
    for changes in TAKEN:
        if form != "sql" or "day" not in changes:
            assert read(form, changes, tmp_path).rating.tolist() == GOOD["rating"]


def test_the_sentences_of_all_refusals_are_those_that_were_read_once(
    tmp_path: Path, golden_text: Callable[[str, str], None]
) -> None:
    said = []
    for name, (changes, _) in BAD.items():
        error = refused("csv", changes, tmp_path)
        said.append(f"# {name}\n{str(error).replace(str(tmp_path), '…')}\n")
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.hint) == (str(error), error.hint)
        for one, other in zip(error.violations, again.violations, strict=True):
            assert (one, vars(one)) == (other, vars(other))
    golden_text("log_refusals", "\n".join(said))


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
