"""Averages of log-odds: their weights, and what each member is shown."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.combined.ensemble import Ensemble, best_weights
from srs_eval.algorithms.features.dash import Dash
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.algorithms.oracle import Oracle
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Learned
from srs_eval.protocol.srs_benchmark import SrsBenchmark

TASK = trial_task(same_day=True)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train):
    return algorithm.fit(reviews, rows, np.random.default_rng(0))


@pytest.mark.parametrize("same_day", [False, True])
def test_a_member_sees_what_the_protocol_would_show_it(make_log, same_day):
    log = make_log(cards=80)
    log = replace(log, truth=np.full(len(log), 0.5))
    wide, own = SrsBenchmark()(log, same_day=True), SrsBenchmark()(log, same_day=same_day)
    seen = {}

    @dataclass(frozen=True)
    class Spy(Constant):
        def fit(self, reviews, rows, rng):
            seen["reviews"], seen["rows"] = reviews, rows
            assert reviews.truth is None  # which is shown to those alone that say so
            return Constant().fit(reviews, rows, rng)

    Spy.same_day = same_day
    ensemble = Ensemble({"spy": Spy(), "oracle": Oracle()})
    ensemble.fit(wide.reviews, wide.folds[0].train, np.random.default_rng(0))
    np.testing.assert_array_equal(seen["rows"], own.folds[0].train)
    for column in ("card", "rating", "elapsed", "row"):
        np.testing.assert_array_equal(
            getattr(seen["reviews"], column), getattr(own.reviews, column)
        )


def test_attributes_follow_from_the_members():
    def declared(**members):
        ensemble = Ensemble(members)
        return ensemble.same_day, ensemble.when, ensemble.sees_truth

    assert declared(a=Hlr(), b=Average()) == (False, "previous_review", False)
    assert declared(a=Hlr(), b=Fsrs6()) == (True, "previous_review", False)
    assert declared(a=Hlr(), b=Blend(Hlr())) == (False, "day_before", False)
    assert declared(a=MovingAverage(), b=Blend(Hlr())) == (False, "at_review", False)
    assert declared(a=Hlr(), b=Oracle()) == (False, "at_review", True)


@pytest.mark.parametrize("pull", [1.0, 100.0])
def test_the_best_weights_are_those_that_scipy_finds_under_constraints(pull):
    rng = np.random.default_rng(3)
    truth = rng.normal(1.0, 1.5, 2000)
    recalled = rng.random(2000) < expit(truth)
    given = np.column_stack([truth + rng.normal(0, s, 2000) for s in (0.5, 1.0, 4.0)])
    shares = np.array([0.2, 0.3, 0.5])

    def loss(w):
        mean = given @ w
        away = w - shares
        return np.logaddexp(0, np.where(recalled, -mean, mean)).sum() + pull / 2 * away @ away

    expected = minimize(
        loss, shares, bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda w: w.sum() - 1}
    )
    found = best_weights(given, recalled, shares, pull)
    np.testing.assert_allclose(found, expected.x, atol=1e-3)


def test_weights_are_learned_from_reviews_the_members_were_not_fitted_to():
    begin = len(FOLD.train) - len(FOLD.train) // 4
    early, late = FOLD.train[:begin], FOLD.train[begin:]
    members = {"fsrs6": Fsrs6(), "avg": Average()}
    given = [logit(fitted(member, rows=early).predict(REVIEWS, late)) for member in (Fsrs6(),)]
    given.append(np.full(len(late), logit(REVIEWS.recalled[early].mean())))
    equal = np.full(2, 0.5)
    expected = best_weights(np.column_stack(given), REVIEWS.recalled[late], equal, pull=1.0)
    np.testing.assert_allclose(fitted(Ensemble(members)).parameters, expected, atol=1e-6)


def test_without_enough_reviews_weights_are_kept_and_without_any_it_skips():
    ensemble = Ensemble({"a": Hlr(), "b": Dash()})
    # 29 and 30 reviews are the latest quarter.
    few, enough = (fitted(ensemble, rows=FOLD.train[:count]) for count in (119, 120))
    assert few.parameters == (0.5, 0.5) != enough.parameters
    assert (few.learned.fallback, enough.learned.fallback) == (True, False)
    assert "29 reviews" in few.learned.note
    with pytest.raises(FitSkipped):
        fitted(ensemble, rows=np.array([], np.int64))


def test_shares_are_weights_or_what_weights_are_pulled_to():
    members = {"a": Hlr(), "b": Fsrs6()}
    fixed = fitted(Ensemble(members, weights="fixed", shares={"b": 1.0, "a": 3.0}))
    assert fixed.parameters == (0.75, 0.25)
    near = fitted(Ensemble(members, shares={"a": 3.0, "b": 1.0})).parameters
    even = fitted(Ensemble(members)).parameters
    # so few reviews move them little from shares that were given, and far from equal parts
    assert near == pytest.approx((0.75, 0.25), abs=0.1)
    assert even[1] > 0.9
    assert near != fixed.parameters


def test_what_members_tell_is_told_with_their_names():
    @dataclass(frozen=True)
    class Talking:
        parameters = ()
        learned = Learned(note="so it is", fallback=True)

        def predict(self, reviews, rows):
            return np.full(len(rows), 0.5)

    @dataclass(frozen=True)
    class Talkative(Constant):
        same_day: ClassVar[bool] = True

        def fit(self, reviews, rows, rng):
            return Talking()

    learned = fitted(Ensemble({"a": Talkative(), "b": Hlr()}, weights="equal")).learned
    assert (learned.note, learned.fallback) == ("a: so it is", True)
    assert [part.name for part in learned.parts] == ["a", "b"]
    assert {part.n_train for part in learned.parts} == {len(FOLD.train)}


def test_refits_start_from_the_fits_of_the_members():
    seen = []

    class Warm(Hlr):
        def refit(self, reviews, rows, rng, previous):
            seen.append(previous)
            return super().refit(reviews, rows, rng, previous)

    ensemble = Ensemble({"warm": Warm(), "avg": Average()}, weights="equal")
    before = fitted(ensemble, rows=FOLD.train[:100])
    ensemble.refit(REVIEWS, FOLD.train, np.random.default_rng(0), before)
    assert seen == [before.models[0]]
