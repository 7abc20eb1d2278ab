"""Honesty checks: what every algorithm must pass before its numbers mean anything.

A signature cannot stop a model from peeking at the answers it is asked to predict. These
checks change what a model must not see and look whether its predictions move. They are meant
for algorithms written elsewhere as much as for those that ship here::

    from srs_eval.checks import check_algorithm

    check_algorithm(MyAlgorithm())

Each check takes an algorithm and, if wanted, a task: a user's log with its folds, of which
the last is used. By default a small log is invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from srs_eval.expectations import (
    SAME_SHAPES,
    CheckFailed,
    expect_probabilities,
    expect_same,
    named,
)
from srs_eval.nouns import Algorithm, FloatArray, Fold, IntArray, MemoryModel, Reviews, Task
from srs_eval.rare_cases import (
    CHECKS,
    check_empty_folds,
    check_goes_to_a_worker,
    check_last_step_is_the_fit,
    check_parameters_rebuild_the_model,
    check_short_and_long_histories,
)
from srs_eval.trial import answered_otherwise, changed_log, columns_of, trial_task

__all__ = [
    "CheckFailed",
    "check_algorithm",
    "check_blind_to_the_future",
    "check_deterministic",
    "check_empty_folds",
    "check_fit_ignores_test_rows",
    "check_goes_to_a_worker",
    "check_inputs_not_mutated",
    "check_last_step_is_the_fit",
    "check_learning_while_tested_is_declared",
    "check_parameters_rebuild_the_model",
    "check_predict_at_equals_predict",
    "check_probabilities_in_range",
    "check_short_and_long_histories",
    "check_truth_is_not_read",
]

_PROBED_ROWS = 200
_DECLARED = ("same_day", "online", "sees_truth")
_SEED = 20240229

Learn = Callable[[Reviews], MemoryModel]
Curve = Callable[[Reviews, IntArray, FloatArray], FloatArray]


def check_algorithm(algorithm: Algorithm, task: Task | None = None) -> None:
    """Run every check and report all that failed.

    Parameters
    ----------
    task : Task, optional
        What a protocol makes of one user's log; by default a small log is invented.

    Raises
    ------
    CheckFailed
        Naming every check that failed, and why.
    """
    undeclared = [
        name for name in _DECLARED if not isinstance(getattr(algorithm, name, None), bool)
    ]
    if undeclared:
        raise CheckFailed(
            f"{named(algorithm)} does not say whether {', '.join(undeclared)}. Make it a subclass "
            "of srs_eval.nouns.Algorithm, or give it these as True or False"
        )
    task = task or trial_task(same_day=algorithm.same_day)
    failures = []
    for check in _CHECKS:
        try:
            check(algorithm, task)
        except CheckFailed as failure:
            failures.append(str(failure))
    if failures:
        raise CheckFailed("\n".join(failures))


def check_blind_to_the_future(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that no prediction moves when its own outcome and everything later changes.

    From some row t on, ratings and answer times are changed, also where the seconds from
    answer to answer contain them, and so are the days, elapsed times, states and row numbers
    of the rows after t; then all that comes after t is cut off. Neither may move a prediction
    at t or before, by more than rounding: 1e-12, and 1e-6 of float32 where less is predicted
    together. In the log that ends at t, changing the answer at t alone may not move a single bit.
    Every test row takes its turn as t, or 200 of them where there are more.

    Raises
    ------
    CheckFailed
        If a prediction moved.
    """
    fold, reviews = _opened(algorithm, task)
    model = _fit(algorithm, reviews, fold)
    expected = model.predict(reviews, fold.test)
    for last in _probes(len(fold.test)):
        row = int(fold.test[last])
        seen = fold.test[: last + 1]
        changed = changed_log(reviews, outcomes_from=row, facts_from=row + 1)
        moved = model.predict(changed, fold.test)[: last + 1]
        expect_same(algorithm, expected[: last + 1], moved, seen, _PEEKED, tolerance=SAME_SHAPES)
        _expect_same_curve(algorithm, model, reviews, changed, row)
        cut = np.arange(row + 1)
        try:
            alone = model.predict(changed.take(cut), seen)
        except IndexError as error:
            raise CheckFailed(
                f"{named(algorithm)}: predicting row {row} asked for a review that had not been "
                f"made yet ({error}). Read only rows before the predicted one."
            ) from error
        expect_same(algorithm, expected[: last + 1], alone, seen, _PEEKED)
        unchanged = model.predict(reviews.take(cut), seen)
        expect_same(algorithm, unchanged, alone, seen, _KNOWS_ITS_ANSWER, tolerance=0.0)


