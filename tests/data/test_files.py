"""CSV and parquet files: forms that are read, and files that are no table."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from srs_eval.data import files
from srs_eval.data.files import check_columns, column_names, existing, read_table
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import ReviewLogError
from srs_eval.results.files import write_table

TEXT = "card,rating,day\n1,3,0\n2,4,1\n"


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.replace(",", ";").encode(),
        TEXT.replace(",", "\t").encode(),
        TEXT.replace(",", ", ").encode(),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode() + b"\n",
    ],
    ids=["comma", "semicolon", "tab", "spaces", "windows", "bom", "blank line"],
)
def test_the_usual_forms_of_csv_are_read(tmp_path, content):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    table = read_table(path)
    assert list(table.columns) == column_names(path) == ["card", "rating", "day"]
    assert table.to_numpy().tolist() == [[1, 3, 0], [2, 4, 1]]
    assert path.read_bytes() == content


def test_parquet_is_read_without_columns_from_folder_names_and_notes_of_pandas(tmp_path):
    path = tmp_path / "user_id=8" / "data.parquet"
    path.parent.mkdir()
    table = pa.table({"card": [1]}).replace_schema_metadata({"pandas": "{garbage"})
    pq.write_table(table, path)
    assert list(read_table(path).columns) == column_names(path) == ["card"]


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
    needed = [("card", "the card"), ("day", "the day")]
    calls.append((lambda path: check_columns(path, ["card_id", "grade"], needed), "log.csv"))
    said = []
    for call, path in calls:
        with pytest.raises(ReviewLogError) as caught:
            call(path)
        said.append(str(caught.value).replace(str(tmp_path), "…"))
    assert [each.column for each in caught.value.violations] == ["card", "day"]
    for name in ("cut.parquet", "empty.parquet", "folder.csv"):
        with pytest.raises(ReviewLogError):
            column_names(tmp_path / name)
    # The reasons of pandas and Arrow are in their own words.
    theirs = r"(well-formed CSV file|readable parquet file|cannot be read): .*"
    golden_text("data_files", re.sub(theirs, r"\1: …", "\n\n".join(said)) + "\n")


@pytest.mark.parametrize("by_group", [False, True])
def test_pages_are_compared_with_their_checksums(tmp_path, by_group):
    rng = np.random.default_rng(0)
    columns = {"card": rng.integers(0, 2**40, 500), "rating": rng.integers(1, 5, 500)}
    table = pa.table({**columns, "day": np.arange(500), "who": ["a"] * 250 + ["b"] * 250})
    path, names = tmp_path / "log.parquet", Columns(day="day", user="who" if by_group else None)
    if by_group:
        pq.write_table(table, path, row_group_size=125, write_page_checksum=True)
    else:
        write_table(path, table.drop(["who"]))
    content, refused = path.read_bytes(), 0
    for place in range(4, len(content), len(content) // 40):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        source = ReviewTable(path, names)
        try:
            logs = [source.read(user) for user in source.users()]
        except ReviewLogError as error:
            refused += error.source.startswith(str(path))
        else:  # in what is not needed, such as statistics
            for name, values in columns.items():
                assert np.concatenate([getattr(log, name) for log in logs]).tolist() == (
                    values.tolist()
                )
    assert refused > 15


def test_more_rows_than_any_memory_holds_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: np.zeros(1_000_000, np.int64) for name in "abc"}), path)
    assert path.stat().st_size < 20_000
    assert len(read_table(path)) == 1_000_000
    monkeypatch.setattr(files, "_LARGEST_TABLE", 2_999_999)
    with pytest.raises(ReviewLogError):
        read_table(path)
