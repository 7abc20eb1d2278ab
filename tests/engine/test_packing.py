"""Packing: every review once, in order, and nothing else that counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis_settings import SEEDS, few
from random_logs import log_of, logs

from srs_eval import cards
from srs_eval.cards import rows_by_card
from srs_eval.engine.packing import FACTS, LANES, pack


def lanes_of(packed):
    """For each lane of each block that has any, the rows that lie in it, in order."""
    row_at = np.full((len(packed.reviews), LANES), -1)
    rows = np.flatnonzero(packed.where >= 0)
    row_at.ravel()[packed.where[rows]] = rows
    lanes = [
        column[column >= 0].tolist()
        for start, length in zip(packed.starts, packed.lengths, strict=True)
        for column in row_at[start : start + length].T
    ]
    return sorted(lane for lane in lanes if lane)


@few(50)
@given(logs(), SEEDS, st.sampled_from([np.float32, np.float64]))
def test_every_review_lands_once_with_its_facts_and_weight_in_blocks_that_waste_little(
    log, seed, dtype
):
    reviews = log.reviews()
    rng = np.random.default_rng(seed)
    last = np.unique(reviews.card[::-1], return_index=True)[1]
    rows = np.union1d(np.flatnonzero(rng.random(len(reviews)) < 0.5), len(reviews) - 1 - last)
    weight = np.zeros(len(reviews))
    weight[rows] = rng.uniform(0.1, 2.0, len(rows))
    packed = pack(reviews, rows, weight=weight[rows], dtype=dtype)
    assert packed.reviews.dtype == dtype
    assert packed.reviews.ctypes.data % 64 == 0  # where the widest loads want them
    assert packed.reviews.flags.c_contiguous
    assert len(np.unique(packed.where)) == len(packed.where) == len(reviews)
    place, lane = np.divmod(packed.where, LANES)
    for fact, expected in enumerate((reviews.elapsed, reviews.rating, weight)):
        found = packed.reviews[place, fact, lane]
        np.testing.assert_array_equal(found, expected.astype(dtype))
    assert np.count_nonzero(packed.reviews[:, 2]) == len(rows)  # fillers weigh nothing
    cards, counts = np.unique(reviews.card, return_counts=True)
    ends = packed.starts + packed.lengths
    assert packed.starts.tolist() == [0, *ends[:-1]]
    assert packed.reviews.shape == (ends[-1], FACTS, LANES)
    assert packed.longest == counts.max()
    assert len(packed.starts) == -(-len(cards) // LANES)
    assert (np.diff(packed.lengths) >= 0).all()
    begins = np.flatnonzero(np.isin(packed.where // LANES, packed.starts))
    assert begins.tolist() == sorted(np.unique(reviews.card, return_index=True)[1])


@few(50)
@given(logs(), st.sampled_from([None, 0.0, 0.02, 0.3, 1.0]), SEEDS)
def test_a_lane_is_a_card_from_its_first_review_to_its_last_wanted_one(log, share, seed):
    reviews = log.reviews()
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(reviews)) < (1 if share is None else share))
    expected = []
    for card in np.unique(reviews.card[rows]):
        last = rows[reviews.card[rows] == card].max()
        expected.append(np.flatnonzero(reviews.card[: last + 1] == card).tolist())
    packed = pack(reviews, until=None if share is None else rng.permutation(rows))
    assert lanes_of(packed) == sorted(expected)


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
    for field in ("reviews", "where", "starts"):
        np.testing.assert_array_equal(getattr(known, field), getattr(alone, field))


@pytest.mark.parametrize("until", [[-1], [3], [0, 2, 9]])
def test_rows_outside_the_log_are_refused(until):
    log = log_of([1, 1, 2, 2], [3, 3, 3, 3], [0, 1, 1, 2])
    rows_by_card(log.card)
    with pytest.raises(IndexError):
        pack(log.take(slice(0, 3)), np.array(until))


@pytest.mark.parametrize(("card", "until"), [([], None), ([], []), ([1], [])])
def test_of_nothing_nothing_is_packed(card, until):
    log = log_of(card, [3] * len(card), [0] * len(card))
    packed = pack(log, until if until is None else np.array(until, np.int64))
    assert packed.reviews.shape == (0, FACTS, LANES)
    assert len(packed.starts) == len(packed.lengths) == packed.longest == 0
    assert (packed.where == -1).all()
