"""Trees grown on other users: against scikit-learn's, as files, and on which users they learn."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from cases import refusals
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingRegressor
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent import weights as weight_files
from srs_eval.algorithms.recurrent.weights import Weights, read_weights
from srs_eval.algorithms.sessions.population import Population, _inputs
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.algorithms.sessions.trees import Recipe, as_nodes, grown, values
from srs_eval.checks import check_algorithm
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import ConfigError, FitSkipped

NAMES = ("first", "second", "third")
FILTER = SessionFilter(base=Hlr())
# A stump, and one of its leaves split again.
NODES = [
    [[1, 0.5, 1], [-1, -0.25, 0], [-1, 0.5, 0], [-1, 0, 0], [-1, 0, 0]],
    [[0, 2.0, 1], [2, -1.0, 3], [-1, 4.0, 0], [-1, 1.0, 0], [-1, 2.0, 0]],
]


def as_weights(nodes=NODES, **changes):
    numbers = np.array(nodes, float)
    made = Weights(
        "population", numbers.shape[:2], tuple(numbers.ravel().tolist()), (), (), {"inputs": NAMES}
    )
    return replace(made, **changes)


def changed(*changes):
    nodes = np.array(NODES, float)
    for tree, node, column, value in changes:
        nodes[tree, node, column] = value
    return as_weights(nodes)


@pytest.fixture(scope="module")
def reviews():
    """Inputs, log-odds that know nothing of them, and outcomes that depend on two of them."""
    rng = np.random.default_rng(1)
    inputs = rng.integers(0, 20, (20_000, 3)).astype(np.float32)
    start = np.full(len(inputs), 1.0)
    truth = start + np.where((inputs[:, 0] > 9) == (inputs[:, 2] > 4), 0.8, -0.8)
    return inputs, start, truth, rng.random(len(inputs)) < expit(truth), rng.random(len(inputs)) + 1


def test_rows_end_in_the_leaves_that_their_inputs_lead_to():
    rows = np.array([[2, 0.5, -1], [2, 0.6, 0], [2.1, 1, 0]], np.float32)
    expected = [-0.25 + 1, 0.5 + 2, 0.5 + 4]
    assert values(as_nodes(as_weights(), NAMES), rows).tolist() == expected


def test_a_tree_is_that_of_scikit_learn(reviews):
    inputs, start, _, recalled, weight = reviews
    recipe = Recipe(1, learning_rate=1.0, l2=1e-12, share_of_inputs=1.0, share_of_reviews=1.0)
    nodes = grown(inputs, start, recalled, weight, recipe, np.random.default_rng(0))
    p = expit(start)
    other = HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1, max_leaf_nodes=15, min_samples_leaf=200, early_stopping=False
    ).fit(inputs, (recalled - p) / (p * (1 - p)), sample_weight=weight * p * (1 - p))
    assert len(np.unique(values(nodes, inputs))) == recipe.leaves
    np.testing.assert_allclose(values(nodes, inputs), other.predict(inputs), atol=1e-6)


def test_a_tree_that_cannot_split_takes_one_step_of_newton(reviews):
    inputs, start, _, recalled, weight = reviews
    whole = Recipe(1, smallest_leaf=20_001, learning_rate=1.0, share_of_reviews=1.0)
    (only,) = np.unique(
        values(grown(inputs, start, recalled, weight, whole, np.random.default_rng(0)), inputs)
    )
    p = expit(1.0)
    total, information = weight @ (recalled - p), weight.sum() * p * (1 - p)
    assert only == pytest.approx(total / (information + whole.l2), abs=1e-7)


HOSTILE = {
    "leads back": changed((1, 1, 2, 1)),
    "leads to itself": changed((1, 0, 2, 0)),
    "leads out of the tree": changed((1, 1, 2, 4)),
    "leads to half a node": changed((0, 0, 2, 1.5)),
    "leads nowhere": changed((0, 0, 2, np.nan)),
    "an input too many": changed((0, 0, 0, 3)),
    "an input below all": changed((1, 1, 0, -2), (1, 0, 0, 0.5)),
    "a threshold that is no number": changed((0, 0, 1, np.nan)),
    "an infinite leaf": changed((0, 1, 1, np.inf), (1, 1, 2, 0), (1, 0, 0, np.inf)),
    "numbers that are missing": as_weights(parameters=(1.0, 2.0)),
    "no trees": as_weights(sizes=(0, 5), parameters=()),
    "more trees than there may be": as_weights(sizes=(10**9, 10**9)),
    "sizes of something else": as_weights(sizes=(8,)),
    "sizes that are not whole": as_weights(sizes=(2.0, 5.5)),
    "other inputs": as_weights(settings={"inputs": ("first", "fourth", "third")}),
    "inputs in another order": as_weights(settings={"inputs": NAMES[::-1]}),
    "no inputs": as_weights(settings={}),
    "inputs that are no names": as_weights(settings={"inputs": [1, 2, 3]}),
}


def test_trees_that_cannot_be_read_are_refused_with_the_place(golden_text):
    calls = {case: partial(as_nodes, made, NAMES) for case, made in HOSTILE.items()}
    golden_text("population_trees", refusals(calls, ConfigError))


def test_files_that_are_too_large_or_those_of_a_network_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "trees.safetensors"
    as_weights(network="lstm").save(path)
    with pytest.raises(ConfigError):
        Population(weights=path)
    as_weights().save(path)
    assert as_nodes(read_weights(path), NAMES).tolist() == NODES
    with pytest.raises(ConfigError):  # the features are others
        Population(weights=path)
    monkeypatch.setattr(weight_files, "_LARGEST", path.stat().st_size - 1)
    with pytest.raises(ConfigError):
        read_weights(path)


def predicted(algorithm, rows=FOLD.test):
    model = fitted(algorithm)
    return model, model.predict(REVIEWS, rows)


def lessons(users=(1, 2, 3)):
    for user in users:
        task = trial_task(same_day=True, seed=user)
        last = task.folds[-1]
        yield replace(task.reviews, user=user), np.r_[last.train, last.test]


def pretrained(algorithm, seed=0):
    return algorithm.pretrain(lessons(), np.random.default_rng(seed))


def test_without_trees_predictions_are_those_of_the_base():
    alone = SessionFilter(base=Hlr(), features="none")
    for base, filtered in ((FILTER, FILTER), (Hlr(), alone)):
        (own, expected), (model, p) = map(predicted, (filtered, Population(base, weights=None)))
        assert np.array_equal(p, expected)
        assert model.parameters == own.parameters
        assert model.learned.note
    z = own.walked(REVIEWS, FOLD.test).answers.z[FOLD.test]
    np.testing.assert_allclose(expected, expit(z), rtol=1e-12)


@pytest.mark.parametrize("base", [FILTER, Hlr()])
def test_trees_move_later_day_reviews_alone_by_what_they_read(base, tmp_path):
    learned = pretrained(Population(base=base, trees=3))
    assert learned.pretrained
    assert [user.name for user in learned.weights.seen] == [1, 2, 3]
    path = tmp_path / "trees.safetensors"
    learned.weights.save(path)
    read = Population(base=base, weights=path)
    (model, p), (_, before) = predicted(read), predicted(Population(base=base, weights=None))
    assert np.array_equal(p, predicted(learned)[1])
    assert np.array_equal(p, predicted(pretrained(Population(base=base, trees=3)))[1])
    later = REVIEWS.elapsed_days[FOLD.test] > 0
    assert np.array_equal(p[~later], before[~later])
    walked = model.filtered.walked(REVIEWS, FOLD.test)
    some = np.flatnonzero(np.isin(walked.rows, FOLD.test))
    read_there = _inputs(
        model.base, model.filtered, walked, model.filtered.probabilities(walked), some
    )
    moved = values(learned.nodes, read_there)
    assert moved.any()
    np.testing.assert_allclose(logit(p[later]), logit(before[later]) + moved, atol=1e-9)
    known, rows = next(lessons())
    with pytest.raises(FitSkipped):
        read.fit(known, rows, np.random.default_rng(0))


def test_without_users_there_is_nothing_to_learn():
    nothing = [(REVIEWS, FOLD.train[:0])]
    with pytest.raises(ConfigError):
        Population(base=FILTER).pretrain(nothing, np.random.default_rng(0))


def test_what_was_learned_from_simulated_users_keeps_its_promises():
    shipped = Population(weights="simulated")
    assert shipped.pretrained
    assert len(shipped.start.seen) == 200
    check_algorithm(replace(shipped, base=FILTER), trial_task(same_day=True, cards=20))
    with pytest.raises(ConfigError):
        Population(base=Hlr(), weights="simulated")
