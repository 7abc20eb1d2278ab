"""Checks of what every run meets: probabilities, odd logs, repetition, workers."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np

from srs_eval.algorithms.algorithm import has_curve
from srs_eval.data.cards import since_previous
from srs_eval.data.reviews import FloatArray, IntArray, Reviews, columns_of
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.checks import perturb
from srs_eval.evaluation.checks.trial import Pair, Pairs, Trial, honesty_check

_LONG, _LAPSE_EVERY = 5000, 9
# Rows at the ends of a long history that are predicted, and how many are learned from.
_FIRST, _LAST, _FEW = 20, 3, 2
_NO_ROWS: IntArray = np.empty(0, np.int64)
_FITTED_ON_TEST = (
    "moved when the reviews after the last training row were changed before the fit: look for "
    "statistics over all of `reviews`"
)
# A subprocess, so that a script which checks an algorithm needs no `if __name__ == "__main__"`.
_ELSEWHERE = "from srs_eval.evaluation.checks.contract import predict_here; predict_here()"


@honesty_check
def check_predictions(trial: Trial) -> Pairs:
    """Check that each row gets one probability above 0 and below 1, and parameters are numbers.

    Forgetting curves pass through the predictions, and neither fitting nor predicting writes into
    what it is given. Nothing is certain: keep a little distance from 0 and 1.
    """
    log, rows, known = trial.reviews, trial.fold.test, trial.known()
    elapsed = perturb.other_times(log, rows, trial.rng)
    arrays = {"rows of fit": trial.fold.train, "rows of predict": rows, "elapsed": elapsed}
    for method, each in (("fit", known), ("predict", log)):
        arrays |= {f"reviews.{name} of {method}": x for name, x in columns_of(each).items()}
    copies = {name: x.copy() for name, x in arrays.items()}
    model = trial.fit(known)
    p = trial.predicted(model)
    curve = np.array(model.predict_at(log, rows, elapsed)) if has_curve(model) else None
    changes = [name for name, x in arrays.items() if not np.array_equal(x, copies[name])]
    if changes:
        raise trial.failure(f"changes {', '.join(changes)}: work on a copy")
    inside = np.nextafter([0.0, 1.0], 0.5)
    _expect_probabilities(trial, p, rows.shape, inside)
    if curve is not None:
        _expect_probabilities(trial, curve, elapsed.shape, inside)
        yield Pair(p, curve[:, 1], "by predict_at at the factual elapsed time is another one")
    try:
        _ = [float(value) for value in getattr(model, "parameters", ())]
    except (TypeError, ValueError) as error:
        raise trial.failure(f"its `parameters` are no array of numbers ({error})") from error


@honesty_check
def check_fit_ignores_test_rows(trial: Trial) -> Pairs:
    """Check that what is learned does not depend on anything after the last training row.

    For the fit, two futures with opposite outcomes, times and cards take its place, and it is cut
    off. What is learned by ``refit`` and in the first step of ``fit_in_steps`` is checked too.
    """
    log, begin = trial.reviews, int(trial.fold.train[-1]) + 1
    rng = np.random.default_rng(begin)
    # About as many right as wrong, so that what moves all predictions alike takes no side; but
    # not as many, so that a mean differs.
    later = np.arange(len(log) - begin)
    recalled = rng.permutation(later <= len(later) // 2)
    sides = np.where(recalled[trial.fold.test - begin], -1, 1)
    hard = perturb.other_future(log, recalled, rng, hard=True)
    easy = perturb.other_future(log, ~recalled, rng, hard=False)
    for learn in trial.ways_to_learn():
        p, other, cut = (
            trial.predicted(learn(each))
            for each in (hard, easy, perturb.under_new_name(trial.known()))
        )
        yield Pair(p, other, _FITTED_ON_TEST, sides=sides)
        yield Pair(p, cut, _FITTED_ON_TEST)


@honesty_check
def check_repetition(trial: Trial) -> Pairs:
    """Check that the same model predicts the same, and the same seed gives the same model.

    The training rows are learned from twice, then the whole log, then the training rows again, all
    under one name, as by jobs after each other: a fit leaves nothing behind for another. The last
    step of ``fit_in_steps`` is the fit. The test rows have random outcomes, so that nothing kept
    from other checks stands in for them.
    """
    rng, fold = np.random.default_rng(), trial.fold
    later = np.arange(int(fold.train[-1]) + 1, len(trial.reviews))
    recalled = rng.choice([True, True, False], len(later))
    log = perturb.other_answers(trial.reviews, later, recalled, rng)
    trial = replace(trial, reviews=log)
    everything = replace(trial, fold=replace(fold, train=np.r_[fold.train, fold.test]))
    for learn, learn_all in zip(trial.ways_to_learn(), everything.ways_to_learn(), strict=True):
        model = learn(trial.known())
        first = trial.predicted(model)
        again = "differs when the same model is asked twice: draw random numbers in `fit` only"
        yield Pair(first, trial.predicted(model), again, room=0)
        alike = "differs between two fits with the same seed: draw from `rng`, copy earlier models"
        yield Pair(first, trial.predicted(learn(trial.known())), alike, room=0)
        trial.predicted(learn_all(trial.reviews))
        after = "differs after a fit to more of the same log: keep what was learned in the model"
        yield Pair(first, trial.predicted(learn(trial.known())), after, room=0)
    if steps := trial.steps():
        after = "differs from that of `fit` after the last step of `fit_in_steps`"
        yield Pair(trial.predicted(trial.fit()), trial.predicted(steps[-1]), after, room=0)
        if not np.array_equal(trial.fit().parameters, steps[-1].parameters, equal_nan=True):
            raise trial.failure(f"what it has learned {after}")


@honesty_check
def check_extremes(trial: Trial) -> Pairs:
    """Check that no row to predict, none or few to learn from, and cards of 5,000 are no accidents.

    `fit` to nothing or little must give a model that predicts, or raise FitSkipped. Of a long
    history, clip what is raised to a power, and divide by nothing that may be 0.
    """
    log = _extreme_log(trial.reviews)
    later = np.flatnonzero(log.elapsed_days > 0)
    ends, few = np.r_[later[:_FIRST], later[-_LAST:]], later[_FEW:_FIRST]
    # the mean of an empty array warns; what counts is the result
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        model = trial.fit()
        if has_curve(model):
            model.predict_at(log, _NO_ROWS, np.empty((0, 3)))
        tries = [(model, _NO_ROWS), (model, ends)]
        for rows in (_NO_ROWS, later[:_FEW]):
            with suppress(FitSkipped):
                tries.append((trial.fit(log, rows), few))
        for each, asked in tries:
            p = trial.predicted(each, log, asked)
            _expect_probabilities(trial, p, asked.shape, np.arange(2.0))
    yield from ()


def _expect_probabilities(
    trial: Trial, p: FloatArray, shape: tuple[int, ...], bounds: FloatArray
) -> None:
    if p.shape != shape or p.dtype not in (np.float32, np.float64):
        raise trial.failure(
            f"predictions are {p.dtype} of shape {p.shape}; return float32 or float64 of {shape}"
        )
    wrong = p[~((p >= bounds[0]) & (p <= bounds[1]))]
    if len(wrong):
        raise trial.failure(
            f"{len(wrong)} of {p.size} predictions are outside (0, 1), the first is {wrong[0]}"
        )


def _extreme_log(reviews: Reviews) -> Reviews:
    """Return a log of a card of one review, one of two, and one reviewed on 5,000 days."""
    card = np.r_[0, 1, 2, 1, np.full(_LONG - 1, 2)]
    row, day = np.arange(len(card)), np.r_[0, 0, 0, 1, np.arange(1, _LONG)]
    elapsed_days = since_previous(day, card)
    log = replace(
        reviews.take(np.zeros(len(card), np.int64)),
        card=card,
        day=day,
        rating=np.where(row % _LAPSE_EVERY, 3, 1),
        elapsed_days=elapsed_days,
        elapsed=np.maximum(elapsed_days, 0.0),
        row=row,
        state=np.where(elapsed_days < 0, 0, 2),
    )
    return perturb.under_new_name(log)


@honesty_check
def check_goes_to_a_worker(trial: Trial) -> Pairs:
    """Check that the algorithm reaches a worker process, and is the same there.

    Runs with ``compute=processes`` send it by pickle to a process that shares nothing with this
    one, which is what is done here; there it first predicts another log of the same length. Keep
    plain values in attributes: no lambdas, open files, locks or modules. A class defined inside a
    function is passed over: no run can name it.
    """
    kind = type(trial.algorithm)
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        return
    before = trial.predicted(trial.fit())
    worker = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE],
        input=pickle.dumps(trial),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    if worker.returncode:
        why = worker.stderr.decode().strip().rpartition("\n")[2] or f"exit {worker.returncode}"
        raise trial.failure(f"does not work in a worker process ({why})")
    after = np.array(json.loads(worker.stdout.decode().splitlines()[-1]))
    yield Pair(before, after, "differs in a worker process: keep all values in the object")


def predict_here() -> None:
    """Predict another log of the same length, then that of the trial on standard input."""
    trial: Trial = pickle.load(sys.stdin.buffer)
    model, log, row = trial.fit(), trial.reviews, int(trial.fold.train[-1])
    later, rng = np.arange(row + 1, len(log)), np.random.default_rng(row)
    trial.predicted(model, perturb.other_answers(log, later, ~log.recalled[later], rng))
    sys.stdout.write("\n" + json.dumps(trial.predicted(model).tolist()))
