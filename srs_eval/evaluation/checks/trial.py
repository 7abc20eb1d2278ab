"""An algorithm on one fold of a log, and the loop that runs every check."""

from __future__ import annotations

import math
import sys
import traceback
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, FittingInSteps, MemoryModel, WarmStarting
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews
from srs_eval.errors import FitSkipped, SrsEvalError
from srs_eval.evaluation.checks.perturb import cut_after, under_new_name
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.protocol.task import Fold, Task

_CARDS = (40, 160)  # More where an algorithm finds too little to learn from
# Sums depend on what is computed beside them, and iterations on what they end with. Of the
# algorithms that ship here, all in double precision, no prediction moves by more than 2e-13.
_DOUBLE, _SINGLE = 1e-12, 1e-6
_SIGNIFICANCE = 1e-4


class CheckFailed(SrsEvalError):
    """An algorithm failed a check; the message says what it did and where to look."""


@dataclass(frozen=True)
class Pair:
    """Predictions of the same rows before and after a perturbation that may not move them."""

    before: FloatArray
    after: FloatArray
    advice: str  # Ends the message if they differ
    rows: IntArray | None = None  # Those of the fold if None
    # 1 where the perturbation makes recall likelier, -1 where less likely, 0 where it says nothing:
    # a sign test then finds what is smaller than rounding
    sides: BoolArray | IntArray | None = None
    room: float | None = None  # By how much they may move: by rounding if None


Pairs = Iterator[Pair]


