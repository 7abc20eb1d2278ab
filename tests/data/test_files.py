import numpy as np
import pandas as pd
import pytest

from srs_eval.data.files import check_columns, column_names, existing, read_table
from srs_eval.errors import ReviewLogError

TEXT = "card,rating,day\n1,3,0\n2,4,1\n"


def refusal(path):
    with pytest.raises(ReviewLogError) as caught:
        read_table(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


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


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"card,rating\n1,3\x00\n", "a binary file"),
        (b"PAR1\x15\x04", "a parquet file"),
        (b"PK\x03\x04rest", "data=anki"),
        (b"SQLite format 3\x00", "data=anki"),
        (b"\x1f\x8b\x08", "gzip"),
        (TEXT.encode("utf-16"), "UTF-16 text: save it as UTF-8"),
        ("card,rating\nKäse,3\n".encode("latin-1"), "not UTF-8 text: byte 0xe4"),
        (b"card,rating\n1,3\n1,3,5,6\n", "line 3"),
        (b"card,rating\n1,3,9\n2,4,9\n", "not a well-formed CSV"),
        (b'card,rating\n"1,3\n', "not a well-formed CSV"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_csv_is_refused(tmp_path, content, match):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    assert match in refusal(path)


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    pd.DataFrame({"card": np.arange(1000)}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "not a readable parquet file" in refusal(path)
    with pytest.raises(ReviewLogError, match="not a readable parquet file"):
        column_names(path)
    path.write_bytes(b"")
    assert "not a readable parquet file" in refusal(path)


def test_an_unknown_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "log.xlsx"
    path.write_bytes(b"PK")
    assert ".csv, .tsv, .parquet" in refusal(path)


def test_a_folder_with_the_name_of_a_table_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.mkdir()
    assert "cannot be read" in refusal(path)


def test_a_path_that_does_not_exist_gets_a_suggestion(tmp_path):
    (tmp_path / "reviews.csv").write_text(TEXT)
    with pytest.raises(ReviewLogError, match=r"no such file.*\n.*Did you mean .*reviews\.csv\?"):
        existing(tmp_path / "review.csv")
    with pytest.raises(ReviewLogError, match="has no nowhere"):
        existing(tmp_path / "nowhere" / "else.csv")


def test_missing_columns_are_all_named_with_the_closest_there_is():
    with pytest.raises(ReviewLogError) as caught:
        check_columns("log.csv", ["card_id", "grade"], [("card", "the card"), ("day", "the day")])
    assert str(caught.value) == (
        "log.csv:\n"
        "  - there is no column 'card', needed for the card; did you mean 'card_id'?\n"
        "  - there is no column 'day', needed for the day\n"
        "  Columns: card_id, grade."
    )
