"""Tables in files and in memory: forms that are read alike, and what is no table."""

import pickle
import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from srs_eval.data import files
from srs_eval.data.files import existing, read_table
from srs_eval.data.options import Columns
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

TEXT = "card,rating,day\n1,3,0\n2,4,1\n"


USUAL = {
    "comma": TEXT,
    **{sign: TEXT.replace(",", sign) for sign in (";", "\t", ", ", " ,")},
    "windows": TEXT.replace("\n", "\r\n"),
    "mark": f"\ufeff{TEXT}",
    "blank lines": f"\n{TEXT}\n",
    "Excel": f"sep=;\n{TEXT.replace(',', ';')}",
}


@pytest.mark.parametrize("text", USUAL.values(), ids=map(repr, USUAL))
def test_the_usual_forms_of_csv_are_read(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode())
    log = ReviewTable(path, Columns(day="day")).read("log")
    assert [log.card.tolist(), log.rating.tolist(), log.day.tolist()] == [[1, 2], [3, 4], [0, 1]]
    assert path.read_bytes() == text.encode()


def test_notes_of_pandas_in_parquet_are_not_read(tmp_path):
    table = pa.table({"card": [1]}).replace_schema_metadata({"pandas": "{garbage"})
    pq.write_table(table, tmp_path / "data.parquet")
    assert list(read_table(tmp_path / "data.parquet").columns) == ["card"]


REFUSED = {
    "empty.csv": b"",
    "blank.csv": b"\n\n",
    "mark.csv": b"\xef\xbb\xbf",
    "binary.csv": b"card,rating\n1,3\x00\n",
    "parquet.csv": b"PAR1\x15\x04\0",
    "zip.csv": b"PK\x03\x04rest",
    "gzip.csv": b"\x1f\x8b\x08",
    "utf16.csv": TEXT.encode("utf-16"),
    "latin.csv": "card,rating\nKäse,3\n".encode("latin-1"),
    "longer row.csv": b"card,rating\n1,3\n1,3,5,6\n",
    "shorter row.csv": b"card,rating\n1,3\n1\n",
    "no header.csv": b"card,rating\n1,3,9\n2,4,9\n",
    "quote.csv": b'card,rating\n"1,3\n',
    "empty.parquet": b"",
    "cut.parquet": b"PAR1rest",
    "other.xlsx": b"PK",
    "bad.jsonl": b'{"card": 1}\n[1, 2]\n',
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(REFUSED[name])
    with pytest.raises(ReviewLogError) as caught:
        read_table(path)
    assert caught.value.source == str(path)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)


def test_the_line_that_is_wrong_is_told(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"card,rating\n" + b"1,3\n" * 500_000 + b"1,\x1b[31m,5\n")
    with pytest.raises(ReviewLogError, match=r"500002.*2 columns, got 3: 1,\\x1b\[31m,5"):
        read_table(path)
    path = tmp_path / "log.jsonl"
    path.write_text('{"card": 1}\n\n[1]\n')
    with pytest.raises(ReviewLogError, match="line 3"):
        read_table(path)


def test_what_is_not_there_or_too_large_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: np.zeros(1_000_000, np.int64) for name in "abc"}), path)
    assert path.stat().st_size < 20_000
    assert len(read_table(path)) == 1_000_000
    monkeypatch.setattr(files, "_LARGEST_TABLE", 2_999_999)
    (tmp_path / "folder.csv").mkdir()
    for name in ("log.parquet", "folder.csv", "nowhere/else.csv"):
        with pytest.raises(ReviewLogError, match=name):
            read_table(existing(tmp_path / name))


def test_a_damaged_page_is_refused(tmp_path):
    card, path = np.arange(500) * 2**31 + 7, tmp_path / "log.parquet"
    form = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pq.write_table(pa.table({"card": card}), path, **form)
    content, value = path.read_bytes(), card[130].tobytes()
    assert content.count(value) == 1
    path.write_bytes(content.replace(value, (card[130] ^ 16).tobytes()))
    with pytest.raises(ReviewLogError, match="not a readable parquet file"):
        read_table(path)


