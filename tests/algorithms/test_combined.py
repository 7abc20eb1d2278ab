"""Averages of log-odds, and recalibration by every answer: what they learn, and when."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from random_logs import log_of
from scipy.special import expit, logit
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.baselines import Average, Constant, FlatModel, Oracle
from srs_eval.algorithms.combined.blend import Blend, Recalibration
from srs_eval.algorithms.combined.ensemble import Ensemble, best_weights
from srs_eval.algorithms.features.dash import Dash
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.online import MovingAverage
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Learned, has_curve
from srs_eval.protocol.srs_benchmark import SrsBenchmark, SrsBenchmarkRefit

QUARTER = len(FOLD.train) - len(FOLD.train) // 4
EARLY, LATE = FOLD.train[:QUARTER], FOLD.train[QUARTER:]


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
    fitted(Ensemble({"spy": Spy(), "oracle": Oracle()}), wide.reviews, wide.folds[0].train)
    np.testing.assert_array_equal(seen["rows"], own.folds[0].train)
    for column in ("card", "rating", "elapsed", "row"):
        expected = getattr(own.reviews, column)
        np.testing.assert_array_equal(getattr(seen["reviews"], column), expected)


@pytest.mark.parametrize(
    ("algorithm", "same_day", "when", "sees_truth"),
    [
        (Ensemble({"a": Hlr(), "b": Average()}), False, "previous_review", False),
        (Ensemble({"a": Hlr(), "b": Fsrs6()}), True, "previous_review", False),
        (Ensemble({"a": Hlr(), "b": Blend(Hlr())}), False, "day_before", False),
        (Ensemble({"a": MovingAverage(), "b": Blend(Hlr())}), False, "at_review", False),
        (Ensemble({"a": Hlr(), "b": Oracle()}), False, "at_review", True),
        (Blend(Hlr()), False, "day_before", False),
        (Blend(Hlr(), every="review"), False, "at_review", False),
        (Blend(MovingAverage()), False, "at_review", False),
    ],
)
def test_declarations_and_curves_follow_from_the_others(algorithm, same_day, when, sees_truth):
    assert (algorithm.same_day, algorithm.when, algorithm.sees_truth) == (
        *(same_day, when, sees_truth),
    )
    model = fitted(algorithm)
    parts = model.made_of()
    assert has_curve(model) == all(has_curve(part) for part in parts)
    if has_curve(model):
        now = REVIEWS.elapsed[FOLD.test][:, None]
        curve = model.predict_at(REVIEWS, FOLD.test, np.hstack([now, 3 * now]))
        p = model.predict(REVIEWS, FOLD.test)
        np.testing.assert_allclose(curve[:, 0], p, rtol=1e-12)
        assert (curve[:, 1] <= curve[:, 0]).all()


@pytest.mark.parametrize("pull", [1.0, 100.0])
def test_no_weights_have_a_lower_loss_than_the_best(pull):
    rng = np.random.default_rng(3)
    truth = rng.normal(1.0, 1.5, 2000)
    recalled = rng.random(2000) < expit(truth)
    given = np.column_stack([truth + rng.normal(0, s, 2000) for s in (0.5, 1.0, 4.0)])
    shares = np.array([0.2, 0.3, 0.5])

    def loss(w):
        z = np.where(recalled, -1, 1) * (given @ w)
        return np.logaddexp(0, z).sum() + pull / 2 * np.sum((w - shares) ** 2)

    found = best_weights(given, recalled, shares, pull)
    for near in rng.dirichlet(np.ones(3), 100):
        for share in (1e-3, 1e-1, 1):
            assert loss(found) <= loss(found + share * (near - found)) + 1e-6


def test_weights_are_learned_from_reviews_the_members_were_not_fitted_to():
    given = [logit(fitted(Fsrs6(), rows=EARLY).predict(REVIEWS, LATE))]
    given.append(np.full(len(LATE), logit(REVIEWS.recalled[EARLY].mean())))
    equal = np.full(2, 0.5)
    expected = best_weights(np.column_stack(given), REVIEWS.recalled[LATE], equal, pull=1.0)
    model = fitted(Ensemble({"fsrs6": Fsrs6(), "avg": Average()}))
    np.testing.assert_allclose(model.parameters, expected, atol=1e-6)


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
    # so few reviews move them little from shares that were given, and far from equal parts
    assert near == pytest.approx((0.75, 0.25), abs=0.1)
    assert fitted(Ensemble(members)).parameters[1] > 0.9
    assert near != fixed.parameters


def test_fits_and_records_of_members_are_those_of_the_ensemble():
    seen = []

    class Talkative(Constant):
        same_day: ClassVar[bool] = True

        def fit(self, reviews, rows, rng):
            return FlatModel(0.5, Learned(note="so it is", fallback=True, converged=False))

        def refit(self, reviews, rows, rng, previous):
            seen.append(previous)
            return self.fit(reviews, rows, rng)

    ensemble = Ensemble({"a": Talkative(), "b": Hlr()}, weights="equal")
    before = fitted(ensemble, rows=EARLY)
    after = ensemble.refit(REVIEWS, FOLD.train, np.random.default_rng(0), before)
    assert seen == [before.models[0]]
    learned = after.learned
    assert (learned.note, learned.fallback, learned.converged) == ("a: so it is", True, False)
    assert [(part.name, part.n_train) for part in learned.parts] == [
        (name, len(FOLD.train)) for name in ("a", "b")
    ]


def plain(p, recalled, day, *, half_life, prior, every):
    """The same recursion in words of matrices: before each review, and after the last.

    Bias, slope, and what those before each review have saved.
    """
    kept = 0.5 ** (1 / half_life)
    w, start = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    information = np.zeros((2, 2))
    shown, saved = [], 0.0
    for n in range(len(p)):
        if every == "review" or n == 0 or day[n] != day[n - 1]:
            shown.append((*w, saved))
        else:
            shown.append(shown[-1])
        x = np.array([1.0, logit(p[n])])
        moved = expit(x @ shown[-1][:2])
        saved += np.log(moved / p[n]) if recalled[n] else np.log((1 - moved) / (1 - p[n]))
        q = expit(w @ x)
        information = kept * information + q * (1 - q) * np.outer(x, x)
        gradient = (q - recalled[n]) * x + (1 - kept) * prior * (w - start)
        w = w - np.linalg.solve(information + prior * np.eye(2), gradient)
        w = np.array([w[0], max(w[1], 0.05)])
    return np.array(shown), (*w, saved)


@pytest.mark.parametrize("every", ["day", "review"])
@pytest.mark.parametrize(("half_life", "sense"), [(3.0, 1), (1000.0, 1), (1e6, -1)])
def test_states_are_those_of_the_recursion_and_its_slope_never_turns_round(every, half_life, sense):
    rng = np.random.default_rng(5)
    p = rng.uniform(0.05, 0.99, 1000)
    recalled = rng.random(1000) < expit(sense * logit(p))
    day, later = np.sort(rng.integers(0, 400, 1000)), rng.random(1000) < 0.7
    reviews = log_of(np.arange(1000), np.where(recalled, 3, 1), later.astype(float))
    reviews = replace(reviews, day=day, elapsed_days=later.astype(int))
    start = Recalibration(half_life, 7.0, every, trust=0.2)
    shown, after = start.follow(p, reviews, np.arange(1000), recalled | True)
    options = {"half_life": half_life, "prior": 7.0, "every": every}
    for kind, state in zip((later, ~later), after.state, strict=True):
        expected, last = plain(p[kind], recalled[kind], day[kind], **options)
        np.testing.assert_allclose(shown[kind], expected, atol=1e-9)
        np.testing.assert_allclose([*state[:2], state[5]], last, atol=1e-9)
        assert (state[1] < 0.06) == (sense < 0)
    share = 1 / (1 + 4 * np.exp(-shown[:, 2]))
    moved = expit(shown[:, 0] + shown[:, 1] * logit(p))
    mixed = start.mixed(logit(p), shown)
    np.testing.assert_allclose(mixed, share * moved + (1 - share) * p, atol=1e-12)


def test_it_begins_with_the_latest_training_reviews_predicted_by_a_fit_to_the_others():
    p = fitted(Hlr(), rows=EARLY).predict(REVIEWS, LATE)
    options = {"half_life": 200.0, "prior": 20.0, "every": "day"}
    _, expected = plain(p, REVIEWS.recalled[LATE], REVIEWS.day[LATE], **options)
    model = fitted(Blend(Hlr(), **options))
    np.testing.assert_allclose(model.parameters[:2], expected[:2], atol=1e-10)
    assert fitted(Blend(Hlr(), held_out=0)).parameters[:2] == (0.0, 1.0)
    assert model.parameters[2:] == model.model.parameters
    assert np.isnan(model.learned.standard_errors[:2]).all()
    assert model.learned.standard_errors[2:] == model.model.learned.standard_errors
    assert fitted(Blend(Constant())).learned == Learned()


def test_refits_go_on_where_the_fit_before_ended(make_log):
    task = SrsBenchmarkRefit(refits=6)(make_log(cards=80), same_day=False)
    blend, (first, second, *_) = Blend(Hlr()), task.folds
    rng = np.random.default_rng(0)
    before = blend.fit(task.reviews, first.train, rng)
    after = blend.refit(task.reviews, second.train, rng, before)
    p = before.model.predict(task.reviews, first.test)
    everything = np.ones(len(first.test), bool)
    _, expected = before.recalibration.follow(p, task.reviews, first.test, everything)
    assert after.recalibration == expected
    assert after.until == second.train[-1]
    assert before.parameters[:2] != after.parameters[:2]


@pytest.mark.parametrize(("days_alike", "expected"), [(15, 50.0), (10_000, 1000.0)])
def test_the_half_life_is_the_one_that_predicts_the_held_out_reviews_best(days_alike, expected):
    n = 4000
    rng = np.random.default_rng(1)
    level = np.where(np.arange(n) // (10 * days_alike) % 2, -1.0, 1.0)
    rows = np.arange(n)
    reviews = log_of(rows % 10, np.where(rng.random(n) < expit(level), 3, 1), np.ones(n))
    reviews = replace(reviews, day=rows // 10)
    model = Blend(Constant(0.5)).fit(reviews, rows, np.random.default_rng(0))
    assert model.recalibration.half_life == expected
    again = Blend(Constant(0.5)).refit(reviews, rows, np.random.default_rng(0), model)
    assert again.recalibration == model.recalibration


@pytest.mark.parametrize("trust", [0.1, 0.5, 1.0])
def test_the_mixture_loses_no_more_in_all_than_its_safeguard_allows(trust):
    blend = Blend(Hlr(), every="review", held_out=0, trust=trust)
    model, rows = fitted(blend), FOLD.test[REVIEWS.elapsed[FOLD.test] > 0]

    def loss(model):
        p = model.predict(REVIEWS, rows)
        return -np.log(np.where(REVIEWS.recalled[rows], p, 1 - p)).sum()

    extra = loss(model) - loss(model.model)
    assert extra != 0
    if trust < 1:
        assert extra < -np.log(1 - trust)
