"""DASH and its relatives, ACT-R: counts by a loop, derivatives by PyTorch, and their fits."""

import dataclasses

import numpy as np
import pytest

from srs_eval.algorithms import history
from srs_eval.algorithms.features import act_r
from srs_eval.algorithms.features.act_r import ActivationEquations, ActR
from srs_eval.algorithms.features.dash import Dash, DashMcm
from srs_eval.algorithms.features.dash_act_r import DashActR, FadingTraces
from srs_eval.algorithms.features.log_odds import LogOddsModel
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.engine.objective import standard_errors

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the derivatives")

TASK = trial_task(same_day=True)
ROWS = TASK.folds[0].train
SECONDS = dataclasses.replace(
    TASK.reviews,
    elapsed=np.maximum(TASK.reviews.elapsed_seconds, 0.0) / 86400,
    whole_days=False,
)
LOGS = {"days": TASK.reviews, "seconds": SECONDS}
TIME_CONSTANTS = (0.2434, 1.9739, 16.0090, 129.8426)


@pytest.fixture(params=LOGS)
def reviews(request, monkeypatch):
    """A log in either clock; that in seconds is read a few pairs of reviews at a time."""
    if request.param == "seconds":
        monkeypatch.setattr(history, "HELD", 25)
        monkeypatch.setattr(act_r, "HELD", 25)
    return LOGS[request.param]


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


