"""Checks that what is learned rests on the training rows, on the seed, and on nothing else."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from srs_eval.checks.assertions import (
    CheckFailed,
    expect_learned_values,
    expect_same,
    named,
)
from srs_eval.checks.harness import (
    SEED,
    Learn,
    evenly_spaced,
    honesty_check,
    learned,
    predicted,
    ways_to_learn,
)
from srs_eval.checks.lookahead import expect_blind
from srs_eval.checks.perturb import answered, cut_after, other_future, renamed
from srs_eval.errors import FitSkipped
from srs_eval.nouns import (
    Algorithm,
    FittingInSteps,
    FloatArray,
    Fold,
    MemoryModel,
    Reviews,
)

# Share of recalls among random outcomes, and how far new cards are moved from known ones.
_RECALLED = 0.7
_NEW_CARDS = 10**6
# Of the steps of a fit so many are looked at closely, and of each so many rows.
_STEPS, _ROWS = 4, 15

Step = tuple[MemoryModel, FloatArray]


@honesty_check("Learn from `rows` only, and from reviews before the last of them")
def check_fit_ignores_test_rows(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that what is learned does not depend on anything after the last training row.

    For the fit, two futures with opposite outcomes, times and cards take its place, and it is cut
    off. Of an algorithm that has ``refit``, what it learns that way is checked too.
    """
    futures = _opposite_pasts(reviews, fold)
    side = np.where(futures[0].recalled[fold.test], 1, -1)
    for learn in ways_to_learn(algorithm, reviews, fold):
        one, other = (
            predicted(algorithm, _fit_or_explain(algorithm, learn, future), reviews, fold.test)
            for future in futures
        )
        expect_same(algorithm, one, other, fold.test, _FITTED_ON_TEST, side=side)
        cut = cut_after(reviews, int(fold.train[-1]))
        alone = predicted(algorithm, _fit_or_explain(algorithm, learn, cut), reviews, fold.test)
        expect_same(algorithm, one, alone, fold.test, _FITTED_ON_TEST)


@honesty_check("What is learned from the same reviews and the same seed is the same")
def check_deterministic(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that the same seed gives the same model, and a model the same predictions."""
    known = cut_after(reviews, int(fold.train[-1]))
    for learn in ways_to_learn(algorithm, reviews, fold):
        model = learn(known)
        expected = predicted(algorithm, model, reviews, fold.test)
        again = predicted(algorithm, model, reviews, fold.test)
        expect_same(algorithm, expected, again, fold.test, _NOT_FROZEN, tolerance=0.0)
        refitted = predicted(algorithm, learn(known), reviews, fold.test)
        expect_same(algorithm, expected, refitted, fold.test, _IGNORES_RNG, tolerance=0.0)


@honesty_check("Keep what was learned in the model that `fit` returns")
def check_nothing_outlives_a_fit(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that a fit leaves nothing behind for another fit of the same user.

    The training rows are learned from, then the whole log, then the training rows again, all
    under one name, as by two jobs after each other. The test rows have random cards and outcomes,
    so that nothing kept from earlier checks stands in for them.
    """
    rng = np.random.default_rng(secrets.randbits(64))
    known = int(fold.train[-1]) + 1
    later = np.arange(known, len(reviews))
    log = answered(reviews, later, rng.random(len(later)) < _RECALLED, rng)
    log = replace(log, card=log.card + rng.integers(_NEW_CARDS))
    before = replace(cut_after(log, known - 1), user=log.user)
    everything = replace(fold, train=np.r_[fold.train, fold.test])
    ways = zip(
        ways_to_learn(algorithm, log, fold), ways_to_learn(algorithm, log, everything), strict=True
    )
    for learn, learn_all in ways:
        expected = predicted(algorithm, learn(before), log, fold.test)
        predicted(algorithm, learn_all(log), log, fold.test)
        found = predicted(algorithm, learn(before), log, fold.test)
        expect_same(algorithm, expected, found, fold.test, _REMEMBERS, tolerance=0.0)


@honesty_check("Keep the names of pretraining users, or the beginnings of their logs")
def check_pretraining_users_are_refused(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that `fit` refuses users that an algorithm was pretrained on.

    Algorithms without ``pretrain`` pass.
    """
    pretrain = getattr(algorithm, "pretrain", None)
    if pretrain is None:
        return
    few = fold.train[: len(fold.train) // 4]
    known = cut_after(reviews, int(few[-1]))
    after: Algorithm = pretrain([(known, few)], np.random.default_rng(SEED))
    try:
        learned(after, known, few)
    except FitSkipped:
        return
    raise CheckFailed(
        f"{named(algorithm)}: after `pretrain`, `fit` accepts a pretraining user. Keep "
        "a record of the users seen, and raise FitSkipped in `fit`: their scores mean nothing"
    )


def _opposite_pasts(reviews: Reviews, fold: Fold) -> tuple[Reviews, Reviews]:
    """Invent two logs that are the same up to the last training row and nowhere later."""
    after = int(fold.train[-1]) + 1
    rng = np.random.default_rng(after)
    # About as many right as wrong, so that what moves all predictions alike takes no side; but
    # not as many, so that a mean differs.
    recalled = rng.random(len(reviews) - after) < 0.5
    recalled[:1] ^= 2 * recalled.sum() == len(recalled)
    return (
        other_future(reviews, recalled, facts_from=after, hard=True, rng=rng),
        other_future(reviews, ~recalled, facts_from=after, hard=False, rng=rng),
    )


def _fit_or_explain(algorithm: Algorithm, learn: Learn, training: Reviews) -> MemoryModel:
    try:
        return learn(renamed(training))
    except LookupError as error:
        raise CheckFailed(
            f"{named(algorithm)}: fit asked for a review after the last training row "
            f"({error!r}). Read only `rows`, and reviews before the last of them."
        ) from error


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
    futures = _opposite_pasts(reviews, fold)
    side = np.where(futures[0].recalled[fold.test], 1, -1)
    both = (_steps(algorithm, fold, future, reviews) for future in futures)
    for (_, one), (_, other) in zip(*both, strict=True):
        advice = f"after a step {_FITTED_ON_TEST}"
        expect_same(algorithm, one, other, fold.test, advice, side=side)
