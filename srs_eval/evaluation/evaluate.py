"""The evaluation of an algorithm on one user: split, fit, predict, nothing else.

Everything srs_eval reports rests on this loop::

    for user in source.users():
        task = protocol(source.read(user), same_day=algorithm.same_day)
        for fold in task.folds:
            model = algorithm.fit(task.reviews, fold.train, rng)
            p = model.predict(task.reviews, fold.test)

Where the protocol refits often (``task.warm_start``), an algorithm that has ``refit`` is also
given the model of the fold before. What the functions below add is bookkeeping: a status for every
fit, a sample of forgetting curves, and the facts about each scored review that metrics need. They
cut the log off after the last row in question. Row numbers, times and predictions are copied: an
algorithm may write into them. That `predict` reads no outcome of its rows, `check_algorithm` tests;
a user who lacks a fold is in no mean (`scoring`). What is trained from nothing notes its test loss.
"""

from __future__ import annotations

import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

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
    FloatArray,
    IntArray,
    Reviews,
    Source,
    User,
    columns_of,
    reviews_fingerprint,
)
from srs_eval.errors import FitError, FitSkipped, Pruned, SrsEvalError
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.limits import FitTimeoutError, time_limit
from srs_eval.metrics.predictions import Curves, Predictions, concatenate
from srs_eval.metrics.temporal import sample_elapsed
from srs_eval.protocol.split import used_rows
from srs_eval.protocol.task import EvaluationProtocol, Fold, Task

_CURVE_TIMES = 16
_CURVES = 1
_LEAST_P = 1e-7
ONLY_LEARNED = "only learned from"


@dataclass(frozen=True)
class UserEvaluation:
    """Result for one user."""

    user: User
    fits: tuple[Fit, ...]  # Every fit's status
    predictions: Predictions | None  # Of the folds whose fit worked; None if there are none
    log: ReviewLog  # What was read


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class FittedUser:
    """A model that was fitted to all reviews of one user."""

    fit: Fit  # Status; its fold is the number after the last fold of the protocol
    model: MemoryModel | None = None  # None where nothing was fitted
    reviews: Reviews | None = None  # Histories it was fitted to, as the protocol makes them
    rows: IntArray | None = None  # Those of them that were learned from