@pytest.mark.parametrize(
    ("algorithm", "time_constants"), [(Dash(), (np.inf,) * 4), (DashMcm(), TIME_CONSTANTS)]
)
def test_windows_count_what_a_loop_counts(algorithm, time_constants, reviews):
    rows = np.arange(len(reviews))[::-3]
    log_odds = algorithm.log_odds(whole_days=True)
    found = log_odds.counts(history_of(reviews), rows, reviews.elapsed[rows])
    expected = [plain_counts(reviews, row, time_constants) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def fading_traces(reviews, row, w):
    """Log-odds of DASH[ACT-R] at one review."""
    left = torch.zeros((), dtype=torch.float64)
    for age, recalled in zip(*earlier_ages(reviews, row), strict=True):
        if age > 0.1:
            left = left + age ** -w[1] * (w[3] if recalled else w[2])
    return w[0] * torch.log1p(torch.relu(left)) + w[4]


def activation(reviews, row, w):
    """Log-odds of ACT-R at one review, as the paper has it."""
    a, c, noise, threshold, h = w
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    when = np.cumsum(np.where(np.arange(len(rows)) == 0, 0.0, reviews.elapsed[rows]))
    activations = [torch.tensor(-torch.inf, dtype=torch.float64)]
    for k in range(1, len(rows)):
        total = torch.zeros((), dtype=torch.float64)
        for j in range(k):
            decay = (c * torch.exp(activations[j]) if j else 0.0) + a
            seconds = 86400 * h * (when[k] - when[j])
            total = total + torch.clamp(seconds, min=1.0) ** -decay
        activations.append(torch.log(total))
    return (activations[-1] - threshold) / noise


@pytest.mark.parametrize(
    ("log_odds", "by_pytorch", "w"),
    [
        (FadingTraces(), fading_traces, (0.7, 1.3, -1.5, 0.8, -0.4)),
        (FadingTraces(), fading_traces, (2.0, 0.01, 0.5, 0.1, 1.0)),
        (ActivationEquations(), activation, (0.5, 0.9, 0.4, -1.3, 0.7)),
        (ActivationEquations(), activation, ActivationEquations.parameters.defaults),
    ],
)
def test_log_odds_and_their_derivatives_are_those_of_pytorch(log_odds, by_pytorch, w, reviews):
    rows = np.flatnonzero(reviews.elapsed_days >= 0)[::-13]
    found, slopes = log_odds.at(history_of(reviews), rows, reviews.elapsed[rows])(np.array(w))
    for number, row in enumerate(rows):
        parameters = torch.tensor(w, dtype=torch.float64, requires_grad=True)
        expected = by_pytorch(reviews, row, parameters)
        (gradient,) = torch.autograd.grad(expected, parameters)
        assert found[number] == pytest.approx(expected.item(), rel=1e-10)
        np.testing.assert_allclose(slopes[number], gradient, rtol=1e-8, atol=1e-10)


def loss_of(algorithm):
    log_odds = algorithm.log_odds(whole_days=True)
    centre = np.array(log_odds.parameters.defaults)
    return algorithm.loss(log_odds, history_of(TASK.reviews), ROWS, centre), centre


@pytest.mark.parametrize("relative", [Dash, DashMcm, DashActR])
def test_the_loss_is_that_of_the_predictions_and_its_derivatives_those_of_pytorch(relative):
    algorithm = relative(recency="exponential", prior_weight=3.0)
    loss, centre = loss_of(algorithm)
    w = centre + 0.1
    weight = algorithm.weights(len(ROWS))
    weight /= weight.mean()
    log_odds = algorithm.log_odds(whole_days=True)
    p = LogOddsModel(log_odds, tuple(w)).predict(TASK.reviews, ROWS)
    recalled = TASK.reviews.recalled[ROWS]
    pull = 3.0 * np.sum((w - centre) ** 2) / 0.5**2
    expected = pull - np.sum(weight * np.log(np.where(recalled, p, 1 - p)))
    assert loss.gradient(w).loss == pytest.approx(expected, rel=1e-12)

    at, slopes = loss.log_odds(w)
    free = torch.tensor(at, requires_grad=True)
    torch.nn.functional.binary_cross_entropy_with_logits(
        free, torch.tensor(recalled * 1.0), weight=torch.tensor(weight), reduction="sum"
    ).backward()
    gradient = free.grad.numpy() @ slopes + 2 * 3.0 * (w - centre) / 0.5**2
    np.testing.assert_allclose(loss.gradient(w).gradient, gradient, rtol=1e-9)
    np.testing.assert_allclose(loss.fisher(w).gradient, gradient, rtol=1e-9)
    if relative != DashActR:  # in which log-odds are not linear: only expected curvature is known
        for row, step in zip(loss.fisher(w).information, 1e-5 * np.eye(9), strict=True):
            change = loss.gradient(w + step).gradient - loss.gradient(w - step).gradient
            np.testing.assert_allclose(row, change / 2e-5, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [ActR, Logistic, Dash, DashMcm, DashActR])
def test_both_ways_to_fit_end_where_the_loss_is_least_and_know_how_uncertain_that_is(kind):
    newton, lbfgs = (kind(fit=method).fit(TASK.reviews, ROWS, None) for method in kind.methods[:2])
    loss, centre = loss_of(kind())
    space, w = newton.log_odds.parameters, np.array(newton.parameters)
    assert space.checked(newton.parameters, "fitted") == newton.parameters
    assert loss.gradient(w).loss == pytest.approx(
        loss.gradient(np.array(lbfgs.parameters)).loss, rel=1e-5
    )
    assert loss.gradient(w).loss < loss.gradient(centre).loss
    errors = standard_errors(loss.fisher(w).information, w, space)
    np.testing.assert_allclose(newton.learned.standard_errors, errors, rtol=1e-6)


def test_long_histories_are_not_trained_on_by_the_public_trainer_of_dash_act_r():
    nth = np.arange(200)
    reviews = dataclasses.replace(
        TASK.reviews.take(np.resize(np.arange(len(TASK.reviews)), 200)),
        card=np.zeros(200, np.int64),
        elapsed_days=np.where(nth == 0, -1, 1),
        elapsed=np.minimum(nth, 1.0),
    )
    for first, nothing in ((65, True), (64, False)):
        model = DashActR(fit="reference").fit(reviews, nth[first:], None)
        assert (model.parameters == FadingTraces.parameters.defaults) == nothing
        assert model.learned.fallback == nothing
