"""Packing: every review once, in order, and nothing else that counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis_settings import SEEDS, few
from random_logs import log_of, logs, random_log

from srs_eval import cards
from srs_eval.cards import rows_by_card
from srs_eval.engine.packing import FACTS, LANES, pack


def rows_and_places(packed):
    """The rows that are packed, and where each is."""
    rows = np.flatnonzero(packed.where >= 0)
    return rows, packed.where[rows]


def lanes_of(packed):
    """For each lane of each block the rows that lie in it, in order."""
    row_at = np.full((len(packed.reviews), LANES), -1)
    rows, places = rows_and_places(packed)
    row_at.ravel()[places] = rows
    return [
        [int(row) for row in column if row >= 0]
        for start, length in zip(packed.starts, packed.lengths, strict=True)
        for column in row_at[start : start + length].T
    ]


@few(50)
@given(logs())
def test_every_review_lands_once_with_its_facts(log):
    reviews = log.reviews()
    packed = pack(reviews)
    assert len(np.unique(packed.where)) == len(packed.where) == len(reviews)
    place, lane = np.divmod(packed.where, LANES)
    np.testing.assert_array_equal(packed.reviews[place, 0, lane], reviews.elapsed)
    np.testing.assert_array_equal(packed.reviews[place, 1, lane], reviews.rating)
    assert (packed.reviews[:, 2] == 0).all()


@few(50)
@given(logs())
def test_a_lane_is_a_card_from_its_first_review_on(log):
    reviews = log.reviews()
    packed = pack(reviews)
    found = sorted(lane for lane in lanes_of(packed) if lane)
    expected = sorted(
        np.flatnonzero(reviews.card == card).tolist() for card in np.unique(reviews.card)
    )
    assert found == expected
    begins = set(np.flatnonzero(np.isin(packed.where // LANES, packed.starts)))
    assert begins == {lane[0] for lane in expected}


@few(50)
@given(logs())
def test_blocks_lie_one_after_the_other_and_waste_little(log):
    reviews = log.reviews()
    packed = pack(reviews)
    ends = packed.starts + packed.lengths
    assert packed.starts.tolist() == [0, *ends[:-1]]
    assert ends[-1] == len(packed.reviews)
    assert packed.reviews.shape[1:] == (FACTS, LANES)
    assert packed.longest == np.unique(reviews.card, return_counts=True)[1].max()
    cards = len(np.unique(reviews.card))
    assert len(packed.starts) == -(-cards // LANES)
    assert (np.diff(packed.lengths) >= 0).all()


@few(50)
@given(logs(), st.floats(0, 1), SEEDS)
def test_until_cuts_cards_after_their_last_wanted_row(log, share, seed):
    reviews = log.reviews()
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(reviews)) < share)
    expected = []
    for card in np.unique(reviews.card[rows]):
        last = rows[reviews.card[rows] == card].max()
        expected.append(np.flatnonzero(reviews.card[: last + 1] == card).tolist())
    packed = pack(reviews, until=rng.permutation(rows))
    assert sorted(lane for lane in lanes_of(packed) if lane) == sorted(expected)


@few(50)
@given(logs(), SEEDS, st.sampled_from([np.float32, np.float64]))
def test_weights_are_those_of_the_wanted_rows_and_fillers_weigh_nothing(log, seed, dtype):
    reviews = log.reviews()
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(reviews)) < 0.5)
    weight = rng.uniform(0.1, 2.0, len(rows))
    packed = pack(reviews, rows, weight=weight, dtype=dtype)
    assert packed.reviews.dtype == dtype
    given_weight = np.zeros(len(reviews))
    given_weight[rows] = weight
    found = packed.reviews[:, 2].copy()
    packed_rows, places = rows_and_places(packed)
    np.testing.assert_array_equal(found.ravel()[places], given_weight[packed_rows].astype(dtype))
    found.ravel()[places] = 0
    assert (found == 0).all()


@few(50)
@given(logs(), SEEDS, st.integers(1, 30))
def test_a_beginning_is_packed_alike_whether_the_whole_log_is_known_or_not(log, seed, until):
    reviews = log.reviews()
    beginning = reviews.take(slice(0, min(until, len(reviews))))
    rows = np.flatnonzero(np.random.default_rng(seed).random(len(beginning)) < 0.5)
    cards._recent[0] = None
    alone = pack(beginning, rows)
    cards._recent[0] = None
    rows_by_card(reviews.card)
    known = pack(beginning, rows)
    np.testing.assert_array_equal(known.reviews, alone.reviews)
    np.testing.assert_array_equal(known.where, alone.where)
    np.testing.assert_array_equal(known.starts, alone.starts)


@pytest.mark.parametrize("until", [[-1], [3], [0, 2, 9]])
def test_rows_outside_the_log_are_refused(until):
    log = log_of([1, 1, 2, 2], [3, 3, 3, 3], [0, 1, 1, 2])
    rows_by_card(log.card)
    with pytest.raises(IndexError, match="in a log of 3 reviews"):
        pack(log.take(slice(0, 3)), np.array(until))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reviews_start_where_the_widest_loads_want_them(dtype):
    for seed in range(20):
        packed = pack(random_log(np.random.default_rng(seed), 20, 9), dtype=dtype)
        assert packed.reviews.ctypes.data % 64 == 0
        assert packed.reviews.flags.c_contiguous


NOTHING = np.array([], np.int64)


@pytest.mark.parametrize(
    ("reviews", "until"),
    [(log_of([], [], []), None), (log_of([], [], []), NOTHING), (log_of([1], [3], [0]), NOTHING)],
)
def test_of_nothing_nothing_is_packed(reviews, until):
    packed = pack(reviews, until)
    assert packed.reviews.shape == (0, FACTS, LANES)
    assert len(packed.starts) == len(packed.lengths) == packed.longest == 0
    assert (packed.where == -1).all()
