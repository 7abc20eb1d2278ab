"""Running counts along cards, against loops that cannot be wrong."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.cards import earlier_on_card, first_of_card

REVIEWS = st.lists(st.tuples(st.integers(-3, 6), st.booleans()), max_size=60)


def columns(reviews):
    card = np.array([card for card, _ in reviews], np.int64)
    return card, np.array([event for _, event in reviews], bool)


@given(REVIEWS)
def test_earlier_events_of_a_card_are_counted_like_a_loop_counts_them(reviews):
    card, event = columns(reviews)
    expected = []
    seen = {}
    for which, happened in reviews:
        expected.append(seen.get(which, 0))
        seen[which] = seen.get(which, 0) + happened
    counts = earlier_on_card(card, event)
    assert counts.tolist() == expected
    assert counts.dtype == np.int64


@given(REVIEWS)
def test_the_first_review_of_a_card_is_found_like_a_loop_finds_it(reviews):
    card, _ = columns(reviews)
    first = {}
    for row, which in enumerate(card.tolist()):
        first.setdefault(which, row)
    rows = first_of_card(card)
    assert rows.tolist() == [first[which] for which in card.tolist()]
    assert rows.dtype == np.int64


def test_a_million_reviews_take_no_loop():
    card = np.arange(1_000_000) % 50_000
    counts = earlier_on_card(card, np.ones(len(card), bool))
    assert (counts == np.arange(1_000_000) // 50_000).all()
