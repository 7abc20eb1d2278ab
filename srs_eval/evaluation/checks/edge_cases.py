"""Checks on what every large run meets: empty folds, very short and very long histories, workers.

They are part of `srs_eval.check_algorithm`. Other checks look for mistakes that a leaderboard would
reward; the mistakes here end a run instead.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from srs_eval.data.reviews import (
    GROUPS,
    FloatArray,
    IntArray,
    Reviews,
)
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import FitError, FitSkipped, SrsEvalError
from srs_eval.evaluation.checks.perturb import answered, renamed
from srs_eval.evaluation.checks.trial import Trial, curve_of, honesty_check, prediction
from srs_eval.evaluation.checks.worker import NotImportable, WorkerDied, call_elsewhere

_LONG = 5000
_LAPSE_EVERY = 9
# Rows at the ends of a long history that are predicted, and how many are learned from.
_FIRST, _LAST = 20, 3
_FEW = 2
_NO_ROWS: IntArray = np.empty(0, np.int64)
# What arithmetic on too little, or too much, comes to.
_MISHAPS = (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, FitError)


@honesty_check("Expect folds without a row")
def check_empty_folds(trial: Trial) -> None:
    """Check that nothing to learn from and nothing to predict are no accidents.

    `fit` without training rows must give a model that predicts, or raise FitSkipped; `predict`
    without rows must return an empty array.
    """
    reviews = trial.reviews
    with _explained(trial, "without any row to predict", "Return an empty array"):
        model = trial.fit()
        _expect_numbers(trial, prediction(model, reviews, _NO_ROWS), (0,), "without rows")
        curve = curve_of(model)
        if curve is not None:
            p = curve(reviews, _NO_ROWS, np.empty((0, 3)))
            _expect_numbers(trial, p, (0, 3), "without rows")
    advice = "Fall back to a default prediction, or raise FitSkipped('no training reviews')"
    with _explained(trial, "without a training row", advice):
        try:
            model = trial.learned(reviews, _NO_ROWS)
        except FitSkipped:
            return
        p = prediction(model, reviews, trial.fold.test)
    _expect_numbers(trial, p, trial.fold.test.shape, "after a fit without a training row")


@honesty_check("Expect cards of 1 and of 5,000 reviews")
def check_short_and_long_histories(trial: Trial) -> None:
    """Check that cards of 1, 2 and 5,000 reviews are predicted, and a few reviews learned from."""
    rare = _rare_log(whole_days=trial.reviews.whole_days)
    scored = np.flatnonzero(rare.elapsed_days > 0)
    ends = np.r_[scored[:_FIRST], scored[-_LAST:]]
    advice = (
        "Counts reach 5,000 and histories are as short as one review: clip what is raised to a "
        "power, divide by nothing that may be 0"
    )
    with _explained(trial, "on cards of 1, 2 and 5,000 reviews", advice):
        p = prediction(trial.fit(), rare, ends)
    _expect_numbers(trial, p, ends.shape, f"on cards of 2 and 5,000 reviews. {advice}")
    with _explained(trial, "after a fit to a few reviews", advice):
        try:
            model = trial.learned(rare, scored[:_FEW])
        except FitSkipped:
            return
        p = prediction(model, rare, scored[_FEW:_FIRST])
    _expect_numbers(trial, p, (_FIRST - _FEW,), f"after a fit to a few reviews. {advice}")


@honesty_check("Keep plain values in attributes")
def check_goes_to_a_worker(trial: Trial) -> None:
    """Check that the algorithm reaches a worker process, and is the same there.

    Runs with ``compute=processes`` send it by pickle to a process that shares nothing with this
    one, which is what is done here; there it first predicts another log of the same length. A
    class defined inside a function, or in a module that cannot be imported there, is passed over:
    no run can name it.
    """
    kind = type(trial.algorithm)
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        return
    try:
        pickle.dumps(trial.algorithm)
    except (pickle.PicklingError, AttributeError, *_MISHAPS) as error:
        raise trial.failure(
            f"cannot be sent to a worker process ({error}). Keep plain values in attributes: no "
            "lambdas, open files, locks or modules"
        ) from error
    expected = trial.predicted(trial.fit())
    try:
        found = call_elsewhere(kind.__module__, _tried, trial)
    except NotImportable:
        return
    except (WorkerDied, SrsEvalError, AttributeError, OSError, *_MISHAPS) as error:
        raise trial.failure(f"does not work in a worker process ({error}). {_LOST}.") from error
    trial.expect_same(expected, found, f"differs in a worker process. {_LOST}")


@honesty_check("Put all that was learned into `parameters`")
def check_parameters_rebuild_the_model(trial: Trial) -> None:
    """Check that what was learned can be given back: ``parameters=…`` with ``fit="default"``.

    By that models are kept, registered and served. Algorithms whose class does not take both
    words, or knows no such fit, pass.
    """
    kind: Any = type(trial.algorithm)
    if not {"fit", "parameters"} <= set(inspect.signature(kind).parameters):
        return
    options = _options_without_a_fit(trial)
    if not options:
        return
    model = trial.fit()
    values = trial.learned_values(model).tolist()
    try:
        again = replace(trial, algorithm=kind(**{**options, "parameters": values}))
        rebuilt = again.learned(trial.reviews, _NO_ROWS)
    except (SrsEvalError, *_MISHAPS) as error:
        raise trial.failure(
            f"cannot be built from the parameters it has learned ({error}). Take every value that "
            "a fit can come to, and fit nothing where fit='default'"
        ) from error
    trial.expect_same(trial.predicted(model), trial.predicted(rebuilt), _NOT_ALL)


_LOST = (
    "Something of it is lost on the way: look for values that are kept outside of the object, "
    "and for __getstate__ and __reduce__"
)
_NOT_ALL = (
    "differs when the model is built from its own parameters. Put all that was learned into "
    "`parameters`, unrounded, and have `fit='default'` use them as they are"
)


@contextmanager
def _explained(trial: Trial, when: str, advice: str) -> Iterator[None]:
    """Turn an accident into a failed check that says when it happened and what to do."""
    try:
        # the mean of an empty array warns; what counts is the result
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    except _MISHAPS as error:
        what = f"{type(error).__name__}: {error}"
        raise trial.failure(f"fails {when} ({what}). {advice}.") from error


def _expect_numbers(trial: Trial, found: FloatArray, shape: tuple[int, ...], when: str) -> None:
    """Raise unless there is a number from 0 to 1 for each row, however extreme."""
    if found.shape != shape:
        raise trial.failure(f"predictions have shape {found.shape}, not {shape}, {when}.")
    wrong = found[~((found >= 0) & (found <= 1))]
    if len(wrong):
        raise trial.failure(
            f"{len(wrong)} of {found.size} predictions are not probabilities, the first is "
            f"{wrong[0]}, {when}."
        )


def _options_without_a_fit(trial: Trial) -> dict[str, Any]:
    """Collect the options an algorithm was built with, without those that only a fit has a use for.

    There are none if its class knows no ``fit="default"``.
    """
    kind: Any = type(trial.algorithm)
    own = [
        {name: getattr(trial.algorithm, name)}
        for name in inspect.signature(kind).parameters
        if name not in ("fit", "parameters") and hasattr(trial.algorithm, name)
    ]
    options: dict[str, Any] = {}
    for option in ({"fit": "default"}, *own):
        with suppress(SrsEvalError, *_MISHAPS):
            kind(**{**options, **option})
            options |= option
    return options if "fit" in options else {}


def _tried(trial: Trial) -> FloatArray:
    """Predict another log first, of the same length."""
    model, reviews, row = trial.fit(), trial.reviews, int(trial.fold.train[-1])
    answers = np.arange(row + 1, len(reviews))
    rng = np.random.default_rng(row)
    other = answered(reviews, answers, ~reviews.recalled[answers], rng)
    prediction(model, other, trial.fold.test)
    return prediction(model, reviews, trial.fold.test)


def _rare_log(*, whole_days: bool) -> Reviews:
    """Return a log of a card of one review, one of two, and one reviewed on 5,000 days."""
    card = np.r_[0, 1, 2, 1, np.full(_LONG - 1, 2)]
    first = np.arange(len(card)) < 3
    groups: dict[str, Any] = dict.fromkeys(GROUPS, np.zeros(len(card), np.int64))
    log = reviews_from_columns(
        user=0,
        source="cards of 1, 2 and 5,000 reviews",
        card=card,
        rating=np.where(np.arange(len(card)) % _LAPSE_EVERY == _LAPSE_EVERY - 1, 1, 3),
        day=np.r_[0, 0, 0, 1, np.arange(1, _LONG)],
        elapsed_seconds=np.where(first, -1.0, 86400.0),
        duration_ms=np.full(len(card), 4000.0),
        state=np.where(first, 0, 2),
        truth=np.full(len(card), 0.9),
        **groups,
    )
    return renamed(replace(log, whole_days=whole_days))
