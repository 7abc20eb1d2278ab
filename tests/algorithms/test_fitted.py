"""What all fitted algorithms have in common, and the prior of FSRS v4 to 7."""

from dataclasses import replace

import numpy as np
import pytest
from random_logs import log_of

from srs_eval.algorithms.features.dash import DashMcm
from srs_eval.algorithms.features.dash_act_r import DashActR
from srs_eval.algorithms.fsrs.fitting import later_prior_weight
from srs_eval.algorithms.fsrs.fsrs4 import Fsrs4
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.algorithms.fsrs.one_step import train_one_step
from srs_eval.algorithms.half_life.hlr import Hlr, HlrEquations
from srs_eval.checks.toy_log import trial_task
from srs_eval.engine.packing import pack
from srs_eval.errors import FitError

TASK = trial_task(same_day=True)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]
VERSIONS = (Fsrs4, Fsrs45, Fsrs5, Fsrs6, Fsrs7)
# Five cards that are learned with Good and recalled once: too little to learn anything from.
ONCE = log_of(np.tile(np.arange(5), 2), [3] * 10, [0] * 5 + [5] * 5)


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train):
    return algorithm.fit(reviews, rows, np.random.default_rng(0))


@pytest.mark.parametrize("method", ["newton", "lbfgs", "default"])
def test_a_strong_prior_and_no_fit_leave_parameters_where_they_were_given(method):
    given = [*Fsrs6().defaults(whole_days=True)[:20], 0.5]
    strong = {} if method == "default" else {"prior_weight": 1e9}
    found = fitted(Fsrs6(fit=method, parameters=given, **strong)).parameters
    np.testing.assert_allclose(found, given, rtol=1e-3 if strong else 0)


@pytest.mark.parametrize("method", ["newton", "lbfgs", "reference", "s0", "one_step"])
def test_with_binary_ratings_hard_and_easy_are_good_everywhere(method):
    good = replace(REVIEWS, rating=np.where(REVIEWS.recalled, 3, 1))
    binary = fitted(Fsrs6(fit=method, binary=True))
    expected = fitted(Fsrs6(fit=method), good)
    # Single precision, in which the two are not the same computation.
    np.testing.assert_allclose(binary.parameters, expected.parameters, rtol=1e-3, atol=1e-3)
    p = expected.predict(good, FOLD.test)
    np.testing.assert_allclose(binary.predict(REVIEWS, FOLD.test), p, rtol=1e-3)


