"""Columns in memory become a validated log."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ReviewLogError

ONE = {"card": [1], "rating": [3], "day": [0]}
THREE = {"card": [7, 9, 7], "rating": [3, 1, 4]}


def build(**columns):
    return reviews_from_columns(user=1, source="log.csv", **columns)


def told(**columns):
    """Return kind, column and rows of all that is wrong."""
    with pytest.raises(ReviewLogError) as caught:
        build(**columns)
    return [(each.kind, each.column, each.rows) for each in caught.value.violations]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_derived_intervals_equal_a_plain_loop(steps):
    card = [card for card, _ in steps]
    day = np.cumsum([gap for _, gap in steps])
    last = {}
    expected = []
    for one_card, one_day in zip(card, day, strict=True):
        expected.append(one_day - last[one_card] if one_card in last else -1)
        last[one_card] = one_day
    log = build(card=card, rating=[3] * len(card), day=day)
    assert log.elapsed_days.tolist() == expected
    assert log.elapsed.tolist() == [max(0, gap) for gap in expected]
    assert log.row.tolist() == list(range(len(card)))
    same = build(card=card, rating=[3] * len(card), day=day, elapsed_days=expected)
    assert same.elapsed_days.tolist() == expected


def test_every_kind_of_whole_number_is_taken():
    for column in (
        [1, 2, 2],
        (1, 2, 2),
        np.array([1, 2, 2], np.uint8),
        np.array([1.0, 2.0, 2.0], np.float32),
        np.array([1, 2, 2], object),
        pd.Series([1, 2, 2], index=[7, 8, 9]),
        *(pd.Series([1, 2, 2], dtype=kind) for kind in ("Int64", "UInt16", "int64[pyarrow]")),
        pd.Series(["1", "2", "2"]),
    ):
        log = build(card=column, rating=column, day=column, deck=column, preset=column)
        for values in (log.card, log.rating, log.day, log.deck, log.preset):
            assert values.dtype == np.int64
            assert values.tolist() == [1, 2, 2]
    assert log.take(np.array([1])).deck.tolist() == [2]
    for card in (2**62 + 1, -1):
        assert build(**{**ONE, "card": [card]}).card.tolist() == [card]


def test_everything_wrong_is_told_at_once():
    found = told(
        card=[1, 1, None, 2],
        rating=[1, 7, 3, "x"],
        day=[0, 5, 3.5, 9],
        elapsed_seconds=[-1, 2, 3, float("nan")],
        duration_ms=[1, -1, None, 3],
        truth=[0.5, 2, float("nan"), 1],
    )
    assert found == [
        ("missing", "card", ("row 3",)),
        ("wrong_type", "rating", ("row 4",)),
        ("wrong_type", "day", ("row 3",)),
        ("missing", "elapsed_seconds", ("row 4",)),
        ("missing", "duration_ms", ("row 3",)),
        ("missing", "truth", ("row 3",)),
        ("out_of_range", "rating", ("row 2",)),
        ("out_of_range", "duration_ms", ("row 2",)),
        ("out_of_range", "truth", ("row 2",)),
    ]
    assert told(card=[1], rating=[1, 2], day=[0]) == [("length", "", ())]
    names = {"row_name": lambda row: f"line {row + 2}", "column_names": {"rating": "grade"}}
    assert told(**{**ONE, "rating": [9]}, **names) == [("out_of_range", "grade", ("line 2",))]


def test_a_step_back_by_one_day_is_not_taken_for_a_first_review():
    found = told(card=[1, 1], rating=[1, 2], day=[5, 4], elapsed_days=[-1, -1])
    assert [each[:2] for each in found] == [("order", "day"), ("out_of_range", "elapsed_days")]


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("card", np.array([2**63], np.uint64), "wrong_type"),
        ("card", [2.0**53], "wrong_type"),
        ("rating", [True], "wrong_type"),
        ("rating", [[3]], "wrong_type"),
        ("deck", [1.5], "wrong_type"),
        ("state", [2**62], "out_of_range"),
        ("state", [-1], "out_of_range"),
        ("duration_ms", [1e308], "out_of_range"),
        ("truth", [-0.001], "out_of_range"),
    ],
)
def test_a_value_that_is_none_of_its_column_is_refused(column, value, kind):
    assert told(**{**ONE, column: value}) == [(kind, column, ("row 1",))]


def test_day_numbers_may_be_of_any_calendar_and_span_a_century():
    for first in (0, -5, 19_000, 738_000, 2_460_000, -3_000_000, 3_000_000 - 36_525):
        log = build(**THREE, day=[first, first + 1, first + 36_525])
        assert log.elapsed_days.tolist() == [-1, -1, 36_525]
    for days in (
        [1711744352, 1711844352, 1711944352],
        [20240301, 20240302, 20240303],
        [-3_000_001, 0, 0],
        [3_000_001] * 3,
        [0, 5, -(2**63)],
        [-(2**63), 0, 2**63 - 1],
        [0, 1, 36_526],
    ):
        assert [found[:2] for found in told(**THREE, day=days)] == [("out_of_range", "day")]


def test_one_review_is_a_log():
    log = build(**ONE, duration_ms=[100], state=[0], left_out={"x": 2}, truth=[1])
    assert len(log) == 1
    assert log.elapsed_days.tolist() == [-1]
    assert log.duration_ms.dtype == np.float64
    assert log.left_out == {"x": 2}
    assert log.deck is None
