"""Checks that what is learned rests on the training rows, on the seed, and on nothing else."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, FittingInSteps
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.checks.lookahead import blind, spread
from srs_eval.evaluation.checks.perturb import other_answers, other_future, under_new_name
from srs_eval.evaluation.checks.trial import Pair, Pairs, Trial, honesty_check

# Share of recalls among random outcomes, and how far new cards are moved from known ones.
_RECALLED, _NEW_CARDS = 0.7, 10**6
# Of the steps of a fit so many are looked at closely, and of each so many rows.
_STEPS, _ROWS = 4, 15
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
_OTHER_STEPS = (
    "differs from that of `fit` after the last step of `fit_in_steps`. Let both go through the "
    "same loop, draw the same numbers from `rng`, and end at the same step"
)
_ONE_MODEL = "differs after later steps. Give each model a copy of what was learned so far"


@honesty_check("Learn from `rows` only, and from reviews before the last of them")
def check_fit_ignores_test_rows(trial: Trial) -> Pairs:
    """Check that what is learned does not depend on anything after the last training row.

    For the fit, two futures with opposite outcomes, times and cards take its place, and it is cut
    off. What is learned by ``refit`` and in the steps of ``fit_in_steps`` is checked too.
    """
    log, rows, begin = trial.reviews, trial.fold.train, int(trial.fold.train[-1]) + 1
    rng = np.random.default_rng(begin)
    # About as many right as wrong, so that what moves all predictions alike takes no side; but
    # not as many, so that a mean differs.
    recalled = rng.random(len(log) - begin) < 0.5
    recalled[:1] ^= 2 * recalled.sum() == len(recalled)
    sides = np.where(recalled[trial.fold.test - begin], -1, 1)
    hard = other_future(log, recalled, begin=begin, hard=True, rng=rng)
    easy = other_future(log, ~recalled, begin=begin, hard=False, rng=rng)
    alone = under_new_name(trial.known())
    for learn in trial.ways_to_learn():
        p, other, cut = (trial.predicted(learn(each)) for each in (hard, easy, alone))
        yield Pair(p, other, _FITTED_ON_TEST, sides=sides)
        yield Pair(p, cut, _FITTED_ON_TEST)
    if isinstance(trial.algorithm, FittingInSteps):
        steps = (trial.algorithm.fit_in_steps(each, rows, trial.rng) for each in (hard, easy))
        for models in zip(*steps, strict=True):
            p, other = (trial.predicted(model) for model in models)
            yield Pair(p, other, _FITTED_ON_TEST, sides=sides)


@honesty_check("What is learned from the same reviews and the same seed is the same")
def check_repetition(trial: Trial) -> Pairs:
    """Check that the same model predicts the same, and the same seed gives the same model.

    The training rows are learned from twice, then the whole log, then the training rows again, all
    under one name, as by jobs after each other: a fit leaves nothing behind for another. The test
    rows have random cards and outcomes, so that nothing kept from other checks stands in for them.
    """
    rng, fold = np.random.default_rng(secrets.randbits(64)), trial.fold
    later = np.arange(int(fold.train[-1]) + 1, len(trial.reviews))
    log = other_answers(trial.reviews, later, rng.random(len(later)) < _RECALLED, rng)
    trial = replace(trial, reviews=replace(log, card=log.card + rng.integers(_NEW_CARDS)))
    everything = replace(trial, fold=replace(fold, train=np.r_[fold.train, fold.test]))
    ways = zip(trial.ways_to_learn(), everything.ways_to_learn(), strict=True)
    for learn, learn_all in ways:
        model = learn(trial.known())
        before, again = (trial.predicted(model) for _ in range(2))
        yield Pair(before, again, _NOT_FROZEN, exact=True)
        yield Pair(before, trial.predicted(learn(trial.known())), _IGNORES_RNG, exact=True)
        trial.predicted(learn_all(trial.reviews))
        yield Pair(before, trial.predicted(learn(trial.known())), _REMEMBERS, exact=True)


@honesty_check("Yield a model after each step, the last one as `fit` returns it")
def check_last_step_is_the_fit(trial: Trial) -> Pairs:
    """Check that `fit_in_steps` ends with exactly the model that `fit` returns.

    The models of the steps are asked for predictions on the way, as a search does; none may know
    its outcomes or the future. Algorithms without `fit_in_steps` pass.
    """
    if isinstance(trial.algorithm, FittingInSteps):
        models = trial.algorithm.fit_in_steps(trial.known(), trial.fold.train, trial.rng)
        steps, model = [(step, trial.predicted(step)) for step in models], trial.fit()
        yield Pair(trial.predicted(model), steps[-1][1], _OTHER_STEPS, exact=True)
        if not np.array_equal(model.parameters, steps[-1][0].parameters, equal_nan=True):
            raise trial.failure(f"what it has learned {_OTHER_STEPS}.")
        for step, p in steps:
            yield Pair(p, trial.predicted(step), _ONE_MODEL)
        for nth in spread(len(steps), _STEPS):
            yield from blind(trial, steps[nth][0], _ROWS)


@honesty_check("Keep the names of pretraining users, or the beginnings of their logs")
def check_pretraining_users_are_refused(trial: Trial) -> Pairs:
    """Check that `fit` refuses users that an algorithm was pretrained on.

    Algorithms without ``pretrain`` pass.
    """
    if pretrain := getattr(trial.algorithm, "pretrain", None):
        few = trial.fold.train[: len(trial.fold.train) // 4]
        after: Algorithm = pretrain([(trial.known(few), few)], trial.rng)
        try:
            replace(trial, algorithm=after).fit(rows=few)
        except FitSkipped:
            return
        raise trial.failure(
            "after `pretrain`, `fit` accepts a pretraining user. Keep a record of the users seen, "
            "and raise FitSkipped in `fit`: their scores mean nothing"
        )
    yield from ()
