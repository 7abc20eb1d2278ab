"""Folds: five that grow, many refits over the same rows, and everything from a first fit on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.errors import FitSkipped
from srs_eval.protocol.prequential import Prequential, prequential_folds
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.split import expanding_folds, expanding_refits
from srs_eval.protocol.srs_benchmark import SrsBenchmark


def assert_blocks(folds, rows, tested):
    """Check that blocks follow each other, each trained on exactly what comes before it."""
    assert [fold.number for fold in folds] == list(range(len(folds)))
    np.testing.assert_array_equal(np.concatenate([fold.test for fold in folds]), tested)
    for fold in folds:
        assert len(fold.test)
        np.testing.assert_array_equal(fold.train, rows[rows < fold.test[0]])
    return [len(fold.test) for fold in folds]


@given(st.integers(6, 400), st.integers(1, 5))
def test_test_blocks_are_equal_in_order_and_end_with_the_last_row(n, folds):
    rows = np.arange(1000, 1000 + 3 * n, 3)
    size = n // (folds + 1)
    sizes = assert_blocks(expanding_folds(rows, folds), rows, rows[-folds * size :])
    assert sizes == [size] * folds


@given(n=st.integers(6, 500), refits=st.integers(5, 120))
def test_refits_share_the_test_rows_of_five_folds_and_differ_by_one_row_at_most(n, refits):
    rows = np.arange(n) * 3 + 7
    five = expanding_folds(rows, 5)
    tested = np.concatenate([fold.test for fold in five])
    sizes = assert_blocks(expanding_refits(rows, 5, refits), rows, tested)
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == min(refits, len(tested))
    sizes = assert_blocks(expanding_refits(rows, 5, 5), rows, tested)
    assert sizes == [len(fold.test) for fold in five]


@given(
    n=st.integers(2, 400),
    first=st.integers(1, 60),
    every=st.integers(1, 60),
    most=st.integers(1, 30),
)
def test_everything_after_the_first_rows_is_tested_once(n, first, every, most):
    rows = np.arange(n) * 3 + 7
    first = min(first, n - 1)
    sizes = assert_blocks(prequential_folds(rows, first, every, most), rows, rows[first:])
    if -(-(n - first) // every) <= most:
        assert set(sizes[:-1]) <= {every}
        assert sizes[-1] <= every
    else:
        assert len(sizes) == most
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("same_day", [False, True])
def test_histories_and_candidates_are_those_of_the_public_protocol(make_log, same_day):
    log = make_log(cards=80)
    public = SrsBenchmark()(log, same_day=same_day)
    tested = np.concatenate([fold.test for fold in public.folds])
    used = np.r_[public.folds[0].train, tested]
    for protocol, scored, folds, is_warm in (
        (SrsBenchmarkRefit(refits=5), tested, 5, False),
        (SrsBenchmarkRefit(refits=6), tested, 6, True),
        (SrsBenchmarkRefit(refits=10_000), tested, len(tested), True),
        (SrsBenchmarkRefit(refits=20, warm_start=False), tested, 20, False),
        (Prequential(first=10, every=30), used[10:], -(-(len(used) - 10) // 30), True),
        (Prequential(first=10, warm_start=False), used[10:], -(-(len(used) - 10) // 100), False),
    ):
        task = protocol(log, same_day=same_day)
        for column in ("log_row", "nth_review", "lapses", "last_rating"):
            np.testing.assert_array_equal(getattr(task, column), getattr(public, column))
        np.testing.assert_array_equal(task.reviews.elapsed, public.reviews.elapsed)
        found = np.concatenate([fold.test for fold in task.folds])
        np.testing.assert_array_equal(found, scored)
        assert (len(task.folds), task.warm_start) == (folds, is_warm)
    assert not public.warm_start
    assert len(Prequential(first=len(used) - 1)(log, same_day=same_day).folds) == 1
    with pytest.raises(FitSkipped):
        Prequential(first=len(used))(log, same_day=same_day)
