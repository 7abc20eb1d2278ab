"""Half-life regression as its paper has it, and the rules it was compared with."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad

from srs_eval.algorithms.half_life.hlr_duolingo import HlrDuolingo
from srs_eval.algorithms.half_life.leitner import Leitner
from srs_eval.algorithms.half_life.pimsleur import Pimsleur
from srs_eval.checks.toy_log import trial_task

TASK = trial_task(same_day=False)
REVIEWS, ROWS = TASK.reviews, TASK.folds[0].train


def fitted(**options):
    return HlrDuolingo(**options).fit(REVIEWS, ROWS, np.random.default_rng(0))


def history_of(row):
    """Right and wrong answers of a card before a row, counted one by one."""
    earlier = [r for r in range(row) if REVIEWS.card[r] == REVIEWS.card[row]]
    right = sum(REVIEWS.rating[r] > 1 for r in earlier)
    return right, len(earlier) - right


def within(days):
    return min(max(days, 15 / (24 * 60)), 274.0)


def plain_recall(row, exponent):
    p = 2.0 ** (-REVIEWS.elapsed[row] / within(2.0**exponent))
    return min(max(p, 0.0001), 0.9999)


@pytest.mark.parametrize(
    ("rule", "exponent"),
    [
        (Leitner(), lambda right, wrong: right - wrong),
        (Pimsleur(), lambda right, wrong: 2.35 * (right + wrong) - 16.46),
    ],
)
def test_rules_say_what_their_definition_says(rule, exponent):
    model = rule.fit(REVIEWS, ROWS, np.random.default_rng(0))
    rows = TASK.folds[0].test
    expected = [plain_recall(row, exponent(*history_of(row))) for row in rows]
    np.testing.assert_allclose(model.predict(REVIEWS, rows), expected, rtol=1e-12)
    assert model.parameters == ()


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_the_descent_is_that_of_the_definition_step_by_step(alpha):
    model = fitted(fit="sgd", alpha=alpha)
    loss = HlrDuolingo(alpha=alpha).loss(REVIEWS, ROWS)
    weights = [0.0, 0.0, 0.0]
    for n, review in enumerate(np.random.default_rng(0).permutation(len(ROWS))):
        right, wrong = history_of(ROWS[review])
        x, t = (math.sqrt(1 + right), math.sqrt(1 + wrong), 1.0), REVIEWS.elapsed[ROWS[review]]
        p, h = loss.outcome[review], loss.days[review]
        found_h = within(2.0 ** sum(w * f for w, f in zip(weights, x, strict=True)))
        found_p = min(max(2.0 ** (-t / found_h), 0.0001), 0.9999)
        for k in range(3):
            rate = 1 / (1 + p) * 0.001 / math.sqrt(1 + n)
            weights[k] -= rate * 2 * (found_p - p) * math.log(2) ** 2 * found_p * t / found_h * x[k]
            weights[k] -= rate * alpha * 2 * (found_h - h) * math.log(2) * found_h * x[k]
            weights[k] -= rate * 0.1 * weights[k]
    np.testing.assert_allclose(model.parameters, weights, rtol=1e-9)


def test_the_gradient_is_that_of_the_loss():
    loss = HlrDuolingo().loss(REVIEWS, ROWS)
    for weights in ([0.3, -0.2, 1.0], [0.0, 0.0, 0.0], [1.0, -0.5, 0.5]):
        error = check_grad(lambda w: loss(w)[0], lambda w: loss(w)[1], np.array(weights))
        assert error < 1e-4 * max(1.0, np.abs(loss(np.array(weights))[1]).max())


def test_what_is_observed_is_clipped_as_published():
    loss = HlrDuolingo().loss(REVIEWS, ROWS)
    recalled = REVIEWS.recalled[ROWS]
    assert set(loss.outcome[recalled]) == {0.9999}
    assert set(loss.outcome[~recalled]) == {0.0001}
    expected = np.clip(-loss.elapsed / np.log2(loss.outcome), 15 / 1440, 274)
    np.testing.assert_array_equal(loss.days, expected)
    assert loss.days[recalled].max() == 274


def test_unfitted_half_lives_are_a_day():
    p = fitted(fit="default").predict(REVIEWS, ROWS)
    np.testing.assert_allclose(p, np.clip(0.5 ** REVIEWS.elapsed[ROWS], 0.0001, 0.9999))