@dataclass(frozen=True)
class EvaluateUser:
    """The loop above for one user; a value, so that worker processes can be sent it."""

    source: Source
    algorithm: Algorithm
    protocol: EvaluationProtocol
    # With the user and the fold it seeds every fit, so that results depend neither on the order of
    # users nor on how many processes share them
    seed: int
    curves: int  # At most so many forgetting curves are kept per user
    # Seconds of wall time that the fit and the predictions of a fold may take; no limit if None
    timeout: float | None = None

    def __call__(self, user: User, tick: Callable[[], None] = lambda: None) -> UserEvaluation:
        """Evaluate one user, calling `tick` after each fold."""
        facts = ReviewLog()
        try:
            log = self.source.read(user)
            facts = ReviewLog(len(log), dict(log.left_out), reviews_fingerprint(log), log.notes)
            task = self.protocol(log, same_day=self.algorithm.same_day)
            learned, tested = np.zeros((2, len(task.reviews)), np.bool_)
            for fold in task.folds:
                learned[fold.train] = tested[fold.test] = True
            unscored = {**task.unscored, ONLY_LEARNED: int(np.count_nonzero(learned & ~tested))}
            facts = replace(facts, dropped=dict(task.dropped), unscored=unscored)
        except Exception as error:  # noqa: BLE001 - sources and protocols can be plug-ins
            if isinstance(error, FitSkipped):
                facts = replace(facts, dropped=error.dropped, unscored=error.unscored)
            return UserEvaluation(user, (_not_made(Fit(user, -1, "ok"), error),), None, facts)
        fits, parts = list[Fit](), list[Predictions]()
        cuts = _Cuts(task, self.algorithm)
        previous: MemoryModel | None = None
        # One thread per user: the same sums in the same order wherever the user is evaluated.
        with _thread_pools(len(sys.modules)).limit(limits=1):
            for fold in task.folds:
                try:
                    fit, predictions, model = self._fold(task, fold, cuts, previous)
                except FitTimeoutError:
                    fits += self._timed_out(task, fold)
                    break
                # A fallback was not learned, so the next fit does not start from it.
                previous = model if fit.status == "ok" else None
                fits.append(fit)
                parts += [predictions] if predictions is not None else []
                tick()
        return UserEvaluation(user, tuple(fits), concatenate(parts), facts)

    def fit_to_everything(self, user: User, tick: Callable[[], None] = lambda: None) -> FittedUser:
        """Fit one user once, to every review that the protocol scores or learns from."""
        fit = Fit(user, -1, "ok")
        try:
            task = self.protocol(self.source.read(user), same_day=self.algorithm.same_day)
            rows = used_rows(task.folds)
            fold = Fold(task.folds[-1].number + 1, rows, rows[:0])
            fit = _fit_of(task, fold)
            with _thread_pools(len(sys.modules)).limit(limits=1):
                model, spent = self._model(task, fold, _Cuts(task, self.algorithm), None)
            fit = _with_what_was_learned(replace(fit, **spent), model)
            return FittedUser(fit, model, task.reviews, rows)
        except Exception as error:  # noqa: BLE001 - a plug-in can raise anything
            return FittedUser(_not_made(fit, error))
        finally:
            tick()

    def _fold(
        self, task: Task, fold: Fold, cuts: _Cuts, previous: MemoryModel | None
    ) -> tuple[Fit, Predictions | None, MemoryModel | None]:
        """Fit and predict one fold; what did not work leaves nothing but its status."""
        fit = _fit_of(task, fold)
        try:
            with time_limit(self.timeout):
                model, spent = self._model(task, fold, cuts, previous)
                fit = replace(fit, **spent)
                predictions = self._predict(model, task, fold, cuts)
                curves = self._curves(model, cuts.after(fold.test), task, fold)
                fit = _with_what_was_learned(fit, model)
        except Exception as error:  # noqa: BLE001 - a plug-in can raise anything
            return _not_made(fit, error), None, None
        return fit, replace(predictions, curves=curves), model

    def _model(
        self, task: Task, fold: Fold, cuts: _Cuts, previous: MemoryModel | None
    ) -> tuple[MemoryModel, dict[str, Any]]:
        """Fit one fold, from the fit before it if there is one and the task wants that.

        Return the model, and the CPU time and losses for its `Fit`.
        """
        began, to_train, rows = time.process_time(), cuts.after(fold.train), fold.train.copy()
        algorithm, rng = self.algorithm, self._rng(task.reviews.user, fold)
        is_pretrained = bool(getattr(algorithm, "pretrained", False))
        losses: list[float] = []
        model: MemoryModel | None = None
        if task.warm_start and previous is not None and isinstance(algorithm, WarmStarting):
            model = algorithm.refit(to_train, rows, rng, previous)
        elif is_pretrained or not len(fold.test) or not isinstance(algorithm, FittingInSteps):
            model = algorithm.fit(to_train, rows, rng)
        else:
            for model in algorithm.fit_in_steps(to_train, rows, rng):
                paused = time.process_time()  # the loss on the test rows is no part of the fit
                p = model.predict(cuts.after(fold.test), fold.test.copy())
                truth = np.where(task.reviews.recalled[fold.test], p, 1 - p)
                loss = -np.log(np.clip(truth, _LEAST_P, 1))
                losses.append(float(loss.mean()))
                began += time.process_time() - paused
            if model is None:
                raise FitError("fit_in_steps yields no model")
        return model, {"seconds": time.process_time() - began, "test_log_loss": tuple(losses)}

    def _timed_out(self, task: Task, slow: Fold) -> Iterator[Fit]:
        """Return the failure of the fit that is being ended, and of the later ones of its user.

        Those are not made: what was interrupted may have left libraries in any state.
        """
        took = f"took longer than fit_timeout={self.timeout:g} seconds"
        reason, trace = f"the fit {took}", traceback.format_exc()
        for fold in task.folds[task.folds.index(slow) :]:
            yield replace(_fit_of(task, fold), status="failed", reason=reason, traceback=trace)
            reason, trace = f"not fitted: fold {slow.number} {took}", ""

    def _predict(self, model: MemoryModel, task: Task, fold: Fold, cuts: _Cuts) -> Predictions:
        """Predict the reviews that are tested; what comes later is not there to be seen."""
        rows, reviews = fold.test, task.reviews
        p = model.predict(cuts.after(rows), rows.copy())
        p = _probabilities("predictions", p, (len(rows),), task, rows)
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
        curve = model.predict_at(reviews, rows.copy(), np.tile(times, (size, 1)))
        curve = _probabilities("forgetting curves", curve, (size, len(times)), task, rows)
        return Curves(
            user=np.zeros(size, np.int64),
            fold=np.full(size, fold.number),
            row=task.log_row[rows],
            elapsed=_padded(np.tile(times, (size, 1)), np.nan),
            weight=_padded(np.tile(weights, (size, 1)), 0.0),
            p=_padded(curve, np.nan),
        )


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
            columns = columns_of(self._reviews).items()
            cut = {name: column[:until].copy() for name, column in columns}
            self._last = replace(self._reviews, **cut)
        return self._last


@lru_cache
def _thread_pools(_loaded: int) -> ThreadpoolController:
    """Find the libraries with threads of their own; again once more modules are loaded."""
    return ThreadpoolController()


def _padded(values: FloatArray, fill: float) -> FloatArray:
    columns = np.full((len(values), _CURVE_TIMES), fill, values.dtype)
    columns[:, : values.shape[1]] = values
    return columns


def _fit_of(task: Task, fold: Fold) -> Fit:
    user, number = task.reviews.user, fold.number
    return Fit(user, number, "ok", n_train=len(fold.train), n_test=len(fold.test))


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


def _not_made(fit: Fit, error: Exception) -> Fit:
    """Record why there is no fit; an error that is not of srs_eval keeps its traceback."""
    if isinstance(error, Pruned):
        raise error
    if isinstance(error, FitSkipped):
        return replace(fit, status="skipped", reason=str(error))
    if isinstance(error, SrsEvalError):
        where = f"user {fit.user}, fold {fit.fold}: " if isinstance(error, FitError) else ""
        return replace(fit, status="failed", reason=f"{where}{error}")
    reason = f"{type(error).__name__}: {error}"
    return replace(fit, status="failed", reason=reason, traceback=traceback.format_exc())


def _probabilities(
    what: str, p: FloatArray, shape: tuple[int, ...], task: Task, rows: IntArray
) -> FloatArray:
    """Copy predictions, those that a mask hides as missing; raise `FitError` if they are none."""
    p = np.array(np.ma.filled(p, np.nan))
    if p.shape != shape:
        raise FitError(f"{what} have shape {p.shape}, expected {shape}")
    if p.dtype not in (np.float32, np.float64):
        raise FitError(f"{what} are {p.dtype}; return float32 or float64")
    outside = ~((p >= 0) & (p <= 1))
    if outside.any():
        first = tuple(np.argwhere(outside)[0])
        row = task.log_row[rows[first[0]]]
        raise FitError(
            f"{outside.sum()} of {p.size} {what} are no probabilities, "
            f"the first {p[first]} at review {row + 1} of the log"
        )
    return p
