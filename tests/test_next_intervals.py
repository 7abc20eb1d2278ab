"""Next intervals and their ranges: the curve solved, the error of fits, and its coverage."""

import numpy as np
import pandas as pd
import pytest
from interval_ranges import EQUATIONS, HISTORIES, PUBLISHED, covered, drawn, simulated
from invented import of_presets

import srs_eval as se
from srs_eval.algorithms.combined import OTHERS, PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.collection.intervals import answered_on_time
from srs_eval.engine.objective import error_covariance
from srs_eval.exports.intervals import days_until, ranges

RATES = np.array([0.5, 1e-3, 0.0, np.nan, 1e12])


def test_days_until_a_retention_invert_the_curve():
    found = days_until(lambda days: np.exp(-RATES[:, None] * days), 5, np.array([0.9] * 4 + [0.8]))
    np.testing.assert_allclose(found[:2], -np.log(0.9) / RATES[:2], rtol=1e-9)
    np.testing.assert_array_equal(found[2:], [np.inf, np.nan, 0])


def test_the_error_of_a_fit_has_noise_and_what_the_prior_moves_it_by():
    """A mean of n numbers of variance 1 is drawn to 0 by a prior of precision k."""
    n, k, population, weight = 50.0, 10.0, 4.0, 1.5
    one = np.ones((1, 1))

    def found(information, data, squares, over_users):
        return error_covariance(*(each * one for each in (information, data, squares, over_users)))

    expected = (weight * n + k**2 / population) / (n + k) ** 2
    assert found(n + k, n, weight * n, population) == pytest.approx(expected)
    assert found(n + k, n, n, k) == pytest.approx(1 / (n + k))
    assert found(n, n, n, 0) == pytest.approx(1 / n)
    assert found(0, 0, 0, 1) is None


@pytest.mark.slow
def test_ranges_hold_the_true_intervals_as_often_as_they_say():
    found = [covered("drawn", size, seed) for size in (700, 2000) for seed in range(4)]
    held, width, _ = (np.array(each) for each in zip(*found, strict=True))
    assert 0.82 < held.mean() <= 1
    assert (held.mean(axis=0) > 0.6).all()
    assert (np.median(width, axis=0) > np.log(1.5)).all()


def test_cards_are_answered_when_a_model_says():
    w = drawn(np.random.default_rng(3))
    model = RecurrentModel(EQUATIONS, tuple(w))
    log, rows = answered_on_time(model, HISTORIES, 0.8, [7] * len(HISTORIES))
    stability = model.states(log)["stability"]
    assert set(log.preset.tolist()) == {7}
    for card, ratings in enumerate(HISTORIES):
        own = np.flatnonzero(log.card == card)
        assert log.rating[own].tolist() == [*ratings, 3]
        assert own[-1] == rows[card]
        factor = (0.8 ** (-1 / w[20]) - 1) / (0.9 ** (-1 / w[20]) - 1)
        expected = np.maximum(1, np.rint(stability[own[:-2]] * factor))
        np.testing.assert_array_equal(log.elapsed[own[1:-1]], expected)


@pytest.fixture(scope="module")
def logs():
    """One user with two presets, whose cards are forgotten in different ways."""
    rng = np.random.default_rng(0)
    slow = np.r_[3 * PUBLISHED[:4], PUBLISHED[4:]]
    return of_presets(
        {number: simulated(w, 700, rng) for number, w in enumerate((PUBLISHED, slow))}
    )


def next_intervals(algorithm, logs, retention=0.9, level=0.9, **options):
    names = {name: name for name in ("day", "elapsed_days", "preset")}
    fitted = se.fit(algorithm, logs, progress=False, **names, **options)
    return fitted, fitted.next_intervals(retention, level=level)


def test_each_card_has_a_next_interval_with_its_range(logs):
    fitted, found = next_intervals("fsrs6", logs)
    assert list(found.columns) == ["user", "card", "days", "lo", "hi"]
    recall = np.diag(fitted.predict_at(found["days"])["recall"].to_numpy().reshape(len(found), -1))
    np.testing.assert_allclose(recall, 0.9, rtol=1e-6)
    assert (found["lo"] <= found["days"]).all()
    assert (found["days"] <= found["hi"]).all()
    pd.testing.assert_frame_equal(found, fitted.next_intervals())
    wider = fitted.next_intervals(level=0.99)
    assert (wider["hi"] / wider["lo"] > found["hi"] / found["lo"]).mean() > 0.9
    assert (fitted.next_intervals(0.8)["days"] > found["days"]).all()
    _, known = next_intervals("fsrs6", logs, fit="default")
    assert known["days"].notna().all()
    assert known[["lo", "hi"]].isna().all(axis=None)


def test_groups_have_ranges_of_their_own(logs):
    fitted, found = next_intervals("per_group", logs)
    (user,) = fitted.by_user
    own, algorithm = fitted.by_user[user], PerGroup(Fsrs6())
    draws = algorithm.sample(own.reviews, own.rows, own.model, np.random.default_rng(0), 400)
    for preset in own.model.models.keys() - {OTHERS}:
        model, rows = own.model.models[preset], own.rows[own.reviews.preset[own.rows] == preset]
        rng = np.random.default_rng(1)
        alone = [m.parameters for m in Fsrs6().sample(own.reviews, rows, model, rng, 400)]
        together = [draw.models[preset].parameters for draw in draws]
        np.testing.assert_allclose(np.std(together, 0), np.std(alone, 0), rtol=0.25, atol=1e-4)
    assert (found["hi"] > found["lo"]).all()


def test_a_range_leaves_as_much_out_on_either_side():
    draws = [np.array([float(each)]) for each in range(101)]
    assert ranges(np.array([50.0]), draws, 0.9) == (5, 95)
    assert ranges(np.array([99.0]), draws, 0.9) == (5, 99)
    assert np.isnan(ranges(np.array([1.0]), [], 0.9)).all()
