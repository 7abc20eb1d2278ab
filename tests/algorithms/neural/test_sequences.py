"""Packing is compared with plain loops over the log."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.algorithms.neural.sequences import (
    batch_of,
    groups_of_entries,
    groups_of_targets,
    histories_before,
)
from srs_eval.data.schema import reviews_from_columns


def log_of(cards):
    """A log with one review a day, all Good."""
    n = len(cards)
    return reviews_from_columns(user=1, source="test", card=cards, rating=[3] * n, day=range(n))


def earlier_rows(cards, row):
    return [other for other in range(row) if cards[other] == cards[row]]


@st.composite
def logs_and_rows(draw):
    cards = draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    rows = draw(st.lists(st.integers(0, len(cards) - 1), unique=True))
    return cards, rows


@given(logs_and_rows())
def test_every_target_is_read_after_the_earlier_reviews_of_its_card_and_nothing_else_is(case):
    cards, rows = case
    histories = histories_before(log_of(cards), np.array(rows, np.int64))
    batch = batch_of(histories, np.arange(len(histories.length)))
    n_cards = batch.review.shape[1]
    found = {}
    for target, entry in zip(batch.target.tolist(), batch.entry.tolist(), strict=True):
        step, lane = divmod(entry, n_cards)
        found[rows[target]] = batch.review[: step + 1, lane].tolist()
    expected = {row: past for row in rows if (past := earlier_rows(cards, row))}
    assert found == expected
    read = sorted({past for earlier in expected.values() for past in earlier})
    assert sorted(histories.review.tolist()) == read
    assert sorted(batch.review[batch.review >= 0].tolist()) == read  # the others are padding


def test_targets_with_a_longer_history_than_asked_for_are_left_out():
    histories = histories_before(log_of([1] * 6), np.arange(6), longest=3)
    assert histories.target.tolist() == [1, 2, 3]
    assert histories.review.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rows", [np.array([], np.int64), np.array([0])])
def test_rows_without_history_make_no_groups(rows):
    histories = histories_before(log_of([1, 1]), rows)
    assert groups_of_targets(histories, np.arange(0), per_group=512) == []
    assert groups_of_entries(histories, per_group=512) == []


def many_cards():
    rng = np.random.default_rng(1)
    return log_of(np.sort(np.minimum(rng.geometric(0.005, 3000), 900)).tolist())


def test_groups_of_targets_hold_every_card_once_and_about_equally_many_targets():
    log = many_cards()
    histories = histories_before(log, np.arange(len(log)))
    order = np.random.default_rng(0).permutation(len(histories.length))
    groups = groups_of_targets(histories, order, per_group=300)
    assert np.array_equal(np.concatenate(groups), order)
    targets = [histories.target_count[group].sum() for group in groups]
    assert len(groups) == -(-len(histories.target) // 300)
    assert max(targets) - min(targets) <= 2 * histories.target_count.max()


def test_one_long_card_does_not_make_a_group_of_short_ones_long():
    cards = np.r_[np.repeat(np.arange(500), 3), np.full(4000, 1000)]
    log = log_of(cards.tolist())
    histories = histories_before(log, np.arange(len(log)))
    groups = groups_of_entries(histories, per_group=600)
    assert np.array_equal(np.sort(np.concatenate(groups)), np.arange(501))
    padded = [len(group) * histories.length[group].max() for group in groups]
    assert sum(padded) <= 2 * histories.length.sum()
    assert max(padded[:-1]) <= 2 * 600
