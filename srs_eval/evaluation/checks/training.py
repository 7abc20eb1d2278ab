"""Checks that what is learned rests on the training rows, on the seed, and on nothing else."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import cast

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, FittingInSteps, MemoryModel
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.checks.lookahead import expect_blind
from srs_eval.evaluation.checks.perturb import answered, other_future, renamed
from srs_eval.evaluation.checks.trial import SEED, Learn, Trial, evenly_spaced, honesty_check

# Share of recalls among random outcomes, and how far new cards are moved from known ones.
_RECALLED = 0.7
_NEW_CARDS = 10**6
# Of the steps of a fit so many are looked at closely, and of each so many rows.
_STEPS, _ROWS = 4, 15


@honesty_check("Learn from `rows` only, and from reviews before the last of them")
def check_fit_ignores_test_rows(trial: Trial) -> None:
    """Check that what is learned does not depend on anything after the last training row.

    For the fit, two futures with opposite outcomes, times and cards take its place, and it is cut
    off. Of an algorithm that has ``refit``, what it learns that way is checked too.
    """
    *futures, side = _opposite_pasts(trial)
    for learn in trial.ways_to_learn():
        one, other = (trial.predicted(_fit_or_explain(trial, learn, log)) for log in futures)
        trial.expect_same(one, other, _FITTED_ON_TEST, side=side)
        alone = trial.predicted(_fit_or_explain(trial, learn, trial.known()))
        trial.expect_same(one, alone, _FITTED_ON_TEST)


@honesty_check("What is learned from the same reviews and the same seed is the same")
def check_deterministic(trial: Trial) -> None:
    """Check that the same seed gives the same model, and a model the same predictions."""
    known = trial.known()
    for learn in trial.ways_to_learn():
        model = learn(known)
        expected, again = (trial.predicted(model) for _ in range(2))
        trial.expect_same(expected, again, _NOT_FROZEN, tolerance=0.0)
        trial.expect_same(expected, trial.predicted(learn(known)), _IGNORES_RNG, tolerance=0.0)


@honesty_check("Keep what was learned in the model that `fit` returns")
def check_nothing_outlives_a_fit(trial: Trial) -> None:
    """Check that a fit leaves nothing behind for another fit of the same user.

    The training rows are learned from, then the whole log, then the training rows again, all
    under one name, as by two jobs after each other. The test rows have random cards and outcomes,
    so that nothing kept from earlier checks stands in for them.
    """
    rng, fold = np.random.default_rng(secrets.randbits(64)), trial.fold
    later = np.arange(int(fold.train[-1]) + 1, len(trial.reviews))
    log = answered(trial.reviews, later, rng.random(len(later)) < _RECALLED, rng)
    trial = replace(trial, reviews=replace(log, card=log.card + rng.integers(_NEW_CARDS)))
    everything = replace(trial, fold=replace(fold, train=np.r_[fold.train, fold.test]))
    ways = zip(trial.ways_to_learn(), everything.ways_to_learn(), strict=True)
    for learn, learn_all in ways:
        expected = trial.predicted(learn(trial.known()))
        trial.predicted(learn_all(trial.reviews))
        found = trial.predicted(learn(trial.known()))
        trial.expect_same(expected, found, _REMEMBERS, tolerance=0.0)


@honesty_check("Keep the names of pretraining users, or the beginnings of their logs")
def check_pretraining_users_are_refused(trial: Trial) -> None:
    """Check that `fit` refuses users that an algorithm was pretrained on.

    Algorithms without ``pretrain`` pass.
    """
    pretrain = getattr(trial.algorithm, "pretrain", None)
    if pretrain is None:
        return
    few = trial.fold.train[: len(trial.fold.train) // 4]
    known = trial.known(few)
    after: Algorithm = pretrain([(known, few)], np.random.default_rng(SEED))
    try:
        replace(trial, algorithm=after).learned(known, few)
    except FitSkipped:
        return
    raise trial.failure(
        "after `pretrain`, `fit` accepts a pretraining user. Keep a record of the users seen, and "
        "raise FitSkipped in `fit`: their scores mean nothing"
    )


def _opposite_pasts(trial: Trial) -> tuple[Reviews, Reviews, IntArray]:
    """Invent two logs that are the same up to the last training row and nowhere later.

    Also return the side that each outcome of the fold takes in the first of them, 1 or -1.
    """
    reviews, after = trial.reviews, int(trial.fold.train[-1]) + 1
    rng = np.random.default_rng(after)
    # About as many right as wrong, so that what moves all predictions alike takes no side; but
    # not as many, so that a mean differs.
    recalled = rng.random(len(reviews) - after) < 0.5
    recalled[:1] ^= 2 * recalled.sum() == len(recalled)
    return (
        other_future(reviews, recalled, facts_from=after, hard=True, rng=rng),
        other_future(reviews, ~recalled, facts_from=after, hard=False, rng=rng),
        np.where(recalled[trial.fold.test - after], 1, -1),
    )


def _fit_or_explain(trial: Trial, learn: Learn, training: Reviews) -> MemoryModel:
    try:
        return learn(renamed(training))
    except LookupError as error:
        raise trial.failure(
            f"fit asked for a review after the last training row ({error!r}). "
            "Read only `rows`, and reviews before the last of them."
        ) from error


@honesty_check("Yield a model after each step, the last one as `fit` returns it")
def check_last_step_is_the_fit(trial: Trial) -> None:
    """Check that `fit_in_steps` ends with exactly the model that `fit` returns.

    It is given the log up to the last training row, as in an evaluation. The models of the steps
    are asked for predictions on the way, as a search does; none may know its outcomes or the
    future, nor have learned from what comes after the training rows. Algorithms without
    `fit_in_steps` pass.
    """
    if not isinstance(trial.algorithm, FittingInSteps):
        return
    steps = _steps(trial, trial.known())
    if not steps:
        raise trial.failure(f"fit_in_steps yields nothing. {_SAME_LOOP}.")
    fitted = trial.fit()
    advice = f"differs from that of `fit` after the last step of `fit_in_steps`. {_SAME_LOOP}"
    trial.expect_same(trial.predicted(fitted), steps[-1][1], advice, tolerance=0.0)
    values, others = (trial.learned_values(model) for model in (fitted, steps[-1][0]))
    if not np.array_equal(values, others, equal_nan=True):
        raise trial.failure(
            "parameters differ after the last step of `fit_in_steps` from those of `fit`. "
            f"{_SAME_LOOP}."
        )
    for model, p in steps:
        advice = "differs after later steps. Give each model a copy of what was learned so far"
        trial.expect_same(p, trial.predicted(model), advice)
    for nth in evenly_spaced(len(steps), _STEPS):
        expect_blind(trial, steps[nth][0], _ROWS)
    *futures, side = _opposite_pasts(trial)
    for (_, one), (_, other) in zip(*(_steps(trial, future) for future in futures), strict=True):
        trial.expect_same(one, other, f"after a step {_FITTED_ON_TEST}", side=side)


def _steps(trial: Trial, training: Reviews) -> list[tuple[MemoryModel, FloatArray]]:
    """Return the model after each step, and what it predicts then."""
    algorithm = cast(FittingInSteps, trial.algorithm)
    rng = np.random.default_rng(SEED)
    models = algorithm.fit_in_steps(training, trial.fold.train, rng)
    return [(model, trial.predicted(model)) for model in models]


_FITTED_ON_TEST = (
    "moved when the reviews after the last training row were changed before the fit. "
    "Learn from `rows` only: look for statistics over all of `reviews`"
)
_REMEMBERS = (
    "differs after a fit to more of the same log in between. Keep what was learned in the model "
    "that `fit` returns, not in the module, the class, the algorithm or a file: another job would "
    "have learned from its test rows"
)
_NOT_FROZEN = (
    "differs when the same model is asked twice. Draw random numbers in `fit` only, and keep "
    "no memory of what was asked"
)
_IGNORES_RNG = (
    "differs between two fits with the same seed. Take every random number from the `rng` "
    "that `fit` and `refit` are given, seed other libraries from it, and change no earlier model"
)
_SAME_LOOP = (
    "Let both go through the same loop, draw the same numbers from `rng`, and end at the same step"
)
