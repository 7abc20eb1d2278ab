"""Everything from a first fit on, by models that are kept fresh."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.protocol.prequential import Prequential, prequential_folds
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@given(
    n=st.integers(2, 400),
    first=st.integers(1, 60),
    every=st.integers(1, 60),
    most=st.integers(1, 30),
)
def test_everything_after_the_first_rows_is_tested_once(n, first, every, most):
    rows = np.arange(n) * 3 + 7
    first = min(first, n - 1)
    folds = prequential_folds(rows, first, every, most)
    np.testing.assert_array_equal(np.concatenate([fold.test for fold in folds]), rows[first:])
    assert [fold.number for fold in folds] == list(range(len(folds)))
    assert 1 <= len(folds) <= most
    for fold in folds:
        assert len(fold.test)
        np.testing.assert_array_equal(fold.train, rows[rows < fold.test[0]])
    sizes = [len(fold.test) for fold in folds]
    if -(-(n - first) // every) <= most:
        assert set(sizes[:-1]) <= {every}
        assert sizes[-1] <= every
    else:
        assert len(folds) == most
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("same_day", [False, True])
def test_candidates_are_those_of_the_public_protocol(make_log, same_day):
    log = make_log(cards=80)
    public = SrsBenchmark()(log, same_day=same_day)
    task = Prequential(first=10, every=30)(log, same_day=same_day)
    np.testing.assert_array_equal(task.log_row, public.log_row)
    np.testing.assert_array_equal(task.reviews.elapsed, public.reviews.elapsed)
    used, others = (np.r_[t.folds[-1].train, t.folds[-1].test] for t in (task, public))
    np.testing.assert_array_equal(used, others)
    assert len(task.folds[0].train) == 10
    assert len(public.folds[0].train) > 10
    assert task.warm_start


def test_the_name_tells_the_schedule(make_log):
    assert Prequential().name == "prequential_from100_every100_most100"
    cold = Prequential(first=5, every=7, most=9, warm_start=False)
    assert (cold.name, cold.folds) == ("prequential_from5_every7_most9_cold", 9)
    assert not cold(make_log(), same_day=True).warm_start


def test_a_log_with_nothing_to_score_is_a_reason_to_skip_the_user(make_log):
    log = make_log(cards=80)
    public = SrsBenchmark()(log, same_day=True)
    count = len(public.folds[-1].train) + len(public.folds[-1].test)
    assert len(Prequential(first=count - 1)(log, same_day=True).folds) == 1
    with pytest.raises(FitSkipped, match=f"{count} reviews can be learned from or scored"):
        Prequential(first=count)(log, same_day=True)


@pytest.mark.parametrize("option", ["first", "every", "most"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "many"])
def test_what_is_no_whole_number_from_1_is_refused(option, value):
    with pytest.raises(ConfigError, match=rf"{option}={value}, expected a whole number, 1"):
        Prequential(**{option: value})
