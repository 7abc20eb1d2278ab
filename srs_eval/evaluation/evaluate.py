"""The evaluation of an algorithm on one user: split, fit, predict, nothing else.

Everything srs_eval reports rests on this loop::

    for user in source.users():
        task = protocol(source.read(user), same_day=algorithm.same_day)
        for fold in task.folds:
            model = algorithm.fit(task.reviews, fold.train, rng)
            p = model.predict(task.reviews, fold.test)

Where the protocol refits often (``task.warm_start``), an algorithm that has ``refit`` is also
given the model of the fold before, to start from. What the functions below add is bookkeeping:
a status for every fit, a sample of forgetting curves, and the facts about each scored review
that metrics need. They cut the log off after the last row in question, so that there is nothing
later to be seen. Row numbers and times are handed over as copies, and predictions are copied when
they are returned: an algorithm may write into either, and use its output array again. What
is trained from nothing is asked after each step for the loss on the test rows, which is only noted.
"""

from __future__ import annotations

import sys
import time
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

import numpy as np
from threadpoolctl import ThreadpoolController

from srs_eval.algorithms.algorithm import (
    Algorithm,
    FittingInSteps,
    Learned,
    MemoryModel,
    WarmStarting,
    has_curve,
)
from srs_eval.data.reviews import (
    REVIEW_COLUMNS,
    BoolArray,
    FloatArray,
    IntArray,
    Reviews,
    Source,
    User,
    reviews_fingerprint,
)
from srs_eval.errors import FitError, FitSkipped, Pruned, SrsEvalError
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.limits import NO_LIMITS, FitLimits, FitTimeoutError, timed_out_fits
from srs_eval.metrics.predictions import Curves, Predictions, concatenate
from srs_eval.metrics.temporal import sample_elapsed
from srs_eval.protocol.split import used_rows
from srs_eval.protocol.task import EvaluationProtocol, Fold, Task

_CURVE_TIMES = 16
_CURVES = 1
_LEAST_P = 1e-7
ONLY_LEARNED = "only learned from"


@dataclass(frozen=True, slots=True)
class UserEvaluation:
    """Result for one user."""

    user: User
    fits: tuple[Fit, ...]  # Every fit's status
    predictions: Predictions | None  # Of the folds whose fit worked; None if there are none
    log: ReviewLog  # What was read


@dataclass(frozen=True, slots=True)
class ReviewLog:
    """Facts about a log, without the reviews."""

    reviews: int = 0  # How many there are
    # Rows of the source that are not reviews, counted by reason
    left_out: Mapping[str, int] = field(default_factory=dict)
    fingerprint: str = ""  # Digest of the reviews; "" where none could be read
    notes: Sequence[str] = ()  # Remarks of the source on the log
    # Reviews that are not scored, as in `Task`, and those that are only learned from
    dropped: Mapping[str, int] = field(default_factory=dict)
    unscored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FittedUser:
    """A model that was fitted to all reviews of one user."""

    fit: Fit  # Status; its fold is the number after the last fold of the protocol
    model: MemoryModel | None = None  # None where nothing was fitted
    reviews: Reviews | None = None  # Histories it was fitted to, as the protocol makes them
    rows: IntArray | None = None  # Those of them that were learned from


