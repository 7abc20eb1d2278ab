"""Errors in logs: refused by kind, column and row, or left out and counted."""

import json
import pickle
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.data.options import Columns
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

USERS = Columns(user="who")
GOOD = {
    "card": [1, 1, 2, 2, 3],
    "rating": [3, 1, 3, 2, 4],
    "time": [f"2024-01-0{day}" for day in (1, 2, 3, 4, 5)],
}
# What tables call these columns, in addition to card, rating and time
NAMES = {"elapsed_days": "gap", "elapsed_seconds": "secs", "duration_ms": "took", "note": "nid"}
NAMES |= {"user": "who", "recorded_at": "stored", **{n: n for n in ("day", "state", "deck", "p")}}
FORMS = ("csv", "parquet", "frame", "sql")


def source_of(form, frame, folder, **reading):
    columns = Columns(**{noun: name for noun, name in NAMES.items() if name in frame})
    path = folder / ("log.csv" if form == "csv" else "log.parquet")
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    query = {"query": f"SELECT * FROM '{path}'"} if form == "sql" else {}
    return ReviewTable({"frame": frame, "sql": None}.get(form, path), columns, **query, **reading)


def table_of(words):
    """Make a log of which columns differ: ``COLUMN=VALUES``, or ``-COLUMN``.

    Values are five, one for all rows, or none; numbers where all of them are. A dot is a blank.
    """
    table = dict(GOOD)
    for word in words:
        name, _, text = word.partition("=")
        if name == "day" or name.startswith("-"):
            table.pop("time" if name == "day" else name[1:])
        if name.startswith("-"):
            continue
        cells = text.replace("·", " ").replace(r"\x1b", "\x1b").split(",")
        cells = [] if text == "none" else [cell or None for cell in cells]
        if all(re.fullmatch(r"-?\d{1,18}(\.\d)?", cell or "0") for cell in cells):
            kind = float if "." in text else int
            cells = [cell and kind(cell) for cell in cells]
        table[name] = cells * (1 if len(cells) == 5 else 5)
    return pd.DataFrame(table)


SHOWN = ("card", "day", "rating", "elapsed_days", "elapsed_seconds", "duration_ms")
SHOWN += ("deck", "note", "recorded")


def told(form, words, folder):
    """Read the first user, who is the one with something odd; return the error, or what is read.

    Words with a plus sign are options of reading.
    """
    options = dict(word[1:].split("=") for word in words if word.startswith("+"))
    options = {name: yaml.safe_load(value.replace("·", " ")) for name, value in options.items()}
    table = table_of([word for word in words if not word.startswith("+")])
    try:
        source = source_of(form, table, folder, **options)
        log = source.read(source.users()[0])
    except ReviewLogError as error:
        return error
    columns = {name: getattr(log, name) for name in SHOWN if getattr(log, name) is not None}
    lines = [f"{n} {' '.join(f'{v:.9g}' for v in np.ravel(each))}" for n, each in columns.items()]
    titles = {name: each for name, each in log.titles.items() if each}
    return "\n".join(["is read", *lines, *(f"{each}" for each in (log.left_out, titles) if each)])


def facts(found, *, with_rows=True):
    if isinstance(found, str):
        return found
    return [(each.kind, each.column, each.rows if with_rows else ()) for each in found.violations]


@pytest.mark.parametrize(
    "form", [pytest.param(each, marks=() if each == "csv" else pytest.mark.slow) for each in FORMS]
)
def test_what_is_wrong_is_told_by_kind_column_and_row(tmp_path, transcript, form):
    def told_by(*words):
        error = told("csv", words, tmp_path)
        if form != "sql" or not any(word.startswith("day=") for word in words):
            # A query reads times only, is sorted by time, and asked for each user once.
            with_rows = form != "sql" or not any(word.startswith(("time", "who")) for word in words)
            found = error if form == "csv" else told(form, words, tmp_path)
            assert facts(found, with_rows=with_rows) == facts(error, with_rows=with_rows), words
        if isinstance(error, str):
            return error
        assert len(str(error)) < 700
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        return "\n".join(", ".join(filter(None, [k, c, *rows])) for k, c, rows in facts(error))

    transcript("log_refusals", told_by)


