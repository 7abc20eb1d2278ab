"""The public protocol, against a transcription of its description into loops."""

from dataclasses import replace

import numpy as np
import plain_protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import FitSkipped
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

PROTOCOL = SrsBenchmark()

# (elapsed_days, rating) of each review of a card, and what is said of its scored reviews.
HISTORIES = {
    "same-day Agains are no lapses": (
        [(-1, 3), (0, 1), (0, 3), (1, 3), (4, 1), (0, 1), (1, 3), (6, 3)],
        [(1, 2, 0, True), (4, 3, 0, False), (1, 4, 1, True), (6, 5, 1, True)],
    ),
    "the first Again is no lapse": (
        [(-1, 1), (0, 1), (2, 1), (3, 1), (0, 3), (5, 4)],
        [(2, 2, 0, False), (3, 3, 1, False), (5, 4, 2, True)],
    ),
    "a single review is never scored": ([(-1, 4)], []),
    "the second review is number two": ([(-1, 3), (10, 2)], [(10, 2, 0, True)]),
}


def log_of(card, rating, day, **columns):
    return reviews_from_columns(
        user="ann", source="log", card=card, rating=rating, day=day, **columns
    )


def _by_day(reviews):
    days = np.cumsum([max(0, elapsed) for elapsed, _ in reviews])
    return zip(days.tolist(), [rating for _, rating in reviews], strict=True)


@settings(deadline=None, max_examples=30)
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
    try:
        task = PROTOCOL(log, same_day=keep_same_day)
    except FitSkipped:
        assert len(plain_protocol.scored_rows(log, short=keep_same_day)) < 6
    else:
        rows = plain_protocol.scored_rows(log, short=keep_same_day)
        plain_protocol.assert_same(task, plain_protocol.folds(rows))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), same_day=st.sampled_from([0.0, 0.3, 0.8]))
def test_the_scored_reviews_do_not_depend_on_what_histories_keep(make_log, seed, same_day):
    log = make_log(seed=seed, cards=200, same_day=same_day)
    without, with_them = (PROTOCOL(log, same_day=keep) for keep in (False, True))
    for fold, other in zip(without.folds, with_them.folds, strict=True):
        for rows, others in ((fold.train, other.train), (fold.test, other.test)):
            assert (without.log_row[rows] == with_them.log_row[others]).all()
            assert (without.nth_review[rows] == with_them.nth_review[others]).all()
            assert (without.lapses[rows] == with_them.lapses[others]).all()
    assert not (without.reviews.elapsed_days == 0).any()
    assert (with_them.reviews.elapsed_days == 0).any() == (log.elapsed_days == 0).any()


@pytest.mark.parametrize("same_day", [False, True])
@pytest.mark.parametrize("history", HISTORIES)
def test_each_review_is_counted_as_published(history, same_day):
    reviews, expected = HISTORIES[history]
    # Forty cards with the same history, so that none of its intervals is an outlier, and forty
    # that can be scored, where these cannot.
    rows = [(day, card, rating) for card in range(40) for day, rating in _by_day(reviews)]
    rows += [(3 * nth, card, 3) for card in range(40, 80) for nth in range(8)]
    day, card, rating = np.array(sorted(rows, key=lambda row: row[0])).T
    log = log_of(card, rating, day)
    task = PROTOCOL(log, same_day=same_day)
    scored = np.r_[task.folds[0].train, *(fold.test for fold in task.folds)]
    mine = scored[task.reviews.card[scored] == 0]
    found = zip(
        task.reviews.elapsed_days[mine].tolist(),
        task.nth_review[mine].tolist(),
        task.lapses[mine].tolist(),
        task.reviews.recalled[mine].tolist(),
        strict=True,
    )
    assert list(found) == expected


def test_a_card_is_heard_128_times():
    with pytest.raises(FitSkipped):  # one card alone is an outlier; thirty like it are not
        PROTOCOL(log_of([5] * 200, [3] * 200, np.arange(200)), same_day=True)
    log = log_of(np.tile(np.arange(30), 200), [3] * 6000, np.repeat(np.arange(200), 30))
    task = PROTOCOL(log, same_day=True)
    assert len(task.reviews) == 30 * 128
    assert task.nth_review.max() == 128


def test_a_skipped_user_is_told_which_rule_left_out_how_many():
    # Fourteen cards: no interval is common enough. One review on the first day, 130 on one card.
    card = [*range(14), 0, *range(14), *([99] * 130)]
    day = [*([0] * 15), *range(1, 15), *range(20, 150)]
    log = log_of(card, [3] * 159, day)
    with pytest.raises(FitSkipped) as caught:
        PROTOCOL(log, same_day=False)
    said = str(caught.value).split("left out: ")[1]
    assert said == (
        "15 the first of their card, 1 on the day of the card's review before, "
        "141 of cards whose first interval is rare in the user's log, "
        "2 after the 128th of their card"
    )


def test_a_skipped_user_is_told_of_the_protocol_that_would_score_more():
    day = np.arange(10)
    seconds = np.where(day == 0, -1, 86_400)
    log = log_of([1] * 10, [3] * 10, day, elapsed_seconds=seconds)
    with pytest.raises(FitSkipped, match=r"protocol=srs_benchmark_secs could score 5$"):
        PROTOCOL(log, same_day=False)
    task = SrsBenchmarkSecs()(log, same_day=True)
    assert sum(len(fold.test) for fold in task.folds) + len(task.folds[0].train) == 9
    # A search looks at other rows, with a base that is chosen otherwise.
    with pytest.raises(FitSkipped) as skipped:
        Validation(PROTOCOL)(log, same_day=False)
    assert skipped.value.could_score == {}
    assert "protocol=" not in str(skipped.value)


def test_six_scored_reviews_are_enough_and_five_are_not():
    def log(cards):
        first = np.full(30, 1)  # 30 cards whose second review comes next day: no outliers
        days = np.concatenate([np.zeros(30), first[:cards]]).astype(int)
        card = np.concatenate([np.arange(30), np.arange(cards)])
        return log_of(card, [3] * len(card), days)

    task = PROTOCOL(log(26), same_day=False)
    assert [len(fold.test) for fold in task.folds] == [4] * 5
    with pytest.raises(FitSkipped, match="0 of 49"):
        PROTOCOL(log(19), same_day=False)


@pytest.mark.parametrize("same_day", [False, True])
def test_models_see_nothing_finer_and_no_gaps(make_log, same_day):
    log = make_log(cards=60)
    task = PROTOCOL(replace(log, elapsed_seconds=np.full(len(log), 3.0)), same_day=same_day)
    assert task.reviews.elapsed_seconds is None
    assert task.reviews.whole_days
    assert (task.reviews.row == np.arange(len(task.reviews))).all()


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
