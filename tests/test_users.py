"""Names of users, as any source may give them; and counts along cards, against plain loops."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srs_eval.data.cards import rows_by_card, stable_order
from srs_eval.errors import ReviewLogError
from srs_eval.runs.evaluation import checked_users


def named(names):
    """A source of which only the names of users matter."""
    return SimpleNamespace(location="somewhere", users=lambda: names)


def test_names_become_pythons_and_those_that_cannot_be_used_are_told_all_at_once():
    for names in ([3, 1], ["ada", "bob"]):
        users = checked_users(named(np.array(names)))
        assert [(user, type(user)) for user in users] == [(name, type(name)) for name in names]
    with pytest.raises(ReviewLogError, match="somewhere") as caught:
        checked_users(named([1, 2.5, 1, ("a", "b")]))
    assert caught.value.violations == (
        "user 2.5 is float, expected a number or a text",
        "user ('a', 'b') is tuple, expected a number or a text",
        "user 1 is named more than once",
    )


def vars_of(rows):
    return [getattr(rows, name) for name in ("order", "begins", "lengths", "number", "nth")]


REVIEWS = st.lists(st.tuples(st.integers(-3, 6), st.booleans()), max_size=60)


def test_cards_that_changed_in_place_are_not_taken_for_those_asked_for_before():
    card = np.array([7, 9, 7])
    before = rows_by_card(card)
    card[2] = 9
    assert rows_by_card(card).order.tolist() == [0, 1, 2]
    assert before.order.tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match="read-only"):
        before.order[0] = 5


@given(REVIEWS, st.integers(0, 60))
def test_counts_along_cards_are_those_of_loops(reviews, until):
    card = np.array([card for card, _ in reviews], np.int64)
    event = np.array([event for _, event in reviews], bool)
    earlier = [[row for row in range(here) if card[row] == card[here]] for here in range(len(card))]
    rows = rows_by_card(card)
    counts = rows.earlier(event)
    assert counts.tolist() == [int(event[before].sum()) for before in earlier]
    assert rows.nth.tolist() == [len(before) for before in earlier]
    assert rows.previous().tolist() == [before[-1] if before else -1 for before in earlier]
    values = np.arange(1, len(card) + 1)
    assert rows.last(values).tolist() == [1 + before[-1] if before else 0 for before in earlier]
    assert rows.first().tolist() == [([*before, row])[0] for row, before in enumerate(earlier)]
    of_numbers = (counts, rows.nth, rows.previous(), rows.lengths, rows.first())
    assert {each.dtype for each in of_numbers} == {np.dtype(np.int64)}
    # The rows of a beginning are the same after the whole log.
    after = rows_by_card(card[:until])
    rows_by_card(np.array([-9]))  # another log
    np.testing.assert_equal(vars_of(after), vars_of(rows_by_card(card[:until])))


EDGES = st.sampled_from([-(2**63), -(2**16), -1, 0, 2**16 - 1, 2**16, 2**53 + 1, 2**63 - 1])


@example([0, -(2**16)])
@example([40_000, 30_000])
@given(st.lists(EDGES | st.integers(0, 3) | st.integers(65_530, 65_540), max_size=40))
def test_cards_are_sorted_alike_whatever_their_numbers(cards):
    order = stable_order(np.array(cards, np.int64))
    assert order.tolist() == sorted(range(len(cards)), key=lambda row: cards[row])
    assert order.dtype == np.int64
