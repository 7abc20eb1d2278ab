"""Tables in files and in memory: forms that are read alike, and what is no table."""

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import refusal

from srs_eval.data import files
from srs_eval.data.files import check_columns, existing, read_table
from srs_eval.data.options import Columns
from srs_eval.data.table import ReviewTable, is_table, to_pandas
from srs_eval.errors import ConfigError, ReviewLogError

TEXT = "card,rating,day\n1,3,0\n2,4,1\n"


USUAL = {
    "comma": TEXT,
    **{sign: TEXT.replace(",", sign) for sign in (";", "\t", ", ")},
    "windows": TEXT.replace("\n", "\r\n"),
    "mark": f"\ufeff{TEXT}",
    "blank line": f"{TEXT}\n",
    "blanks around names": TEXT.replace("card,rating", "card , rating"),
}


@pytest.mark.parametrize("text", USUAL.values(), ids=map(repr, USUAL))
def test_the_usual_forms_of_csv_are_read(tmp_path, text):
    content = text.encode()
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    table = read_table(path)
    assert list(table.columns) == ["card", "rating", "day"]
    assert table.to_numpy().tolist() == [[1, 3, 0], [2, 4, 1]]
    assert path.read_bytes() == content


def test_parquet_is_read_without_columns_from_folder_names_and_notes_of_pandas(tmp_path):
    path = tmp_path / "user_id=8" / "data.parquet"
    path.parent.mkdir()
    table = pa.table({"card": [1]}).replace_schema_metadata({"pandas": "{garbage"})
    pq.write_table(table, path)
    assert list(read_table(path).columns) == ["card"]


REFUSED = {
    "empty.csv": b"",
    "blank.csv": b"\n\n",
    "mark.csv": b"\xef\xbb\xbf",
    "binary.csv": b"card,rating\n1,3\x00\n",
    "parquet.csv": b"PAR1\x15\x04",
    "zip.csv": b"PK\x03\x04rest",
    "sqlite.csv": b"SQLite format 3\x00",
    "gzip.csv": b"\x1f\x8b\x08",
    "utf16.csv": TEXT.encode("utf-16"),
    "latin.csv": "card,rating\nKäse,3\n".encode("latin-1"),
    "longer row.csv": b"card,rating\n1,3\n1,3,5,6\n",
    "no header.csv": b"card,rating\n1,3,9\n2,4,9\n",
    "quote.csv": b'card,rating\n"1,3\n',
    "empty.parquet": b"",
    "other.xlsx": b"PK",
}


