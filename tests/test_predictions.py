"""Joining, selecting and naming predictions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.nouns import Curves, Predictions
from srs_eval.nouns.predictions import (
    concatenate,
    reviews_fingerprint,
    rows_fingerprint,
    select,
)


def predicted(user, rows, *, p=0.5, recalled=True, curves=0, facts=True):
    n = len(rows)
    zeros = np.zeros(n, np.int64)
    sampled = np.arange(curves)
    times = np.tile([1.0, 2.0], (curves, 1))
    return Predictions(
        users=(user,),
        user=zeros,
        fold=zeros,
        row=np.array(rows, np.int64),
        card=zeros,
        p=np.full(n, p),
        recalled=np.full(n, recalled),
        elapsed_days=np.ones(n) if facts else None,
        curves=Curves(sampled * 0, sampled, np.array(rows)[:curves], times, times / 3, times / 4)
        if curves
        else None,
    )


def test_nothing_joined_is_nothing():
    assert concatenate([]) is None


def test_parts_of_a_user_are_joined_by_name():
    parts = [predicted("a", [1, 2]), predicted("b", [1], p=0.7), predicted("a", [3])]
    joined = concatenate(parts)
    assert joined.users == ("a", "b")
    assert joined.user.tolist() == [0, 0, 1, 0]
    assert joined.row.tolist() == [1, 2, 1, 3]
    assert joined.p.tolist() == [0.5, 0.5, 0.7, 0.5]


def test_curves_go_with_their_users_and_facts_that_a_part_lacks_are_lacking():
    joined = concatenate([predicted("a", [1, 2]), predicted("b", [5, 6], curves=2, facts=False)])
    assert joined.curves.user.tolist() == [1, 1]
    assert joined.elapsed_days is None


def test_rows_are_selected_by_number_or_mask():
    predictions = predicted("a", [3, 5, 8])
    assert select(predictions, np.array([2, 0])).row.tolist() == [8, 3]
    assert select(predictions, predictions.row > 4).row.tolist() == [5, 8]


@given(st.permutations([("a", 1), ("a", 2), ("a", 9), ("b", 1), ("b", 2), (3, 4)]))
def test_the_fingerprint_of_rows_is_the_same_in_any_order(rows):
    expected = concatenate([predicted("a", [1, 2, 9]), predicted("b", [1, 2]), predicted(3, [4])])
    shuffled = concatenate([predicted(user, [row], p=0.9) for user, row in rows])
    assert rows_fingerprint(shuffled) == rows_fingerprint(expected)


@pytest.mark.parametrize(
    "other",
    [
        [predicted("a", [1, 2]), predicted("b", [3])],
        [predicted("a", [1]), predicted("b", [2, 3])],
        [predicted("a", [1, 2, 3])],
        [predicted("a", [1, 2, 3, 4])],
        [predicted("a", [1, 2]), predicted("a", [3], recalled=False)],
    ],
)
def test_the_fingerprint_of_rows_tells_users_rows_and_outcomes_apart(other):
    parts = [predicted("a", [1, 2, 3]), predicted("b", [1])]
    assert rows_fingerprint(concatenate(other)) != rows_fingerprint(concatenate(parts))


@pytest.mark.parametrize("column", ["card", "day", "rating", "elapsed_days"])
def test_the_fingerprint_of_a_log_depends_on_every_column(make_log, column):
    log = make_log()
    changed = getattr(log, column).copy()
    changed[5] += 1
    other = replace(log, **{column: changed})
    assert reviews_fingerprint(other) != reviews_fingerprint(log)
    assert reviews_fingerprint(make_log()) == reviews_fingerprint(log)
    seconds = replace(log, elapsed_seconds=np.full(len(log), 5.0))
    assert reviews_fingerprint(seconds) != reviews_fingerprint(log)
