import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ReviewLogError


def build(**columns):
    return reviews_from_columns(user=1, source="log.csv", **columns)


def violations(**columns):
    with pytest.raises(ReviewLogError) as caught:
        build(**columns)
    return caught.value.violations


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


@pytest.mark.parametrize(
    "column",
    [
        [1, 2, 2],
        (1, 2, 2),
        np.array([1, 2, 2], np.uint8),
        np.array([1.0, 2.0, 2.0], np.float32),
        np.array([1, 2, 2], object),
        pd.Series([1, 2, 2], index=[7, 8, 9]),
        pd.Series([1, 2, 2], dtype="Int64"),
        pd.Series([1, 2, 2], dtype="UInt16"),
        pd.Series([1, 2, 2], dtype="int64[pyarrow]"),
        pd.Series(["1", "2", "2"]),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', '')}",
)
def test_every_kind_of_whole_number_is_taken(column):
    log = build(card=column, rating=column, day=column)
    for values in (log.card, log.rating, log.day):
        assert values.dtype == np.int64
        assert values.tolist() == [1, 2, 2]


def test_card_numbers_of_64_bits_stay_exact():
    card = 2**62 + 1
    assert build(card=[card], rating=[1], day=[0]).card.tolist() == [card]


def test_everything_wrong_is_named_at_once():
    found = violations(
        card=[1, 1, None, 2],
        rating=[1, 7, 3, "x"],
        day=[0, 5, 3.5, 9],
        elapsed_seconds=[-1, 2, 3, float("nan")],
        duration_ms=[1, -1, None, 3],
        truth=[0.5, 2, float("nan"), 1],
    )
    assert found == (
        "card: row 3 has nothing; expected a whole number",
        "rating: row 4 has 'x'; expected a whole number",
        "day: row 3 has 3.5; expected a whole number",
        "elapsed_seconds: row 4 has nan; expected a number",
        "duration_ms: row 3 has nothing; expected a number",
        "truth: row 3 has nan; expected a number",
        "rating: row 2 has 7; expected 1 (Again), 2 (Hard), 3 (Good) or 4 (Easy)",
        "duration_ms: row 2 has -1; expected 0 or more",
        "truth: row 2 has 2; expected a probability from 0 to 1",
    )


def test_the_message_names_the_source():
    with pytest.raises(ReviewLogError, match=re.escape("log.csv: rating: row 1 has 0")):
        build(card=[1], rating=[0], day=[0])


def test_only_the_first_bad_rows_are_quoted_and_the_others_counted():
    (found,) = violations(card=[1] * 9, rating=[0] * 9, day=[0] * 9)
    assert found.startswith("rating: row 1 has 0, row 2 has 0, row 3 has 0 and 6 further rows;")


def test_rows_and_columns_can_have_the_names_of_the_file():
    (found,) = violations(
        card=[1],
        rating=[9],
        day=[0],
        row_name=lambda row: f"line {row + 2}",
        column_names={"rating": "grade"},
    )
    assert found.startswith("grade: line 2 has 9")


def test_days_that_run_backwards_are_refused():
    found = violations(card=[1, 2, 1], rating=[1, 2, 3], day=[0, 5, 4])
    assert found == ("day: row 3 has 4; expected no day before that of the row above (time order)",)


def test_a_step_back_by_one_day_is_not_taken_for_a_first_review():
    found = violations(card=[1, 1], rating=[1, 2], day=[5, 4], elapsed_days=[-1, -1])
    assert len(found) == 2
    assert found[1].startswith("elapsed_days: row 2 has -1; expected 0 or more")


@pytest.mark.parametrize(
    ("elapsed_days", "expected"),
    [
        ([0, 5, -1], "row 1 has 0; expected -1 at a card's first review"),
        ([-1, -1, -1], "row 2 has -1; expected 0 or more after a card's first review"),
        ([-1, -3, -1], "row 2 has -3; expected 0 or more after a card's first review"),
        ([-1, 4, -1], "row 2 has 4; expected the days since the card's previous row"),
        ([-1, 5, 0], "row 3 has 0; expected -1 at a card's first review"),
    ],
)
def test_intervals_have_to_follow_from_card_and_day(elapsed_days, expected):
    found = violations(card=[1, 1, 2], rating=[1, 2, 3], day=[0, 5, 5], elapsed_days=elapsed_days)
    assert found == (f"elapsed_days: {expected}",)


def test_negative_seconds_are_refused():
    found = violations(card=[1, 1], rating=[1, 2], day=[0, 5], elapsed_seconds=[-1, -1])
    assert found == (
        "elapsed_seconds: row 2 has -1; expected 0 or more after a card's first review",
    )


def test_an_empty_log_is_refused():
    assert violations(card=[], rating=[], day=[]) == ("there are no reviews in it",)


def test_columns_of_different_length_are_refused():
    (found,) = violations(card=[1], rating=[1, 2], day=[0])
    assert found == "the columns differ in length: card has 1, rating has 2, day has 1 rows"


def test_numbers_too_large_for_64_bits_are_refused():
    (found,) = violations(card=np.array([2**63], np.uint64), rating=[1], day=[0])
    assert found.startswith("card: row 1 has 9223372036854775808")


def test_true_is_not_a_rating():
    (found,) = violations(card=[1], rating=[True], day=[0])
    assert found == "rating: row 1 has True; expected a whole number"


def test_one_review_is_a_log():
    log = build(card=[5], rating=[4], day=[3], duration_ms=[100], state=[0], left_out={"x": 2})
    assert len(log) == 1
    assert log.elapsed_days.tolist() == [-1]
    assert log.duration_ms is not None
    assert log.duration_ms.dtype == np.float64
    assert log.left_out == {"x": 2}


def test_decks_and_presets_are_whole_numbers_or_absent():
    columns = {"card": [1, 2], "rating": [3, 3], "day": [0, 0]}
    log = build(**columns, deck=[7, -1], preset=pd.Series([1.0, 2.0]))
    assert log.deck.tolist() == [7, -1]
    assert log.preset.tolist() == [1, 2]
    assert log.take(np.array([1])).deck.tolist() == [-1]
    assert build(**columns).deck is None
    assert violations(**columns, deck=[7, 1.5]) == ("deck: row 2 has 1.5; expected a whole number",)
