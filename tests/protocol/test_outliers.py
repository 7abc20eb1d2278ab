"""The rule for unusual first intervals, case by case and against loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_protocol import outlier_intervals

from srs_eval.protocol.outliers import unusual_first_intervals


def removed(groups, rating=3):
    """Intervals that go, of {interval: number of reviews}."""
    intervals = np.repeat(list(groups), list(groups.values())).astype(np.int64)
    gone = unusual_first_intervals(intervals, np.full(len(intervals), rating))
    return sorted(set(intervals[gone].tolist()))


def test_in_a_large_log_five_percent_go_instead():
    assert removed({1: 1000, 2: 30, 3: 25}) == [3]
    assert removed({1: 1000, 2: 30, 3: 20}) == [2, 3]


@pytest.mark.parametrize(("interval", "goes"), [(365, False), (366, True)])
def test_after_easy_an_interval_is_long_only_beyond_a_year(interval, goes):
    assert (interval in removed({1: 100, interval: 50}, 4)) is goes


GROUPS = st.dictionaries(
    st.sampled_from([1, 2, 3, 4, 5, 7, 30, 100, 101, 102, 365, 366, 500]),
    st.sampled_from([1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 25, 30, 200, 700]),
    max_size=9,
)


@pytest.mark.slow
@given(st.fixed_dictionaries(dict.fromkeys((1, 2, 3, 4), GROUPS)), st.integers(0, 9))
def test_any_log_loses_what_the_loop_takes_from_it(groups, seed):
    rows = [
        (interval, rating)
        for rating, sizes in groups.items()
        for interval, size in sizes.items()
        for _ in range(size)
    ]
    table = np.array(rows, np.int64).reshape(-1, 2)
    table = np.random.default_rng(seed).permutation(table)
    gone = unusual_first_intervals(table[:, 0], table[:, 1])
    for rating in (1, 2, 3, 4):
        intervals = table[table[:, 1] == rating, 0]
        expected = outlier_intervals(intervals.tolist(), rating)
        assert set(intervals[gone[table[:, 1] == rating]].tolist()) == expected
        assert np.isin(intervals, list(expected)).sum() == gone[table[:, 1] == rating].sum()
