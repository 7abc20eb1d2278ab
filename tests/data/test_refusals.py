"""What is wrong with a log is told by kind, column and row, whatever the log is kept in."""

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

GOOD = {
    "card": [1, 1, 2, 2, 3],
    "rating": [3, 1, 3, 2, 4],
    "time": [f"2024-01-0{day}" for day in (1, 2, 3, 4, 5)],
}
OPTIONAL = {
    "day": "day",
    "elapsed_days": "gap",
    "elapsed_seconds": "secs",
    "duration_ms": "took",
    "state": "state",
    "user": "who",
    "deck": "deck",
    "note": "nid",
    "p": "p",
    "recorded_at": "stored",
}
FORMS, USER = ("csv", "parquet", "frame", "sql"), Columns(user="who")


def source_of(form, frame, folder, **reading):
    columns = Columns(**{noun: name for noun, name in OPTIONAL.items() if name in frame})
    path = folder / ("log.csv" if form == "csv" else "log.parquet")
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form != "frame":
        frame.to_parquet(path, index=False)
    query = {"query": f"SELECT * FROM '{path}'"} if form == "sql" else {}
    data = {"frame": frame, "sql": None}.get(form, path)
    return ReviewTable(data, columns, **query, **reading)


def values_of(text):
    """Read five values, one for all rows, or none; numbers where all of them are.

    A dot in the middle stands for a blank.
    """
    if text == "none":
        return []
    words = [word.replace(r"\x1b", "\x1b") or None for word in text.replace("·", " ").split(",")]
    if all(word is None or re.fullmatch(r"-?\d{1,18}(\.\d)?", word) for word in words):
        kind = float if "." in text else int
        words = [None if word is None else kind(word) for word in words]
    return words * (1 if len(words) == 5 else 5)


def table_of(words):
    """Make a log of which columns differ: ``COLUMN=VALUES``, or ``-COLUMN``."""
    table = dict(GOOD)
    for word in words:
        name, _, values = word.partition("=")
        if name == "day" or name.startswith("-"):
            table.pop("time" if name == "day" else name[1:])
        if not name.startswith("-"):
            table[name] = values_of(values)
    return pd.DataFrame(table)


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
    columns = {"card": pd.factorize(log.card)[0], "day": log.day, "rating": log.rating}
    columns |= {"gap": log.elapsed_days, "secs": log.elapsed_seconds, "took": log.duration_ms}
    columns |= {"deck": log.deck, "note": log.note}
    if log.recorded is not None:
        columns["p"] = log.recorded[:, 0]
    known = [(name, values) for name, values in columns.items() if values is not None]
    lines = [f"{name} {' '.join(f'{value:.9g}' for value in values)}" for name, values in known]
    lines += [f"left out: {log.left_out}"] if log.left_out else []
    lines += [f"titles of {name}: {titles}" for name, titles in log.titles.items() if titles]
    return "\n".join(["is read", *lines, *log.notes, ""])


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
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.hint) == (str(error), error.hint)
        for one, other in zip(error.violations, again.violations, strict=True):
            assert (one, vars(one)) == (other, vars(other))
        lines = [
            ", ".join([kind, *filter(None, [column]), *rows]) for kind, column, rows in facts(error)
        ]
        return "\n".join(lines or [str(error).replace(str(tmp_path), "…")])

    transcript("log_refusals", told_by)


def test_rows_with_impossible_times_can_be_left_out(tmp_path):
    later = datetime.now(UTC) + timedelta(days=300)
    good = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (3, 1, 2, 4)]
    odd = [later, datetime(1970, 1, 1, tzinfo=UTC), later]
    frame = pd.DataFrame({"who": "a", "card": range(7), "rating": 3, "time": [*good, *odd]})
    frame = pd.concat([frame, frame.iloc[[4]].assign(who="b")])
    drops, strict = (ReviewTable(frame, USER, invalid_times=each) for each in ("drop", "error"))
    log = drops.read("a")
    assert log.card.tolist() == [1, 2, 0, 3]
    assert log.left_out == {"time before 1980": 1, "time in the future": 2}
    for source, user, is_advised in ((strict, "a", True), (drops, "b", False)):
        with pytest.raises(ReviewLogError) as caught:
            source.read(user)  # of b nothing would be left
        assert {each.kind for each in caught.value.violations} == {"out_of_range"}
        assert ("data.invalid_times=drop" in caught.value.hint) == is_advised


ONE = {"card": [1], "rating": [3], "day": [0]}


def build(**columns):
    return reviews_from_columns(user=1, source="log.csv", **columns)


def refused(**columns):
    """Return kind, column and rows of all that is wrong."""
    with pytest.raises(ReviewLogError) as caught:
        build(**columns)
    return [(each.kind, each.column, each.rows) for each in caught.value.violations]


def test_a_step_back_by_one_day_is_not_taken_for_a_first_review():
    found = refused(card=[1, 1], rating=[1, 2], day=[5, 4], elapsed_days=[-1, -1])
    assert [each[:2] for each in found] == [("order", "day"), ("out_of_range", "elapsed_days")]


def test_a_value_that_is_none_of_its_column_is_refused(transcript):
    def told_by(column, value):
        found = refused(**{**ONE, column: json.loads(value)})
        return "".join(f"  {kind}, {name}, {rows}\n" for kind, name, rows in found)

    transcript("values_refused", told_by)


def test_columns_of_other_lengths_and_rows_under_other_names_are_told():
    assert refused(card=[1], rating=[1, 2], day=[0]) == [("length", "", ())]
    names = {"row_name": lambda row: f"line {row + 2}", "column_names": {"rating": "grade"}}
    assert refused(**{**ONE, "rating": [9]}, **names) == [("out_of_range", "grade", ("line 2",))]


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
