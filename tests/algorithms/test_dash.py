"""DASH and what its relatives share: counts in windows, fading traces, and their fits."""

import dataclasses

import numpy as np
import pytest
from cases import rest_nightly

from srs_eval.algorithms.features.dash import Dash, DashMcm
from srs_eval.algorithms.features.dash_act_r import DashActR, FadingTraces
from srs_eval.algorithms.features.log_odds import LogOddsModel
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the derivatives")

TASK = trial_task(same_day=True)
FOLD = TASK.folds[0]
SECONDS = dataclasses.replace(
    TASK.reviews,
    elapsed=np.maximum(TASK.reviews.elapsed_seconds, 0.0) / 86400,
    whole_days=False,
)
LOGS = {"days": TASK.reviews, "seconds": SECONDS}
RELATIVES = [Dash, DashMcm, DashActR]
TIME_CONSTANTS = (0.2434, 1.9739, 16.0090, 129.8426)


def earlier_ages(reviews, row):
    """Ages of the card's earlier reviews at a row, and whether each was a pass."""
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    ages = [reviews.elapsed[rows[nth + 1 :]].sum() for nth in range(len(rows) - 1)]
    return np.array(ages), reviews.recalled[rows[:-1]]


def plain_counts(reviews, row, time_constants):
    ages, passed = earlier_ages(reviews, row)
    counts = []
    for window, constant in zip((1, 7, 30, np.inf), time_constants, strict=True):
        weight = np.exp(-ages / constant) * (ages <= window)
        counts += [weight.sum(), weight[passed].sum()]
    return counts


@pytest.mark.parametrize("clock", LOGS)
@pytest.mark.parametrize(
    ("algorithm", "time_constants"), [(Dash(), (np.inf,) * 4), (DashMcm(), TIME_CONSTANTS)]
)
def test_windows_count_what_a_loop_counts(algorithm, time_constants, clock):
    reviews = LOGS[clock]
    rows = np.arange(len(reviews))[::-3]
    log_odds = algorithm.log_odds(whole_days=True)
    found = log_odds.counts(history_of(reviews), rows, reviews.elapsed[rows])
    expected = [plain_counts(reviews, row, time_constants) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def traces_by_pytorch(reviews, rows, w):
    """Log-odds of DASH[ACT-R], review by review."""
    found = []
    for row in rows:
        ages, passed = earlier_ages(reviews, row)
        left = torch.zeros((), dtype=torch.float64)
        for age, recalled in zip(ages, passed, strict=True):
            if age > 0.1:
                left = left + age ** -w[1] * (w[3] if recalled else w[2])
        found.append(w[0] * torch.log1p(torch.relu(left)) + w[4])
    return torch.stack(found)


@pytest.mark.parametrize("clock", LOGS)
@pytest.mark.parametrize(
    "w", rest_nightly([[0.7, 1.3, -1.5, 0.8, -0.4], [2.0, 0.01, 0.5, 0.1, 1.0]])
)
def test_fading_traces_and_their_derivatives_are_those_of_pytorch(clock, w):
    reviews = LOGS[clock]
    rows = np.flatnonzero(reviews.elapsed_days >= 0)[::-13]
    found, slopes = FadingTraces().at(history_of(reviews), rows, reviews.elapsed[rows])(np.array(w))
    parameters = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    expected = traces_by_pytorch(reviews, rows, parameters)
    np.testing.assert_allclose(found, expected.detach(), rtol=1e-10)
    for number, log_odds in enumerate(expected):
        (gradient,) = torch.autograd.grad(log_odds, parameters, retain_graph=True)
        np.testing.assert_allclose(slopes[number], gradient, rtol=1e-9, atol=1e-12)


def loss_of(algorithm):
    log_odds = algorithm.log_odds(whole_days=True)
    centre = np.array(log_odds.parameters.defaults)
    return algorithm.loss(log_odds, history_of(TASK.reviews), FOLD.train, centre), centre


@pytest.mark.parametrize("relative", RELATIVES)
def test_the_loss_is_that_of_the_predictions_and_its_gradient_that_of_pytorch(relative):
    algorithm = relative(recency="exponential", prior_weight=3.0)
    loss, centre = loss_of(algorithm)
    w = centre + 0.1
    weight = algorithm.weights(len(FOLD.train))
    weight /= weight.mean()
    log_odds = algorithm.log_odds(whole_days=True)
    p = LogOddsModel(log_odds, tuple(w)).predict(TASK.reviews, FOLD.train)
    recalled = TASK.reviews.recalled[FOLD.train]
    pull = 3.0 * np.sum((w - centre) ** 2) / 0.5**2
    expected = pull - np.sum(weight * np.log(np.where(recalled, p, 1 - p)))
    assert loss.gradient(w).loss == pytest.approx(expected, rel=1e-12)

    at, slopes = loss.log_odds(w)
    free = torch.tensor(at, requires_grad=True)
    outcome = torch.tensor(recalled.astype(float))
    torch.nn.functional.binary_cross_entropy_with_logits(
        free, outcome, weight=torch.tensor(weight), reduction="sum"
    ).backward()
    gradient = free.grad.numpy() @ slopes + 2 * 3.0 * (w - centre) / 0.5**2
    np.testing.assert_allclose(loss.gradient(w).gradient, gradient, rtol=1e-9)
    np.testing.assert_allclose(loss.fisher(w).gradient, gradient, rtol=1e-9)


@pytest.mark.parametrize("relative", [Dash, DashMcm])
def test_the_curvature_is_that_of_the_loss(relative):
    loss, centre = loss_of(relative())
    information = loss.fisher(centre).information
    for number, row in enumerate(information):
        step = 1e-5 * np.eye(9)[number]
        change = loss.gradient(centre + step).gradient - loss.gradient(centre - step).gradient
        np.testing.assert_allclose(row, change / 2e-5, rtol=1e-5, atol=1e-5)


def test_long_histories_are_not_trained_on_by_the_public_trainer_of_dash_act_r():
    card = np.zeros(200, np.int64)
    reviews = dataclasses.replace(
        TASK.reviews.take(np.resize(np.arange(len(TASK.reviews)), 200)),
        card=card,
        elapsed_days=np.where(np.arange(200) == 0, -1, 1),
        elapsed=np.minimum(np.arange(200.0), 1.0),
    )
    late = np.arange(65, 200)
    model = DashActR(fit="reference").fit(reviews, late, None)
    assert model.parameters == FadingTraces.parameters.defaults
    assert model.learned.fallback
    assert "leaves out all of the 135 training reviews" in model.learned.note
    # One more review, and it has something to train on.
    more = DashActR(fit="reference").fit(reviews, np.arange(64, 200), None)
    assert more.parameters != FadingTraces.parameters.defaults
    assert not more.learned.fallback
