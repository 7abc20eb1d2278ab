"""Tables of any form: names, ratings, users, columns of odd kinds, and files in folders."""

import random
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import OTHER_KINDS

from srs_eval.data.cells import read_names
from srs_eval.data.options import Columns
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

DAYS = Columns(day="day")
BY_USER = Columns(day="day", user="who")
HEADER = "card,rating,day"
BASE = {"card": [1, 1, 2], "rating": [3, 3, 4], "day": [0, 1, 1]}


def read(path, columns=DAYS, **options):
    source = ReviewTable(path, columns, **options)
    return source.read(source.users()[0])


def told(path, columns=DAYS, **options):
    """Return kind, column and rows of all that is wrong."""
    with pytest.raises(ReviewLogError) as caught:
        read(path, columns, **options)
    assert str(path) in caught.value.source
    return [(each.kind, each.column, each.rows) for each in caught.value.violations]


def parquet(folder, **columns):
    pq.write_table(pa.table(columns), folder / "log.parquet")
    return folder / "log.parquet"


def test_the_py_fsrs_log_equals_its_converted_form(build_option, real_logs):
    folder = real_logs / "py-fsrs-josh"
    of_app, of_benchmark = folder / "review_logs_josh.csv", folder / "revlogs_benchmark_schema.csv"
    original = build_option("py_fsrs", path=str(of_app), day_start_hour=10).read(of_app.stem)
    converted = build_option("revlogs_10k", path=str(of_benchmark)).read(of_benchmark.stem)
    assert len(original) == 12_580
    for name in ("day", "rating", "elapsed_days", "elapsed", "elapsed_seconds", "duration_ms"):
        np.testing.assert_array_equal(getattr(original, name), getattr(converted, name), name)
    np.testing.assert_array_equal(pd.factorize(original.card)[0], converted.card)


