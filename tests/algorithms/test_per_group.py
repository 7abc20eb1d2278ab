"""Fits of their own for decks and presets, and one for the rest."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined import pooling
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.combined.pooling import Pooling, choose_pooling
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.online import MovingAverage
from srs_eval.checks import check_algorithm
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.nouns import GROUPS, has_curve
from srs_eval.protocol.srs_benchmark import SrsBenchmark

TASK = trial_task(same_day=False)
# Two large decks, a small one, and cards of which the deck is not known.
DECK = np.select(
    [TASK.reviews.card < 15, TASK.reviews.card < 30, TASK.reviews.card < 33], [7, 8, 9], -1
)
TASK = replace(TASK, reviews=replace(TASK.reviews, deck=DECK, preset=np.minimum(DECK, 8)))
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]


def rng():
    return np.random.default_rng(0)


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train):
    return algorithm.fit(reviews, rows, rng())


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


@pytest.mark.slow
@pytest.mark.parametrize("base", [Fsrs6(), MovingAverage()], ids=["curve", "at_review"])
def test_it_is_honest_where_there_are_groups(base):
    algorithm = PerGroup(base, group="deck", pooling="none", fewest=20)
    assert (algorithm.same_day, algorithm.when) == (base.same_day, base.when)
    assert len(fitted(algorithm).models) > 1
    check_algorithm(algorithm, TASK)
    assert has_curve(fitted(algorithm)) == (base.when == "previous_review")


def test_refits_start_from_the_group_or_from_the_whole():
    seen = []

    class Warm(Average):
        def refit(self, reviews, rows, rng, previous):
            seen.append(previous)
            return self.fit(reviews, rows, rng)

    algorithm = PerGroup(Warm(), group="deck", pooling="none", fewest=60)
    before = fitted(algorithm, rows=FOLD.train[:130])
    after = algorithm.refit(REVIEWS, FOLD.train, rng(), before)
    assert len(before.models) < len(after.models) == 2
    expected = [before.whole, *(before.models.get(deck, before.whole) for deck in after.models)]
    assert seen == expected


# Partial pooling, on a log whose presets do not follow its cards' outcomes.
WIDE = trial_task(same_day=True)
POOLED, ROWS = WIDE.reviews, WIDE.folds[0].train


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
    whole = fitted(base, POOLED, ROWS)
    group = ROWS[POOLED.preset[ROWS] == 0]
    moved = []
    for weight in (1e9, 64.0, 1.0):
        near = base.fit_near(POOLED, group, rng(), whole, weight)
        moved.append(np.linalg.norm(np.subtract(near.parameters, whole.parameters)))
    assert moved[0] < 1e-4 < moved[1] < moved[2]
    # Near the published parameters it is the usual fit.
    unfitted = type(base)(fit="default")
    start = fitted(unfitted, POOLED, ROWS)
    near = base.fit_near(POOLED, ROWS, rng(), start, 1.0)
    np.testing.assert_allclose(near.parameters, whole.parameters)
    with pytest.raises(ConfigError):
        unfitted.fit_near(POOLED, ROWS, rng(), whole, 1.0)


def test_the_gain_and_its_error_are_those_of_held_out_cards(monkeypatch):
    monkeypatch.setattr(pooling, "WEIGHTS", (1.0,))
    found = choose_pooling(Hlr(), POOLED, ROWS, POOLED.preset[ROWS], [0, 1], rng())
    part = pooling._parts(POOLED.card[ROWS], POOLED.preset[ROWS], rng())
    gains = np.empty(len(ROWS))
    for number in range(4):
        train = ROWS[part != number]
        whole = fitted(Hlr(), POOLED, train)
        for preset in (0, 1):
            own = train[POOLED.preset[train] == preset]
            near = Hlr().fit_near(POOLED, own, rng(), whole, 1.0)
            test = (part == number) & (POOLED.preset[ROWS] == preset)
            recalled = POOLED.recalled[ROWS[test]]
            p, q = (model.predict(POOLED, ROWS[test]) for model in (near, whole))
            gains[test] = np.log(np.where(recalled, p / q, (1 - p) / (1 - q)))
    cards = [gains[POOLED.card[ROWS] == card] for card in np.unique(POOLED.card[ROWS])]
    error = np.sqrt(sum((card - gains.mean()).sum() ** 2 for card in cards)) / len(ROWS)
    assert found == Pooling(1.0, pytest.approx(gains.mean()), pytest.approx(error))
    few = ROWS[POOLED.card[ROWS] < 3]
    assert choose_pooling(Hlr(), POOLED, few, POOLED.preset[few], [0, 1], rng()) is None


def test_parts_have_whole_cards_and_an_equal_share_of_each_group():
    groups, card = POOLED.deck[ROWS], POOLED.card[ROWS]
    part = pooling._parts(card, groups, rng())
    pairs = np.unique(np.stack([groups, part, card]), axis=1)
    assert pairs.shape[1] == len(np.unique(card))  # each card is in one part
    for deck in np.unique(groups):
        shares = np.bincount(pairs[1, pairs[0] == deck], minlength=4)
        assert shares.max() - shares.min() <= 1


@pytest.mark.parametrize(
    ("column", "note"),
    [
        (np.zeros(len(POOLED), np.int64), "too few reviews of different "),
        (np.arange(len(POOLED)), "too few reviews of different "),
        (None, "the log has no "),
    ],
)
@pytest.mark.parametrize("group", GROUPS)
def test_without_two_groups_to_compare_there_is_one_fit_and_it_says_so(group, column, note):
    log = replace(POOLED, **{group: column})
    model, whole = (fitted(algorithm, log, ROWS) for algorithm in (PerGroup(Hlr(), group), Hlr()))
    assert (model.models, model.learned.fallback) == ({}, True)
    assert model.learned.note.startswith(note)
    np.testing.assert_array_equal(model.predict(log, ROWS), whole.predict(log, ROWS))
