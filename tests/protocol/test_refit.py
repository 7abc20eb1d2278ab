"""Many refits over the test rows of the public protocol."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.errors import ConfigError
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.split import expanding_folds, expanding_refits
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@given(n=st.integers(6, 500), refits=st.integers(5, 120))
def test_blocks_share_the_test_rows_of_five_folds_and_differ_by_one_row_at_most(n, refits):
    rows = np.arange(n) * 3 + 7
    made = expanding_refits(rows, 5, refits)
    tested = np.concatenate([fold.test for fold in expanding_folds(rows, 5)])
    np.testing.assert_array_equal(np.concatenate([fold.test for fold in made]), tested)
    sizes = [len(fold.test) for fold in made]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
    assert len(made) == min(refits, len(tested))
    assert [fold.number for fold in made] == list(range(len(made)))
    for fold in made:
        np.testing.assert_array_equal(fold.train, rows[rows < fold.test[0]])


@given(n=st.integers(6, 500))
def test_five_refits_are_the_five_folds(n):
    rows = np.arange(n) * 2
    for fold, other in zip(expanding_refits(rows, 5, 5), expanding_folds(rows, 5), strict=True):
        assert fold.number == other.number
        np.testing.assert_array_equal(fold.train, other.train)
        np.testing.assert_array_equal(fold.test, other.test)


@pytest.mark.parametrize("same_day", [False, True])
@pytest.mark.parametrize("refits", [5, 20, 50, 10_000])
def test_histories_and_scored_reviews_are_those_of_the_public_protocol(make_log, refits, same_day):
    log = make_log(cards=80)
    public = SrsBenchmark()(log, same_day=same_day)
    task = SrsBenchmarkRefit(refits=refits)(log, same_day=same_day)
    np.testing.assert_array_equal(task.log_row, public.log_row)
    np.testing.assert_array_equal(task.nth_review, public.nth_review)
    np.testing.assert_array_equal(task.lapses, public.lapses)
    np.testing.assert_array_equal(task.reviews.elapsed, public.reviews.elapsed)
    tested, expected = (np.concatenate([f.test for f in t.folds]) for t in (task, public))
    np.testing.assert_array_equal(tested, expected)
    assert len(task.folds) == min(refits, len(tested))


def test_the_name_tells_how_often_and_from_where_models_are_fitted(make_log):
    warm, cold = SrsBenchmarkRefit(refits=20), SrsBenchmarkRefit(refits=100, warm_start=False)
    assert (warm.name, warm.folds) == ("srs_benchmark_refit20", 20)
    assert (cold.name, cold.folds) == ("srs_benchmark_refit100_cold", 100)
    log = make_log()
    assert warm(log, same_day=True).warm_start
    assert not cold(log, same_day=True).warm_start
    assert not SrsBenchmark()(log, same_day=True).warm_start


@pytest.mark.parametrize("refits", [4, 0, -1, 7.5, "many"])
def test_fewer_refits_than_the_public_protocol_has_are_refused(refits):
    with pytest.raises(ConfigError, match=rf"refits={refits}, expected a whole number, 5 or more"):
        SrsBenchmarkRefit(refits=refits)


def test_five_refits_start_from_nothing_as_the_public_ones_do(make_log):
    log = make_log(cards=60)
    assert not SrsBenchmarkRefit(5)(log, same_day=True).warm_start
    assert SrsBenchmarkRefit(6)(log, same_day=True).warm_start


@pytest.mark.parametrize("value", ["no", 0])
def test_what_only_looks_like_true_or_false_is_refused(value):
    with pytest.raises(ConfigError, match=f"warm_start={value} is not one of: true, false"):
        SrsBenchmarkRefit(warm_start=value)
    with pytest.raises(ConfigError, match=f"answer_time={value} is not one of: true, false"):
        SrsBenchmarkSecs(answer_time=value)
