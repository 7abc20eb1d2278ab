"""Honesty checks: what every algorithm must pass before its numbers mean anything.

A signature cannot stop a model from peeking at the answers it is asked to predict. These
checks change what a model must not see and look whether its predictions move. Each takes an
algorithm and, if wanted, a task: a user's log with its folds, of which the last is used. By
default each check invents a small log of its own.
"""

from __future__ import annotations

from srs_eval.algorithms.algorithm import Algorithm, undeclared
from srs_eval.evaluation.checks.contract import (
    check_extremes,
    check_fit_ignores_test_rows,
    check_goes_to_a_worker,
    check_predictions,
    check_repetition,
)
from srs_eval.evaluation.checks.lookahead import check_blind_to_the_future, check_time_of_prediction
from srs_eval.evaluation.checks.trial import CheckFailed
from srs_eval.protocol.task import Task

_CHECKS = (
    check_blind_to_the_future,
    check_fit_ignores_test_rows,
    check_time_of_prediction,
    check_repetition,
    check_extremes,
    check_goes_to_a_worker,
)


def check_algorithm(algorithm: Algorithm, task: Task | None = None) -> None:
    """Run every check and report all that failed.

    The checks find mistakes, and cheats that do not know them; they prove nothing. A program can
    detect that it is being checked, by the length of the log or by its caller, and behave until it
    is evaluated; and what it does on rare occasions only may not occur here.

    Parameters
    ----------
    task : Task, optional
        What a protocol makes of one user's log; by default each check invents a small log.

    Raises
    ------
    CheckFailed
        With what each check found. The exception of an algorithm is the `__cause__`.
    """
    if missing := undeclared(algorithm):
        raise CheckFailed(
            f"{type(algorithm).__name__} does not declare {', '.join(missing)}. Make it a subclass "
            "of srs_eval.Algorithm, or give it these attributes"
        )
    check_predictions(algorithm, task)  # without it, no other check means anything
    failures = []
    for check in _CHECKS:
        try:
            check(algorithm, task)
        except CheckFailed as failure:
            failures.append(failure)
    if failures:
        causes = (failure.__cause__ for failure in failures if failure.__cause__)
        raise CheckFailed("\n".join(map(str, failures))) from next(causes, None)
