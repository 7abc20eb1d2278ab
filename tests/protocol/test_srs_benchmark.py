"""The public protocol, against a transcription of its description into loops."""

from dataclasses import replace

import numpy as np
import plain_protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timed import log_of

from srs_eval.errors import FitSkipped
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

PROTOCOL = SrsBenchmark()


def counted(told):
    """Count the reviews that are no targets, of a task or of a user who was skipped."""
    return sum(told.dropped.values()) + sum(told.unscored.values())


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    cards=st.sampled_from([1, 40, 100, 250, 600]),
    reviews_per_card=st.sampled_from([2, 3, 6, 12, 140]),
    intervals=st.sampled_from(
        [(1,), (1, 2, 3, 7), (1, 1, 1, 2, 2, 99, 100, 101, 102), (5, 364, 365, 366, 367), (1, 400)]
    ),
    same_day=st.sampled_from([0.0, 0.2, 0.7]),
    recall=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    easy=st.sampled_from([0.0, 0.1, 0.9]),
    keep_same_day=st.booleans(),
)
def test_any_log_becomes_what_the_loops_make_of_it(make_log, keep_same_day, **shape):
    if shape["reviews_per_card"] == 140:
        shape["cards"] = min(shape["cards"], 40)
    if max(shape["intervals"]) > 300:  # no log spans more than a hundred years
        shape["reviews_per_card"] = min(shape["reviews_per_card"], 85)
    log = make_log(**shape)
    log = replace(log, elapsed_seconds=np.full(len(log), 3.0))
    rows = plain_protocol.scored_rows(log, short=keep_same_day)
    try:
        task = PROTOCOL(log, same_day=keep_same_day)
    except FitSkipped as skipped:
        task = skipped
        assert len(rows) < 6
    else:
        assert task.reviews.whole_days
        assert (task.reviews.elapsed_days == 0).any() <= keep_same_day
        plain_protocol.assert_same(task, plain_protocol.folds(rows))
    assert counted(task) + len(rows) == len(log)


def test_a_skipped_user_is_told_which_rule_left_out_how_many():
    # Fourteen cards: no interval is common enough. One review on the first day, 130 on one card.
    card = [*range(14), 0, *range(14), *([99] * 130)]
    day = [*([0] * 15), *range(1, 15), *range(20, 150)]
    with pytest.raises(FitSkipped) as caught:
        PROTOCOL(log_of(card, day), same_day=False)
    said = str(caught.value).split("left out: ")[1]
    assert said == (
        "15 the first of their card, 1 on the day of the card's review before, "
        "141 of cards whose first interval is rare in the user's log, "
        "2 after the 128th of their card"
    )


@pytest.mark.parametrize(("reviews", "could_score"), [(10, 5), (7, 5), (6, None), (13, 10)])
def test_a_skipped_user_is_told_of_the_protocol_that_would_score_more(reviews, could_score):
    day = np.arange(reviews)
    log = log_of([1] * reviews, day, elapsed_seconds=np.where(day == 0, -1, 86_400))
    with pytest.raises(FitSkipped) as caught:
        PROTOCOL(log, same_day=False)
    expected = {} if could_score is None else {"srs_benchmark_secs": could_score}
    assert caught.value.could_score == expected
    assert ("protocol=srs_benchmark_secs" in str(caught.value)) == bool(expected)
    if could_score is not None:
        task = SrsBenchmarkSecs()(log, same_day=True)
        assert sum(len(fold.test) for fold in task.folds) == could_score
    # A search looks at other rows, with a base that is chosen otherwise.
    with pytest.raises(FitSkipped) as skipped:
        Validation(PROTOCOL)(log, same_day=False)
    assert skipped.value.could_score == {}
    assert counted(skipped.value) == counted(caught.value)


def test_six_scored_reviews_are_enough_and_five_are_not():
    # 30 cards learned on one day; those that are seen again come next day: no outliers but few.
    logs = (log_of([*range(30), *range(again)], [*[0] * 30, *[1] * again]) for again in (26, 19))
    task = PROTOCOL(next(logs), same_day=False)
    assert [len(fold.test) for fold in task.folds] == [4] * 5
    with pytest.raises(FitSkipped, match="0 of 49"):
        PROTOCOL(next(logs), same_day=False)
    days = [0, *range(1, 7)]
    for last, scored in ((7, 6), (6, 5)):
        log = log_of([1] * last, days[:last], elapsed_seconds=[-1, *[86_400] * (last - 1)])
        if scored == 6:
            assert len(SrsBenchmarkSecs()(log, same_day=True).folds) == 5
        else:
            with pytest.raises(FitSkipped, match="5 of 6"):
                SrsBenchmarkSecs()(log, same_day=True)


@pytest.mark.parametrize("same_day", [False, True])
def test_a_real_log_has_the_published_counts(josh_log, same_day):
    task = PROTOCOL(josh_log, same_day=same_day)
    tested = np.concatenate([fold.test for fold in task.folds])
    assert len(task.folds[0].train) + len(tested) == 6027
    assert len(tested) == 5020
    assert [len(fold.train) for fold in task.folds] == [1007, 2011, 3015, 4019, 5023]
    assert task.log_row[tested[0]] + 1 == 3330
    rows = plain_protocol.scored_rows(josh_log, short=same_day)
    plain_protocol.assert_same(task, plain_protocol.folds(rows))
