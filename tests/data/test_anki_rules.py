"""Which rows of Anki's review table are reviews."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.data.anki.database import Revlog
from srs_eval.data.anki.rules import (
    BEFORE_START,
    BY_HAND,
    CRAMMING,
    NO_BUTTON,
    NO_START,
    select_reviews,
)
from srs_eval.data.anki.rules import BY_ANKI as BY_ANKI_ALONE

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


LEARN, REVIEW, RELEARN = (0, 3, 0), (1, 3, 2500), (2, 3, 2500)
CRAM, AHEAD = (3, 3, 0), (3, 3, 2500)
RESET, DUE_DATE, BY_ANKI = (4, 0, 0), (4, 0, 2500), (5, 0, 2500)
NO_ANSWER = (1, 0, 2500)


@pytest.mark.parametrize(
    ("entries", "rows", "state", "left_out"),
    [
        # Cramming does not begin a card anew.
        ([LEARN, CRAM, LEARN, REVIEW, CRAM], [0, 2, 3], [0, 1, 2], {CRAMMING: 2}),
        # What came before a card was learnt again is lost.
        ([LEARN, REVIEW, LEARN, LEARN, REVIEW], [2, 3, 4], [0, 1, 2], {BEFORE_START: 2}),
        # A reset between learning steps begins the card anew, and no reset at the end.
        ([LEARN, LEARN, RESET, LEARN, REVIEW], [3, 4], [0, 2], {BY_HAND: 1, BEFORE_START: 2}),
        ([LEARN, REVIEW, RESET], [0, 1], [0, 2], {BY_HAND: 1}),
        # Due dates do not interrupt a history.
        (
            [LEARN, REVIEW, DUE_DATE, REVIEW, BY_ANKI, REVIEW],
            *([0, 1, 3, 5], [0, 2, 2, 2], {BY_HAND: 1, BY_ANKI_ALONE: 1}),
        ),
        ([LEARN, RELEARN, AHEAD, NO_ANSWER], [0, 1, 2], [0, 3, 4], {NO_BUTTON: 1}),
        ([REVIEW, RELEARN, AHEAD], [], [], {NO_START: 3}),
    ],
)
def test_the_reviews_of_a_card_and_the_reasons_of_other_rows(entries, rows, state, left_out):
    selection = select([(1, kind, ease, factor, True) for kind, ease, factor in entries])
    assert selection.rows.tolist() == rows
    assert selection.state.tolist() == state
    assert selection.left_out == left_out


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
    assert len(selection.rows) + sum(selection.left_out.values()) == len(rows)