SECONDS = np.array([0, 349_200, 225_000, 90_000, 1, 64_800])
ARROW = pa.table(
    {
        "user": ["ann", "ben"] * 3,
        "card": [2**62 + 2, 2**62 + 1, None, 2**62 + 1, 10**16 + 1, 2**53 + 1],
        "rating": [1, 3, 4, 2, 3, 3],
        "time": pa.array((1_700_000_000 + SECONDS) * 10**6, pa.timestamp("us", "UTC")),
    }
)
LOG = ARROW.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
read = partial(ReviewTable, columns=Columns(user="user"), missing="drop")

EQUAL = {
    "shuffled index": LOG.set_axis([9, 9, 3, 0, -1, 2]),
    "several levels of index": LOG.set_index(["user", "card"], drop=False),
    "further columns": LOG.assign(**{"a": 1, "b": [[1]] * 6, "x": 0}).rename(columns={"x": 7}),
    "categories": LOG.astype(dict.fromkeys(LOG, "category")),
    "small integers": LOG.astype({"rating": "uint8"}),
    "floats": LOG.astype({"rating": "float32"}),
    "cards as text": LOG.assign(card=LOG["card"].map(str, na_action="ignore")),
    "objects": LOG.astype(object),
    "another zone": LOG.assign(time=LOG["time"].dt.tz_convert("Asia/Tokyo")),
    "UTC without a zone": LOG.assign(time=LOG["time"].dt.tz_localize(None)),
    "nanoseconds": LOG.assign(time=LOG["time"].dt.as_unit("ns")),
    "seconds since 1970": LOG.assign(time=LOG["time"].dt.as_unit("s").astype("int64")),
    "text": LOG.assign(time=LOG["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
    "backed by Arrow": LOG.convert_dtypes(dtype_backend="pyarrow"),
    "Arrow": ARROW,
    "Arrow dictionaries": ARROW.set_column(0, "user", ARROW["user"].dictionary_encode()),
    "Arrow decimals": ARROW.set_column(1, "card", ARROW["card"].cast(pa.decimal128(20, 0))),
    "polars": pl.from_arrow(ARROW),
    "polars categories": pl.from_arrow(ARROW).with_columns(pl.col("user").cast(pl.Categorical)),
}


@pytest.fixture
def files_of_log(tmp_path):
    """Write the log; return what reads each file."""
    pq.write_table(ARROW, tmp_path / "frame.parquet")
    LOG.to_csv(tmp_path / "frame.csv", index=False)
    pl.from_arrow(ARROW).write_ndjson(tmp_path / "frame.jsonl")
    with closing(sqlite3.connect(tmp_path / "frame.sqlite")) as connection:
        EQUAL["text"].to_sql("logs", connection)
    queries = dict.fromkeys(("parquet", "csv", "jsonl")) | {"sqlite": "select * from logs"}
    return [read(tmp_path / f"frame.{form}", query=each) for form, each in queries.items()]


@pytest.mark.parametrize("form", EQUAL)
def test_every_form_of_a_log_is_the_same_log_as_in_files(files_of_log, assert_same_logs, form):
    for file in files_of_log:
        assert_same_logs(read(EQUAL[form]), file)
    assert file.read("ben").card.tolist() == [2**53 + 1, *[2**62 + 1] * 2]
    assert file.read("ann").left_out == {"row without a card": 1}


def test_what_is_no_table_or_has_not_its_columns_is_told_at_once():
    with pytest.raises(ReviewLogError) as error:
        ReviewTable(LOG.set_index("rating"), Columns(card="crad"))
    assert [each.column for each in error.value.violations] == ["crad", "rating"]
    for wrong in (LOG["card"], pl.Series([1]), 1):
        with pytest.raises((TypeError, ValueError, pa.ArrowException)):
            ReviewTable(wrong)


def test_a_log_stays_as_it_was_when_it_was_given(assert_same_logs):
    frame = LOG.copy()
    source = read(frame, users="ann")
    frame.loc[:, "rating"] = 1
    del frame["card"]
    for each in (source, pickle.loads(pickle.dumps(source))):
        assert_same_logs(each, read(LOG, users="ann"))
    assert source.users() == ("ann",)
