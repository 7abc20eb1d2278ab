"""The public protocols on a clock of fractional days, and the pauses that they leave out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import plain_protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented import Logs, log_of, timed
from public_logs import JOSH

from srs_eval.algorithms.baselines import Average
from srs_eval.cards import rows_by_card
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.pauses import (
    answer_times,
    pause_table,
    pause_warning,
    until_previous_answer,
)

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


def sittings(*, told: bool, days=20, cards=60, seed=0):
    """A log of daily sittings, in which a card is shown late before a lapse where `told`.

    Recall has nothing to do with the interval.
    """
    rng = np.random.default_rng(seed)
    n = days * cards
    day, card = np.repeat(np.arange(days), cards), np.tile(np.arange(cards), days)
    recalled = rng.random(n) < 0.8
    late = np.where(recalled, 0.1, 0.5) if told else 0.2
    new = day == 0
    pause = np.where((rng.random(n) < late) & ~new, rng.uniform(5, 60, n), 0.0)
    took = rng.uniform(2, 20, n)
    answered = 86_400 * day + np.cumsum(pause + took)
    before = rows_by_card(card).previous()
    return log_of(
        card,
        day,
        rating=np.where(recalled, 3, 1),
        elapsed_seconds=np.where(new, -1.0, answered - answered[before]),
        duration_ms=took * 1000,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pauses_that_tell_answers_are_warned_of_until_they_are_left_out(protocol):
    log = sittings(told=True)
    for closed in (False, True):
        work = EvaluateUser(
            Logs({1: log}), Average(), protocol(previous_answer=closed), 0, curves=0
        )
        assert len(work(1).log.notes) == (not closed)
    warning, paused = pause_warning(log), pause_table(log)[1:3]
    assert f"{sum(row.reviews for row in paused):,} reviews" in warning
    assert f"{sum(row.failed for row in paused):,} failed" in warning
    assert "previous_answer=true" in warning
    assert not pause_warning(sittings(told=False))
    # repetitions on the same day are waited for
    assert not pause_warning(replace(log, elapsed_days=np.minimum(log.elapsed_days, 0)))
    unknown = replace(log, duration_ms=None)
    assert (pause_warning(unknown), pause_table(unknown)) == ("", ())


def test_an_interval_ends_with_the_previous_answer_or_a_new_session():
    log = log_of(
        [1, 2, 1, 2, 1, 2, 1, 2],
        [0, 0, 0, 0, 1, 1, 1, 1],
        elapsed_seconds=[-1, -1, 100, 100, 86_400, 86_400, 60, 60],
        duration_ms=[1000.0, 20_000.0, 5000.0, 5000.0, 10_000.0, 4000.0, 4000.0, 4000.0],
    )
    expected = [1, 21, 101, 121, 86_501, 86_521, 86_561, 86_581]
    np.testing.assert_allclose(answer_times(log), expected)
    at_once = [0, 0, 100, 100, 86_500, 86_500, 86_560, 86_560]
    assert answer_times(replace(log, duration_ms=None)).tolist() == at_once
    elapsed = SrsBenchmarkSecs(previous_answer=True)(log, same_day=True).reviews.elapsed
    np.testing.assert_allclose(elapsed * 86_400, [0, 0, 20, 80, 86_390, 86_380, 20, 40])


@pytest.mark.parametrize("took", [1, 90, 3000])
def test_a_session_ends_after_half_an_hour_without_a_question_however_long_answers_take(took):
    for pause, goes_on in ((1799, True), (1800, False), (1801, False)):
        log = log_of(
            [1, 2, 1, 2],
            [0, 0, 1, 1],
            elapsed_seconds=[-1, -1, 90_000, 90_000 + pause + took - 10],
            duration_ms=[1000.0, 10_000.0, 5000.0, 1000.0 * took],
        )
        # The second card is answered 10 seconds after the first; here pause + took seconds after.
        # What follows a new card has no known pause.
        assert np.diff(answer_times(log))[-1] == pause + took
        assert until_previous_answer(log)[1].tolist()[-1] == goes_on
        assert [row.reviews for row in pause_table(log)] == [0, 0, int(goes_on), int(not goes_on)]


def test_on_a_real_log_most_pauses_are_right_to_one_second(real_logs, josh_log):
    log = josh_log
    exact = pd.to_datetime(pd.read_csv(real_logs / JOSH)["review_time"], format="ISO8601")
    since = exact.diff().dt.total_seconds().to_numpy()
    within = (log.elapsed_seconds > 0) & (since < 1800)
    error = np.abs(np.diff(answer_times(log), prepend=0.0) - since)[within]
    assert np.mean(error <= 1) == pytest.approx(0.98, abs=0.005)
    table = pause_table(log)
    assert [row.reviews for row in table] == [9989, 101, 29, 60]
    assert [row.failed for row in table] == [2478, 32, 8, 10]
    expected = [row.expected for row in table]
    assert expected == pytest.approx([2482.392201, 24.279655, 7.374775, 13.953369])
    assert not pause_warning(log)
