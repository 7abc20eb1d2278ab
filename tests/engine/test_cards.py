import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.engine.cards import lanes

CARDS = st.lists(st.integers(-3, 5), max_size=40).map(lambda cards: np.array(cards, np.int64))


def nth_on_card(card):
    return [card[:row].tolist().count(card[row]) for row in range(len(card))]


@settings(max_examples=100, deadline=None)
@given(CARDS)
def test_the_kth_reviews_of_all_cards_are_one_run(card):
    arranged = lanes(card)
    nth = np.array(nth_on_card(card))
    assert sorted(arranged.rows.tolist()) == list(range(len(card)))
    for k, places in enumerate(arranged):
        assert (nth[arranged.rows[places]] == k).all()
        assert sorted(arranged.rows[places].tolist()) == np.flatnonzero(nth == k).tolist()


@settings(max_examples=100, deadline=None)
@given(CARDS)
def test_a_card_keeps_its_lane(card):
    arranged = lanes(card)
    before = None
    for places in arranged:
        cards = card[arranged.rows[places]]
        if before is not None:
            np.testing.assert_array_equal(cards, before[: len(cards)])
        before = cards


@settings(max_examples=100, deadline=None)
@given(CARDS, st.data())
def test_nothing_after_the_last_wanted_review_of_a_card_is_kept(card, data):
    row = st.integers(0, max(0, len(card) - 1))
    wanted = np.array(data.draw(st.lists(row, max_size=5 if len(card) else 0)), np.int64)
    kept = lanes(card, until=wanted).rows
    expected = {
        row
        for row in range(len(card))
        if any(card[last] == card[row] and row <= last for last in wanted)
    }
    assert set(kept.tolist()) == expected
    assert len(kept) == len(expected)


def test_an_empty_log_has_no_lanes():
    nothing = np.array([], np.int64)
    assert list(lanes(nothing)) == []
    assert len(lanes(np.array([4, 4]), until=nothing)) == 0
