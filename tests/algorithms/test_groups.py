"""Fits of their own for decks, presets and other groups."""

from dataclasses import replace

import numpy as np
import pytest
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined import PerGroup
from srs_eval.data.reviews import GROUPS

ROWS = FOLD.train
# Two large decks, a small one, and cards of which the deck is not known.
DECK = np.select([REVIEWS.card < 15, REVIEWS.card < 30, REVIEWS.card < 33], [7, 8, 9], -1)
DECKS = replace(REVIEWS, deck=DECK, preset=np.minimum(DECK, 8))


def test_each_group_is_predicted_by_the_fit_to_its_own_reviews():
    trained, tested = DECK[FOLD.train], DECK[FOLD.test]
    fewest = min((trained == deck).sum() for deck in (7, 8))
    model = fitted(PerGroup(Average(), group="deck", fewest=int(fewest)), DECKS)
    recalled = REVIEWS.recalled[FOLD.train]
    p = model.predict(DECKS, FOLD.test)
    for deck in (7, 8):
        np.testing.assert_allclose(p[tested == deck], recalled[trained == deck].mean())
    for deck in (9, -1):
        assert (tested == deck).any()
        np.testing.assert_allclose(p[tested == deck], recalled.mean())
    assert sorted(model.models) == [7, 8]
    assert model.parameters == ()
    parts = {part.name: part.parameters for part in model.learned.parts}
    expected = {f"deck {deck}": (recalled[trained == deck].mean(),) for deck in (7, 8)}
    assert parts == {"all": (recalled.mean(),), **expected}
    assert model.learned.note == "2 of 3 decks have a fit of their own"
    assert not model.learned.fallback


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("column", "note"), [(None, "the log has no "), (np.arange(len(REVIEWS)), "0 of ")]
)
def test_without_groups_of_enough_reviews_there_is_one_fit_and_it_says_so(group, column, note):
    log, whole = replace(REVIEWS, **{group: column}), fitted(Average())
    model = fitted(PerGroup(Average(), group, fewest=50), log)
    assert (model.models, model.learned.fallback) == ({}, True)
    assert model.learned.note.startswith(note)
    np.testing.assert_array_equal(model.predict(log, ROWS), whole.predict(log, ROWS))
