"""A quick check of algorithms from elsewhere, before they are evaluated."""

from __future__ import annotations

from typing import Any

from srs_eval.evaluation.limits import FitLimits, FitTimeoutError
from srs_eval.nouns import Algorithm
from srs_eval.run.description import targets


def refuse_lookahead(algorithm: Algorithm, options: Any, timeout: float | None = None) -> None:
    """Raise `CheckFailed` if a class that is not of srs_eval plainly looks ahead.

    `options` are those the algorithm was built from, with the class of everything it is made of.
    An algorithm of srs_eval is not looked at, and the checks are not loaded for it.
    """
    if all(target.partition(".")[0] == "srs_eval" for target in targets(options)):
        return
    from srs_eval.checks.assertions import CheckFailed
    from srs_eval.checks.quick import check_quickly

    try:
        with FitLimits(timeout).applied("trial", 0):
            check_quickly(algorithm)
    except FitTimeoutError:  # the run will say so of its own fits
        return
    except CheckFailed as failed:
        raise CheckFailed(
            f"{failed}\nA quick check with a small simulated log found this, and nothing was "
            "evaluated. srs_eval.check_algorithm has all checks; check_lookahead=false evaluates "
            "the algorithm all the same"
        ) from None
