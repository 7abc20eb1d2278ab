"""An algorithm on one fold of a log: what checks do with it, and what they expect of it."""

from __future__ import annotations

import inspect
import math
import re
import sysconfig
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Protocol

import numpy as np

from srs_eval.algorithms.algorithm import (
    Algorithm,
    MemoryModel,
    WarmStarting,
    has_curve,
)
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitSkipped, SrsEvalError
from srs_eval.evaluation.checks.perturb import cut_after, renamed
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.protocol.task import Fold, Task

SEED = 20240229
# An algorithm that finds too little to learn from is given more.
_CARDS = (40, 160, 640)
_SEEDS = 1000
# Sums depend on what is computed beside them, and iterations on what they end with. Of the
# algorithms that ship here, all in double precision, no prediction moves by more than 2e-13.
_DOUBLE = 1e-12
# The same in single precision.
_SINGLE = 1e-6
_IN_SINGLE_PRECISION = (
    " (As small a difference can be rounding, where what is computed beside a row changes how it "
    "is computed: what was computed in single precision is to be returned as float32.)"
)
_SIGNIFICANCE = 1e-4
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)\n(?:    (.+)\n)?', re.MULTILINE)

Learn = Callable[[Reviews], MemoryModel]
Curve = Callable[[Reviews, IntArray, FloatArray], FloatArray]


class CheckFailed(SrsEvalError):
    """An algorithm failed a check; the message says what it did and where to look."""


class SignTest:
    """A sign test of differences between predictions that may be rounding.

    Rounding moves a prediction towards the outcome as often as away from it. A model that knows
    the outcome moves towards it nearly always, and ranks reviews by it however small the move.
    """

    def __init__(self) -> None:
        self._towards: list[float] = []

    def add(self, towards: FloatArray | float) -> None:
        """Add by how much predictions are higher where the outcome is the better one."""
        self._towards += np.ravel(towards).tolist()

    def expect_none(self, algorithm: Algorithm, advice: str) -> None:
        """Raise if the differences have one sign too often; `advice` ends the message.

        With few rows, if all of them do.
        """
        towards = np.array(self._towards)
        up, down = int((towards > 0).sum()), int((towards < 0).sum())
        n = up + down
        chance = 2 * sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
        if n and chance <= max(_SIGNIFICANCE, 2.0 ** (1 - len(towards))):
            raise CheckFailed(
                f"{type(algorithm).__name__}: predictions {advice}. They move by no more than "
                f"{np.abs(towards).max():.2g}, but of {n} that move, {max(up, down)} move to the "
                "same side, which rounding would not do: it ranks reviews, however little it is"
            )