@dataclass(frozen=True, slots=True)
class EvaluateUser:
    """The loop above for one user; a value, so that worker processes can be sent it."""

    source: Source
    algorithm: Algorithm
    protocol: EvaluationProtocol
    # With the user and the fold it seeds every fit, so that results depend neither on the order of
    # users nor on how many processes share them
    seed: int
    curves: int  # At most so many forgetting curves are kept per user
    limits: FitLimits = NO_LIMITS  # How long a fit may take, and what is reported meanwhile

    def __call__(self, user: User, tick: Callable[[], None] = lambda: None) -> UserEvaluation:
        """Evaluate one user, calling `tick` after each fold."""
        facts, task = ReviewLog(), None
        with _Attempt(Fit(user, -1, "ok")) as reading:
            log = self.source.read(user)
            facts = ReviewLog(len(log), dict(log.left_out), reviews_fingerprint(log), log.notes)
            task = self.protocol(log, same_day=self.algorithm.same_day)
            facts = _with_what_is_scored(facts, task)
        if reading.skipped is not None:
            skipped = reading.skipped
            facts = replace(facts, dropped=skipped.dropped, unscored=skipped.unscored)
        if task is None or reading.fit.status != "ok":
            return UserEvaluation(user, (reading.fit,), None, facts)
        fits, parts = [], []
        cuts = _Cuts(task, self.algorithm)
        previous: MemoryModel | None = None
        # One thread per user: the same sums in the same order wherever the user is evaluated.
        with _thread_pools(len(sys.modules)).limit(limits=1):
            for fold in task.folds:
                try:
                    fit, predictions, model = self._fold(task, fold, cuts, previous)
                except FitTimeoutError:
                    fits += timed_out_fits(task, fold, self.limits)
                    break
                # A fallback was not learned, so the next fit does not start from it.
                previous = model if fit.status == "ok" else None
                fits.append(fit)
                parts += [predictions] if predictions is not None else []
                tick()
        return UserEvaluation(user, tuple(fits), concatenate(parts), facts)

    def fit_to_everything(self, user: User, tick: Callable[[], None] = lambda: None) -> FittedUser:
        """Fit one user once, to every review that the protocol scores or learns from."""
        task, fitted = None, None
        with _Attempt(Fit(user, -1, "ok")) as attempt:
            task = self.protocol(self.source.read(user), same_day=self.algorithm.same_day)
        if task is not None:
            rows = used_rows(task.folds)
            fold = Fold(task.folds[-1].number + 1, rows, rows[:0])
            with _Attempt(Fit(user, fold.number, "ok", n_train=len(rows))) as attempt:
                with _thread_pools(len(sys.modules)).limit(limits=1):
                    model = self._model(task, fold, _Cuts(task, self.algorithm), None, attempt)
                attempt.took_until_now()
                attempt.fit = _with_what_was_learned(attempt.fit, model)
                fitted = FittedUser(attempt.fit, model, task.reviews, rows)
        tick()
        return fitted or FittedUser(attempt.fit)

    def _fold(
        self, task: Task, fold: Fold, cuts: _Cuts, previous: MemoryModel | None
    ) -> tuple[Fit, Predictions | None, MemoryModel | None]:
        """Fit and predict one fold; what did not work leaves nothing but its status."""
        user = task.reviews.user
        fit = Fit(user, fold.number, "ok", n_train=len(fold.train), n_test=len(fold.test))
        with _Attempt(fit) as attempt, self.limits.applied(user, fold.number):
            model = self._model(task, fold, cuts, previous, attempt)
            attempt.took_until_now()
            predictions = self._predict(model, task, fold, cuts)
            curves = self._curves(model, cuts.after(fold.test), task, fold)
            attempt.fit = _with_what_was_learned(attempt.fit, model)
            return attempt.fit, replace(predictions, curves=curves), model
        return attempt.fit, None, None

    def _model(
        self, task: Task, fold: Fold, cuts: _Cuts, previous: MemoryModel | None, attempt: _Attempt
    ) -> MemoryModel:
        """Fit one fold, from the fit before it if there is one and the task wants that."""
        to_train, rows = cuts.after(fold.train), fold.train.copy()
        rng = self._rng(task.reviews.user, fold)
        algorithm = self.algorithm
        if task.warm_start and previous is not None and isinstance(algorithm, WarmStarting):
            return algorithm.refit(to_train, rows, rng, previous)
        is_begun = bool(getattr(algorithm, "pretrained", False)) or not len(fold.test)
        if not isinstance(algorithm, FittingInSteps) or is_begun:
            return algorithm.fit(to_train, rows, rng)
        model: MemoryModel | None = None
        for model in algorithm.fit_in_steps(to_train, rows, rng):
            began = time.process_time()
            p = model.predict(cuts.after(fold.test), fold.test.copy())
            attempt.note(p, task.reviews.recalled[fold.test], began)
        if model is None:
            raise FitError("fit_in_steps yields no model")
        return model

    def _predict(self, model: MemoryModel, task: Task, fold: Fold, cuts: _Cuts) -> Predictions:
        """Predict the reviews that are tested; what comes later is not there to be seen."""
        rows, reviews = fold.test, task.reviews
        p = _whole(model.predict(cuts.after(rows), rows.copy()))
        _check_probabilities("predictions", p, (len(rows),), task, fold, rows)
        return Predictions(
            users=(reviews.user,),
            user=np.zeros(len(rows), np.int64),
            fold=np.full(len(rows), fold.number),
            row=task.log_row[rows],
            card=reviews.card[rows],
            p=p,
            recalled=reviews.recalled[rows],
            day=reviews.day[rows],
            elapsed_days=np.maximum(reviews.elapsed_days[rows], 0).astype(np.float64),
            nth_review=task.nth_review[rows],
            lapses=task.lapses[rows],
            last_rating=None if task.last_rating is None else task.last_rating[rows],
            recalls=None if task.recalls is None else task.recalls[rows],
        )

    def _rng(self, user: User, fold: Fold, *purpose: int) -> np.random.Generator:
        seeds = (self.seed, zlib.crc32(str(user).encode()), fold.number, *purpose)
        return np.random.default_rng(seeds)

    def _curves(
        self, model: MemoryModel, reviews: Reviews, task: Task, fold: Fold
    ) -> Curves | None:
        """Predict a sample of test rows at the elapsed times this user's test rows have."""
        folds = len(task.folds)
        share = self.curves * (fold.number + 1) // folds - self.curves * fold.number // folds
        size = min(len(fold.test), share)
        if size == 0 or not has_curve(model):
            return None
        tested = np.concatenate([other.test for other in task.folds])
        times, weights = sample_elapsed(task.reviews.elapsed[tested], k=_CURVE_TIMES)
        # A generator of its own, so that all algorithms are asked for the same curves.
        rng = self._rng(task.reviews.user, fold, _CURVES)
        rows = np.sort(rng.choice(fold.test, size, replace=False))
        elapsed = np.full((size, _CURVE_TIMES), np.nan)
        elapsed[:, : len(times)] = times
        weight = np.zeros((size, _CURVE_TIMES))
        weight[:, : len(times)] = weights
        curve = _whole(model.predict_at(reviews, rows.copy(), elapsed[:, : len(times)].copy()))
        _check_probabilities("forgetting curves", curve, (size, len(times)), task, fold, rows)
        p = np.full((size, _CURVE_TIMES), np.nan, curve.dtype)
        p[:, : len(times)] = curve
        return Curves(
            user=np.zeros(size, np.int64),
            fold=np.full(size, fold.number),
            row=task.log_row[rows],
            elapsed=elapsed,
            weight=weight,
            p=p,
        )