def test_rows_with_impossible_times_can_be_left_out():
    later = datetime.now(UTC) + timedelta(days=300)
    times = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (3, 1, 2, 4)]
    times += [later, datetime(1970, 1, 1, tzinfo=UTC), later]
    frame = pd.DataFrame({"who": "a", "card": range(7), "rating": 3, "time": times})
    frame = pd.concat([frame, frame.iloc[[4]].assign(who="b")])
    drops, strict = (ReviewTable(frame, USERS, invalid_times=each) for each in ("drop", "error"))
    log = drops.read("a")
    assert log.card.tolist() == [1, 2, 0, 3]
    assert log.left_out == {"time before 1980": 1, "time in the future": 2}
    for source, user, is_advised in ((strict, "a", True), (drops, "b", False)):
        with pytest.raises(ReviewLogError) as caught:
            source.read(user)  # of b nothing would be left
        assert {each.kind for each in caught.value.violations} == {"out_of_range"}
        assert ("data.invalid_times=drop" in caught.value.hint) == is_advised


def build(**columns):
    return reviews_from_columns(user=1, source="log.csv", **columns)


def refused(**columns):
    """Return kind, column and rows of all that is wrong."""
    with pytest.raises(ReviewLogError) as caught:
        build(**columns)
    return facts(caught.value)


def test_a_step_back_by_one_day_is_not_taken_for_a_first_review():
    found = refused(card=[1, 1], rating=[1, 2], day=[5, 4], elapsed_days=[-1, -1])
    assert [each[:2] for each in found] == [("order", "day"), ("out_of_range", "elapsed_days")]


def test_a_value_that_is_none_of_its_column_is_refused(transcript):
    def told_by(column, value):
        found = refused(**{"card": [1], "rating": [3], "day": [0], column: json.loads(value)})
        return "".join(f"  {kind}, {name}, {rows}\n" for kind, name, rows in found)

    transcript("values_refused", told_by)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_derived_intervals_equal_a_plain_loop(steps):
    card = [card for card, _ in steps]
    day = np.cumsum([gap for _, gap in steps])
    last, expected = {}, []
    for one_card, one_day in zip(card, day, strict=True):
        expected.append(one_day - last[one_card] if one_card in last else -1)
        last[one_card] = one_day
    log = build(card=card, rating=[3] * len(card), day=day)
    assert log.elapsed_days.tolist() == expected
    assert log.elapsed.tolist() == [max(0, gap) for gap in expected]
    assert log.row.tolist() == list(range(len(card)))