def test_what_is_no_table_or_has_not_its_columns_is_refused(tmp_path, golden_text):
    for name, content in REFUSED.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "cut.parquet"
    pd.DataFrame({"card": np.arange(1000)}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    (tmp_path / "folder.csv").mkdir()
    calls = [(read_table, path) for path in sorted(tmp_path.iterdir())]
    calls += [(existing, tmp_path / name) for name in ("gzipp.csv", "nowhere/else.csv")]
    days = Columns(day="day", rating="grade")
    calls.append((lambda path: check_columns(path, ["card_id", "grade"], days), "log.csv"))
    said = [refusal(partial(call, path), ReviewLogError) for call, path in calls]
    # The reasons of pandas and Arrow are in their own words.
    theirs = r"(well-formed CSV file|readable parquet file): .*"
    golden_text("data_files", re.sub(theirs, r"\1: …", "\n".join(said)))


@pytest.mark.parametrize("user", [None, "who"])
def test_a_damaged_page_is_refused(tmp_path, user):
    card, path = np.arange(500) * 2**31 + 7, tmp_path / "log.parquet"
    table = pa.table({"card": card, "rating": card % 4 + 1, "day": np.arange(500)})
    table = table.append_column("who", [["a"] * 250 + ["b"] * 250]) if user else table
    form = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pq.write_table(table, path, row_group_size=125, **form)
    content, value = path.read_bytes(), card[130].tobytes()
    assert content.count(value) == 1  # in the second group of rows, of the first user
    path.write_bytes(content.replace(value, (card[130] ^ 16).tobytes()))
    source = ReviewTable(path, Columns(day="day", user=user))
    with pytest.raises(ReviewLogError, match="not a readable parquet file"):
        source.read(source.users()[0])


def test_more_rows_than_any_memory_holds_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: np.zeros(1_000_000, np.int64) for name in "abc"}), path)
    assert path.stat().st_size < 20_000
    assert len(read_table(path)) == 1_000_000
    monkeypatch.setattr(files, "_LARGEST_TABLE", 2_999_999)
    with pytest.raises(ReviewLogError):
        read_table(path)


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
    "several levels of index": LOG.set_index(["user", "card"], drop=False),
    "further columns": LOG.assign(**{"a": 1, "b": [[1]] * 6, "x": 0}).rename(columns={"x": 7}),
    "categories": LOG.astype(dict.fromkeys(LOG, "category")),
    "nullable integers": LOG.astype({"card": "Int64", "rating": "UInt8"}),
    "floats": LOG.astype({"card": float, "rating": "float32"}),
    "cards as text": LOG.astype({"card": "str"}),
    "objects": LOG.astype(object),
    "another zone": with_column("time", LOG["time"].dt.tz_convert("Asia/Tokyo")),
    "UTC without a zone": with_column("time", LOG["time"].dt.tz_localize(None)),
    "nanoseconds": with_column("time", LOG["time"].dt.as_unit("ns")),
    "seconds since 1970": with_column("time", LOG["time"].dt.as_unit("s").astype("int64")),
    "text": with_column("time", LOG["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
    "backed by Arrow": LOG.convert_dtypes(dtype_backend="pyarrow"),
    "Arrow": ARROW,
    "Arrow dictionaries": ARROW.set_column(0, "user", ARROW["user"].dictionary_encode()),
    "Arrow decimals": ARROW.set_column(1, "card", ARROW["card"].cast(pa.decimal128(20, 0))),
    "polars": pl.from_arrow(ARROW),
    "polars categories": pl.from_arrow(ARROW).with_columns(pl.col("user").cast(pl.Categorical)),
}


def test_every_form_of_a_log_is_the_same_log_as_in_files(tmp_path, assert_same_logs):
    path = tmp_path / "frame.csv"
    pq.write_table(ARROW, tmp_path / "frame.parquet")
    of_parquet = ReviewTable(tmp_path / "frame.parquet", USER)
    for table in EQUAL.values():
        assert_same_logs(ReviewTable(table, USER), of_parquet)
    LOG.to_csv(path, index=False)
    assert_same_logs(ReviewTable(path, USER), of_parquet)
    one = LOG[LOG["user"] == "ann"].drop(columns="user")
    one.to_csv(path, index=False)
    assert_same_logs(ReviewTable(one), ReviewTable(path))


def test_what_is_no_table_or_has_not_its_columns_is_told_at_once():
    with pytest.raises(ReviewLogError, match=r"\(rating\)") as error:
        ReviewTable(LOG.set_index("rating"), Columns(card="crad"))
    assert [found.column for found in error.value.violations] == ["crad", "rating"]
    tables = (LOG, pl.DataFrame(), pa.table({}), "a", 1)
    assert [is_table(each) for each in tables] == [True, True, True, False, False]
    for wrong in (LOG["card"], pl.Series([1])):
        with pytest.raises(ConfigError):
            to_pandas(wrong)


def test_a_log_stays_as_it_was_when_it_was_given(assert_same_logs):
    frame = LOG.copy()
    source = ReviewTable(frame, USER, users="ann")
    frame.loc[:, "rating"] = 1
    del frame["card"]
    for each in (source, pickle.loads(pickle.dumps(source))):
        assert_same_logs(each, ReviewTable(LOG, USER, users="ann"))
    assert source.users() == ("ann",)
