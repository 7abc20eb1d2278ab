"""The rule for unusual first intervals, against loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_protocol import outlier_intervals

from srs_eval.protocol.outliers import unusual_first_intervals

GROUPS = st.dictionaries(
    st.sampled_from([1, 2, 3, 4, 5, 7, 30, 100, 101, 102, 365, 366, 500]),
    st.sampled_from([1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 19, 20, 21, 25, 30, 200, 700]),
    max_size=9,
)


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
