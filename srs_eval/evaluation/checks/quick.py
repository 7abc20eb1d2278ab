"""A check of a second or so, for algorithms that are evaluated without having been checked."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, MemoryModel, when_of
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.checks.lookahead import (
    PEEKED,
    opposite_answers,
    opposite_futures,
    too_late_for,
    untimely,
)
from srs_eval.evaluation.checks.perturb import answered
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.evaluation.checks.trial import Trial, evenly_spaced

_SIZES = (40, 160)
_PROBES = 12
# No row takes its turn after so many seconds.
_SECONDS = 10.0
# Far above rounding, in single precision too.
_PLAINLY = 1e-4
# Of two predictions of the same. What moves more draws random numbers, and may move by more.
_REPEATED = _PLAINLY / 10


def check_quickly(algorithm: Algorithm) -> None:
    """Raise `CheckFailed` if predictions plainly know their answers, or what is too late for them.

    After one fit to a toy log, 12 rows take their turn: the answer alone is changed, then all from
    it on, then what is too late for the `when` of the algorithm. No prediction may move by 1e-4,
    which no rounding does; `check_algorithm` sees what is smaller, and rarer. Nothing is said of an
    algorithm that cannot be tried out like this, because it raises an error or does not repeat
    itself. Global generators of random numbers are left as they were.
    """
    with _generators_kept():
        try:
            trial, model = _tried(deepcopy(algorithm))
            expected, again = (trial.predicted(model) for _ in range(2))
        except Exception:  # noqa: BLE001 - a plug-in can raise anything; its run will report it
            return
        if np.allclose(expected, again, rtol=0, atol=_REPEATED):
            _try_rows(trial, model)


def _try_rows(trial: Trial, model: MemoryModel) -> None:
    began, reviews, test = time.monotonic(), trial.reviews, trial.fold.test
    for last in evenly_spaced(len(test), _PROBES):
        row, asked, here = int(test[last]), test[: last + 1], test[last : last + 1]
        rng = np.random.default_rng(row)
        other_answer = answered(reviews, here, ~reviews.recalled[here], rng)
        pairs = [
            (reviews, other_answer, asked, PEEKED),
            (*opposite_futures(reviews, row, rng), asked, PEEKED),
        ]
        late = too_late_for(trial, row)
        if when_of(trial.algorithm) != "at_review" and len(late):
            pairs.append((*opposite_answers(reviews, late, rng), here, untimely(trial)))
        for one, other, same, advice in pairs:
            try:
                p, q = (trial.predicted(model, log, asked)[-len(same) :] for log in (one, other))
            except Exception:  # noqa: BLE001
                return
            trial.expect_same(p, q, advice, rows=same, tolerance=_PLAINLY)
        if time.monotonic() - began > _SECONDS:
            return


def _tried(algorithm: Algorithm) -> tuple[Trial, MemoryModel]:
    """Fit to a toy log, or to a larger one if the first is skipped."""
    for cards in _SIZES:
        task = trial_task(same_day=algorithm.same_day, cards=cards)
        trial = Trial(algorithm, task.folds[-1], task.reviews)
        with suppress(FitSkipped):
            return trial, trial.fit()
    raise FitSkipped("too few reviews")


@contextmanager
def _generators_kept() -> Iterator[None]:
    """Restore global generators, so that an algorithm that draws from them gets the same run."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    of_torch = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(of_torch)
