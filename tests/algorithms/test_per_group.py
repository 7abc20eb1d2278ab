"""Fits of their own for decks and presets, and one for the rest."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.checks import check_algorithm
from srs_eval.checks.toy_log import trial_task
from srs_eval.nouns import GROUPS

TASK = trial_task(same_day=False)
# Two large decks, a small one, and cards of which the deck is not known.
DECK = np.select(
    [TASK.reviews.card < 15, TASK.reviews.card < 30, TASK.reviews.card < 33], [7, 8, 9], -1
)
TASK = replace(TASK, reviews=replace(TASK.reviews, deck=DECK, preset=np.minimum(DECK, 8)))
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]


def fitted(algorithm, reviews=REVIEWS):
    return algorithm.fit(reviews, FOLD.train, np.random.default_rng(0))


def test_each_group_is_predicted_by_the_fit_to_its_own_reviews():
    model = fitted(PerGroup(Average(), group="deck", pooling="none", fewest=50))
    trained, tested = DECK[FOLD.train], DECK[FOLD.test]
    recalled = REVIEWS.recalled[FOLD.train]
    p = model.predict(REVIEWS, FOLD.test)
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


def test_histories_of_a_group_are_whole():
    model = fitted(PerGroup(Hlr(), group="deck", pooling="none", fewest=50))
    alone = Hlr().fit(REVIEWS, FOLD.train[DECK[FOLD.train] == 7], np.random.default_rng(0))
    assert model.models[7].parameters == alone.parameters
    rows = FOLD.test[DECK[FOLD.test] == 7]
    np.testing.assert_array_equal(model.predict(REVIEWS, rows), alone.predict(REVIEWS, rows))


@pytest.mark.parametrize("group", GROUPS)
def test_a_log_without_groups_has_one_fit_and_says_so(group):
    plain = replace(REVIEWS, **dict.fromkeys(GROUPS))
    model = fitted(PerGroup(Hlr(), group=group), plain)
    assert model.learned.fallback
    assert "the log has no " in model.learned.note
    whole = fitted(Hlr(), plain)
    np.testing.assert_array_equal(model.predict(plain, FOLD.test), whole.predict(plain, FOLD.test))


@pytest.mark.slow
@pytest.mark.parametrize("base", [Fsrs6(), MovingAverage()], ids=["curve", "at_review"])
def test_it_is_honest_where_there_are_groups(base):
    algorithm = PerGroup(base, group="deck", pooling="none", fewest=20)
    assert algorithm.same_day == base.same_day
    assert algorithm.when == base.when
    assert algorithm.sees_truth == base.sees_truth
    assert len(fitted(algorithm).models) > 1
    check_algorithm(algorithm, TASK)
    assert hasattr(fitted(algorithm), "predict_at") == (base.when == "previous_review")


def test_refits_start_from_the_group_or_from_the_whole():
    seen = []

    class Warm(Average):
        def refit(self, reviews, rows, rng, previous):
            seen.append(previous)
            return self.fit(reviews, rows, rng)

    algorithm = PerGroup(Warm(), group="deck", pooling="none", fewest=60)
    rng = np.random.default_rng(0)
    before = algorithm.fit(REVIEWS, FOLD.train[:130], rng)
    after = algorithm.refit(REVIEWS, FOLD.train, rng, before)
    assert len(before.models) < len(after.models) == 2
    expected = [before.whole, *(before.models.get(deck, before.whole) for deck in after.models)]
    assert seen == expected