@dataclass(frozen=True)
class Trial:
    """An algorithm, a log to try it out on, and a fold of that."""

    algorithm: Algorithm
    fold: Fold
    reviews: Reviews

    @property
    def rng(self) -> np.random.Generator:
        """A generator of the same numbers each time."""
        return np.random.default_rng(self.fold.number)

    def failure(self, what: str) -> CheckFailed:
        """Return the error of an algorithm that does what it may not."""
        return CheckFailed(f"{type(self.algorithm).__name__}: {what}")

    def known(self, rows: IntArray | None = None) -> Reviews:
        """Return the log up to the last training row, or the last of other rows."""
        last = (self.fold.train if rows is None else rows)[-1]
        return replace(cut_after(self.reviews, int(last)), user=self.reviews.user)

    def fit(self, reviews: Reviews | None = None, rows: IntArray | None = None) -> MemoryModel:
        """Fit to the training rows of a log, which ends with the last of them as in evaluations."""
        reviews = self.known(rows) if reviews is None else reviews
        return self.algorithm.fit(reviews, self.fold.train if rows is None else rows, self.rng)

    def ways_to_learn(self) -> list[Callable[[Reviews], MemoryModel]]:
        """Fit; start from a fit of half of the training rows; and take the first step of a fit."""
        algorithm, rows = self.algorithm, self.fold.train
        ways: list[Callable[[Reviews], MemoryModel]] = [self.fit]
        if isinstance(algorithm, WarmStarting):
            previous = self.fit(rows=np.array_split(rows, 2)[0])
            ways.append(lambda log: algorithm.refit(log, rows, self.rng, previous))
        if isinstance(algorithm, FittingInSteps):
            ways.append(lambda log: next(iter(algorithm.fit_in_steps(log, rows, self.rng))))
        return ways

    def steps(self) -> list[MemoryModel]:
        """Return the models of a fit in steps; none where there is no such fit."""
        if not isinstance(self.algorithm, FittingInSteps):
            return []
        return list(self.algorithm.fit_in_steps(self.known(), self.fold.train, self.rng))

    def predicted(
        self, model: MemoryModel, reviews: Reviews | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        """Predict rows of a log, those of the fold if None; a copy: models may reuse an array."""
        reviews = self.reviews if reviews is None else reviews
        return np.array(model.predict(reviews, self.fold.test if rows is None else rows))


# What a check tries: it yields pairs of predictions, and raises `CheckFailed` for anything else.
Tries = Callable[[Trial], Pairs]


def honesty_check(tries: Tries) -> Callable[..., None]:
    """Make a check of what tries an algorithm out, on a task or on a toy log.

    An exception of the algorithm is a failed check, which names the line of its file.
    """

    def check(algorithm: Algorithm, task: Task | None = None) -> None:
        kind = type(algorithm)
        try:
            run(tries, algorithm, task)
        except CheckFailed:
            raise
        except FitSkipped as skipped:
            raise CheckFailed(
                f"{kind.__name__}: skips the log it is to be tried out on ({skipped}). Give the "
                "checks a task that it does not skip"
            ) from None
        except Exception as error:  # a plug-in can raise anything
            frames = traceback.extract_tb(error.__traceback__)
            file = getattr(sys.modules.get(kind.__module__), "__file__", None)
            last = [*frames[-1:], *(frame for frame in frames if frame.filename == file)][-1]
            raise CheckFailed(
                f"{kind.__name__}: raises {type(error).__name__}: {error} at {last.filename}:"
                f"{last.lineno}, in {last.name}: {last.line}. Tried by {tries.__name__}: see there"
            ) from error

    check.__name__, check.__doc__ = tries.__name__, tries.__doc__
    return check


def run(tries: Tries, algorithm: Algorithm, task: Task | None = None) -> None:
    """Try an algorithm out, on a task or on toy logs of more and more cards until it skips none.

    Raise `CheckFailed` if a prediction moves by more than it may, or by rounding to one side.
    """
    seed = zlib.crc32(tries.__name__.encode())
    toys = (trial_task(same_day=algorithm.same_day, seed=seed, cards=cards) for cards in _CARDS)
    for each in toys if task is None else [task]:
        log = under_new_name(deepcopy(each.reviews.seen_by(algorithm)))
        log = replace(log, elapsed_seconds=None)  # which no protocol hands over
        trial = Trial(algorithm, deepcopy(each.folds[-1]), log)
        moves: dict[str, list[float]] = defaultdict(list)
        try:
            for pair in tries(trial):
                difference = _difference(trial, pair)
                if pair.sides is not None:
                    moves[pair.advice] += (difference * pair.sides)[pair.sides != 0].tolist()
        except FitSkipped as skipped:
            reason = skipped
            continue
        for advice, of_pairs in moves.items():
            if remark := one_sided(np.array(of_pairs)):
                raise trial.failure(f"predictions {advice}. {remark}")
        return
    raise reason


def _difference(trial: Trial, pair: Pair) -> FloatArray:
    """Return by how much predictions move; raise if by more than they may."""
    before, after = pair.before, pair.after
    rounding = _SINGLE if np.float32 in (before.dtype, after.dtype) else _DOUBLE
    room = rounding if pair.room is None else pair.room
    same = np.isclose(before, after, rtol=0.0, atol=room)
    if not same.all():
        rows = trial.fold.test if pair.rows is None else pair.rows
        row, p, q = (each[~same][0] for each in (rows, before, after))
        hint = " (Return what is computed in single precision as float32.)"
        raise trial.failure(
            f"the prediction of row {row} ({p:.9g}, now {q - p:+.2g}; {np.sum(~same)} of "
            f"{same.size} differ) {pair.advice}.{hint if abs(p - q) < _SINGLE else ''}"
        )
    difference: FloatArray = after - before
    return difference


def one_sided(moves: FloatArray) -> str:
    """Say so if moves towards what is likelier have one sign too often; with few, if all do.

    Rounding moves a prediction towards the outcome as often as away from it. A model that knows
    the outcome moves towards it nearly always, and ranks reviews by it however small the move.
    """
    up, down = int((moves > 0).sum()), int((moves < 0).sum())
    n = up + down
    chance = 2 * sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
    if not n or chance > max(_SIGNIFICANCE, 2.0 ** (1 - len(moves))):
        return ""
    return (
        f"They move by no more than {np.abs(moves).max():.2g}, but {max(up, down)} of {n} to the "
        "same side, which rounding would not do: it ranks reviews, however little it is"
    )
