"""The public protocols on a clock of fractional days."""

from dataclasses import replace

import numpy as np
import plain_protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented import timed

from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs

PROTOCOLS = [SrsBenchmarkSecs, SrsBenchmarkEqualised]


def assert_plain(task, protocol, log):
    """Compare a task with what loops make of the log."""
    answer_time = protocol.answer_time
    if isinstance(protocol, SrsBenchmarkEqualised):
        folds = plain_protocol.equalised_folds(log, answer_time=answer_time)
    else:
        folds = plain_protocol.folds(plain_protocol.timed_rows(log, answer_time=answer_time))
    assert not task.reviews.whole_days
    plain_protocol.assert_same(task, folds)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    cards=st.sampled_from([1, 40, 150]),
    reviews_per_card=st.sampled_from([2, 6, 140]),
    same_day=st.sampled_from([0.0, 0.2, 0.7]),
    recall=st.sampled_from([0.5, 0.9]),
    protocol=st.sampled_from(PROTOCOLS),
    answer_time=st.booleans(),
    keep_same_day=st.booleans(),
)
def test_any_log_becomes_what_the_loops_make_of_it(
    make_log, protocol, answer_time, keep_same_day, seed, **shape
):
    if shape["reviews_per_card"] == 140:
        shape["cards"] = min(shape["cards"], 20)
    log = timed(make_log(seed=seed, **shape), seed=seed)
    rows = plain_protocol.timed_rows(log, answer_time=answer_time)
    whole = plain_protocol.scored_rows(log, short=True)
    is_enough = len(rows if protocol is SrsBenchmarkSecs else whole) >= 6
    try:
        task = protocol(answer_time=answer_time)(log, same_day=keep_same_day)
    except FitSkipped:
        assert not is_enough
    else:
        assert is_enough
        assert_plain(task, protocol(answer_time=answer_time), log)
        others = sum(task.dropped.values()) + sum(task.unscored.values())
        assert others + len(rows) == len(log)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_log_needs_seconds_but_no_answer_times(make_log, protocol):
    with pytest.raises(ReviewLogError):
        protocol()(make_log(), same_day=True)
    log = timed(make_log(), hasty=0.5)
    found = protocol()(replace(log, duration_ms=None), same_day=True).reviews.elapsed
    published = protocol(answer_time=True)(log, same_day=True).reviews.elapsed
    np.testing.assert_array_equal(found, published)
    assert (protocol()(log, same_day=True).reviews.elapsed < published).any()
