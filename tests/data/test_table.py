"""Tables in memory and in files: several users, odd columns, long numbers, and folders."""

from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from logs import OTHER_KINDS

from srs_eval.data.cells import column_of, read_names
from srs_eval.data.options import Columns
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError
from srs_eval.runs.config import named_option

DAYS = Columns(day="day")
BY_USER = Columns(day="day", user="who")
HEADER = "card,rating,day"
BASE = {"card": [1, 1, 2], "rating": [3, 3, 4], "day": [0, 1, 1]}
FRAME = pd.DataFrame({**BASE, "who": "ann"})


def read(path, columns=DAYS, **options):
    source = ReviewTable(path, columns, **options)
    return source.read(source.users()[0])


def told(path, columns=DAYS, **options):
    """Return kind, column and rows of all that is wrong."""
    with pytest.raises(ReviewLogError) as caught:
        read(path, columns, **options)
    return [(each.kind, each.column, each.rows) for each in caught.value.violations]


def test_the_py_fsrs_log_equals_its_converted_form(real_logs):
    folder = real_logs / "py-fsrs-josh"
    of_app, of_benchmark = folder / "review_logs_josh.csv", folder / "revlogs_benchmark_schema.csv"
    options = {"path": str(of_app), "day_start_hour": 10}
    original = named_option("data", "py_fsrs", options).read(of_app.stem)
    converted = RevlogsFolder(of_benchmark).read(of_benchmark.stem)
    assert len(original) == 12_580
    for name in ("day", "rating", "elapsed_days", "elapsed", "elapsed_seconds", "duration_ms"):
        np.testing.assert_array_equal(getattr(original, name), getattr(converted, name), name)
    np.testing.assert_array_equal(pd.factorize(original.card)[0], converted.card)