REVIEW = st.tuples(
    st.sampled_from(["a", "b", "na", "007", "7", "ü,;\"'"]),
    st.integers(1, 4),
    st.integers(0, 10**9),
    st.integers(0, 60_000),
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None
)
@given(st.lists(REVIEW, min_size=1), st.sampled_from(["iso", "ms", "parquet"]), st.integers(0, 9))
def test_a_log_written_and_read_again_keeps_every_review_and_drops_duplicates(
    tmp_path, reviews, form, seed
):
    table = pd.DataFrame(reviews, columns=["card", "rating", "gap", "took"])
    since = pd.to_timedelta(table["gap"].cumsum(), unit="ms")
    table["time"] = (pd.Timestamp(datetime(2004, 1, 1, 12, tzinfo=UTC)) + since).dt.as_unit("ms")
    stored = table.iloc[random.Random(seed).sample(range(len(table)), len(table))]
    path = tmp_path / f"log.{'parquet' if form == 'parquet' else 'csv'}"
    if form == "parquet":
        stored.to_parquet(path)
    else:
        written = {"iso": lambda time: time.isoformat(), "ms": lambda time: time.value // 10**6}
        stored.assign(time=stored["time"].map(written[form])).to_csv(path, index=False)
    once = stored.drop_duplicates(["card", "time"]).sort_values("time", kind="stable")
    again = len(stored) - len(once)
    if again:
        assert [each[0] for each in told(path, Columns())] == ["duplicate"]
    log = read(path, Columns(duration_ms="took"), duplicates="drop")
    assert log.left_out == ({"card and time of an earlier row": again} if again else {})
    assert log.rating.tolist() == once["rating"].tolist()
    assert log.duration_ms.tolist() == once["took"].tolist()
    assert pd.factorize(log.card)[0].tolist() == pd.factorize(once["card"])[0].tolist()
    second = once["time"].astype("int64") // 1000
    since_previous = second.groupby(once["card"]).diff().fillna(-1)
    assert log.elapsed_seconds.tolist() == since_previous.tolist()


def test_words_for_missing_values_and_numbers_that_have_lost_digits_are_nobodys_names():
    words = ["NaN", "nan", "null", "None", "NA", "N/A", "<NA>", "", " ", "NULL", "\\N", "NaT"]
    assert read_names(pd.Series(words))[1].all()
    assert not read_names(pd.Series(["na", "Null", "none", "0"]))[1].any()
    _, bad = read_names(pd.Series([-(2.0**53), -(2.0**53) + 1, 2.0**53 - 1, 2.0**53, 0.5]))
    assert bad.tolist() == [True, False, False, True, True]


KINDS = {kind: make(3) for kind, make in OTHER_KINDS.items()} | {
    "boolean": pa.array([True, False, True]),
    "date": pa.array([0, 1, 2], pa.date32()),
    "moment": pa.array([0, 1, 2], pa.timestamp("us", "Europe/Vienna")),
}
MEANT = {("boolean", "rating"), ("nothing", "deck")}


def test_parquet_columns_of_other_kinds_are_refused(tmp_path):
    uses = {**dict.fromkeys(BASE, DAYS), "who": BY_USER, "time": Columns()}
    uses["deck"] = Columns(day="day", deck="deck")
    for kind, odd in KINDS.items():
        for column, columns in uses.items():
            if (kind, column) not in MEANT:
                wrong = told(parquet(tmp_path, **{**BASE, column: odd}), columns)
                assert (column, "row 1") in [(each[1], each[2][0]) for each in wrong], kind


@pytest.mark.parametrize("zone", [None, "Europe/Vienna", "+05:00"])
def test_date_times_of_far_years_are_refused(tmp_path, zone):
    for instant in (2**53, -(2**53), 2**63 - 1, -(2**63) + 1):
        for unit in ("s", "ms", "us", "ns"):
            value = instant // (1024 if unit == "s" else 1)
            if unit != "ns" or abs(value) > 2**53:  # which is hundred days from 1970
                column = pa.array([value], pa.timestamp(unit, zone))
                path = parquet(tmp_path, card=[1], rating=[3], time=column)
                assert told(path, Columns()) == [("out_of_range", "time", ("row 1",))]


def test_two_columns_of_one_name_are_refused_where_they_are_needed(csv, tmp_path):
    path = csv("card,card,rating,day,why,why,who", "1,2,3,0,,,4")
    table = pa.Table.from_arrays([pa.array([1])] * 4, names=["card", "card", "rating", "day"])
    pq.write_table(table, tmp_path / "log.parquet")
    with_user = Columns(card="who", day="day", user="card")
    for file, columns in ((path, DAYS), (path, with_user), (tmp_path / "log.parquet", DAYS)):
        assert told(file, columns) == [("duplicate", "card", ())]
    with pytest.raises(ReviewLogError):
        RevlogsFolder(csv("card_id,rating,day_offset,state,state", "1,3,0,1,1")).read("log")
    assert len(read(csv(f"{HEADER},why,why", "1,3,0,,"))) == 1


def test_a_file_can_hold_several_users_if_their_column_is_named(csv):
    path = csv("who,card,rating,day", "ben,1,3,0", "7,1,4,0", "ben,1,1,2")
    source = ReviewTable(path, BY_USER)
    assert source.users() == ("ben", 7)
    assert (source.read("ben").day.tolist(), source.read(7).rating.tolist()) == ([0, 2], [4])
    assert ReviewTable(path, BY_USER, users="7").users() == (7,)
    missing = Columns(card="crad", day="day", user="hwo")
    assert told(path, missing) == [("missing", name, ()) for name in ("crad", "hwo")]
    with pytest.raises(ReviewLogError):
        source.read("anna")
    for name in ("user", "user_id", "User ID", "userId"):
        path = csv(f"{name},{HEADER}", "ben,1,3,0", "ann,1,4,0")
        assert told(path) == [("unknown", name, ())]
    assert ReviewTable(path, Columns(day="day", user=name)).users() == ("ben", "ann")


def test_a_folder_holds_one_file_per_user(csv):
    folder = csv(HEADER, "1,3,0", name="logs/ben.csv").parent
    csv(f"user,{HEADER}", "1,1,4,0", name="logs/8.csv")
    csv("", name="logs/.hidden.csv")
    csv("", name="logs/readme.txt")
    source = ReviewTable(folder, DAYS)
    assert (source.users(), source.name, source.location) == (("8", "ben"), "logs", str(folder))
    assert source.read("ben").rating.tolist() == [3]
    assert ReviewTable(folder, DAYS, users=[8]).users() == ("8",)
    csv(HEADER, "1,3,0", "1,3,1", name="logs/8.csv")
    assert len(source.read("8")) == 2  # the file was changed


def test_folders_without_usable_files_or_columns_are_refused(tmp_path, csv):
    for path in (tmp_path, tmp_path / "*.csv", tmp_path / "log.csv"):
        with pytest.raises(ReviewLogError):
            ReviewTable(path).users()
    folder = csv(HEADER, "1,3,0", name="logs/ben.csv").parent
    csv("item,rating,day", "1,3,0", name="logs/ann.csv")
    assert len(ReviewTable(folder, DAYS).users()) == 2  # one of the files has the columns
    csv("x", name="logs/ann.tsv")
    for columns, what in (
        (Columns(card="crad", day="day"), r"ann\.csv"),
        (Columns(user="who"), "one user's, and data.columns.user at once"),
        (None, "both of user ann"),
    ):
        with pytest.raises(ReviewLogError, match=what):
            ReviewTable(folder, columns).users()


def test_a_table_beyond_memory_is_named(csv, monkeypatch):
    def too_large(*_, **__):
        raise MemoryError("Unable to allocate 153. GiB")

    path = csv("card,rating,time", "1,3,2024-01-01")
    for place in ("srs_eval.data.table.read_table", "srs_eval.data.table.read_log"):
        with monkeypatch.context() as patch:
            patch.setattr(place, too_large)
            with pytest.raises(ReviewLogError, match="memory") as caught:
                ReviewTable(path).read("log")
            assert caught.value.source == str(path)
