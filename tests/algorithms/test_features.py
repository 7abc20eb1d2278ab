"""DASH, ACT-R, regression and trees: derivatives by PyTorch, and fits."""

from dataclasses import replace

import numpy as np
import pytest
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms import history
from srs_eval.algorithms.baselines import FlatModel
from srs_eval.algorithms.features import act_r
from srs_eval.algorithms.features.act_r import ActivationEquations, ActR
from srs_eval.algorithms.features.boosted_trees import BoostedTrees, BoostedTreesModel
from srs_eval.algorithms.features.dash import Dash, DashActR, DashMcm, FadingTraces
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.features.logistic_features import on_same_day
from srs_eval.algorithms.history import history_of
from srs_eval.engine.objective import standard_errors
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the derivatives")

SECONDS = SrsBenchmarkSecs()(REVIEWS, same_day=True).reviews


@pytest.fixture(params=["days", "seconds"])
def reviews(request, monkeypatch):
    """A log in either clock; that in seconds is read a few pairs of reviews at a time."""
    if request.param == "seconds":
        monkeypatch.setattr(history, "HELD", 25)
        monkeypatch.setattr(act_r, "HELD", 25)
        return SECONDS
    return REVIEWS


def earlier_ages(reviews, row):
    """Ages of the card's earlier reviews at a row, and whether each was a pass."""
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    ages = [reviews.elapsed[rows[nth + 1 :]].sum() for nth in range(len(rows) - 1)]
    return np.array(ages), reviews.recalled[rows[:-1]]


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
    problem = algorithm.problem(REVIEWS)
    centre = np.array(problem.space.defaults)
    return algorithm.objective(problem, FOLD.train, centre), centre


@pytest.mark.parametrize("kind", [ActR, Logistic, Dash, DashMcm, DashActR])
def test_both_ways_to_fit_end_where_the_loss_is_least_and_know_how_uncertain_that_is(kind):
    newton, lbfgs = (fitted(kind(fit=method)) for method in kind.methods[:2])
    loss, centre = loss_of(kind())
    space, w = newton.log_odds.parameters, np.array(newton.parameters)
    assert space.checked(newton.parameters, "fitted") == newton.parameters
    least, other, start = (loss.gradient(np.array(at)).loss for at in (w, lbfgs.parameters, centre))
    assert least == pytest.approx(other, rel=1e-5)
    assert least < start
    errors = standard_errors(loss.fisher(w).information, w, space)
    np.testing.assert_allclose(newton.learned.standard_errors, errors, rtol=1e-6)


def test_long_histories_are_not_trained_on_by_the_public_trainer_of_dash_act_r():
    nth = np.arange(200)
    reviews = replace(
        REVIEWS.take(np.resize(np.arange(len(REVIEWS)), 200)),
        card=np.zeros(200, np.int64),
        elapsed_days=np.where(nth == 0, -1, 1),
        elapsed=np.minimum(nth, 1.0),
    )
    for first, nothing in ((65, True), (64, False)):
        model = fitted(DashActR(fit="reference"), reviews, nth[first:])
        assert (model.parameters == FadingTraces.parameters.defaults) == nothing
        assert model.learned.fallback == nothing


def test_days_end_between_what_was_the_same_day_and_what_was_not():
    past, rows = history_of(SECONDS), np.flatnonzero(SECONDS.elapsed > 0)
    own, same_day = SECONDS.elapsed[rows], SECONDS.elapsed_days[rows] == 0
    np.testing.assert_array_equal(on_same_day(past, rows, own), same_day)
    assert on_same_day(past, rows, np.full(len(rows), 1e-9)).mean() > 0.99
    assert not on_same_day(past, rows, np.maximum(own, 1.0)).any()


@pytest.mark.parametrize("reviews", [REVIEWS, SECONDS], ids=["days", "seconds"])
def test_constrained_curves_never_rise(reviews):
    model = fitted(BoostedTrees(monotone=True, smallest_leaf=5), reviews)
    elapsed = np.tile(np.geomspace(0.01, 400, 60), (len(FOLD.test), 1))
    steps = np.diff(model.predict_at(reviews, FOLD.test, elapsed), axis=1)
    assert (steps <= 1e-12).all()
    assert (steps < 0).any()


def test_the_latest_training_reviews_decide_how_many_trees_there_are():
    few = fitted(BoostedTrees(most_trees=3, smallest_leaf=5))
    many = fitted(BoostedTrees(smallest_leaf=5))
    assert 1 <= few.trees.n_iter_ <= 3
    assert few.trees.n_iter_ <= many.trees.n_iter_ < 200
    # Trees that the latest training reviews contradict are left out.
    soon = REVIEWS.elapsed < np.median(REVIEWS.elapsed[FOLD.train])
    latest = np.arange(len(REVIEWS)) >= FOLD.train[len(FOLD.train) * 4 // 5]
    contrary = replace(REVIEWS, rating=np.where(soon ^ latest, 3, 1))
    assert fitted(BoostedTrees(), contrary).trees.n_iter_ == 1


def test_too_few_reviews_to_split_give_their_mean():
    few = FOLD.train[:49]
    model = fitted(BoostedTrees(), rows=few)
    assert isinstance(model, FlatModel)
    assert model.learned.fallback
    assert model.p == (REVIEWS.recalled[few].sum() + 1) / 51
    assert isinstance(fitted(BoostedTrees(), rows=FOLD.train[:50]), BoostedTreesModel)