@pytest.mark.parametrize("form", ["iso", "ms", "parquet"])
def test_a_log_written_and_read_again_keeps_every_review_and_drops_duplicates(tmp_path, form):
    rng, n, path = np.random.default_rng(4), 300, tmp_path / f"log.{form}.csv"
    names = ["a", "b", "na", "007", "7", "ü,;\"'"]
    table = pd.DataFrame({"card": rng.choice(names, n), "rating": rng.integers(1, 5, n)})
    table["took"] = rng.integers(0, 60_000, n)
    since = pd.to_timedelta(rng.integers(0, 10**6, n) * 10_001, unit="ms")
    table["time"] = pd.Timestamp("2004-01-01T12:00Z") + since
    table = pd.concat([table, table.sample(20, random_state=1)]).sample(frac=1, random_state=2)
    if form == "parquet":
        table.to_parquet(path := tmp_path / "log.parquet")
    else:
        written = {"iso": lambda time: time.isoformat(), "ms": lambda t: t.value // 10**6}[form]
        table.assign(time=table["time"].map(written)).to_csv(path, index=False)
    once = table.drop_duplicates(["card", "time"]).sort_values("time", kind="stable")
    assert [each[0] for each in told(path, Columns())] == ["duplicate"]
    log = read(path, Columns(duration_ms="took"), duplicates="drop")
    assert log.left_out == {"card and time of an earlier row": len(table) - len(once)}
    assert log.rating.tolist() == once["rating"].tolist()
    assert log.duration_ms.tolist() == once["took"].tolist()
    assert pd.factorize(log.card)[0].tolist() == pd.factorize(once["card"])[0].tolist()
    gaps = (once["time"].astype("int64") // 10**6).groupby(once["card"]).diff().fillna(-1)
    assert log.elapsed_seconds.tolist() == gaps.tolist()


def test_words_for_missing_values_and_numbers_that_have_lost_digits_are_nobodys_names():
    words = ["NaN", "nan", "null", "None", "NA", "N/A", "<NA>", "", " ", "NULL", "\\N", "NaT"]
    for cells in (words, [*words, True], ["1.7E+2", "-2e+1"]):
        assert read_names(column_of(cells))[1].all()
    assert not read_names(column_of(["na", "Null", "none", "0", "1.70E+2"]))[1].any()
    floats = [-(2.0**53), -(2.0**53) + 1, 2.0**53 - 1, 2.0**53]
    for numbers in (floats, np.array(floats, object)):
        assert read_names(column_of(numbers))[1].tolist() == [True, False, False, True]


def test_numbers_beyond_64_bits_are_names_of_cards_and_no_days():
    cards = [2**63, 2**63 + 1, 10**400, 10**5000, 10**5000 + 1]
    for count in (2, 5):
        column = pd.Series(cards[:count])
        log = read(pd.DataFrame({"card": column, "rating": 3, "day": range(count)}))
        assert len({*log.card}) == len({*log.titles["card"].values()}) == count
    day = pd.Series([0, 2**63])
    for days in (day, day.astype(str), day.astype(float)):
        frame = pd.DataFrame({"card": [1, 2], "rating": 3, "day": days})
        assert told(frame) == [("wrong_type", "day", ("row 2",))]


def test_whole_floats_are_numbers_of_cards_and_a_name_with_a_zero_byte_is_another_name():
    assert read(FRAME.astype({"card": float})).card.tolist() == [1, 1, 2]
    assert read(FRAME.assign(card=["a", "a\0", "a"])).card.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("frame", "columns", "wrong"),
    [
        (FRAME.set_axis(pd.MultiIndex.from_product([["log"], FRAME]), axis=1), DAYS, "missing"),
        (FRAME.rename(columns={"card": "card\0"}), DAYS, "missing"),
        (pd.concat([FRAME, FRAME["card"]], axis=1), DAYS, "duplicate"),
        (FRAME.assign(who="ann\0"), BY_USER, "wrong_type"),
        (FRAME.assign(who="a" * 201), BY_USER, "wrong_type"),
        (FRAME.assign(day="1" * 400), DAYS, "wrong_type"),
        (FRAME.assign(rating=["3", "3\0", "3"]), DAYS, "wrong_type"),
        (FRAME.assign(card=[[1], {}, "a"]), DAYS, "wrong_type"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_odd_frames_are_refused_in_words(frame, columns, wrong):
    assert {kind for kind, _, _ in told(frame, columns)} == {wrong}


KINDS = {kind: make(3) for kind, make in OTHER_KINDS.items()} | {
    "boolean": pa.array([True, False, True]),
    "date": pa.array([0, 1, 2], pa.date32()),
    "moment": pa.array([0, 1, 2], pa.timestamp("us", "Europe/Vienna")),
}
USES = {**dict.fromkeys(BASE, DAYS), "who": BY_USER, "time": Columns()}
USES["deck"] = Columns(day="day", deck="deck")


def test_columns_of_other_kinds_are_refused():
    for kind, odd in KINDS.items():
        for column, columns in USES.items():
            if (kind, column) not in {("boolean", "rating"), ("nothing", "deck")}:
                wrong = told(pa.table({**BASE, column: odd}), columns)
                assert (column, "row 1") in [(each[1], each[2][0]) for each in wrong], kind


@pytest.mark.parametrize("zone", [None, "Europe/Vienna", "+05:00"])
def test_date_times_of_far_years_are_refused(zone):
    for instant in (2**53, -(2**53), 2**63 - 1, -(2**63) + 1):
        for unit in ("s", "ms", "us", "ns"):
            value = instant // (1024 if unit == "s" else 1)
            if unit != "ns" or abs(value) > 2**53:  # which is hundred days from 1970
                column = pa.array([value], pa.timestamp(unit, zone))
                table = pa.table({"card": [1], "rating": [3], "time": column})
                assert told(table, Columns()) == [("out_of_range", "time", ("row 1",))]


def test_a_file_can_hold_several_users_if_their_column_is_named(csv):
    path = csv("who,card,rating,day,why,why", "ben,1,3,0,,", "7,1,4,0,,", "ben,1,1,2,,")
    source = ReviewTable(path, BY_USER)
    assert source.users() == ("ben", 7)
    assert (source.read("ben").day.tolist(), source.read(7).rating.tolist()) == ([0, 2], [4])
    assert ReviewTable(path, BY_USER, users="7").users() == (7,)
    missing = Columns(card="crad", day="day", user="hwo")
    assert told(path, missing) == [("missing", name, ()) for name in ("crad", "hwo")]
    assert told(path, Columns(card="why")) == [("duplicate", "why", ()), ("missing", "time", ())]
    with pytest.raises(ReviewLogError):
        source.read("anna")
    for name in ("user", "user_id", "User ID", "userId", "learner", "Student name"):
        path = csv(f"{name},{HEADER}", "ben,1,3,0", "ann,1,4,0")
        assert told(path) == [("unknown", name, ())]
    assert ReviewTable(path, Columns(day="day", user=name)).users() == ("ben", "ann")


def test_a_folder_holds_one_file_per_user(csv, tmp_path):
    folder = csv(HEADER, "1,3,0", name="logs/ben.csv").parent
    csv(f"user,{HEADER}", "1,1,4,0", name="logs/8.csv")
    csv("", name="logs/.hidden.csv")
    csv("", name="logs/readme.txt")
    source = ReviewTable(folder, DAYS)
    assert (source.users(), source.name, source.location) == (("8", "ben"), "logs", str(folder))
    assert source.read("ben").rating.tolist() == [3]
    csv(HEADER, "1,3,0", "1,3,1", name="logs/8.csv")
    assert len(source.read("8")) == 2  # the file was changed
    csv("item,rating,day", "1,3,0", name="logs/zoe.csv")
    assert len(source.users()) == 3  # the first of the files has the columns
    with pytest.raises(ReviewLogError, match=r"zoe\.csv"):
        source.read("zoe")
    for columns in (Columns(card="crad", day="day"), BY_USER):
        assert told(folder, columns)
    csv("x", name="logs/8.tsv")
    for path in (folder, tmp_path, tmp_path / "*.csv", tmp_path / "log.csv"):
        assert told(path)


def test_a_table_beyond_memory_is_named(csv, monkeypatch):
    path, too_large = csv("card,rating,time", "1,3,2024-01-01"), MemoryError("153. GiB")
    monkeypatch.setattr("srs_eval.data.table.read_table", Mock(side_effect=too_large))
    with pytest.raises(ReviewLogError, match="memory") as caught:
        ReviewTable(path).read("log")
    assert caught.value.source == str(path)
