"""Fits of groups, pulled towards the fit of all reviews as far as held-out cards say."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.combined import pooling
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.combined.pooling import Pooling, choose_pooling
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.protocol.srs_benchmark import SrsBenchmark

TASK = trial_task(same_day=True)
REVIEWS, ROWS = TASK.reviews, TASK.folds[0].train


def rng():
    return np.random.default_rng(0)


def two_presets(*users):
    """Return the log of one person with a preset for the cards of each of some users."""
    source = SyntheticUsers(users=40, size_scale=0.1, max_reviews=3000, version=1)
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


def with_random_presets(user):
    log = two_presets(user)
    cards, of_row = np.unique(log.card, return_inverse=True)
    return replace(log, preset=rng().integers(0, 2, len(cards))[of_row])


def expected_loss(model, task, rows):
    """Compute the log loss expected under the true probabilities of recall."""
    p, truth = model.predict(task.reviews, rows), task.reviews.truth[rows]
    return -np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p))


def compared(log):
    """Fit by group and by one fit; return the model and both losses on the last fold."""
    task = SrsBenchmark()(log, same_day=True)
    fold = task.folds[-1]
    model = PerGroup(Fsrs6()).fit(task.reviews, fold.train, rng())
    pooled = Fsrs6().fit(task.reviews, fold.train, rng())
    return model, *(expected_loss(m, task, fold.test) for m in (model, pooled))


@pytest.mark.parametrize("users", [(9, 10), (15, 16)])
def test_presets_that_differ_get_their_own_parameters_and_are_predicted_better(users):
    model, grouped, pooled = compared(two_presets(*users))
    assert model.learned.note.startswith("presets differ: own parameters for 2 of 2 presets")
    assert sorted(model.models) == [0, 1]
    assert grouped < pooled - 0.005
    assert not model.learned.fallback


@pytest.mark.parametrize("user", [9, 15])
def test_presets_that_do_not_differ_share_one_set_of_parameters(user):
    model, grouped, pooled = compared(with_random_presets(user))
    assert model.learned.note.startswith("one set of parameters predicts as well: ")
    assert grouped == pooled
    assert (model.models, model.learned.fallback) == ({}, False)
    assert [part.title for part in model.learned.parts] == ["every preset"]


@pytest.mark.parametrize("base", [Fsrs6(), Hlr(), Fsrs6(fit="lbfgs"), Fsrs6(binary=True)])
def test_a_strong_pull_keeps_the_centre_and_a_weak_one_moves_further(base):
    whole = base.fit(REVIEWS, ROWS, rng())
    group = ROWS[REVIEWS.preset[ROWS] == 0]
    moved = []
    for weight in (1e9, 64.0, 1.0):
        near = base.fit_near(REVIEWS, group, rng(), whole, weight)
        moved.append(np.linalg.norm(np.subtract(near.parameters, whole.parameters)))
    assert moved[0] < 1e-4 < moved[1] < moved[2]
    # Near the published parameters it is the usual fit.
    start = type(base)(fit="default").fit(REVIEWS, ROWS, rng())
    near = base.fit_near(REVIEWS, ROWS, rng(), start, 1.0)
    np.testing.assert_allclose(near.parameters, whole.parameters)


def test_the_gain_and_its_error_are_those_of_held_out_cards(monkeypatch):
    monkeypatch.setattr(pooling, "WEIGHTS", (1.0,))
    drawn = rng()
    found = choose_pooling(Hlr(), REVIEWS, ROWS, REVIEWS.preset[ROWS], [0, 1], drawn)
    part = pooling._parts(REVIEWS.card[ROWS], REVIEWS.preset[ROWS], rng())
    gains = np.empty(len(ROWS))
    for number in range(4):
        train = ROWS[part != number]
        whole = Hlr().fit(REVIEWS, train, rng())
        for preset in (0, 1):
            own = train[REVIEWS.preset[train] == preset]
            near = Hlr().fit_near(REVIEWS, own, rng(), whole, 1.0)
            test = (part == number) & (REVIEWS.preset[ROWS] == preset)
            recalled = REVIEWS.recalled[ROWS[test]]
            p, q = (
                np.where(recalled, each, 1 - each)
                for each in (m.predict(REVIEWS, ROWS[test]) for m in (near, whole))
            )
            gains[test] = np.log(p / q)
    cards = [gains[REVIEWS.card[ROWS] == card] for card in np.unique(REVIEWS.card[ROWS])]
    error = np.sqrt(sum((card - gains.mean()).sum() ** 2 for card in cards)) / len(ROWS)
    assert found == Pooling(1.0, pytest.approx(gains.mean()), pytest.approx(error))


def test_parts_have_whole_cards_and_an_equal_share_of_each_group():
    groups = REVIEWS.deck[ROWS]
    part = pooling._parts(REVIEWS.card[ROWS], groups, rng())
    for card in np.unique(REVIEWS.card[ROWS]):
        assert len(np.unique(part[REVIEWS.card[ROWS] == card])) == 1
    for deck in np.unique(groups):
        shares = [
            len(np.unique(REVIEWS.card[ROWS][(groups == deck) & (part == n)])) for n in range(4)
        ]
        assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(
    "preset", [np.zeros(len(REVIEWS), np.int64), np.arange(len(REVIEWS))], ids=["one", "tiny"]
)
def test_without_two_groups_to_compare_there_is_one_fit(preset):
    model = PerGroup(Hlr()).fit(replace(REVIEWS, preset=preset), ROWS, rng())
    assert (model.models, model.learned.fallback) == ({}, True)
    assert model.learned.note.startswith("too few reviews of different presets")


def test_too_few_cards_are_not_compared():
    few = ROWS[REVIEWS.card[ROWS] < 3]
    assert choose_pooling(Hlr(), REVIEWS, few, REVIEWS.preset[few], [0, 1], rng()) is None


def test_a_fit_without_a_prior_refuses_to_be_pulled():
    whole = Hlr().fit(REVIEWS, ROWS, rng())
    with pytest.raises(ConfigError):
        Hlr(fit="default").fit_near(REVIEWS, ROWS, rng(), whole, 1.0)
