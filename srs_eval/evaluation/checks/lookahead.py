"""Checks that predictions rest on what came before, and on no more than `when` says."""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import replace

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, MemoryModel, has_curve, when_of
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.evaluation.checks import perturb
from srs_eval.evaluation.checks.trial import CheckFailed, Pair, Pairs, Trial, honesty_check, run

_ROWS, _FEW = 200, 12  # Rows that are tried, and those of a quick check or a log twice as long
_ALONE = 3  # One row in so many has its answer changed alone, and is the last of its log
_SOME = 4  # Steps of a fit that are tried, with few rows; rows whose curves are asked for at once
# Of a quick check: seconds after which no other row takes its turn, and what no rounding moves
_SECONDS, _PLAINLY = 10.0, 1e-4
_PEEKS = (
    "moved when ratings and answer times of that row, and everything after it, were changed: look "
    "for columns indexed by `rows` itself, and for sums or means over the whole log"
)
_KNOWS_ITS_ANSWER = (
    "moved when nothing but its own answer was changed: add up what comes before it, in place of a "
    "sum from which the own value is taken away again"
)
_TOO_LATE = (
    "moved when later reviews of other cards were changed or removed, but it declares "
    '`when = "{when}"`: a result of that day makes it `day_before` or `at_review`'
)


@honesty_check
def check_blind_to_the_future(trial: Trial) -> Pairs:
    """Check that no prediction moves when its own outcome and everything later changes.

    Every test row takes its turn as t, or 200 of them where there are more, and 12 rows of a log
    twice as long. Two opposite futures take the place of all that comes from t on, with other
    ratings, answer times, days, elapsed times, states, row numbers, cards, decks and presets; for
    one row in three the answer at t alone is changed, with the time it took, and all that comes
    later is cut off. No prediction at t or before may move by more than rounding, which is 1e-12,
    and 1e-6 of float32; and what rounding there is may not take the side of the outcome at t, or
    of the better future, row after row. Some rows are asked for alone, some with many others. Of
    a fit in steps, the models of some steps are asked too: a search drops trials by them.
    """
    yield from _blind(trial, trial.fit(), _ROWS)
    steps = trial.steps()
    for nth in _spread(len(steps), _SOME):
        yield from _blind(trial, steps[nth], _FEW)


def _blind(trial: Trial, model: MemoryModel, most: int) -> Pairs:
    """Change the outcome and the future of some rows, and of a few in a log twice as long."""
    test = trial.fold.test + len(trial.reviews)
    longer = replace(
        trial, fold=replace(trial.fold, test=test), reviews=perturb.twice(trial.reviews)
    )
    for each, count in ((trial, most), (longer, _FEW)):
        before = each.predicted(model)
        for nth, last in enumerate(_spread(len(test), count)):
            yield from _other_futures(each, model, before[: last + 1], nth)


