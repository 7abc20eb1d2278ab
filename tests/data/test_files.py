import re

import numpy as np
import pandas as pd
import pytest

from srs_eval.data.files import check_columns, column_names, existing, read_table
from srs_eval.errors import ReviewLogError

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


def test_text_columns_keep_their_zeros_and_words(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("card,rating\n007,3\nNA,4\n,1\n")
    table = read_table(path, text=["card"])
    assert table["card"].tolist()[:2] == ["007", "NA"]
    assert table["card"].isna().tolist() == [False, False, True]


def test_parquet_is_read_without_columns_from_folder_names(tmp_path):
    path = tmp_path / "user_id=8" / "data.parquet"
    path.parent.mkdir()
    pd.DataFrame({"card": [1]}).to_parquet(path)
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


def test_what_is_no_table_is_refused(tmp_path, golden_text):
    for name, content in REFUSED.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "cut.parquet"
    pd.DataFrame({"card": np.arange(1000)}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    (tmp_path / "folder.csv").mkdir()
    said = []
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(ReviewLogError) as caught:
            read_table(path)
        if path.suffix == ".parquet" or path.is_dir():
            with pytest.raises(ReviewLogError):
                column_names(path)
        # The reasons of pandas and Arrow are in their own words.
        text = str(caught.value).replace(str(tmp_path), "…")
        said.append(
            re.sub(
                r"(well-formed CSV file|readable parquet file|cannot be read): .*", r"\1: …", text
            )
        )
    for name in ("gzipp.csv", "nowhere/else.csv"):
        with pytest.raises(ReviewLogError) as caught:
            existing(tmp_path / name)
        said.append(str(caught.value).replace(str(tmp_path), "…"))
    golden_text("data_files", "\n\n".join(said) + "\n")


def test_missing_columns_are_all_named_with_the_closest_there_is(golden_text):
    with pytest.raises(ReviewLogError) as caught:
        check_columns("log.csv", ["card_id", "grade"], [("card", "the card"), ("day", "the day")])
    assert [each.column for each in caught.value.violations] == ["card", "day"]
    golden_text("data_columns", f"{caught.value}\n")
