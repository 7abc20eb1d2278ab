"""Expanding folds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.protocol.split import expanding_folds


@given(st.integers(6, 400), st.integers(1, 5))
def test_test_blocks_are_equal_in_order_and_end_with_the_last_row(n, folds):
    rows = np.arange(1000, 1000 + 3 * n, 3)
    made = expanding_folds(rows, folds)
    assert [fold.number for fold in made] == list(range(folds))
    size = n // (folds + 1)
    assert [len(fold.test) for fold in made] == [size] * folds
    np.testing.assert_array_equal(np.concatenate([f.test for f in made]), rows[-folds * size :])


@given(st.integers(6, 400), st.integers(1, 5))
def test_every_fold_is_trained_on_exactly_what_comes_before_it(n, folds):
    rows = np.arange(n) * 2
    for fold in expanding_folds(rows, folds):
        np.testing.assert_array_equal(fold.train, rows[rows < fold.test[0]])


def test_six_rows_make_five_folds_of_one():
    made = expanding_folds(np.arange(6), 5)
    assert [(len(fold.train), fold.test.tolist()) for fold in made] == [
        (1, [1]),
        (2, [2]),
        (3, [3]),
        (4, [4]),
        (5, [5]),
    ]
