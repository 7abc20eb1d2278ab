"""Rows that real tables have: left out and counted where asked for, else told with the remedy."""

import json

import pandas as pd
import pytest

from srs_eval.data.options import Columns
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

USERS = Columns(user="who")


def table(**columns):
    """Forty reviews of four users, a row a day, with other columns in place of some."""
    rows = range(40)
    times = [f"2024-01-01T00:00:{row:02}Z" for row in rows]
    usual = {"who": [f"u{row % 4}" for row in rows], "card": [row // 8 for row in rows]}
    return pd.DataFrame({**usual, "rating": 3, "time": times, **columns})


def refused(source, user=None):
    with pytest.raises(ReviewLogError) as caught:
        source.read(source.users()[0] if user is None else user)
    return caught.value


def test_rows_of_several_users_are_refused_in_one_error_and_listed():
    data = table().astype(object)
    data.loc[[0, 5], "rating"] = None
    data.loc[6, "rating"] = "soso"
    data.loc[[8, 9], "card"] = data.loc[[4, 5], "card"].to_numpy()
    data.loc[[8, 9], "time"] = data.loc[[4, 5], "time"].to_numpy()
    data.loc[11, "time"] = "2999-01-01T00:00:00Z"
    data.to_csv("log.csv", index=False)
    with pytest.raises(ReviewLogError, match="2 of 40 rows, of 2 of 4 users") as caught:
        ReviewTable("log.csv", USERS).users()
    wrong = {(each.kind, each.column, each.rows) for each in caught.value.violations}
    assert wrong == {
        ("missing", "rating", ("row 1", "row 6")),
        ("wrong_type", "rating", ("row 7",)),
        ("out_of_range", "time", ("row 12",)),
        ("duplicate", "card", ("row 9", "row 10")),
    }
    options = {"missing": "drop", "invalid_times": "drop", "duplicates": "drop"}
    for name in (*options, "ratings"):
        assert f"data.{name}=" in caught.value.hint
    assert caught.value.hint.endswith("Each row: rows.csv.")
    listed = pd.read_csv("rows.csv").fillna("")
    assert [*listed] == ["user", "row", "column", "value", "problem"]
    assert listed["row"].tolist() == [1, 6, 7, 9, 10, 12]
    assert listed["user"].tolist() == ["u0", "u1", "u2", "u0", "u1", "u3"]
    assert listed["value"].tolist()[2:] == ["soso", "0", "0", "2999-01-01T00:00:00Z"]
    # Of one user alone, or of other users, others are read.
    assert ReviewTable("log.csv", USERS, users=["u3"]).users() == ("u3",)
    source = ReviewTable("log.csv", USERS, ratings={"soso": 2, "3": 3}, **options)
    logs = [source.read(user) for user in source.users()]
    assert sum(map(len, logs)) + sum(sum(log.left_out.values()) for log in logs) == 40


def test_the_list_of_rows_replaces_no_file_of_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(rating=None).to_csv("rows.csv", index=False)
    content = (tmp_path / "rows.csv").read_bytes()
    with pytest.raises(ReviewLogError) as caught:
        ReviewTable("rows.csv", USERS).users()
    assert (tmp_path / "rows.csv").read_bytes() == content
    assert "rows.csv" not in caught.value.hint


def test_times_that_are_possible_for_their_user_alone_are_not_refused():
    units = [1_700_000_000 + 90_000 * row for row in range(40)]
    units = [unit * (1000 if row % 4 == 3 else 1) for row, unit in enumerate(units)]
    source = ReviewTable(table(time=units), USERS)
    assert [len(source.read(user)) for user in source.users()] == [10] * 4


@pytest.mark.parametrize("noun", ["card", "rating", "time", "day"])
@pytest.mark.parametrize("word", [None, "NULL", " "])
def test_rows_without_a_value_are_left_out_and_counted(noun, word):
    columns = {"day": "day"} if noun == "day" else {}
    values = pd.Series([*table().get(noun, range(40))], dtype=object)
    values[[1, 5, 9]] = word
    data, columns = table(**{noun: values}), {**columns, "user": "who"}
    assert "data.missing=drop" in refused(ReviewTable(data, columns), "u1").hint
    source = ReviewTable(data, columns, missing="drop")
    logs = {user: source.read(user) for user in source.users()}
    assert {user: log.left_out for user, log in logs.items() if log.left_out} == {
        "u1": {f"row without a {noun}": 3}
    }
    assert [len(log) for log in logs.values()] == [10, 7, 10, 10]
    nothing = refused(ReviewTable(table(rating=None).drop(columns="who"), missing="drop"))
    assert [each.kind for each in nothing.violations] == ["empty"]


@pytest.mark.parametrize("column", ["card", "who"])
def test_numbers_that_a_spreadsheet_has_rounded_are_no_names(tmp_path, column):
    table(**{column: ["1.70004E+12", *["7"] * 39]}).to_csv("log.csv", index=False)
    error = refused(ReviewTable("log.csv", USERS), "u0" if column == "card" else None)
    assert [(each.column, each.rows) for each in error.violations] == [(column, ("row 1",))]
    assert "1.70004E+12" in str(error)
    assert ("spreadsheet" in error.hint) == (column == "card")
    whole = table(card=["1.5E+1", *["7"] * 39])  # all its digits are there
    assert len(ReviewTable(whole, USERS).read("u0")) == 10


def test_local_times_that_clocks_skip_are_refused_or_left_out():
    times = ["2024-03-31T01:30:00", "2024-03-31T02:30:00", "2024-03-31T03:30:00"]
    text = pd.DataFrame({"card": 1, "rating": 3, "time": times})
    for data in (text, text.assign(time=pd.to_datetime(text["time"]))):
        error = refused(ReviewTable(data, time_zone="Europe/Berlin"))
        assert [(each.column, each.rows) for each in error.violations] == [("time", ("row 2",))]
        assert "Europe/Berlin" in error.violations[0]
        log = ReviewTable(data, time_zone="Europe/Berlin", invalid_times="drop").read("frame")
        assert log.elapsed_seconds.tolist() == [-1, 3600]
        assert sum(log.left_out.values()) == 1


def test_json_lines_and_a_header_of_excel_are_read_as_other_tables(tmp_path, assert_same_logs):
    table().to_csv("log.csv", index=False)
    lines = [json.dumps(row) for row in table().to_dict(orient="records")]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    (tmp_path / "excel.csv").write_text(f"sep=;\n{table().to_csv(index=False, sep=';')}")
    for name in ("log.jsonl", "excel.csv"):
        assert_same_logs(ReviewTable(tmp_path / name, USERS), ReviewTable("log.csv", USERS))
    (tmp_path / "bad.jsonl").write_text(f'{lines[0]}\n{{"who": "u1", \n')
    with pytest.raises(ReviewLogError, match=r"not JSON lines.*line 2"):
        ReviewTable(tmp_path / "bad.jsonl", USERS).users()
