"""DASH, ACT-R, regression and trees: features by a loop, derivatives by PyTorch, and fits."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms import history
from srs_eval.algorithms.baselines import FlatModel
from srs_eval.algorithms.features import act_r
from srs_eval.algorithms.features.act_r import ActivationEquations, ActR
from srs_eval.algorithms.features.boosted_trees import BoostedTrees, BoostedTreesModel
from srs_eval.algorithms.features.dash import Dash, DashActR, DashMcm, FadingTraces
from srs_eval.algorithms.features.log_odds import LogOddsModel
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.features.logistic_features import features, on_same_day
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.engine.objective import standard_errors
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the derivatives")

TASK = trial_task(same_day=True)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]
SECONDS = SrsBenchmarkSecs()(REVIEWS, same_day=True).reviews
LOGS = {
    "days": REVIEWS,
    "seconds": SECONDS,
    "equalised": SrsBenchmarkEqualised()(REVIEWS, same_day=True).reviews,
}
TIME_CONSTANTS = (0.2434, 1.9739, 16.0090, 129.8426)


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train):
    return algorithm.fit(reviews, rows, np.random.default_rng(0))


@pytest.fixture(params=["days", "seconds"])
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
    problem = algorithm.problem(REVIEWS)
    centre = np.array(problem.space.defaults)
    return algorithm.objective(problem, FOLD.train, centre), centre


@pytest.mark.parametrize("relative", [Dash, DashMcm, DashActR])
def test_the_loss_is_that_of_the_predictions_and_has_the_derivatives_it_says(relative):
    algorithm = relative(recency="exponential", prior_weight=3.0)
    loss, centre = loss_of(algorithm)
    w = centre + 0.1
    weight = algorithm.weights(len(FOLD.train))
    weight /= weight.mean()
    log_odds = algorithm.log_odds(whole_days=True)
    p = LogOddsModel(log_odds, tuple(w)).predict(REVIEWS, FOLD.train)
    recalled = REVIEWS.recalled[FOLD.train]
    pull = 3.0 * np.sum((w - centre) ** 2) / 0.5**2
    expected = pull - np.sum(weight * np.log(np.where(recalled, p, 1 - p)))
    assert loss.gradient(w).loss == pytest.approx(expected, rel=1e-12)
    found = loss.fisher(w)
    np.testing.assert_allclose(loss.gradient(w).gradient, found.gradient, rtol=1e-9)
    for number, step in enumerate(1e-5 * np.eye(len(w))):
        after, before = (loss.gradient(at) for at in (w + step, w - step))
        slope = (after.loss - before.loss) / 2e-5
        assert found.gradient[number] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        if (
            relative != DashActR
        ):  # in which log-odds are not linear: only expected curvature is known
            change = (after.gradient - before.gradient) / 2e-5
            np.testing.assert_allclose(found.information[number], change, rtol=1e-5, atol=1e-5)


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


def squeezed(days):
    return (np.log(days + 1e-5) + 1.3) / 5


def plain_features(reviews, row):
    """Features of one review, by walking along its card."""
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    counted = [nth for nth in range(1, len(rows)) if reviews.elapsed[rows[nth]] > 0]
    counts = dict.fromkeys(("sf", "sp", "nf", "np", "n0", "n1"), 0)
    e, e_days, total, mark, ever = 0.0, 0, 0.0, 0.0, False
    for before, nth in zip([0, *counted], counted, strict=False):
        first = before == 0
        r = reviews.rating[rows[nth - 1]]
        if not first:
            e, e_days = reviews.elapsed[rows[before]], reviews.elapsed_days[rows[before]]
        total += e
        if e_days > 0:
            counts["nf" if r == 1 else "np"] += 1
        elif not first:
            counts["sf" if r == 1 else "sp"] += 1
        counts["n1" if e_days > 0 else "n0"] += 1
        ever = ever or r > 1
        if r == 1 or first:
            mark = total
    f, since = reviews.rating[rows[0]], total - mark
    t, sd = squeezed(reviews.elapsed[row]), float(reviews.elapsed_days[row] == 0)
    log, other = np.log1p, 1 - sd
    sf, sp, nf, passes = (log(counts[key]) for key in ("sf", "sp", "nf", "np"))
    return [
        t, t * (r == 2), t * (r == 3), t * (r == 4), t * (r == 2 and first), t * (r > 2 and first),
        t * sf, t * passes * other, t * nf * other, t * sp,
        1, r == 2, r == 3, r == 4, f == 2, f == 3, f == 4,
        first and f == 2, first and f == 3, first and f == 4,
        sf, passes * other, squeezed(e), nf, passes, sp * sd, ever, squeezed(since), sd,
        squeezed(total), (f > 1) * sf, (f > 1) * nf,
        (f > 1) * log(counts["n0"]), (f > 1) * log(counts["n1"]),
    ]  # fmt: skip


@pytest.mark.parametrize("reviews", LOGS.values(), ids=LOGS)
def test_features_of_the_regression_are_those_of_a_plain_walk(reviews):
    rows = np.flatnonzero(reviews.elapsed > 0)
    found = features(history_of(reviews), rows, reviews.elapsed[rows])
    expected = [plain_features(reviews, row) for row in rows]
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-9, atol=1e-9)


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