def test_recency_moves_what_is_learned_towards_what_came_last():
    # Everything was forgotten in the first half of the training reviews, and nothing later.
    half = FOLD.train[len(FOLD.train) // 2]
    reviews = replace(REVIEWS, rating=np.where(np.arange(len(REVIEWS)) < half, 1, 3))
    means = [
        fitted(Hlr(recency=recency), reviews).predict(reviews, FOLD.test).mean()
        for recency in ("none", "mild", "steep")
    ]
    assert means == sorted(means)


@pytest.mark.parametrize("algorithm", [Fsrs6(), Hlr(), DashMcm(), Fsrs5(fit="lbfgs")])
def test_going_on_from_an_earlier_fit_ends_where_a_fit_from_nothing_does(algorithm):
    before = fitted(algorithm, rows=FOLD.train[: len(FOLD.train) // 2])
    expected = fitted(algorithm)
    after = algorithm.refit(REVIEWS, FOLD.train, np.random.default_rng(0), before)
    p, q = (model.predict(REVIEWS, FOLD.test) for model in (after, expected))
    np.testing.assert_allclose(p, q, atol=0.01)
    few, many = (np.array(model.learned.standard_errors) for model in (before, expected))
    assert (few > 0).any()
    if isinstance(algorithm, Hlr):
        assert ((many > 0) & (many < few)).all()


@pytest.mark.parametrize("method", ["reference", "s0", "one_step"])
def test_what_has_nothing_to_train_on_keeps_its_parameters_and_says_so(method):
    later_day = np.flatnonzero(REVIEWS.elapsed_days > 0)
    _, first = np.unique(REVIEWS.card[later_day], return_index=True)
    second_reviews = later_day[first]
    # First stabilities need second reviews; the public trainer of FSRS-4.5 needs later ones.
    cases = [(Fsrs6(fit=method), np.setdiff1d(FOLD.train, second_reviews))]
    if method == "reference":
        cases.append((Fsrs45(fit=method), np.intersect1d(FOLD.train, second_reviews)))
    for algorithm, rows in cases:
        model = fitted(algorithm, rows=rows)
        assert model.parameters == algorithm.defaults(whole_days=True)
        assert model.learned.fallback
        assert "the parameters were kept" in model.learned.note
        newton = fitted(type(algorithm)(), rows=rows).learned
        assert (newton.fallback, newton.note) == (False, "")


def test_few_reviews_that_are_all_recalled_do_not_send_half_lives_to_infinity():
    rows = FOLD.train[REVIEWS.recalled[FOLD.train]][:12]
    parameters = fitted(Hlr(), rows=rows).parameters
    assert np.abs(np.array(parameters) - HlrEquations.parameters.defaults).max() < 5


@pytest.mark.parametrize("method", ["newton", "lbfgs", "reference"])
@pytest.mark.parametrize("algorithm", [Hlr, DashActR])
def test_a_loss_that_is_not_finite_is_an_error_that_names_the_user(algorithm, method):
    elapsed = REVIEWS.elapsed.copy()
    elapsed[FOLD.train[-1]] = np.nan
    with pytest.raises(FitError, match=f"{algorithm.name}: user trial: "):
        fitted(algorithm(fit=method), replace(REVIEWS, elapsed=elapsed))


def test_steps_of_one_review_stay_in_their_bounds_and_end_in_numbers():
    reviews = log_of([1] * 134, [4] * 134, [0] + [3] * 133)
    space, rows = Fsrs6().widest_space(), np.arange(1, 134)
    learned = train_one_step(reviews, rows, np.array(space.lower), space)
    assert ((learned >= space.lower) & (learned <= space.upper)).all()
    with pytest.raises(FitError):
        train_one_step(reviews, rows, np.where(np.arange(21) == 8, np.nan, space.defaults), space)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_objective_in_logarithms_has_the_gradient_it_says(version):
    algorithm = version(fit="newton", recency="none")
    equations = algorithm.equations(whole_days=True)
    space = algorithm.space(equations)
    task = trial_task(same_day=version.same_day)
    rows, w = task.folds[-1].train, np.array(space.defaults)
    objective = algorithm.objective(equations, space, task.reviews, rows, w)
    # In double precision, for differences to show.
    packed = pack(task.reviews, rows, weight=np.ones(len(rows)))
    objective = replace(objective, packed=packed)
    theta = objective.model.encode(w) + np.random.default_rng(0).normal(0, 0.01, len(w))
    gradient, information = objective.fisher(theta)[1:]
    np.testing.assert_allclose(objective.gradient(theta).gradient, gradient, rtol=1e-7, atol=1e-7)
    for place in (0, 3, 8):
        step = 1e-6 * np.eye(len(w))[place]
        above, below = (objective.gradient(theta + sign * step).loss for sign in (1, -1))
        assert (above - below) / 2e-6 == pytest.approx(gradient[place], rel=1e-4, abs=1e-4)
    # The Fisher information is a chain of derivatives too.
    bare = objective.model.model.fisher(objective.model.decode(theta), packed).information
    slope = objective.model.slope(objective.model.decode(theta))
    expected = bare * np.outer(slope, slope) + 2 * objective.penalty_matrix
    np.testing.assert_allclose(information, expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_penalty_is_a_shift_and_deviations_of_first_stabilities_and_follows_the_clock(version):
    space = version().space(version().equations(whole_days=True))
    days, fractions = (version().penalty(space, 500, whole_days=clock) for clock in (True, False))
    expected = (1.77778 * np.eye(4) - 0.41830) / 2
    in_days, in_fractions = version.later_prior
    for penalty, share in ((days, in_days), (fractions, in_fractions)):
        np.testing.assert_allclose(penalty[:4, :4], expected, atol=1e-5)
        assert not penalty[:4, 4:].any()
        np.testing.assert_allclose(np.diag(penalty)[4:], share * 2.5 / np.square(space.spread[4:]))
    thrice = version(prior_weight=3).penalty(space, 500, whole_days=True)
    np.testing.assert_allclose(thrice, 3 * days)
    weights = [later_prior_weight(n) for n in (0, 500, 5_000, 10_000_000)]
    assert weights == pytest.approx([4.5, 2.5, 0.8636, 0.5002], abs=1e-4)


def test_in_whole_days_the_prior_of_fsrs7_has_a_centre_of_its_own_unless_parameters_are_given():
    published = Fsrs7().defaults(whole_days=True)
    moved = np.flatnonzero(np.array(Fsrs7().prior_centre(whole_days=True)) != published)
    assert moved.tolist() == [25, 27]
    assert Fsrs7().prior_centre(whole_days=False) == published
    assert Fsrs7(parameters=published).prior_centre(whole_days=True) == published
    w = fitted(Fsrs7(), ONCE, np.arange(5, 10)).parameters
    assert w[25] == pytest.approx(0.5, abs=0.1)
    assert fitted(Fsrs7(fit="default"), ONCE, np.arange(5, 10)).parameters == published


def test_without_data_the_standard_error_is_that_of_the_prior():
    model = fitted(Fsrs6(recency="none"), ONCE, np.arange(5, 10))
    relative = np.array(model.learned.standard_errors) / model.parameters
    assert relative[0] == pytest.approx(np.hypot(1.5, 0.75), rel=0.2)
    assert relative[2] < relative[0]  # Good was observed
