"""What all fitted algorithms have in common, the prior of FSRS, and its other trainers."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from one_step import OneStep
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.features.log_odds import DashActR
from srs_eval.algorithms.fsrs.early import Fsrs45
from srs_eval.algorithms.fsrs.family import filled, in_order
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs_rs import FsrsRs
from srs_eval.algorithms.half_life import Hlr
from srs_eval.errors import FitError, FitSkipped

LATER = np.flatnonzero(REVIEWS.elapsed_days > 0)
SECOND = LATER[np.unique(REVIEWS.card[LATER], return_index=True)[1]]


@pytest.mark.parametrize("kind", [Fsrs6, Fsrs7])
@pytest.mark.parametrize("options", [{"prior_weight": 1e9}, {"fit": "default"}])
def test_a_strong_prior_and_no_fit_leave_parameters_where_they_were_given(kind, options):
    given = [*kind().defaults(whole_days=True)[:-1], 0.5]
    w = fitted(kind(parameters=given, **options)).parameters
    np.testing.assert_allclose(w, given, rtol=0 if "fit" in options else 1e-3)


# First stabilities need second reviews; the public trainer of FSRS-4.5 needs later ones.
@pytest.mark.parametrize(
    ("algorithm", "has_second"),
    [
        *((Fsrs6(fit="reference"), False), (Fsrs6(fit="s0"), False), (OneStep(), False)),
        (Fsrs45(fit="reference"), True),
    ],
)
def test_what_has_nothing_to_train_on_keeps_its_parameters_and_says_so(algorithm, has_second):
    rows = FOLD.train[np.isin(FOLD.train, SECOND) == has_second]
    model = fitted(algorithm, rows=rows)
    assert model.parameters == algorithm.defaults(whole_days=True)
    assert model.learned.fallback
    assert "the parameters were kept" in model.learned.note
    assert not fitted(Fsrs6(), rows=rows).learned.fallback


@pytest.mark.parametrize("method", ["newton", "reference"])
@pytest.mark.parametrize("algorithm", [Hlr, DashActR])
def test_a_loss_that_is_not_finite_is_an_error_that_names_the_user(algorithm, method):
    elapsed = REVIEWS.elapsed.copy()
    elapsed[FOLD.train[-1]] = np.nan
    with pytest.raises(FitError, match=f"{algorithm.name}: user trial: "):
        fitted(algorithm(fit=method), replace(REVIEWS, elapsed=elapsed))


def test_a_larger_first_rating_has_no_smaller_stability(transcript):
    """Of two the rarer moves, and those of ratings that nobody gave are filled in.

    Words are four stabilities, or a dash, and the counts of ratings.
    """

    def told_by(given, counts=""):
        four = np.array([np.nan if each == "-" else float(each) for each in given.split(",")])
        if counts:
            four = in_order(four, np.array([*map(int, counts.split(","))]))
        told = ",".join(f"{each:g}" for each in four)
        whole = filled(four, np.array([0.4, 1.2, 3.2, 15.7]))
        return f"  {told}, filled {','.join(f'{each:.9f}' for each in whole)}\n"

    transcript("stabilities_in_order", told_by)


def test_same_day_reviews_are_histories_and_are_not_learned_from():
    pytest.importorskip("fsrs_rs_python")
    every = np.flatnonzero(REVIEWS.elapsed_days >= 0)
    assert len(every) > len(LATER)
    assert fitted(FsrsRs(), rows=every).parameters == fitted(FsrsRs(), rows=LATER).parameters
    with pytest.raises(FitSkipped):
        fitted(FsrsRs(), rows=np.setdiff1d(every, LATER))


# A panic in Rust arrives as an exception that is no `Exception`, of a class nobody can import.
PANIC = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
OUTCOMES = ([0.5] * 19, [float("nan")] * 21, ValueError("InvalidInput"), PANIC("called `unwrap()`"))


@pytest.mark.parametrize("outcome", [*OUTCOMES, KeyboardInterrupt()])
def test_what_the_package_returns_or_raises_ends_that_fit_alone(monkeypatch, outcome):
    package = pytest.importorskip("fsrs_rs_python")
    trainer = Mock(benchmark=Mock(side_effect=[outcome]))
    monkeypatch.setattr(package, "FSRS", lambda parameters: trainer)
    is_stopped = isinstance(outcome, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt if is_stopped else FitError):
        fitted(FsrsRs())


def test_standard_errors_of_first_stabilities_are_those_of_their_logarithms_times_them():
    model = fitted(Fsrs6())
    errors = np.array(model.learned.standard_errors)
    free = np.isfinite(errors)
    covariance = np.linalg.inv(model.learned.information[np.ix_(free, free)])
    slope = np.where(np.arange(len(errors)) < 4, model.parameters, 1.0)
    assert free[:4].any()
    np.testing.assert_allclose(errors[free], np.sqrt(np.diag(covariance)) * slope[free], rtol=1e-6)
