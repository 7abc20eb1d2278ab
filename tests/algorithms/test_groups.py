"""Fits of their own for decks and presets, and trees grown on other users."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from cases import refusals
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingRegressor
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined import pooling
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.combined.pooling import Pooling, choose_pooling
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent import weights as weight_files
from srs_eval.algorithms.recurrent.weights import Weights, read_weights
from srs_eval.algorithms.sessions.population import Population, _inputs
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.algorithms.sessions.trees import Recipe, as_nodes, grown, values
from srs_eval.checks import check_algorithm
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import GROUPS
from srs_eval.protocol.srs_benchmark import SrsBenchmark

ROWS = FOLD.train
# Two large decks, a small one, and cards of which the deck is not known.
DECK = np.select([REVIEWS.card < 15, REVIEWS.card < 30, REVIEWS.card < 33], [7, 8, 9], -1)
DECKS = replace(REVIEWS, deck=DECK, preset=np.minimum(DECK, 8))


def rng():
    return np.random.default_rng(0)


def test_each_group_is_predicted_by_the_fit_to_its_own_reviews():
    model = fitted(PerGroup(Average(), group="deck", pooling="none", fewest=50), DECKS)
    trained, tested = DECK[FOLD.train], DECK[FOLD.test]
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


def test_refits_start_from_the_group_or_from_the_whole():
    seen = []

    class Warm(Average):
        def refit(self, reviews, rows, rng, previous):
            seen.append(previous)
            return self.fit(reviews, rows, rng)

    algorithm = PerGroup(Warm(), group="deck", pooling="none", fewest=60)
    before = fitted(algorithm, DECKS, ROWS[:130])
    after = algorithm.refit(DECKS, FOLD.train, rng(), before)
    assert len(before.models) < len(after.models) == 2
    expected = [before.whole, *(before.models.get(deck, before.whole) for deck in after.models)]
    assert seen == expected


# Partial pooling, on a log whose presets do not follow its cards' outcomes.


def two_presets(*users):
    """Return the log of one person with a preset for the cards of each of some users."""
    source = SyntheticUsers(users=40, size_scale=0.1, max_reviews=3000)
    logs = [source.read(user) for user in users]
    columns = {
        name: np.concatenate([getattr(log, name) for log in logs])
        for name in ("day", "rating", "elapsed_days", "truth")
    }
    columns["card"] = np.concatenate([log.card + 10**6 * n for n, log in enumerate(logs)])
    columns["preset"] = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    order = np.argsort(columns["day"], kind="stable")
    ordered = {name: column[order] for name, column in columns.items()}
    return reviews_from_columns(user=1, source="two presets", **ordered)


def compared(log):
    """Fit by group and by one fit; return the model and both losses expected on the last fold."""
    task = SrsBenchmark()(log, same_day=True)
    reviews, fold = task.reviews, task.folds[-1]
    models = [fitted(algorithm, reviews, fold.train) for algorithm in (PerGroup(Fsrs6()), Fsrs6())]
    losses, truth = [], reviews.truth[fold.test]
    for p in (model.predict(reviews, fold.test) for model in models):
        losses.append(-np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p)))
    return models[0], *losses


@pytest.mark.parametrize("users", [(15, 16), (23, 26)])
def test_presets_get_their_own_parameters_only_where_these_predict_better(users):
    model, grouped, pooled = compared(two_presets(*users))
    assert model.learned.note.startswith("presets differ: own parameters for 2 of 2 presets")
    assert sorted(model.models) == [0, 1]
    assert grouped < pooled - 0.005
    log = two_presets(users[0])
    cards, of_row = np.unique(log.card, return_inverse=True)
    alike, grouped, pooled = compared(replace(log, preset=rng().integers(0, 2, len(cards))[of_row]))
    assert alike.learned.note.startswith("one set of parameters predicts as well: ")
    assert grouped == pooled
    assert (alike.models, alike.learned.fallback, model.learned.fallback) == ({}, False, False)
    assert [part.title for part in alike.learned.parts] == ["every preset"]


@pytest.mark.parametrize("base", [Fsrs6(), Hlr(), Fsrs6(fit="lbfgs"), Fsrs6(binary=True)])
def test_a_strong_pull_keeps_the_centre_and_a_weak_one_moves_further(base):
    whole = fitted(base, REVIEWS, ROWS)
    group = ROWS[REVIEWS.preset[ROWS] == 0]
    moved = []
    for weight in (1e9, 64.0, 1.0):
        near = base.fit_near(REVIEWS, group, rng(), whole, weight)
        moved.append(np.linalg.norm(np.subtract(near.parameters, whole.parameters)))
    assert moved[0] < 1e-4 < moved[1] < moved[2]
    # Near the published parameters it is the usual fit.
    unfitted = type(base)(fit="default")
    start = fitted(unfitted, REVIEWS, ROWS)
    near = base.fit_near(REVIEWS, ROWS, rng(), start, 1.0)
    np.testing.assert_allclose(near.parameters, whole.parameters)
    with pytest.raises(ConfigError):
        unfitted.fit_near(REVIEWS, ROWS, rng(), whole, 1.0)


def test_the_gain_and_its_error_are_those_of_held_out_cards(monkeypatch):
    monkeypatch.setattr(pooling, "WEIGHTS", (1.0,))
    found = choose_pooling(Hlr(), REVIEWS, ROWS, REVIEWS.preset[ROWS], [0, 1], rng())
    part = pooling._parts(REVIEWS.card[ROWS], REVIEWS.preset[ROWS], rng())
    gains = np.empty(len(ROWS))
    for number in range(4):
        train = ROWS[part != number]
        whole = fitted(Hlr(), REVIEWS, train)
        for preset in (0, 1):
            own = train[REVIEWS.preset[train] == preset]
            near = Hlr().fit_near(REVIEWS, own, rng(), whole, 1.0)
            test = (part == number) & (REVIEWS.preset[ROWS] == preset)
            recalled = REVIEWS.recalled[ROWS[test]]
            p, q = (model.predict(REVIEWS, ROWS[test]) for model in (near, whole))
            gains[test] = np.log(np.where(recalled, p / q, (1 - p) / (1 - q)))
    cards = [gains[REVIEWS.card[ROWS] == card] for card in np.unique(REVIEWS.card[ROWS])]
    error = np.sqrt(sum((card - gains.mean()).sum() ** 2 for card in cards)) / len(ROWS)
    assert found == Pooling(1.0, pytest.approx(gains.mean()), pytest.approx(error))
    few = ROWS[REVIEWS.card[ROWS] < 3]
    assert choose_pooling(Hlr(), REVIEWS, few, REVIEWS.preset[few], [0, 1], rng()) is None


@pytest.mark.parametrize(
    ("column", "note"),
    [
        (np.zeros(len(REVIEWS), np.int64), "too few reviews of different "),
        (np.arange(len(REVIEWS)), "too few reviews of different "),
        (None, "the log has no "),
    ],
)
@pytest.mark.parametrize("group", GROUPS)
def test_without_two_groups_to_compare_there_is_one_fit_and_it_says_so(group, column, note):
    log = replace(REVIEWS, **{group: column})
    model, whole = (fitted(algorithm, log, ROWS) for algorithm in (PerGroup(Hlr(), group), Hlr()))
    assert (model.models, model.learned.fallback) == ({}, True)
    assert model.learned.note.startswith(note)
    np.testing.assert_array_equal(model.predict(log, ROWS), whole.predict(log, ROWS))


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
    nodes = grown(inputs, start, recalled, weight, recipe, rng())
    p = expit(start)
    other = HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1, max_leaf_nodes=15, min_samples_leaf=200, early_stopping=False
    ).fit(inputs, (recalled - p) / (p * (1 - p)), sample_weight=weight * p * (1 - p))
    assert len(np.unique(values(nodes, inputs))) == recipe.leaves
    np.testing.assert_allclose(values(nodes, inputs), other.predict(inputs), atol=1e-6)


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
        read.fit(known, rows, rng())


def test_what_was_learned_from_simulated_users_keeps_its_promises():
    shipped = Population(weights="simulated")
    assert shipped.pretrained
    assert len(shipped.start.seen) == 200
    check_algorithm(replace(shipped, base=FILTER), trial_task(same_day=True, cards=20))
    with pytest.raises(ConfigError):
        Population(base=Hlr(), weights="simulated")


def test_trees_find_what_start_and_single_inputs_do_not_tell(reviews):
    inputs, start, truth, recalled, weight = reviews
    recipe = Recipe(100, learning_rate=0.1, share_of_inputs=1.0)
    nodes = grown(inputs, start, recalled, weight, recipe, rng())
    left_over = start + values(nodes, inputs) - truth
    assert np.sqrt(np.mean(left_over**2)) < 0.25 * 0.8
    again = grown(inputs, start, recalled, weight, recipe, rng())
    assert np.array_equal(nodes, again)
    as_nodes(as_weights(nodes), NAMES)