@dataclass(frozen=True, slots=True)
class Trial:
    """An algorithm, a log to try it out on, and a fold of that."""

    algorithm: Algorithm
    fold: Fold
    reviews: Reviews

    @classmethod
    def of(cls, algorithm: Algorithm, task: Task) -> Trial:
        """Copy the last fold of a task and its log, so that checks do not affect each other."""
        fold = task.folds[-1]
        reviews = task.reviews.take(np.arange(len(task.reviews)))
        fold = replace(fold, train=fold.train.copy(), test=fold.test.copy())
        return cls(algorithm, fold, renamed(reviews))

    def failure(self, what: str) -> CheckFailed:
        """Return the error of an algorithm that does what it may not."""
        return CheckFailed(f"{type(self.algorithm).__name__}: {what}")

    def known(self, rows: IntArray | None = None) -> Reviews:
        """Return the log up to the last training row, or the last of other rows."""
        last = (self.fold.train if rows is None else rows)[-1]
        return replace(cut_after(self.reviews, int(last)), user=self.reviews.user)

    def fit(self, rows: IntArray | None = None) -> MemoryModel:
        """Fit as it is done in an evaluation: the log ends with the last training row."""
        return self.learned(self.known(rows), rows)

    def learned(self, reviews: Reviews, rows: IntArray | None = None) -> MemoryModel:
        """Fit to another log, which may go on after the last training row."""
        rows = self.fold.train if rows is None else rows
        return self.algorithm.fit(reviews, rows, np.random.default_rng(SEED))

    def ways_to_learn(self) -> tuple[Learn, ...]:
        """Fit, and where there is a `refit`, that from a fit of half of the training rows."""
        algorithm, rows = self.algorithm, self.fold.train
        if not isinstance(algorithm, WarmStarting):
            return (self.learned,)
        previous = self.fit(rows[: (len(rows) + 1) // 2])

        def from_before(training: Reviews) -> MemoryModel:
            return algorithm.refit(training, rows, np.random.default_rng(SEED), previous)

        return self.learned, from_before

    def predicted(
        self, model: MemoryModel, reviews: Reviews | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        """Predict rows of a log, those of the fold if not given; find one probability for each."""
        reviews = self.reviews if reviews is None else reviews
        rows = self.fold.test if rows is None else rows
        try:
            p = prediction(model, reviews, rows)
        except LookupError as error:
            raise self.failure(
                f"raises {raised(error)}, predicting {len(rows)} rows up to row "
                f"{rows.max(initial=-1)} of a log that ends with row {len(reviews) - 1}. Expect "
                "any number of rows, and read only rows before the predicted one."
            ) from error
        self._expect_shape(p, rows.shape)
        return p

    def learned_values(self, model: MemoryModel) -> FloatArray:
        """Return the parameters of a model as runs record them; empty if it has none."""
        try:
            return np.array([float(value) for value in getattr(model, "parameters", ())])
        except (TypeError, ValueError) as error:
            raise self.failure(
                f"its `parameters` cannot be recorded ({error}). They are plain numbers one after "
                "the other, or a numpy array of one dimension"
            ) from error

    def expect_same(
        self,
        expected: FloatArray,
        found: FloatArray,
        advice: str,
        *,
        rows: IntArray | None = None,
        tolerance: float | None = None,
        side: IntArray | None = None,
    ) -> FloatArray:
        """Return by how much predictions of the same rows moved; raise if by more than they may.

        The rows are those of the fold if not given, and `advice` ends the message. Without a
        `tolerance`, differences up to rounding are allowed, which `SignTest` examines: with `side`,
        1 where a move up is towards the outcome and -1 where one down is, here.
        """
        rows = self.fold.test if rows is None else rows
        for p in (expected, found):
            self._expect_shape(p, np.shape(rows))
        kinds = {np.asarray(expected).dtype, np.asarray(found).dtype}
        rounding = _SINGLE if np.dtype(np.float32) in kinds else _DOUBLE
        room = rounding if tolerance is None else tolerance
        same = np.isclose(expected, found, rtol=0.0, atol=room, equal_nan=True)
        moved = np.flatnonzero(~same)
        if len(moved):
            first = moved[0]
            before, after = np.ravel(expected)[first], np.ravel(found)[first]
            digits = 17 if abs(before - after) < _SINGLE else 6
            rounded = _IN_SINGLE_PRECISION if tolerance is None and digits == 17 else ""
            raise self.failure(
                f"the prediction of row {np.ravel(rows)[first]} ({before:.{digits}g}, now "
                f"{after:.{digits}g}; {len(moved)} of {np.size(rows)} differ) {advice}.{rounded}"
            )
        if side is not None:
            sides = SignTest()
            sides.add((expected - found) * side)
            sides.expect_none(self.algorithm, advice)
        return found - expected

    def _expect_shape(self, p: FloatArray, shape: tuple[int, ...]) -> None:
        """Raise unless there is one prediction for each row."""
        if np.shape(p) != shape:
            raise self.failure(
                f"predictions have shape {np.shape(p)}, not {shape}. "
                "Return one probability for each of `rows`."
            )


class Check(Protocol):
    """A check of an algorithm, on a task or on a toy log."""

    __name__: str

    def __call__(self, algorithm: Algorithm, task: Task | None = None) -> None:
        """Raise `CheckFailed` if the algorithm does what it may not."""


def honesty_check(advice: str) -> Callable[[Callable[[Trial], None]], Check]:
    """Make a check of a function that tries an algorithm out.

    Every check has a toy log of its own, and larger ones if the algorithm skips the first. Any
    other exception of the algorithm is a failed check, whose message ends with `advice`.
    """

    def made(tries: Callable[[Trial], None]) -> Check:
        @wraps(tries)
        def check(algorithm: Algorithm, task: Task | None = None) -> None:
            kind, reason = type(algorithm).__name__, ""
            seed = zlib.crc32(tries.__qualname__.encode()) % _SEEDS
            for cards in _CARDS if task is None else _CARDS[:1]:
                try:
                    same_day = algorithm.same_day
                    tried = task or trial_task(same_day=same_day, seed=seed, cards=cards)
                    return tries(Trial.of(algorithm, tried))
                except CheckFailed:
                    raise
                except FitSkipped as skipped:
                    reason = str(skipped)
                except Exception as error:  # a plug-in can raise anything
                    raise CheckFailed(f"{kind}: raises {raised(error)}. {advice}.") from error
            raise CheckFailed(
                f"{kind}: skips the log it is to be tried out on ({reason}). "
                "Give the checks a task that it does not skip"
            )

        check.__signature__ = inspect.signature(Check.__call__)  # type: ignore[attr-defined]
        return check

    return made


def prediction(model: MemoryModel, reviews: Reviews, rows: IntArray) -> FloatArray:
    """Copy what a model predicts, as evaluations do.

    The model may return the same array every time, which would then be compared with itself.
    """
    return np.array(model.predict(reviews, rows))


def curve_of(model: MemoryModel) -> Curve | None:
    """Return the forgetting curve of a model, which returns copies; None if it has none."""
    if not has_curve(model):
        return None
    return lambda reviews, rows, elapsed: np.array(model.predict_at(reviews, rows, elapsed))


def raised(error: Exception) -> str:
    """Describe an exception and the line of the algorithm that it comes from."""
    what = f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    return " at ".join([what, *_own_frames(text)[-1:]])


def _own_frames(text: str) -> list[str]:
    """Return the lines of a traceback in code of a plug-in, else all of them.

    Code of a plug-in is neither in srs_eval, nor in the standard library, nor among the installed
    packages.
    """
    last = text.rpartition("Traceback (most recent call last):\n")[2]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    others = [path for name, path in sysconfig.get_paths().items() if name in names]
    others += ["<", str(Path(__file__).parents[1])]
    own, every = [], []
    for file, line, function, source in _FRAME.findall(last):
        path = Path(file)
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        every.append(f"{shown}:{line}, in {function}: {source}")
        own += every[-1:] if not file.startswith(tuple(others)) else []
    return own or every


def other_times(reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw an earlier and a later time for each row; the factual one is in between."""
    earlier, later = rng.uniform(0.1, 0.9, len(rows)), rng.uniform(1.1, 9.0, len(rows))
    elapsed: FloatArray = reviews.elapsed[rows, None] * np.c_[earlier, np.ones(len(rows)), later]
    return elapsed


def evenly_spaced(n: int, most: int) -> list[int]:
    """Return up to `most` positions below n, evenly spaced."""
    return sorted(set(np.linspace(0, n - 1, min(n, most)).astype(int).tolist()))