def check_fit_ignores_test_rows(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that what is learned does not depend on anything after the last training row.

    Of an algorithm that has ``refit``, what it learns that way is checked too.

    Raises
    ------
    CheckFailed
        If predictions moved when the reviews after it were changed, or cut off, for the fit.
    """
    fold, reviews = _opened(algorithm, task)
    after = int(fold.train[-1]) + 1
    changed = changed_log(reviews, outcomes_from=after, facts_from=after)
    cut = reviews.take(np.arange(after))
    learning = [
        (learn, learn(reviews).predict(reviews, fold.test))
        for learn in _ways_to_learn(algorithm, reviews, fold)
    ]
    for (learn, expected), training in product(learning, (changed, cut)):
        try:
            model = learn(training)
        except IndexError as error:
            raise CheckFailed(
                f"{named(algorithm)}: fit asked for a review after the last training row "
                f"({error}). Read only `rows`, and reviews before the last of them."
            ) from error
        found = model.predict(reviews, fold.test)
        room = SAME_SHAPES if training is changed else None
        expect_same(algorithm, expected, found, fold.test, _FITTED_ON_TEST, tolerance=room)


def check_learning_while_tested_is_declared(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that a model which is not declared `online` is frozen while it is tested.

    The outcomes and answer times of all reviews of other cards since the last training row
    are changed, scored or not; a frozen model knows of other cards only what the training
    rows taught it.

    Raises
    ------
    CheckFailed
        If a prediction moved although the algorithm says ``online = False``.
    """
    if algorithm.online:
        return
    fold, reviews = _opened(algorithm, task)
    model = _fit(algorithm, reviews, fold)
    for last in _probes(len(fold.test)):
        seen = fold.test[: last + 1]
        row = seen[-1:]
        since = np.arange(int(fold.train[-1]) + 1, int(row[0]))
        others = since[reviews.card[since] != reviews.card[row]]
        expected = model.predict(reviews, seen)[-1:]
        changed = answered_otherwise(reviews, others, np.random.default_rng(int(row[0])))
        found = model.predict(changed, seen)[-1:]
        expect_same(algorithm, expected, found, row, _LEARNS_ON, tolerance=SAME_SHAPES)


def check_truth_is_not_read(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that the true probabilities of simulated users are not read, unless declared.

    An algorithm with ``sees_truth = True`` is an upper bound and may read them.

    Raises
    ------
    CheckFailed
        If predictions moved when they were changed.
    """
    fold, reviews = _opened(algorithm, task)
    if algorithm.sees_truth or reviews.truth is None:
        return
    expected = _fit(algorithm, reviews, fold).predict(reviews, fold.test)
    changed = replace(reviews, truth=1.0 - reviews.truth)
    found = _fit(algorithm, changed, fold).predict(changed, fold.test)
    expect_same(algorithm, expected, found, fold.test, _READS_TRUTH, tolerance=SAME_SHAPES)


def check_deterministic(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that the same seed gives the same model, and a model the same predictions.

    Raises
    ------
    CheckFailed
        If two runs differ at all.
    """
    fold, reviews = _opened(algorithm, task)
    for learn in _ways_to_learn(algorithm, reviews, fold):
        model = learn(reviews)
        expected = model.predict(reviews, fold.test)
        again = model.predict(reviews, fold.test)
        expect_same(algorithm, expected, again, fold.test, _NOT_FROZEN, tolerance=0.0)
        refitted = learn(reviews).predict(reviews, fold.test)
        expect_same(algorithm, expected, refitted, fold.test, _IGNORES_RNG, tolerance=0.0)


def check_inputs_not_mutated(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that neither fitting nor predicting writes into what it is given.

    Raises
    ------
    CheckFailed
        Naming every array that was changed.
    """
    fold, reviews = _opened(algorithm, task)
    elapsed = _other_times(reviews, fold.test)
    given = {f"reviews.{name}": column for name, column in columns_of(reviews).items()}
    given |= {"train rows": fold.train, "test rows": fold.test, "elapsed": elapsed}
    kept = {name: array.copy() for name, array in given.items()}
    model = _fit(algorithm, reviews, fold)
    model.predict(reviews, fold.test)
    curve = _curve(model)
    if curve is not None:
        curve(reviews, fold.test, elapsed)
    written = [name for name, array in given.items() if not np.array_equal(array, kept[name])]
    if written:
        raise CheckFailed(
            f"{named(algorithm)}: these arrays were changed: {', '.join(written)}. "
            "They belong to everybody; work on a copy."
        )


def check_probabilities_in_range(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that each row gets one probability above 0 and below 1.

    Raises
    ------
    CheckFailed
        If the shape or type is wrong, or a number is missing, 0, 1 or outside.
    """
    fold, reviews = _opened(algorithm, task)
    p = _fit(algorithm, reviews, fold).predict(reviews, fold.test)
    expect_probabilities(algorithm, p, (len(fold.test),), "predict")


def check_predict_at_equals_predict(algorithm: Algorithm, task: Task | None = None) -> None:
    """Check that forgetting curves pass through the predictions.

    Models without ``predict_at`` have no curve, and pass.

    Raises
    ------
    CheckFailed
        If a curve at the factual elapsed time is not the prediction, or is no probability.
    """
    fold, reviews = _opened(algorithm, task)
    model = _fit(algorithm, reviews, fold)
    curve = _curve(model)
    if curve is None:
        return
    elapsed = _other_times(reviews, fold.test)
    p = curve(reviews, fold.test, elapsed)
    expect_probabilities(algorithm, p, elapsed.shape, "predict_at")
    expected = model.predict(reviews, fold.test)
    expect_same(algorithm, expected, p[:, 1], fold.test, _OTHER_CURVE)


_CHECKS: tuple[Callable[[Algorithm, Task | None], None], ...] = (
    check_blind_to_the_future,
    check_fit_ignores_test_rows,
    check_learning_while_tested_is_declared,
    check_truth_is_not_read,
    check_deterministic,
    check_inputs_not_mutated,
    check_probabilities_in_range,
    check_predict_at_equals_predict,
    *CHECKS,
)

_PEEKED = (
    "moved when ratings and answer times of that row, and everything after it, were changed. "
    "A prediction may rest on earlier reviews and on its own elapsed time: look for columns "
    "indexed by `rows` itself, and for sums or means over the whole log"
)
_KNOWS_ITS_ANSWER = (
    "moved when nothing but its own answer was changed, in the last review of the log. "
    "However little that is, it can rank reviews"
)
_FITTED_ON_TEST = (
    "moved when the reviews after the last training row were changed before the fit. "
    "Learn from `rows` only: look for statistics over all of `reviews`"
)
_LEARNS_ON = (
    "moved when answers to other cards in the test were changed, so the model goes on "
    "learning while it is tested. Set `online = True` on the algorithm, so that tables say so"
)
_READS_TRUTH = (
    "moved when the true probabilities of the simulated user were changed. "
    "No real user has them: do not read `reviews.truth`"
)
_NOT_FROZEN = (
    "differs when the same model is asked twice. Draw random numbers in `fit` only, and keep "
    "no memory of what was asked"
)
_IGNORES_RNG = (
    "differs between two fits with the same seed. Take every random number from the `rng` "
    "that `fit` and `refit` are given, seed other libraries from it, and change no earlier model"
)
_OTHER_CURVE = (
    "by predict_at at the factual elapsed time is not what predict says. Both must use the "
    "same history and the same curve"
)


def _opened(algorithm: Algorithm, task: Task | None) -> tuple[Fold, Reviews]:
    """Copy the last fold and its log, so that what one check finds spoils no other."""
    task = task or trial_task(same_day=algorithm.same_day)
    fold = task.folds[-1]
    reviews = task.reviews.take(np.arange(len(task.reviews)))
    return replace(fold, train=fold.train.copy(), test=fold.test.copy()), reviews


def _fit(algorithm: Algorithm, reviews: Reviews, fold: Fold) -> MemoryModel:
    return algorithm.fit(reviews, fold.train, np.random.default_rng(_SEED))


def _ways_to_learn(algorithm: Algorithm, reviews: Reviews, fold: Fold) -> tuple[Learn, ...]:
    """Fit, and where there is a `refit`, that from a fit of half of the training rows."""

    def from_nothing(training: Reviews) -> MemoryModel:
        return _fit(algorithm, training, fold)

    refit = getattr(algorithm, "refit", None)
    if refit is None:
        return (from_nothing,)
    half = fold.train[: (len(fold.train) + 1) // 2]
    known = reviews.take(np.arange(int(half[-1]) + 1))
    previous = _fit(algorithm, known, replace(fold, train=half))

    def from_before(training: Reviews) -> MemoryModel:
        model: MemoryModel = refit(training, fold.train, np.random.default_rng(_SEED), previous)
        return model

    return from_nothing, from_before


def _probes(n: int) -> list[int]:
    """Take every position below n, or as many as are affordable, evenly spread."""
    return sorted(set(np.linspace(0, n - 1, min(n, _PROBED_ROWS)).astype(int).tolist()))


def _curve(model: MemoryModel) -> Curve | None:
    curve: Curve | None = getattr(model, "predict_at", None)
    return curve


def _other_times(reviews: Reviews, rows: IntArray) -> FloatArray:
    """Half, all and twice of the factual elapsed time."""
    elapsed: FloatArray = reviews.elapsed[rows, None] * np.array([0.5, 1.0, 2.0])
    return elapsed


def _expect_same_curve(
    algorithm: Algorithm, model: MemoryModel, reviews: Reviews, changed: Reviews, row: int
) -> None:
    curve = _curve(model)
    if curve is None:
        return
    rows = np.array([row])
    elapsed = _other_times(reviews, rows)
    expected, found = curve(reviews, rows, elapsed)[0], curve(changed, rows, elapsed)[0]
    there = np.repeat(rows, len(expected))
    expect_same(algorithm, expected, found, there, _PEEKED, tolerance=SAME_SHAPES)
