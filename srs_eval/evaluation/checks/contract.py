"""Checks of what every run meets: probabilities, odd logs, worker processes, models built anew."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from srs_eval.algorithms.algorithm import MemoryModel, has_curve
from srs_eval.data.reviews import FloatArray, IntArray, Reviews, columns_of
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.checks.perturb import other_answers, other_times, under_new_name
from srs_eval.evaluation.checks.trial import Pair, Pairs, Trial, honesty_check

_LONG, _LAPSE_EVERY = 5000, 9
# Rows at the ends of a long history that are predicted, and how many are learned from.
_FIRST, _LAST, _FEW = 20, 3, 2
_NO_ROWS: IntArray = np.empty(0, np.int64)
_NOTHING_IS_CERTAIN = (
    "This is an ordinary fit and prediction: `reviews.truth` is for those that declare "
    "`sees_truth`, and nothing is certain, so keep a little distance from 0 and 1"
)
_OTHER_CURVE = (
    "by predict_at at the factual elapsed time is not what predict says. Both must use the "
    "same history and the same curve"
)
_EXTREMES = (
    "Where no row is asked for, return an empty array; where there is none to learn from, predict "
    "by default or raise FitSkipped('no training reviews'); of cards of 1 to 5,000 reviews, clip "
    "what is raised to a power, divide by nothing that may be 0"
)
_LOST = (
    "differs in a worker process. Something of it is lost on the way: look for values that are "
    "kept outside of the object, and for __getstate__ and __reduce__"
)
_NOT_ALL = (
    "differs when the model is built from its own parameters. Put all that was learned into "
    "`parameters`, unrounded, and have `fit='default'` use them as they are"
)
# A subprocess, so that a script which checks an algorithm needs no `if __name__ == "__main__"`.
_ELSEWHERE = (
    "import sys; sys.path[:] = eval(sys.argv[1]); "
    "from srs_eval.evaluation.checks import contract; contract.predict_here(sys.argv[2])"
)
_NO_MODULE = 65


@honesty_check(_NOTHING_IS_CERTAIN)
def check_predictions(trial: Trial) -> Pairs:
    """Check that each row gets one probability above 0 and below 1, and parameters are numbers.

    Forgetting curves pass through the predictions, and neither fitting nor predicting writes into
    what it is given.
    """
    log, rows, known = trial.reviews, trial.fold.test, trial.known()
    elapsed = other_times(log, rows, trial.rng)
    arrays = {"rows of fit": trial.fold.train, "rows of predict": rows, "elapsed": elapsed}
    for method, each in (("fit", known), ("predict", log)):
        arrays |= {f"reviews.{name} of {method}": x for name, x in columns_of(each).items()}
    copies = {name: x.copy() for name, x in arrays.items()}
    model = trial.fit(known)
    p = trial.predicted(model)
    curve = np.array(model.predict_at(log, rows, elapsed)) if has_curve(model) else None
    changes = [name for name, x in arrays.items() if not np.array_equal(x, copies[name])]
    if changes:
        raise trial.failure(
            f"these arrays were changed: {', '.join(changes)}. They are shared; work on a copy."
        )
    inside = np.nextafter([0.0, 1.0], [1.0, 0.0])
    _expect_probabilities(trial, p, rows.shape, inside, _NOTHING_IS_CERTAIN)
    if curve is not None:
        _expect_probabilities(trial, curve, elapsed.shape, inside, _NOTHING_IS_CERTAIN)
        yield Pair(p, curve[:, 1], _OTHER_CURVE)
    try:
        _numbers(model)
    except (TypeError, ValueError) as error:
        raise trial.failure(
            f"its `parameters` cannot be recorded ({error}). They are plain numbers one after "
            "the other, or a numpy array of one dimension"
        ) from error


@honesty_check(_EXTREMES)
def check_extremes(trial: Trial) -> Pairs:
    """Check that no row to predict, none or few to learn from, and cards of 5,000 are no accidents.

    `fit` to nothing or little must give a model that predicts, or raise FitSkipped.
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
            _expect_probabilities(trial, p, asked.shape, np.arange(2.0), _EXTREMES)
    yield from ()


