"""Honesty checks: what every algorithm must pass before its numbers mean anything.

A signature cannot stop a model from peeking at the answers it is asked to predict. These
checks change what a model must not see and look whether its predictions move. They are meant
for algorithms written elsewhere as much as for those that ship here::

    from srs_eval.evaluation.checks import check_algorithm

    check_algorithm(MyAlgorithm())

Each check takes an algorithm and, if wanted, a task: a user's log with its folds, of which
the last is used. By default each check invents a small log of its own.
"""

from __future__ import annotations

import traceback
from dataclasses import replace

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, undeclared
from srs_eval.data.reviews import FloatArray, columns_of
from srs_eval.evaluation.checks import edge_cases, lookahead, training
from srs_eval.evaluation.checks.perturb import renamed
from srs_eval.evaluation.checks.trial import (
    SEED,
    Check,
    CheckFailed,
    Trial,
    curve_of,
    honesty_check,
    other_times,
    prediction,
)
from srs_eval.protocol.task import Task


def check_algorithm(algorithm: Algorithm, task: Task | None = None) -> None:
    """Run every check and report all that failed.

    The checks find mistakes, and cheats that do not know them; they prove nothing. A program can
    detect that it is being checked, by the length of the log or by its caller, and behave until it
    is evaluated; and what it does on rare occasions only may not occur here. The one check that is
    left out is `check_pretraining_users_are_refused`, because pretraining may take days.

    Parameters
    ----------
    task : Task, optional
        What a protocol makes of one user's log; by default each check invents a small log.

    Raises
    ------
    CheckFailed
        Naming every check that failed, and why: each cause once. The exception of an algorithm is
        the `__cause__`.
    """
    if missing := undeclared(algorithm):
        raise CheckFailed(
            f"{type(algorithm).__name__} does not declare {', '.join(missing)}. Make it a subclass "
            "of srs_eval.Algorithm, or give it these attributes"
        )
    check_probabilities_in_range(algorithm, task)  # without these, no other check means anything
    failures: dict[object, CheckFailed] = {}
    for check in _CHECKS:
        try:
            check(algorithm, task)
        except CheckFailed as failure:
            failures.setdefault(_cause(failure), failure)
    if failures:
        causes = [failure.__cause__ for failure in failures.values() if failure.__cause__]
        message = "\n".join(map(str, failures.values()))
        raise CheckFailed(message) from next(iter(causes), None)


def _cause(failure: CheckFailed) -> object:
    """Return what failures of one cause share: the exception and its line, or the message."""
    error = failure.__cause__
    if error is None:
        return str(failure)
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return type(error), frame.f_code, line


@honesty_check("Do not read `reviews.truth`")
def check_truth_is_not_read(trial: Trial) -> None:
    """Check that the true probabilities of simulated users are not read, unless declared.

    An algorithm with ``sees_truth = True`` is an upper bound and may read them.
    """
    truth = trial.reviews.truth
    if trial.algorithm.sees_truth or truth is None:
        return
    changed = replace(trial, reviews=renamed(replace(trial.reviews, truth=1.0 - truth)))
    expected, found = (each.predicted(each.fit()) for each in (trial, changed))
    trial.expect_same(expected, found, _READS_TRUTH, tolerance=0.0)


@honesty_check("Work on copies")
def check_inputs_not_mutated(trial: Trial) -> None:
    """Check that neither fitting nor predicting writes into what it is given."""
    reviews, fold, known = trial.reviews, trial.fold, trial.known()
    elapsed = other_times(reviews, fold.test, np.random.default_rng(SEED))
    given = [
        *((f"reviews.{name}", column) for name, column in columns_of(known).items()),
        *((f"reviews.{name}", column) for name, column in columns_of(reviews).items()),
        *(("train rows", fold.train), ("test rows", fold.test), ("elapsed", elapsed)),
    ]
    kept = [array.copy() for _, array in given]
    model = trial.learned(known)
    prediction(model, reviews, fold.test)
    curve = curve_of(model)
    if curve is not None:
        curve(reviews, fold.test, elapsed)
    written = [
        name
        for (name, array), before in zip(given, kept, strict=True)
        if not np.array_equal(array, before)
    ]
    if written:
        raise trial.failure(
            f"these arrays were changed: {', '.join(dict.fromkeys(written))}. "
            "They are shared; work on a copy."
        )


@honesty_check("This is an ordinary fit and prediction, without anything changed")
def check_probabilities_in_range(trial: Trial) -> None:
    """Check that each row gets one probability above 0 and below 1, and parameters are numbers."""
    model = trial.fit()
    p = prediction(model, trial.reviews, trial.fold.test)
    trial.learned_values(model)
    _expect_probabilities(trial, p, trial.fold.test.shape, "predict")


@honesty_check("Return one probability for each of `elapsed`")
def check_predict_at_equals_predict(trial: Trial) -> None:
    """Check that forgetting curves pass through the predictions.

    Models without ``predict_at`` have no curve, and pass.
    """
    model = trial.fit()
    curve = curve_of(model)
    if curve is None:
        return
    elapsed = other_times(trial.reviews, trial.fold.test, np.random.default_rng(SEED))
    p = curve(trial.reviews, trial.fold.test, elapsed)
    _expect_probabilities(trial, p, elapsed.shape, "predict_at")
    trial.expect_same(trial.predicted(model), p[:, 1], _OTHER_CURVE)


def _expect_probabilities(
    trial: Trial, found: FloatArray, shape: tuple[int, ...], method: str
) -> None:
    """Raise unless numbers have the shape and type of probabilities and lie inside (0, 1)."""
    if found.shape != shape:
        raise trial.failure(f"{method} has shape {found.shape}, not {shape}.")
    if found.dtype not in (np.float32, np.float64):
        raise trial.failure(f"{method} returns {found.dtype}, not float32 or float64.")
    wrong = found[~((found > 0) & (found < 1))]
    if len(wrong):
        raise trial.failure(
            f"{len(wrong)} of {found.size} numbers of {method} are not probabilities above 0 and "
            f"below 1, the first is {wrong[0]}. "
            "Nothing is certain: keep a little distance from 0 and 1."
        )


_CHECKS: tuple[Check, ...] = (
    lookahead.check_blind_to_the_future,
    training.check_fit_ignores_test_rows,
    lookahead.check_time_of_prediction,
    check_truth_is_not_read,
    training.check_deterministic,
    training.check_nothing_outlives_a_fit,
    check_inputs_not_mutated,
    check_predict_at_equals_predict,
    training.check_last_step_is_the_fit,
    edge_cases.check_empty_folds,
    edge_cases.check_short_and_long_histories,
    edge_cases.check_goes_to_a_worker,
    edge_cases.check_parameters_rebuild_the_model,
)

_READS_TRUTH = (
    "moved when the true probabilities of the simulated user were changed. "
    "No real user has them: do not read `reviews.truth`"
)
_OTHER_CURVE = (
    "by predict_at at the factual elapsed time is not what predict says. Both must use the "
    "same history and the same curve"
)
