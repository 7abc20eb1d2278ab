"""Harness of the checks: a toy log to run an algorithm on, and its errors."""

from __future__ import annotations

import inspect
import traceback
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Protocol

import numpy as np

from srs_eval.checks.assertions import CheckFailed, expect_shape, named
from srs_eval.checks.perturb import cut_after, renamed
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import FitSkipped
from srs_eval.nouns import (
    Algorithm,
    FloatArray,
    Fold,
    IntArray,
    MemoryModel,
    Reviews,
    Task,
    WarmStarting,
    has_curve,
)
from srs_eval.text.frames import own_frames

SEED = 20240229
# An algorithm that finds too little to learn from is given more.
_CARDS = (40, 160, 640)
_SEEDS = 1000

Learn = Callable[[Reviews], MemoryModel]
Curve = Callable[[Reviews, IntArray, FloatArray], FloatArray]
# A check of an algorithm on one fold of a log.
Try = Callable[[Algorithm, Fold, Reviews], None]


class Check(Protocol):
    """A check of an algorithm, on a task or on a toy log."""

    __name__: str

    def __call__(self, algorithm: Algorithm, task: Task | None = None) -> None:
        """Raise `CheckFailed` if the algorithm does what it may not."""


def honesty_check(advice: str) -> Callable[[Try], Check]:
    """Make a check of a function that runs an algorithm on one fold of a log.

    Every check has a toy log of its own, and larger ones if the algorithm skips the first. Any
    other exception of the algorithm is a failed check, whose message ends with `advice`.
    """

    def made(tries: Try) -> Check:
        @wraps(tries)
        def check(algorithm: Algorithm, task: Task | None = None) -> None:
            reason = ""
            seed = zlib.crc32(tries.__qualname__.encode()) % _SEEDS
            for cards in _CARDS if task is None else _CARDS[:1]:
                try:
                    same_day = algorithm.same_day
                    tried = task or trial_task(same_day=same_day, seed=seed, cards=cards)
                    tries(algorithm, *_copy(tried))
                except CheckFailed:
                    raise
                except FitSkipped as skipped:
                    reason = str(skipped)
                except Exception as error:  # a plug-in can raise anything
                    what = f"{named(algorithm)}: raises {raised(error)}"
                    raise CheckFailed(f"{what}. {advice}.") from error
                else:
                    return
            raise CheckFailed(
                f"{named(algorithm)}: skips the log it is to be tried out on ({reason}). "
                "Give the checks a task that it does not skip"
            )

        check.__signature__ = inspect.signature(Check.__call__)  # type: ignore[attr-defined]
        return check

    return made


def _copy(task: Task) -> tuple[Fold, Reviews]:
    """Copy the last fold and its log, so that checks do not affect each other."""
    fold = task.folds[-1]
    reviews = task.reviews.take(np.arange(len(task.reviews)))
    return replace(fold, train=fold.train.copy(), test=fold.test.copy()), renamed(reviews)


def fit(algorithm: Algorithm, reviews: Reviews, rows: IntArray) -> MemoryModel:
    """Fit as it is done in an evaluation: the log ends with the last training row."""
    cut = cut_after(reviews, int(rows[-1])) if len(rows) else reviews.take(rows)
    return learned(algorithm, replace(cut, user=reviews.user), rows)


def learned(algorithm: Algorithm, reviews: Reviews, rows: IntArray) -> MemoryModel:
    """Fit to a log that may go on after the last training row."""
    return algorithm.fit(reviews, rows, np.random.default_rng(SEED))


def ways_to_learn(algorithm: Algorithm, reviews: Reviews, fold: Fold) -> tuple[Learn, ...]:
    """Fit, and where there is a `refit`, that from a fit of half of the training rows."""

    def from_nothing(training: Reviews) -> MemoryModel:
        return learned(algorithm, training, fold.train)

    if not isinstance(algorithm, WarmStarting):
        return (from_nothing,)
    half = fold.train[: (len(fold.train) + 1) // 2]
    previous = fit(algorithm, reviews, half)

    def from_before(training: Reviews) -> MemoryModel:
        return algorithm.refit(training, fold.train, np.random.default_rng(SEED), previous)

    return from_nothing, from_before


def prediction(model: MemoryModel, reviews: Reviews, rows: IntArray) -> FloatArray:
    """Copy what a model predicts, as evaluations do.

    The model may return the same array every time, which would then be compared with itself.
    """
    return np.array(model.predict(reviews, rows))


def predicted(
    algorithm: Algorithm, model: MemoryModel, reviews: Reviews, rows: IntArray
) -> FloatArray:
    """Predict, and find one probability for each row."""
    try:
        p = prediction(model, reviews, rows)
    except LookupError as error:
        raise CheckFailed(
            f"{named(algorithm)}: raises {raised(error)}, predicting {len(rows)} rows up to row "
            f"{rows.max(initial=-1)} of a log that ends with row {len(reviews) - 1}. Expect any "
            "number of rows, and read only rows before the predicted one."
        ) from error
    expect_shape(algorithm, p, rows.shape)
    return p


def raised(error: Exception) -> str:
    """Describe an exception and the line of the algorithm that it comes from."""
    what = f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    return " at ".join([what, *(str(frame) for frame in own_frames(text)[-1:])])


def curve_of(model: MemoryModel) -> Curve | None:
    """Return the forgetting curve of a model, which returns copies; None if it has none."""
    if not has_curve(model):
        return None
    return lambda reviews, rows, elapsed: np.array(model.predict_at(reviews, rows, elapsed))


def other_times(reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw an earlier and a later time for each row; the factual one is in between."""
    earlier, later = rng.uniform(0.1, 0.9, len(rows)), rng.uniform(1.1, 9.0, len(rows))
    elapsed: FloatArray = reviews.elapsed[rows, None] * np.c_[earlier, np.ones(len(rows)), later]
    return elapsed


def evenly_spaced(n: int, most: int) -> list[int]:
    """Return up to `most` positions below n, evenly spaced."""
    return sorted(set(np.linspace(0, n - 1, min(n, most)).astype(int).tolist()))