def _expect_probabilities(
    trial: Trial, p: FloatArray, shape: tuple[int, ...], bounds: FloatArray, advice: str
) -> None:
    if p.shape != shape or p.dtype not in (np.float32, np.float64):
        raise trial.failure(
            f"predictions are {p.dtype} of shape {p.shape}, not {shape}. Return one probability, "
            "float32 or float64, for each of `rows` or `elapsed`."
        )
    wrong = p[~((p >= bounds[0]) & (p <= bounds[1]))]
    if len(wrong):
        raise trial.failure(
            f"{len(wrong)} of {p.size} predictions are not probabilities, the first is {wrong[0]}. "
            f"{advice}."
        )


def _extreme_log(reviews: Reviews) -> Reviews:
    """Return a log of a card of one review, one of two, and one reviewed on 5,000 days."""
    card = np.r_[0, 1, 2, 1, np.full(_LONG - 1, 2)]
    n, first = len(card), np.arange(len(card)) < 3
    log = replace(
        reviews.take(np.zeros(n, np.int64)),
        card=card,
        day=np.r_[0, 0, 0, 1, np.arange(1, _LONG)],
        rating=np.where(np.arange(n) % _LAPSE_EVERY == _LAPSE_EVERY - 1, 1, 3),
        elapsed_days=np.where(first, -1, 1),
        elapsed=np.where(first, 0.0, 1.0),
        row=np.arange(n),
        elapsed_seconds=np.where(first, -1.0, 86400.0),
        state=np.where(first, 0, 2),
    )
    return under_new_name(log)


@honesty_check("Keep plain values in attributes: no lambdas, open files, locks or modules")
def check_goes_to_a_worker(trial: Trial) -> Pairs:
    """Check that the algorithm reaches a worker process, and is the same there.

    Runs with ``compute=processes`` send it by pickle to a process that shares nothing with this
    one, which is what is done here; there it first predicts another log of the same length. A
    class defined inside a function, or in a module that cannot be imported there, is passed over:
    no run can name it.
    """
    kind = type(trial.algorithm)
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        return
    before = trial.predicted(trial.fit())
    command = [sys.executable, "-c", _ELSEWHERE, repr(sys.path), kind.__module__]
    worker = subprocess.run(command, input=pickle.dumps(trial), capture_output=True, check=False)
    if worker.returncode not in (0, _NO_MODULE):
        why = worker.stderr.decode().strip().rpartition("\n")[2] or f"exit {worker.returncode}"
        raise trial.failure(f"does not work in a worker process ({why})")
    if not worker.returncode:
        after = json.loads(worker.stdout.decode().splitlines()[-1])
        yield Pair(before, np.array(after), _LOST)


def predict_here(module: str) -> None:
    """Predict another log of the same length, then that of the trial on standard input."""
    try:
        import_module(module)
    except ImportError:
        sys.exit(_NO_MODULE)
    trial: Trial = pickle.load(sys.stdin.buffer)
    model, log, row = trial.fit(), trial.reviews, int(trial.fold.train[-1])
    later, rng = np.arange(row + 1, len(log)), np.random.default_rng(row)
    trial.predicted(model, other_answers(log, later, ~log.recalled[later], rng))
    sys.stdout.write("\n" + json.dumps(trial.predicted(model).tolist()))


@honesty_check("Have `fit='default'` take all `parameters` that a fit can come to, and fit nothing")
def check_parameters_rebuild_the_model(trial: Trial) -> Pairs:
    """Check that what was learned can be given back: ``parameters=…`` with ``fit="default"``.

    By that models are kept, registered and served. Algorithms whose class does not take both
    words, or knows no such fit, pass.
    """
    kind: Any = type(trial.algorithm)
    names = set(inspect.signature(kind).parameters)
    if not {"fit", "parameters"} <= names:
        return
    options = {n: getattr(trial.algorithm, n) for n in names if hasattr(trial.algorithm, n)}
    options |= {"fit": "default", "parameters": None}
    try:
        kind(**options)
    except Exception:  # noqa: BLE001 - a plug-in can raise anything
        return
    model = trial.fit()
    anew = kind(**{**options, "parameters": _numbers(model)})
    after = replace(trial, algorithm=anew).fit(trial.reviews, _NO_ROWS)
    yield Pair(trial.predicted(model), trial.predicted(after), _NOT_ALL)


def _numbers(model: MemoryModel) -> list[float]:
    """Return the parameters of a model as runs record them; empty if it has none."""
    return [float(value) for value in getattr(model, "parameters", ())]