def rows_of(**columns):
    """Forty reviews of four users, a row a day, with other columns in place of some."""
    rows = range(40)
    times = [f"2024-01-01T00:00:{row:02}Z" for row in rows]
    usual = {"who": [f"u{row % 4}" for row in rows], "card": [row // 8 for row in rows]}
    return pd.DataFrame({**usual, "rating": 3, "time": times, **columns})


def error_of(source, user=None):
    with pytest.raises(ReviewLogError) as caught:
        source.read(source.users()[0] if user is None else user)
    return caught.value


def test_rows_of_several_users_are_refused_in_one_error_and_listed():
    data = rows_of().astype(object)
    data.loc[[0, 5], "rating"] = None
    data.loc[6, "rating"] = "soso"
    data.loc[[8, 9], ["card", "time"]] = data.loc[[4, 5], ["card", "time"]].to_numpy()
    data.loc[11, "time"] = "2999-01-01T00:00:00Z"
    data.to_csv("log.csv", index=False)
    with pytest.raises(ReviewLogError, match="2 of 40 rows, of 2 of 4 users") as caught:
        ReviewTable("log.csv", USERS).users()
    wrong = {(each.kind, each.column, each.rows) for each in caught.value.violations}
    assert wrong == {
        ("missing", "rating", ("row 1", "row 6")),
        ("wrong_type", "rating", ("row 7",)),
        ("out_of_range", "time", ("row 12",)),
        ("duplicate", "card", ("row 9",)),  # row 10 is one of row 6, which has no rating
    }
    options = {"missing": "drop", "invalid_times": "drop", "duplicates": "drop"}
    assert all(f"data.{name}=" in caught.value.hint for name in (*options, "ratings"))
    assert caught.value.hint.endswith("Each row: rows.csv.")
    listed = pd.read_csv("rows.csv").fillna("")
    assert [*listed] == ["user", "row", "column", "value", "problem"]
    assert listed["row"].tolist() == [1, 6, 7, 9, 12]
    assert listed["user"].tolist() == ["u0", "u1", "u2", "u0", "u3"]
    assert listed["value"].tolist()[2:] == ["soso", "0", "2999-01-01T00:00:00Z"]
    # Of one user alone, or of other users, others are read.
    assert ReviewTable("log.csv", USERS, users=["u3"]).users() == ("u3",)
    source = ReviewTable("log.csv", USERS, ratings={"soso": 2, "3": 3}, **options)
    logs = [source.read(user) for user in source.users()]
    assert sum(map(len, logs)) + sum(sum(log.left_out.values()) for log in logs) == 40


def test_the_list_of_rows_replaces_no_file_of_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows_of(rating=None).to_csv("rows.csv", index=False)
    content = (tmp_path / "rows.csv").read_bytes()
    with pytest.raises(ReviewLogError) as caught:
        ReviewTable("rows.csv", USERS).users()
    assert (tmp_path / "rows.csv").read_bytes() == content
    assert "rows.csv" not in caught.value.hint


def test_times_that_are_possible_for_their_user_alone_are_not_error_of():
    units = [1_700_000_000 + 90_000 * row for row in range(40)]
    units = [unit * (1000 if row % 4 == 3 else 1) for row, unit in enumerate(units)]
    source = ReviewTable(rows_of(time=units), USERS)
    assert [len(source.read(user)) for user in source.users()] == [10] * 4


@pytest.mark.parametrize("noun", ["card", "rating", "time", "day"])
@pytest.mark.parametrize("word", [None, "NULL", " "])
def test_rows_without_a_value_are_left_out_and_counted(noun, word):
    columns = {"day": "day"} if noun == "day" else {}
    values = pd.Series([*rows_of().get(noun, range(40))], dtype=object)
    values[[1, 5, 9]] = word
    data, columns = rows_of(**{noun: values}), {**columns, "user": "who"}
    assert "data.missing=drop" in error_of(ReviewTable(data, columns), "u1").hint
    source = ReviewTable(data, columns, missing="drop")
    logs = {user: source.read(user) for user in source.users()}
    assert {user: log.left_out for user, log in logs.items() if log.left_out} == {
        "u1": {f"row without a {noun}": 3}
    }
    assert [len(log) for log in logs.values()] == [10, 7, 10, 10]
    nothing = error_of(ReviewTable(rows_of(rating=None).drop(columns="who"), missing="drop"))
    assert [each.kind for each in nothing.violations] == ["empty"]


@pytest.mark.parametrize("column", ["card", "who"])
def test_numbers_that_a_spreadsheet_has_rounded_are_no_names(tmp_path, column):
    rows_of(**{column: ["1.70004E+12", *["7"] * 39]}).to_csv("log.csv", index=False)
    error = error_of(ReviewTable("log.csv", USERS), "u0" if column == "card" else None)
    assert [(each.column, each.rows) for each in error.violations] == [(column, ("row 1",))]
    assert "1.70004E+12" in str(error)
    assert ("spreadsheet" in error.hint) == (column == "card")
    whole = rows_of(card=["1.5E+1", *["7"] * 39])  # all its digits are there
    assert len(ReviewTable(whole, USERS).read("u0")) == 10


def test_local_times_that_clocks_skip_are_refused_or_left_out():
    times = ["2024-03-31T01:30:00", "2024-03-31T02:30:00", "2024-03-31T03:30:00"]
    text = pd.DataFrame({"card": 1, "rating": 3, "time": times})
    for data in (text, text.assign(time=pd.to_datetime(text["time"]))):
        error = error_of(ReviewTable(data, time_zone="Europe/Berlin"))
        assert [(each.column, each.rows) for each in error.violations] == [("time", ("row 2",))]
        assert "Europe/Berlin" in error.violations[0]
        log = ReviewTable(data, time_zone="Europe/Berlin", invalid_times="drop").read("frame")
        assert log.elapsed_seconds.tolist() == [-1, 3600]
        assert sum(log.left_out.values()) == 1
