"""A check of fits that show the model after each step, as searches that prune ask for it."""

from __future__ import annotations

import numpy as np

from srs_eval.checks.assertions import (
    CheckFailed,
    SignTest,
    expect_learned_values,
    expect_same,
    named,
)
from srs_eval.checks.harness import SEED, evenly_spaced, honesty_check, learned, predicted
from srs_eval.checks.lookahead import expect_blind
from srs_eval.checks.perturb import cut_after
from srs_eval.checks.training import FITTED_ON_TEST, opposite_pasts
from srs_eval.nouns import Algorithm, FittingInSteps, FloatArray, Fold, MemoryModel, Reviews

# Of the steps so many are looked at closely, and of each so many rows.
_STEPS, _ROWS = 4, 15

Step = tuple[MemoryModel, FloatArray]


@honesty_check("Yield a model after each step, the last one as `fit` returns it")
def check_last_step_is_the_fit(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that `fit_in_steps` ends with exactly the model that `fit` returns.

    It is given the log up to the last training row, as in an evaluation. The models of the steps
    are asked for predictions on the way, as a search does; none may know its outcomes or the
    future, nor have learned from what comes after the training rows. Algorithms without
    `fit_in_steps` pass.
    """
    if not isinstance(algorithm, FittingInSteps):
        return
    known = cut_after(reviews, int(fold.train[-1]))
    steps = _steps(algorithm, fold, known, reviews)
    if not steps:
        raise CheckFailed(f"{named(algorithm)}: fit_in_steps yields nothing. {_SAME_LOOP}.")
    fitted = learned(algorithm, known, fold.train)
    expected = predicted(algorithm, fitted, reviews, fold.test)
    advice = f"differs from that of `fit` after the last step of `fit_in_steps`. {_SAME_LOOP}"
    expect_same(algorithm, expected, steps[-1][1], fold.test, advice, tolerance=0.0)
    values = expect_learned_values(algorithm, fitted)
    if not np.array_equal(values, expect_learned_values(algorithm, steps[-1][0]), equal_nan=True):
        raise CheckFailed(
            f"{named(algorithm)}: parameters differ after the last step of `fit_in_steps` from "
            f"those of `fit`. {_SAME_LOOP}."
        )
    for model, p in steps:
        advice = "differs after later steps. Give each model a copy of what was learned so far"
        again = predicted(algorithm, model, reviews, fold.test)
        expect_same(algorithm, p, again, fold.test, advice)
    for nth in evenly_spaced(len(steps), _STEPS):
        expect_blind(algorithm, steps[nth][0], reviews, fold.test, _ROWS)
    _expect_learned_from_training_rows(algorithm, fold, reviews)


_SAME_LOOP = (
    "Let both go through the same loop, draw the same numbers from `rng`, and end at the same step"
)


def _steps(
    algorithm: FittingInSteps, fold: Fold, training: Reviews, reviews: Reviews
) -> list[Step]:
    in_steps = algorithm.fit_in_steps(training, fold.train, np.random.default_rng(SEED))
    return [(model, predicted(algorithm, model, reviews, fold.test)) for model in in_steps]


def _expect_learned_from_training_rows(
    algorithm: FittingInSteps, fold: Fold, reviews: Reviews
) -> None:
    """Raise unless every step is the same whatever follows on the training rows."""
    futures = opposite_pasts(reviews, fold)
    side = np.where(futures[0].recalled[fold.test], 1, -1)
    both = (_steps(algorithm, fold, future, reviews) for future in futures)
    for (_, one), (_, other) in zip(*both, strict=True):
        advice = f"after a step {FITTED_ON_TEST}"
        expect_same(algorithm, one, other, fold.test, advice)
        sides = SignTest()
        sides.add((one - other) * side)
        sides.expect_none(algorithm, advice)
