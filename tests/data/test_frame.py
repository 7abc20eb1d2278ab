"""Logs in memory are read as a file of the same content."""

import pickle
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from srs_eval.data.frame import ReviewFrame, is_table, to_pandas
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns, Reading
from srs_eval.errors import ConfigError, ReviewLogError

LOG = pd.DataFrame(
    {
        "user": ["ben", "ann", "ann", "ben", "ann", "ben"],
        "card": [1, 2, 2, 1, 3, 4],
        "rating": [3, 1, 4, 2, 3, 3],
        "time": pd.to_datetime(
            [
                *("2024-03-05T10:00:00Z", "2024-03-01T09:00:00Z", "2024-03-03T23:30:00Z"),
                *("2024-03-02T10:00:00Z", "2024-03-01T09:00:01Z", "2024-03-02T03:00:00Z"),
            ]
        ),
    }
)
ARROW = pa.table(
    {name: LOG[name].tolist() for name in ("user", "card", "rating")}
    | {"time": pa.array(LOG["time"].dt.to_pydatetime().tolist(), pa.timestamp("us", "UTC"))}
)
USER = Columns(user="user")


def with_column(name, values):
    return LOG.assign(**{name: values})


EQUAL = {
    "shuffled index": LOG.set_axis([9, 9, 3, 0, -1, 2]),
    "named index": LOG.set_index(pd.Index([*"abcdef"], name="card id")),
    "several levels of index": LOG.set_index(["user", "card"], drop=False),
    "further columns": LOG.assign(**{"a": 1, "b": [[1]] * 6}),
    "integers as columns": LOG.assign(**{"x": 0}).rename(columns={"x": 7}),
    "categories": LOG.astype({"user": "category", "card": "category", "rating": "category"}),
    "categories of times": LOG.astype({"time": "category"}),
    "nullable integers": LOG.astype({"card": "Int64", "rating": "UInt8"}),
    "floats": LOG.astype({"card": float, "rating": "float32"}),
    "cards as text": LOG.astype({"card": "str"}),
    "objects": LOG.astype(object),
    "another zone": with_column("time", LOG["time"].dt.tz_convert("Asia/Tokyo")),
    "UTC without a zone": with_column("time", LOG["time"].dt.tz_localize(None)),
    "nanoseconds": with_column("time", LOG["time"].dt.as_unit("ns")),
    "seconds since 1970": with_column("time", LOG["time"].dt.as_unit("s").astype("int64")),
    "text": with_column("time", LOG["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
    "Python's times": with_column(
        "time", pd.Series([*LOG["time"].dt.to_pydatetime()], dtype=object)
    ),
    "backed by Arrow": LOG.convert_dtypes(dtype_backend="pyarrow"),
    "Arrow": ARROW,
    "Arrow dictionaries": ARROW.set_column(0, "user", ARROW["user"].dictionary_encode()),
    "Arrow decimals": ARROW.set_column(1, "card", ARROW["card"].cast(pa.decimal128(20, 0))),
    "polars": pl.from_arrow(ARROW),
    "polars categories": pl.from_arrow(ARROW).with_columns(pl.col("user").cast(pl.Categorical)),
    "polars in milliseconds": pl.from_arrow(ARROW).with_columns(
        pl.col("time").cast(pl.Datetime("ms", "UTC"))
    ),
}


def test_every_form_of_a_log_is_the_same_log_as_in_files(tmp_path, assert_same_logs):
    path = tmp_path / "frame.csv"
    pq.write_table(ARROW, tmp_path / "frame.parquet")
    of_parquet = ReviewTable(tmp_path / "frame.parquet", USER)
    for table in EQUAL.values():
        assert_same_logs(ReviewFrame(table, USER), of_parquet)
    LOG.to_csv(path, index=False)
    assert_same_logs(ReviewTable(path, USER), of_parquet)
    one = LOG[LOG["user"] == "ann"].drop(columns="user")
    one.to_csv(path, index=False)
    assert_same_logs(ReviewFrame(one), ReviewTable(path))


def test_names_that_are_no_numbers_of_64_bits_are_read_as_text(assert_same_logs):
    for kind in (lambda n: uuid.UUID(int=n), lambda n: np.uint64(2**63 + n)):
        odd = LOG.assign(card=pd.Series([kind(n) for n in LOG["card"]]))
        assert_same_logs(ReviewFrame(odd, USER), ReviewFrame(odd.astype({"card": "str"}), USER))
        users = {"ann": kind(1), "ben": kind(2)}
        by_user = ReviewFrame(LOG.assign(user=LOG["user"].map(users)), USER)
        assert [str(user) for user in by_user.users()] == [str(kind(2)), str(kind(1))]


def test_what_is_no_table_or_has_not_its_columns_is_told_at_once():
    with pytest.raises(ReviewLogError) as error:
        ReviewFrame(LOG.set_index("rating"), Columns(card="crad"))
    assert [found.column for found in error.value.violations] == ["crad", "rating"]
    assert "(rating)" in error.value.hint
    with pytest.raises(ReviewLogError) as error:
        ReviewFrame(LOG.set_axis(["user", "card", "card", "time"], axis=1), Columns(rating="user"))
    assert [found.kind for found in error.value.violations] == ["duplicate"]
    tables = (LOG, pl.DataFrame(), pa.table({}), "a", 1)
    assert [is_table(each) for each in tables] == [True, True, True, False, False]
    for wrong in (LOG["card"], pl.Series([1])):
        with pytest.raises(ConfigError):
            to_pandas(wrong)


def test_a_log_stays_as_it_was_when_it_was_given(assert_same_logs):
    frame = LOG.copy()
    source = ReviewFrame(frame, USER, selection="ann")
    frame.loc[:, "rating"] = 1
    del frame["card"]
    for each in (source, pickle.loads(pickle.dumps(source))):
        assert_same_logs(each, ReviewFrame(LOG, USER, selection="ann"))
    assert source.users() == ("ann",)


def test_times_without_a_zone_are_of_the_zone_that_is_said(assert_same_logs):
    local = with_column("time", LOG["time"].dt.tz_convert("Asia/Tokyo").dt.tz_localize(None))
    reading = Reading(time_zone="Asia/Tokyo", day_start_hour=0)
    found, expected = (ReviewFrame(each, USER, reading=reading) for each in (local, LOG))
    assert_same_logs(found, expected)