class _Attempt:
    """Work for one fit: what a plug-in raises is recorded in the fit's status, unless `Pruned`."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.skipped: FitSkipped | None = None
        self.test_log_loss: list[float] = []
        self._began = time.process_time()

    def note(self, p: FloatArray, recalled: BoolArray, began: float) -> None:
        """Record the loss on the test rows after a step, whose time is not that of the fit."""
        losses = -np.log(np.clip(np.where(recalled, p, 1 - p), _LEAST_P, 1))
        self.test_log_loss.append(float(losses.mean()))
        self._began += time.process_time() - began

    def took_until_now(self) -> None:
        """Record the CPU time since the beginning, and the losses."""
        seconds, losses = time.process_time() - self._began, tuple(self.test_log_loss)
        self.fit = replace(self.fit, seconds=seconds, test_log_loss=losses)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, FitSkipped):
            self.skipped = error
            self.fit = replace(self.fit, status="skipped", reason=str(error))
        elif isinstance(error, Exception) and not isinstance(error, Pruned):
            self.fit = _failed(self.fit, error)
        else:
            return False
        return True


class _Cuts:
    """A user's log, cut off where an algorithm must see no further.

    Cuts are copies, which share nothing with what comes later. The last one is kept: most
    folds are learned from just what the fold before was tested on.
    """

    def __init__(self, task: Task, algorithm: Algorithm) -> None:
        self._reviews = task.reviews.seen_by(algorithm)
        self._last: Reviews | None = None

    def after(self, rows: IntArray) -> Reviews:
        """Cut the log off after the last of `rows`."""
        until = int(rows[-1]) + 1 if len(rows) else 0
        if self._last is None or len(self._last) != until:
            whole = {name: getattr(self._reviews, name) for name in REVIEW_COLUMNS}
            cut = {name: c[:until].copy() for name, c in whole.items() if c is not None}
            self._last = replace(self._reviews, **cut)
        return self._last


@lru_cache(maxsize=1)
def _thread_pools(_loaded: int) -> ThreadpoolController:
    """Find the libraries with threads of their own; again once more modules are loaded."""
    return ThreadpoolController()


def _with_what_is_scored(facts: ReviewLog, task: Task) -> ReviewLog:
    """Add what the protocol says of a log, and how many reviews are only learned from."""
    learned, tested = (np.zeros(len(task.reviews), np.bool_) for _ in range(2))
    for fold in task.folds:
        learned[fold.train] = True
        tested[fold.test] = True
    unscored = {**task.unscored, ONLY_LEARNED: int(np.count_nonzero(learned & ~tested))}
    return replace(facts, dropped=dict(task.dropped), unscored=unscored)


def _with_what_was_learned(fit: Fit, model: MemoryModel) -> Fit:
    """Add the parameters of the model, and what it tells of how it was fitted, if it does."""
    parameters = tuple(float(value) for value in getattr(model, "parameters", ()))
    fit = replace(fit, parameters=parameters)
    learned = getattr(model, "learned", None)
    if not isinstance(learned, Learned):
        return fit
    return replace(
        fit,
        status="fallback" if learned.fallback else "ok",
        reason=learned.note,
        converged=learned.converged,
        standard_errors=tuple(float(value) for value in learned.standard_errors),
        parts=learned.parts,
        contributions=learned.contributions,
        training_loss=learned.training_loss,
    )


def _failed(fit: Fit, error: Exception) -> Fit:
    """Record a failure; an error that is not of srs_eval keeps its traceback."""
    if isinstance(error, FitError) and fit.fold >= 0:
        where = f"user {fit.user}, fold {fit.fold}"
        reason = str(error) if where in str(error) else f"{where}: {error}"
        return replace(fit, status="failed", reason=reason)
    if isinstance(error, SrsEvalError):
        return replace(fit, status="failed", reason=str(error))
    reason = f"{type(error).__name__}: {error}"
    return replace(fit, status="failed", reason=reason, traceback=traceback.format_exc())


def _whole(p: FloatArray) -> FloatArray:
    """Copy predictions; those that a mask hides are missing."""
    return np.array(np.ma.filled(p, np.nan))


def _check_probabilities(
    what: str, p: FloatArray, shape: tuple[int, ...], task: Task, fold: Fold, rows: IntArray
) -> None:
    """Raise `FitError` unless there is a probability for each of `rows`."""
    where = f"user {task.reviews.user}, fold {fold.number}"
    if p.shape != shape:
        raise FitError(f"{where}: {what} have shape {p.shape}, expected {shape}")
    if p.dtype not in (np.float32, np.float64):
        raise FitError(f"{where}: {what} are {p.dtype}; return float32 or float64")
    outside = ~((p >= 0) & (p <= 1))
    if outside.any():
        first = tuple(np.argwhere(outside)[0])
        row = task.log_row[rows[first[0]]]
        raise FitError(
            f"{where}: {outside.sum()} of {p.size} {what} are no probabilities, "
            f"the first {p[first]} at review {row + 1} of the log"
        )