def _spread(n: int, most: int) -> IntArray:
    """Return up to `most` positions below n, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most), dtype=np.int64)


def _other_futures(trial: Trial, model: MemoryModel, before: FloatArray, nth: int) -> Pairs:
    """Change the outcome and the future of the last row that was predicted before."""
    log, test = trial.reviews, trial.fold.test
    seen = test[: len(before)]
    row = int(seen[-1])
    rng = np.random.default_rng(row)
    outcomes = (np.full(len(log) - row, is_good) for is_good in (False, True))
    futures = [perturb.other_future(log, each, rng, hard=not each[0]) for each in outcomes]
    # Rows to be predicted together with this one: none, a few, or many.
    rows = test[(rng.random(len(test)) < rng.random() ** 3) | (test == row)]
    yield from _in_both(trial, model, futures, rows, rows[rows <= row], _PEEKS)
    if nth % _ALONE == 0:
        other = perturb.other_answers(log, seen[-1:], ~log.recalled[seen[-1:]], rng)
        better = np.where(seen == row, -1 if log.recalled[row] else 1, 0)
        alone, after = (
            trial.predicted(model, perturb.cut_after(x, row), seen) for x in (log, other)
        )
        yield Pair(before, alone, _PEEKS, seen)
        yield Pair(alone, after, _KNOWS_ITS_ANSWER, seen, better)
        after = trial.predicted(model, other)[: len(seen)]
        yield Pair(before, after, _KNOWS_ITS_ANSWER, seen, better)


def _in_both(
    trial: Trial,
    model: MemoryModel,
    futures: list[Reviews],
    rows: IntArray,
    same: IntArray,
    advice: str,
) -> Pairs:
    """Predict rows in two futures, of which some are the same; the last may know the better one."""
    is_same = np.isin(rows, same)
    bad, good = (trial.predicted(model, future, rows)[is_same] for future in futures)
    yield Pair(bad, good, advice, same, same == same[-1])
    if has_curve(model):
        few = same[-_SOME:]
        elapsed = perturb.other_times(futures[0], few, np.random.default_rng(few[-1]))
        bad, good = (np.array(model.predict_at(future, few, elapsed)) for future in futures)
        of_times = np.broadcast_to(few[:, None], elapsed.shape)
        yield Pair(bad, good, f"by predict_at {advice}", of_times, of_times == few[-1])


@honesty_check
def check_time_of_prediction(trial: Trial) -> Pairs:
    """Check that predictions are made when `when` says.

    Of the reviews of other cards, some come too late for a prediction: those since the card's
    previous review if it is made at the ``previous_review``, and those of the same day if it is
    made the ``day_before``. Reviews up to the last training row may have taught the model
    anything. The late ones, scored or not, are answered right and quickly, then wrong and slowly,
    and then they are removed. No prediction may move by more than rounding, nor by rounding to
    the same side row after row. Algorithms that predict ``at_review`` pass.
    """
    model = trial.fit()
    for last in _spread(len(trial.fold.test), _ROWS):
        yield from _late_answers(trial, model, last)


def _late_answers(trial: Trial, model: MemoryModel, last: int) -> Pairs:
    """Change, and remove, what comes too late for the prediction of a test row."""
    log, seen = trial.reviews, trial.fold.test[: last + 1]
    row = seen[-1:]
    late = too_late(trial, int(row[0]))
    if not len(late):
        return
    rng = np.random.default_rng(int(row[0]))
    advice = _TOO_LATE.format(when=when_of(trial.algorithm))
    futures = [
        perturb.other_answers(log, late, np.full(len(late), is_good), rng, slowly=not is_good)
        for is_good in (False, True)
    ]
    yield from _in_both(trial, model, futures, seen, row, advice)
    rest = np.setdiff1d(np.arange(row[0] + 1), late)
    others_gone = perturb.under_new_name(replace(log.take(rest), row=np.arange(len(rest))))
    alone = trial.predicted(model, others_gone, np.flatnonzero(np.isin(rest, seen)))[-1:]
    yield Pair(trial.predicted(model, futures[0], seen)[-1:], alone, advice, row)


def too_late(trial: Trial, row: int) -> IntArray:
    """Return the reviews of other cards that the prediction of a row may not rest on."""
    card, day = trial.reviews.card, trial.reviews.day
    begin = {
        "previous_review": int(rows_by_card(card).previous()[row]),
        "day_before": int(np.searchsorted(day, day[row])) - 1,
        "at_review": row,
    }[when_of(trial.algorithm)]
    since = np.arange(max(int(trial.fold.train[-1]), begin) + 1, row)
    others: IntArray = since[card[since] != card[row]]
    return others


def check_quickly(algorithm: Algorithm) -> None:
    """Raise `CheckFailed` if predictions plainly know their answers, or what is too late for them.

    A check of a second or so, for algorithms that are evaluated without having been checked. After
    one fit to a toy log, 12 rows take their turn: all from the answer on is changed, then what is
    too late for the `when` of the algorithm. No prediction may move by 1e-4, which no rounding
    does; `check_algorithm` sees what is smaller, and rarer. Nothing is said of an algorithm that
    cannot be tried out like this, because it raises an error or does not repeat itself.
    """
    try:
        run(_quickly, deepcopy(algorithm))
    except Exception as error:  # a plug-in can raise anything; its run will report it
        if isinstance(error, CheckFailed):
            raise


def _quickly(trial: Trial) -> Pairs:
    end, model = time.monotonic() + _SECONDS, trial.fit()
    before, again = (trial.predicted(model) for _ in range(2))
    if not np.allclose(before, again):
        return  # it draws random numbers, and may move by more
    for nth, last in enumerate(_spread(len(before), _FEW)):
        futures = _other_futures(trial, model, before[: last + 1], nth)
        for pair in (*futures, *_late_answers(trial, model, last)):
            yield replace(pair, room=_PLAINLY, sides=None)
            if time.monotonic() > end:
                return
