"""What is wrong with a log is told by kind, column and row, whatever the log is kept in."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from srs_eval.data.frame import ReviewFrame
from srs_eval.data.sql import SqlQuery
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import Reviews, Source

Told = tuple[str, str, tuple[int, ...]]

TIMES = [f"2024-01-0{day}T10:00:00Z" for day in (1, 2, 3, 4, 5)]
GOOD: dict[str, list[Any]] = {"card": [1, 1, 2, 2, 3], "rating": [3, 1, 3, 2, 4], "time": TIMES}
DAY = {"time": None, "day": [0, 1, 1, 2, 2]}
USERS = ["a", "b", "a", "a", "b"]
FIRST = [-1, 1, -1, 1, -1]


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
    "no rows": ({name: [] for name in GOOD}, [("empty", "", ())]),
    "no columns": (
        {"card": None, "rating": None, "grade": [3] * 5},
        [("missing", "card", ()), ("missing", "rating", ())],
    ),
    "no user": ({"who": [*USERS[:4], None]}, [("missing", "who", (5,))]),
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
OPTIONAL = {
    "day": "day",
    "elapsed_days": "gap",
    "elapsed_seconds": "secs",
    "duration_ms": "took",
    "state": "state",
    "user": "who",
}
FORMS = ("csv", "parquet", "frame", "sql")
CENTURY = 36_525


def source_of(form: str, changes: dict[str, list[Any] | None], folder: Path) -> Source:
    table = {name: values for name, values in (GOOD | changes).items() if values is not None}
    frame = pd.DataFrame(table)
    columns = Columns(**{noun: name for noun, name in OPTIONAL.items() if name in table})
    if form == "frame":
        return ReviewFrame(frame, columns)
    path = folder / ("log.csv" if form == "csv" else "log.parquet")
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    if form == "sql":
        return SqlQuery(f"SELECT * FROM '{path}'", columns=columns)
    return ReviewTable(path, columns)


def read(form: str, changes: dict[str, list[Any] | None], folder: Path) -> Reviews:
    """Read the first user, who is the one with something wrong."""
    source = source_of(form, changes, folder)
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
        if form == "sql" and {"time", "who"} & changes.keys():
            # A query is sorted by time, and asked for each user once.
            found = [(each.kind, each.column) for each in error.violations]
            assert found == [(kind, column) for kind, column, _ in expected], name
            continue
        told = [(each.kind, each.column, each.rows) for each in error.violations]
        assert told == [
            (kind, column, tuple(f"row {row}" for row in rows)) for kind, column, rows in expected
        ], name


def test_the_sentences_of_all_refusals_are_those_that_were_read_once(
    tmp_path: Path, golden_text: Callable[[str, str], None]
) -> None:
    said = []
    for name, (changes, _) in BAD.items():
        error = refused("csv", changes, tmp_path)
        said.append(f"# {name}\n{str(error).replace(str(tmp_path), '…')}\n")
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)
        assert again.hint == error.hint
        for one, other in zip(error.violations, again.violations, strict=True):
            assert (one, vars(one)) == (other, vars(other))
    golden_text("log_refusals", "\n".join(said))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "changes",
    [
        {**DAY, "day": [-3, -2, 0, 1, CENTURY - 3], "gap": [-1, 1, -1, 1, None]},
        {**DAY, "secs": [-1, CENTURY * 86_400, -1, 0, None]},
        {"took": [0, CENTURY * 86_400_000, 3, 4, 0.5], "state": [0, 1, 2, 3, 4]},
        {"took": [None] * 5, "who": ["x" * 200] * 5},
        {"time": ["1980-01-01T00:00:00Z", *TIMES[1:]]},
    ],
)
def test_values_at_their_bounds_are_taken(
    tmp_path: Path, form: str, changes: dict[str, list[Any] | None]
) -> None:
    if form != "sql" or "day" not in changes:
        assert read(form, changes, tmp_path).rating.tolist() == GOOD["rating"]
