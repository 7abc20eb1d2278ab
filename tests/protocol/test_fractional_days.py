"""The public protocols on a clock of fractional days, against loops over their description."""

from dataclasses import replace

import numpy as np
import plain_protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_functions import rmse_bins
from timed import timed

from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs

PROTOCOLS = [SrsBenchmarkSecs, SrsBenchmarkEqualised]
BOTH = pytest.mark.parametrize("protocol", PROTOCOLS)


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
    try:
        task = protocol(answer_time=answer_time)(log, same_day=keep_same_day)
    except FitSkipped:
        whole = plain_protocol.scored_rows(log, short=True)
        assert len(rows if protocol is SrsBenchmarkSecs else whole) < 6
    else:
        assert_plain(task, protocol(answer_time=answer_time), log)
        others = sum(task.dropped.values()) + sum(task.unscored.values())
        assert others + len(rows) == len(log)


@BOTH
def test_a_log_needs_seconds_but_no_answer_times(make_log, protocol):
    with pytest.raises(ReviewLogError):
        protocol()(make_log(), same_day=True)
    log = timed(make_log(), hasty=0.5)
    found = protocol()(replace(log, duration_ms=None), same_day=True).reviews.elapsed
    published = protocol(answer_time=True)(log, same_day=True).reviews.elapsed
    np.testing.assert_array_equal(found, published)
    assert (protocol()(log, same_day=True).reviews.elapsed < published).any()


# Published: training rows of each fold, rows of a test block, the log rows these begin at, the
# mean outcome of all scored reviews; and log loss and RMSE(bins) of FSRS-7 with its default
# parameters.
PUBLISHED = {
    SrsBenchmarkSecs: (
        [1900, 3795, 5690, 7585, 9480],
        1895,
        [2176, 4214, 6325, 8457, 10534],
        (0.780158, 0.478666, 0.081175),
    ),
    SrsBenchmarkEqualised: (
        [2985, 4704, 6545, 8246, 9842],
        1004,
        [3330, 5233, 7282, 9153, 10928],
        (0.820319, 0.442071, 0.069578),
    ),
}


@BOTH
def test_a_real_log_has_the_published_counts_and_scores(josh_log, protocol):
    train, test, begins, scores = PUBLISHED[protocol]
    for answer_time in (False, True):
        task = protocol(answer_time=answer_time)(josh_log, same_day=True)
        assert [len(fold.train) for fold in task.folds] == train
        assert [len(fold.test) for fold in task.folds] == [test] * 5
        assert [int(task.log_row[fold.test[0]]) + 1 for fold in task.folds] == begins
        assert_plain(task, protocol(answer_time=answer_time), josh_log)
    tested = np.concatenate([fold.test for fold in task.folds])
    model = RecurrentModel(Fsrs7Equations(), Fsrs7Equations.parameters.defaults)
    p, recalled = model.predict(task.reviews, tested), task.reviews.recalled[tested]
    binned = rmse_bins(
        p,
        recalled,
        elapsed_days=np.maximum(task.reviews.elapsed_days[tested], 0),
        nth_review=task.nth_review[tested],
        lapses=task.lapses[tested],
    )
    log_loss = -np.mean(np.log(np.where(recalled, p, 1 - p)))
    assert (recalled.mean(), log_loss, binned) == pytest.approx(scores, abs=1e-6)


def test_refits_on_equalised_rows_score_the_same_reviews_in_more_blocks(make_log):
    log = timed(make_log(cards=100))
    few = SrsBenchmarkEqualised()(log, same_day=True)
    many = SrsBenchmarkEqualised(refits=20)(log, same_day=True)
    tested = [np.concatenate([fold.test for fold in task.folds]) for task in (few, many)]
    np.testing.assert_array_equal(*tested)
    assert (few.warm_start, many.warm_start) == (False, True)
    assert (len(few.folds), len(many.folds)) == (5, 20), "there are enough rows"
