"""Values that could pass for others are refused, or printed, and never read silently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import rest_nightly

from srs_eval.data import files
from srs_eval.data.frame import ReviewFrame
from srs_eval.data.partitioned import PartitionedLogs
from srs_eval.data.preparing import prepare
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.sql import SqlQuery
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns, Reading
from srs_eval.data.times import read_times
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import Reviews, Source
from srs_eval.place import Place
from srs_eval.results.files import write_table

DAYS = Columns(day="day")
BASE: dict[str, Any] = {"card": [1, 1, 2], "rating": [3, 3, 4], "day": [0, 1, 1]}


def csv(folder: Path, *lines: str) -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def parquet(folder: Path, **columns: Any) -> Path:
    path = folder / "log.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def read(path: Path, columns: Columns = DAYS, **options: Any) -> Reviews:
    source = ReviewTable(path, columns, **options)
    return source.read(source.users()[0])


def violations(path: Path, columns: Columns = DAYS, **options: Any) -> tuple[Violation, ...]:
    with pytest.raises(ReviewLogError) as caught:
        read(path, columns, **options)
    assert str(path) in caught.value.source
    return caught.value.violations


def test_blanks_around_a_name_are_no_part_of_it(tmp_path: Path) -> None:
    log = read(csv(tmp_path, "card ,rating,day", "100 ,3,0", "100,3,1", " 100,3,2", "007,3,3"))
    assert log.card[0] == log.card[1] == log.card[2] != log.card[3]
    twice = csv(tmp_path, "card,rating,time", "a,3,2024-01-01", "a ,3,2024-01-01")
    assert [found.kind for found in violations(twice, Columns())] == ["duplicate"]
    users = csv(tmp_path, "who,card,rating,day", "ann,1,3,0", "ann ,1,3,1")
    assert ReviewTable(users, Columns(day="day", user="who")).users() == ("ann",)


def test_names_that_differ_only_in_case_or_spelling_are_kept_apart_and_told(
    tmp_path: Path,
) -> None:
    path = csv(tmp_path, "who,card,rating,day", "Ann,Rose,3,0", "ann,1,3,0", "Ann,rose,3,0")
    log = read(path, Columns(day="day", user="who"))
    assert log.card.tolist() == [0, 1]
    card, user = log.notes
    assert "'Rose' and 'rose'" in card
    assert "'ann'" in user
    composed, combining = "\u00e9", "e\u0301"
    assert len(read(csv(tmp_path, "card,rating,day", f"{composed},3,0", f"{combining},3,0")).notes)
    assert read(csv(tmp_path, "card,rating,day", "a,3,0", "b,3,0")).notes == ()


@pytest.mark.parametrize("name", ["NaN", "nan", "null", "None", "NA", "N/A", "<NA>", "", "NULL"])
def test_a_word_for_a_missing_value_is_nobodys_name(tmp_path: Path, name: str) -> None:
    path = csv(tmp_path, "who,card,rating,day", f"a,{name},3,0", "a,1,3,0", f"{name},1,3,0")
    (card,) = violations(path)
    (user,) = violations(path, Columns(day="day", user="who"))
    assert (card.column, card.rows) == ("card", ("row 1",))
    assert (user.column, user.rows) == ("who", ("row 3",))


def test_groups_are_names_as_well_or_not_known(tmp_path: Path) -> None:
    columns = Columns(day="day", deck="deck")
    log = read(csv(tmp_path, "card,rating,day,deck", "1,3,0,a ", "2,3,0,a", "3,3,0,NaN"), columns)
    assert log.deck is not None
    assert log.deck.tolist() == [0, 0, -1]
    for kind in ("list", "struct", "map", "binary", "moment"):
        found = violations(parquet(tmp_path, **BASE, deck=KINDS[kind]), columns)
        assert (found[0].kind, found[0].column) == ("wrong_type", "deck")


FORMS = ("csv", "parquet", "frame", "sql", "partitioned")


@pytest.mark.parametrize("form", FORMS)
def test_rows_with_impossible_times_can_be_left_out(tmp_path: Path, form: str) -> None:
    later = datetime.now(UTC) + timedelta(days=300)
    good = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (3, 1, 2, 4)]
    odd = [later, datetime(1970, 1, 1, tzinfo=UTC), later]
    frame = pd.DataFrame({"who": "a", "card": range(7), "rating": 3, "time": [*good, *odd]})
    frame = pd.concat([frame, frame.iloc[[4]].assign(who="b")])
    found, refused = (source_of(form, frame, tmp_path / each, each) for each in ("drop", "error"))
    log = found.read("a")
    assert log.card.tolist() == [1, 2, 0, 3]
    assert log.left_out == {"time before 1980": 1, "time in the future": 2}
    with pytest.raises(ReviewLogError) as caught:
        refused.read("a")
    assert [each.kind for each in caught.value.violations] == ["out_of_range"] * 2
    assert "data.invalid_times=drop" in caught.value.hint
    with pytest.raises(ReviewLogError) as caught:
        found.read("b")  # nothing would be left
    assert "invalid_times" not in caught.value.hint


def source_of(form: str, frame: pd.DataFrame, folder: Path, invalid_times: Any) -> Source:
    folder.mkdir()
    columns = Columns(user="who")
    if form == "frame":
        return ReviewFrame(frame, columns, reading=Reading(invalid_times=invalid_times))
    suffix = "csv" if form == "csv" else "parquet"
    path = folder / f"log.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False)
    if form == "sql":
        query = f"select * from '{path}'"
        return SqlQuery(query, columns=columns, invalid_times=invalid_times)
    table = ReviewTable(path, columns, invalid_times=invalid_times)
    if form != "partitioned":
        return table
    prepare(table, Place.of(folder / "parts"))
    return PartitionedLogs(folder / "parts")


@pytest.mark.parametrize("unit", ["auto", "s", "ms"])
def test_impossible_numbers_are_named_for_what_they_are(unit: Any) -> None:
    factor = 1000 if unit == "ms" else 1
    column = pd.Series([1_711_744_352, 1_711_744_353, 33_000_000_000, 99_999, None]) * factor
    times = read_times(column, unit=unit, time_zone="UTC")
    assert times.late.tolist() == [False, False, True, False, False]
    assert times.early.tolist() == [False, False, False, True, False]
    assert times.unreadable.tolist() == [False, False, False, False, True]


def test_times_to_come_are_refused_in_every_form(tmp_path: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=3)
    for value in (later.isoformat(), later.timestamp(), later.timestamp() * 1000):
        assert violations(csv(tmp_path, "card,rating,time", f"1,3,{value}"), Columns())
    assert violations(parquet(tmp_path, card=[1], rating=[3], time=[later]), Columns())
    earlier = datetime.now(UTC) - timedelta(days=3)
    assert len(read(csv(tmp_path, "card,rating,time", f"1,3,{earlier.isoformat()}"), Columns()))


@pytest.mark.parametrize(
    ("unit", "times", "good"),
    [
        ("s", ["1711744352", "1711844352"], True),
        ("ms", ["1711744352000", "1711844352000"], True),
        ("s", ["1711744352000", "1711844352000"], False),
        ("ms", ["1711744352", "1711844352"], False),
        ("s", ["0", "1000000"], True),  # a clock of its own
        ("s", ["-5", "1711744352"], False),
        ("s", ["0", "1711744352000"], False),
        ("auto", ["1711744352000000", "1711844352000000"], False),
    ],
)
def test_numbers_are_times_of_their_unit(
    tmp_path: Path, unit: str, times: list[str], *, good: bool
) -> None:
    path = csv(tmp_path, "card,rating,time", *(f"1,3,{time}" for time in times))
    if good:
        assert len(read(path, Columns(), time_unit=unit)) == 2
    else:
        assert violations(path, Columns(), time_unit=unit)


@pytest.mark.parametrize("unit", rest_nightly(["ms", "ns", "s", "us"], 2))
@pytest.mark.parametrize("zone", rest_nightly([None, "Europe/Vienna", "UTC", "+05:00"], 2))
def test_date_times_of_far_years_are_refused(tmp_path: Path, unit: str, zone: str | None) -> None:
    for instant in (2**53, -(2**53), 2**63 - 1, -(2**63) + 1):
        value = instant // (1024 if unit == "s" else 1)
        column = pa.array([value], pa.timestamp(unit, zone))
        path = parquet(tmp_path, card=[1], rating=[3], time=column)
        assert violations(path, Columns())[0].rows == ("row 1",)


@pytest.mark.parametrize(
    "days",
    [
        [1711744352, 1711844352, 1711944352],
        [20240301, 20240302, 20240303],
        [0, 5, -(2**63)],
        [-(2**63) + 1, 5, 6],
        [-(2**63), 0, 2**63 - 1],
        [0, 1, 40_000],
        [36_500_000] * 3,
    ],
)
def test_what_cannot_be_day_numbers_is_refused(days: list[int]) -> None:
    with pytest.raises(ReviewLogError) as caught:
        reviews_from_columns(user=1, source="x", card=[7, 9, 7], rating=[3, 1, 4], day=days)
    assert [found.kind for found in caught.value.violations] == ["out_of_range"]


def test_day_numbers_of_any_calendar_are_taken() -> None:
    for first in (0, -5, 19_000, 45_000, 738_000, 2_460_000):
        days = [first, first + 1, first + 36_525]
        log = reviews_from_columns(user=1, source="x", card=[7, 9, 7], rating=[3, 1, 4], day=days)
        assert log.elapsed_days.tolist() == [-1, -1, 36_525]


@pytest.mark.parametrize("column", ["card", "rating", "day"])
def test_numbers_beyond_the_range_of_floats_are_refused_or_names(
    tmp_path: Path, column: str
) -> None:
    cells = {"card": "1", "rating": "3", "day": "0", column: "9" * 400}
    path = csv(tmp_path, "card,rating,day", "1,3,0", ",".join(cells.values()))
    if column == "card":
        assert len(read(path)) == 2
    else:
        assert violations(path)[0].rows == ("row 2",)


def test_two_columns_of_one_name_are_refused_where_they_are_needed(tmp_path: Path) -> None:
    path = csv(tmp_path, "card,card,rating,day,why,why", "1,2,3,0,,")
    arrays = [pa.array([1]), pa.array([2]), pa.array([3]), pa.array([0])]
    table = pa.Table.from_arrays(arrays, names=["card", "card", "rating", "day"])
    pq.write_table(table, tmp_path / "log.parquet")
    with_user = Columns(card="rating", rating="day", day="day", user="card")
    for file, columns in ((path, DAYS), (path, with_user), (tmp_path / "log.parquet", DAYS)):
        (found,) = violations(file, columns)
        assert (found.kind, found.column, found.rows) == ("duplicate", "card", ())
    public = csv(tmp_path, "card_id,rating,day_offset,state,state", "1,3,0,1,1")
    with pytest.raises(ReviewLogError):
        RevlogsFolder(public).read("log")
    assert len(read(csv(tmp_path, "card,rating,day,why,why", "1,3,0,,"))) == 1


KINDS = {
    "list": pa.array([[1], [1], [2]]),
    "struct": pa.array([{"a": 1}] * 3),
    "map": pa.array([[(1, 2)]] * 3, pa.map_(pa.int8(), pa.int8())),
    "binary": pa.array([b"a", b"\xff", b"a"]),
    "boolean": pa.array([True, False, True]),
    "date": pa.array([0, 1, 2], pa.date32()),
    "moment": pa.array([0, 1, 2], pa.timestamp("us", "Europe/Vienna")),
    "duration": pa.array([0, 1, 2], pa.duration("s")),
    "nothing": pa.nulls(3),
    "far moment": pa.array([2**62] * 3, pa.timestamp("us", "Europe/Vienna")),
}


@pytest.mark.parametrize("kind", rest_nightly(KINDS, 4))
def test_parquet_columns_of_other_kinds_are_refused(tmp_path: Path, kind: str) -> None:
    odd = KINDS[kind]
    tables: list[tuple[str, dict[str, Any], Columns]] = [
        *((column, {**BASE, column: odd}, DAYS) for column in BASE),
        ("who", {**BASE, "who": odd}, Columns(day="day", user="who")),
        ("time", {**BASE, "time": odd}, Columns()),
        ("ok", {**BASE, "ok": odd}, Columns(day="day", recalled="ok")),
    ]
    for column, table, columns in tables:
        if kind != "boolean" or column not in ("rating", "ok"):
            found = violations(parquet(tmp_path, **table), columns)
            assert (column, "row 1") in [(each.column, each.rows[0]) for each in found]


@pytest.mark.parametrize("values", [["a", "b", "a"], [1, 2, 1]])
def test_dictionaries_and_decimals_are_taken_for_their_values(
    tmp_path: Path, values: list[Any]
) -> None:
    expected = read(parquet(tmp_path, **{**BASE, "card": values})).card.tolist()
    encoded = pa.array(values).dictionary_encode()
    assert read(parquet(tmp_path, **{**BASE, "card": encoded})).card.tolist() == expected
    if values[0] == 1:
        decimals = pa.array(values).cast(pa.decimal128(20, 0))
        assert read(parquet(tmp_path, **{**BASE, "card": decimals})).card.tolist() == expected


def test_damaged_notes_of_pandas_do_not_matter(tmp_path: Path) -> None:
    table = pa.table(BASE).replace_schema_metadata({"pandas": "{garbage"})
    pq.write_table(table, tmp_path / "log.parquet")
    assert len(read(tmp_path / "log.parquet")) == 3


def test_pages_are_compared_with_their_checksums(tmp_path: Path) -> None:
    path, rng = tmp_path / "log.parquet", np.random.default_rng(0)
    columns = {"card": rng.integers(0, 2**40, 500), "rating": rng.integers(1, 5, 500)}
    write_table(path, pa.table({**columns, "day": np.arange(500)}))
    content, refused = path.read_bytes(), 0
    for place in range(4, len(content), len(content) // 100):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            log = read(path)
        except ReviewLogError:
            refused += 1
        else:  # in what is not needed, such as statistics
            assert log.card.tolist() == columns["card"].tolist()
            assert log.rating.tolist() == columns["rating"].tolist()
    assert refused > 50


def test_more_rows_than_any_memory_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path, **{name: np.zeros(1_000_000, np.int64) for name in BASE})
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(files, "_LARGEST_TABLE", 2_999_999)
    assert violations(path) == ("it has 1,000,000 rows, too many",)


def test_long_values_are_quoted_by_their_beginning(tmp_path: Path) -> None:
    path = csv(tmp_path, "card,rating,day," + "h" * 100_000, *["1,3," + "y" * 100_000] * 3)
    for columns in (DAYS, Columns()):
        with pytest.raises(ReviewLogError) as caught:
            read(path, columns)
        assert len(str(caught.value)) < 600
