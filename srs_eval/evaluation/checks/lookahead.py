"""Checks that predictions rest on what came before, and on no more than `when` says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from srs_eval.algorithms.algorithm import MemoryModel, has_curve, when_of
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.evaluation.checks.perturb import (
    cut_after,
    other_answers,
    other_future,
    other_times,
    twice,
    under_new_name,
)
from srs_eval.evaluation.checks.trial import Pair, Pairs, Trial, honesty_check

# Rows that are tried, and those in a log that is twice as long.
_ROWS, _FURTHER_ON = 200, 8
# One row in so many has its answer changed alone, and is the last of its log; of these one in so
# many both at once.
_SHARE = 3
_CURVES = 4
_PEEKS = (
    "moved when ratings and answer times of that row, and everything after it, were changed. "
    "A prediction may rest on earlier reviews and on its own elapsed time: look for columns "
    "indexed by `rows` itself, and for sums or means over the whole log"
)
_KNOWS_ITS_ANSWER = (
    "moved when nothing but its own answer was changed. A sum from which the own value is taken "
    "away again is rounded by it: add up what comes before instead"
)
_TOO_LATE = (
    "moved when later reviews of other cards were changed or removed, but it declares "
    '`when = "{when}"`. Make it rest on what was known then, or declare `when` as it is: a result '
    "of one day, or of the session, makes it `day_before` or `at_review`"
)


@honesty_check("Expect any number of rows, and read only rows before the predicted one")
def check_blind_to_the_future(trial: Trial) -> Pairs:
    """Check that no prediction moves when its own outcome and everything later changes.

    Every test row takes its turn as t, or 200 of them where there are more, and 8 rows of a log
    twice as long. Two opposite futures take the place of all that comes from t on, with other
    ratings, answer times, days, elapsed times, states, row numbers, cards, decks and presets; for
    one row in three the answer at t alone is changed, with the time it took, and all that comes
    later is cut off. No prediction at t or before may move by more than rounding, which is 1e-12,
    and 1e-6 of float32; and what rounding there is may not take the side of the outcome at t, or
    of the better future, row after row. Some rows are asked for alone, some with many others.
    """
    yield from blind(trial, trial.fit(), _ROWS)


def blind(trial: Trial, model: MemoryModel, most: int) -> Pairs:
    """Change the outcome and the future of some rows, and of a few in a log twice as long."""
    test = trial.fold.test + len(trial.reviews)
    longer = replace(trial, fold=replace(trial.fold, test=test), reviews=twice(trial.reviews))
    for each, count in ((trial, most), (longer, min(most, _FURTHER_ON))):
        before = each.predicted(model)
        for nth, last in enumerate(spread(len(test), count)):
            yield from other_futures(each, model, before[: last + 1], nth)


def other_futures(trial: Trial, model: MemoryModel, before: FloatArray, nth: int) -> Pairs:
    """Change the outcome and the future of the last row that was predicted before."""
    log, test = trial.reviews, trial.fold.test
    seen = test[: len(before)]
    row = int(seen[-1])
    rng = np.random.default_rng(row)
    outcomes = [np.full(len(log) - row, is_good) for is_good in (False, True)]
    futures = [
        other_future(log, each, begin=row + 1, hard=not each[0], rng=rng) for each in outcomes
    ]
    # Rows to be predicted together with this one: none, a few, or many.
    share = rng.random() ** 3
    rows = test[(rng.random(len(test)) < share) | (test == row)]
    until = rows[rows <= row]
    bad, good = (trial.predicted(model, future, rows)[: len(until)] for future in futures)
    yield Pair(bad, good, _PEEKS, until, until == row)
    curves = np.unique(np.r_[rng.choice(seen, rng.integers(_CURVES)), row])
    yield from _curves(trial, model, futures, curves, rng, _PEEKS)
    if nth % _SHARE:
        return
    other = other_answers(log, seen[-1:], ~log.recalled[seen[-1:]], rng)
    better = np.where(seen == row, -1 if log.recalled[row] else 1, 0)
    after = trial.predicted(model, other)[: len(seen)]
    yield Pair(before, after, _KNOWS_ITS_ANSWER, seen, better)
    alone = trial.predicted(model, cut_after(log, row), seen)
    yield Pair(before, alone, _PEEKS, seen)
    if nth % _SHARE**2 == 0:
        after = trial.predicted(model, cut_after(other, row), seen)
        yield Pair(alone, after, _KNOWS_ITS_ANSWER, seen, better)


def spread(n: int, most: int) -> IntArray:
    """Return up to `most` positions below n, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most), dtype=np.int64)


def _curves(
    trial: Trial,
    model: MemoryModel,
    futures: list[Reviews],
    rows: IntArray,
    rng: np.random.Generator,
    advice: str,
) -> Pairs:
    """Predict some rows at other times in two futures, the better of which the last may know."""
    if has_curve(model):
        elapsed = other_times(futures[0], rows, rng)
        bad, good = (np.array(model.predict_at(future, rows, elapsed)) for future in futures)
        of_times = np.broadcast_to(rows[:, None], elapsed.shape)
        yield Pair(bad, good, f"by predict_at {advice}", of_times, of_times == rows[-1])


@honesty_check("What is asked for are rows of the log that is given, whatever log was fitted to")
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
    for last in spread(len(trial.fold.test), _ROWS):
        yield from late_answers(trial, model, last)


def late_answers(trial: Trial, model: MemoryModel, last: int) -> Pairs:
    """Change, and remove, what comes too late for the prediction of a test row."""
    log, seen = trial.reviews, trial.fold.test[: last + 1]
    row = seen[-1:]
    late = too_late(trial, int(row[0]))
    if not len(late):
        return
    rng = np.random.default_rng(int(row[0]))
    outcomes = [np.full(len(late), is_good) for is_good in (False, True)]
    futures = [other_answers(log, late, each, rng, slowly=not each[0]) for each in outcomes]
    rest = np.setdiff1d(np.arange(row[0] + 1), late)
    others_gone = under_new_name(replace(log.take(rest), row=np.arange(len(rest))))
    bad, good = (trial.predicted(model, future, seen)[-1:] for future in futures)
    alone = trial.predicted(model, others_gone, np.flatnonzero(np.isin(rest, seen)))[-1:]
    advice = _TOO_LATE.format(when=when_of(trial.algorithm))
    yield Pair(bad, good, advice, row, row > 0)
    yield Pair(bad, alone, advice, row)
    yield from _curves(trial, model, futures, row, rng, advice)


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
