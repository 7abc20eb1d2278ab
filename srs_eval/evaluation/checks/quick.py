"""A check of a second or so, for algorithms that are evaluated without having been checked."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.evaluation.checks.lookahead import late_answers, other_futures, spread
from srs_eval.evaluation.checks.trial import Pairs, PredictionMoved, Trial, run

_ROWS = 12
# No row takes its turn after so many seconds.
_SECONDS = 10.0
# Far above rounding, in single precision too.
_PLAINLY = 1e-4
# Of two predictions of the same. What moves more draws random numbers, and may move by more.
_NOISE = _PLAINLY / 10


def check_quickly(algorithm: Algorithm) -> None:
    """Raise `CheckFailed` if predictions plainly know their answers, or what is too late for them.

    After one fit to a toy log, 12 rows take their turn: all from the answer on is changed, then
    what is too late for the `when` of the algorithm. No prediction may move by 1e-4, which no
    rounding does; `check_algorithm` sees what is smaller, and rarer. Nothing is said of an
    algorithm that cannot be tried out like this, because it raises an error or does not repeat
    itself. Global generators of random numbers are left as they were.
    """
    with _same_generators():
        try:
            run(_rows, deepcopy(algorithm), tolerance=_PLAINLY, seconds=_SECONDS)
        except PredictionMoved:
            raise
        except Exception:  # noqa: BLE001 - a plug-in can raise anything; its run will report it
            return


def _rows(trial: Trial) -> Pairs:
    model = trial.fit()
    before, again = (trial.predicted(model) for _ in range(2))
    if np.allclose(before, again, rtol=0, atol=_NOISE):
        for nth, last in enumerate(spread(len(before), _ROWS)):
            yield from other_futures(trial, model, before[: last + 1], nth)
            yield from late_answers(trial, model, last)


@contextmanager
def _same_generators() -> Iterator[None]:
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
