"""Trees: what they read, how many there are, and curves that fall."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.baselines import FlatModel
from srs_eval.algorithms.features.boosted_trees import BoostedTrees, BoostedTreesModel, facts
from srs_eval.algorithms.features.logistic_features import counted_before
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task

TASK = trial_task(same_day=True)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train):
    return algorithm.fit(reviews, rows, np.random.default_rng(0))


def test_only_two_facts_depend_on_the_interval():
    history = history_of(REVIEWS)
    now = facts(history, FOLD.test, REVIEWS.elapsed[FOLD.test])
    later = facts(history, FOLD.test, REVIEWS.elapsed[FOLD.test] * 3 + 0.1)
    assert now.shape == (len(FOLD.test), 15)
    assert (now[:, 0] < later[:, 0]).all()
    np.testing.assert_array_equal(now[:, 2:], later[:, 2:])
    known = counted_before(history, FOLD.test)
    np.testing.assert_array_equal(now[:, 2], known.rating)
    np.testing.assert_array_equal(now[:, 14], known.since_failure)


@pytest.mark.parametrize("whole_days", [True, False])
def test_constrained_curves_never_rise(whole_days):
    reviews = REVIEWS
    if not whole_days:
        hours = np.where(REVIEWS.elapsed > 0, 0.3, 0.01) * (REVIEWS.elapsed_days >= 0)
        reviews = replace(REVIEWS, elapsed=REVIEWS.elapsed + hours, whole_days=False)
    model = fitted(BoostedTrees(monotone=True, smallest_leaf=5), reviews)
    assert isinstance(model, BoostedTreesModel)
    elapsed = np.tile(np.geomspace(0.01, 400, 60), (len(FOLD.test), 1))
    curves = model.predict_at(reviews, FOLD.test, elapsed)
    assert (np.diff(curves, axis=1) <= 1e-12).all()
    assert (np.diff(curves, axis=1) < 0).any()


def test_the_latest_training_reviews_decide_how_many_trees_there_are():
    few = fitted(BoostedTrees(most_trees=3, smallest_leaf=5))
    many = fitted(BoostedTrees(smallest_leaf=5))
    assert 1 <= few.trees.n_iter_ <= 3
    assert few.trees.n_iter_ <= many.trees.n_iter_ < 200


def with_outcomes(recalled):
    return replace(REVIEWS, rating=np.where(recalled, 3, 1))


def test_trees_that_the_latest_training_reviews_contradict_are_left_out():
    soon = REVIEWS.elapsed < np.median(REVIEWS.elapsed[FOLD.train])
    latest = np.arange(len(REVIEWS)) >= FOLD.train[len(FOLD.train) * 4 // 5]
    contrary = fitted(BoostedTrees(), with_outcomes(soon ^ latest))
    assert contrary.trees.n_iter_ == 1


def test_too_few_reviews_to_split_give_their_mean():
    few = FOLD.train[:49]
    model = fitted(BoostedTrees(), rows=few)
    assert isinstance(model, FlatModel)
    assert model.learned.fallback
    assert model.p == (REVIEWS.recalled[few].sum() + 1) / 51
    assert isinstance(fitted(BoostedTrees(), rows=FOLD.train[:50]), BoostedTreesModel)
