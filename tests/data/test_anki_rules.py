"""Which rows of Anki's review table are reviews."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.data.anki.database import Revlog
from srs_eval.data.anki.rules import select_reviews

ROW = st.tuples(
    st.integers(1, 3),  # card
    st.integers(0, 5),  # type
    st.integers(0, 4),  # ease
    st.sampled_from([0, 2500]),  # factor
    st.sampled_from([True, True, True, True, False]),  # valid
)


def select(rows):
    cid, kind, ease, factor, valid = np.array(rows, np.int64).reshape(-1, 5).T
    same = np.full(len(cid), 700)
    log = Revlog(np.arange(len(cid)), cid, ease, ivl=same, factor=factor, time=same, type=kind)
    return select_reviews(log, valid.astype(bool))


def one_card(*entries):
    """Select from the entries (type, ease, factor) of a single card."""
    return select([(1, kind, ease, factor, True) for kind, ease, factor in entries])


LEARN, REVIEW, RELEARN = (0, 3, 0), (1, 3, 2500), (2, 3, 2500)
CRAM, AHEAD = (3, 3, 0), (3, 3, 2500)
RESET, DUE_DATE, BY_ANKI = (4, 0, 0), (4, 0, 2500), (5, 0, 2500)


def test_cramming_is_left_out_and_does_not_begin_a_card_anew():
    selection = one_card(LEARN, CRAM, LEARN, REVIEW, CRAM)
    assert selection.rows.tolist() == [0, 2, 3]
    assert selection.state.tolist() == [0, 1, 2]
    assert selection.left_out == {"filtered deck without rescheduling": 2}


def test_a_card_that_is_learnt_again_loses_what_came_before():
    selection = one_card(LEARN, REVIEW, LEARN, LEARN, REVIEW)
    assert selection.rows.tolist() == [2, 3, 4]
    assert selection.state.tolist() == [0, 1, 2]
    assert selection.left_out == {"before the card was last learnt from the start": 2}


def test_a_reset_between_learning_steps_begins_the_card_anew():
    selection = one_card(LEARN, LEARN, RESET, LEARN, REVIEW)
    assert selection.rows.tolist() == [3, 4]
    assert selection.left_out["set by hand (due date or reset)"] == 1


def test_a_due_date_set_by_hand_does_not_interrupt_a_history():
    selection = one_card(LEARN, REVIEW, DUE_DATE, REVIEW, BY_ANKI, REVIEW)
    assert selection.rows.tolist() == [0, 1, 3, 5]
    assert selection.left_out["rescheduled by Anki"] == 1


def test_a_reset_without_a_new_start_keeps_the_history():
    assert one_card(LEARN, REVIEW, RESET).rows.tolist() == [0, 1]


def test_a_card_that_was_never_in_learning_is_left_out():
    assert one_card(REVIEW, RELEARN, AHEAD).left_out == {"card without a learning step": 3}


@pytest.mark.slow
@given(st.lists(ROW, max_size=30))
def test_the_rule_agrees_with_a_loop_over_the_rows(rows):
    histories = {}
    was_learning = {}
    for number, (card, kind, ease, factor, valid) in enumerate(rows):
        if not valid or (kind == 3 and factor == 0):
            continue
        if kind == 4 and factor == 0:
            was_learning[card] = False
        if ease == 0 or kind in (4, 5):
            continue
        if kind == 0 and not was_learning.get(card, False):
            histories[card] = []
        if card in histories:
            histories[card].append(number)
        was_learning[card] = kind == 0
    expected = sorted(number for numbers in histories.values() for number in numbers)
    selection = select(rows)
    assert selection.rows.tolist() == expected
    new = [numbers[0] for numbers in histories.values()]
    assert selection.rows[selection.state == 0].tolist() == sorted(new)
