"""Checks that predictions rest on what came before, and on no more than `when` says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from srs_eval.algorithms.algorithm import MemoryModel, when_of
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.evaluation.checks.perturb import answered, cut_after, other_future, renamed, twice
from srs_eval.evaluation.checks.trial import (
    SignTest,
    Trial,
    curve_of,
    evenly_spaced,
    honesty_check,
    other_times,
)

_PROBED_ROWS = 200
# In a log that is twice as long.
_FURTHER_ON = 8
# Of many rows, one in so many has its answer changed alone, and is the last of its log; of these
# one in so many both at once.
_MANY, _SHARE = 20, 3
_CURVES = 4


@honesty_check("Read only rows before the predicted one")
def check_blind_to_the_future(trial: Trial) -> None:
    """Check that no prediction moves when its own outcome and everything later changes.

    Every test row takes its turn as t, or 200 of them where there are more, and 8 rows of a log
    twice as long. The answer at t alone is changed, with the time it took; all that comes later is
    cut off; and two opposite futures take its place from t on, with other ratings, answer times,
    days, elapsed times, states, row numbers, cards, decks and presets. No prediction at t or
    before may move by more than rounding, which is 1e-12, and 1e-6 of float32; and what rounding
    there is may not take the side of the outcome at t, or of the better future, row after row.
    Some rows are asked for alone, some with many others.
    """
    expect_blind(trial, trial.fit(), _PROBED_ROWS)


def expect_blind(trial: Trial, model: MemoryModel, probes: int) -> None:
    """Raise if a prediction of the model moves with its outcome or with the future.

    So many rows of the log are looked at, and a few of one that is twice as long.
    """
    sides = {
        advice: SignTest() for advice in (_KNOWS_ITS_ANSWER, _KNOWS_THE_FUTURE, _CURVE_KNOWS_IT)
    }
    further_on = replace(trial.fold, test=trial.fold.test + len(trial.reviews))
    _probe(trial, model, probes, sides)
    trial = replace(trial, fold=further_on, reviews=twice(trial.reviews))
    _probe(trial, model, min(probes, _FURTHER_ON), sides)
    for advice, taken in sides.items():
        taken.expect_none(trial.algorithm, advice)


def _probe(trial: Trial, model: MemoryModel, probes: int, sides: dict[str, SignTest]) -> None:
    """Raise if a prediction moves by more than rounding; what else it moves is added to `sides`."""
    reviews, test = trial.reviews, trial.fold.test
    expected = trial.predicted(model)
    share = _SHARE if min(len(test), probes) > _MANY else 1
    for nth, last in enumerate(evenly_spaced(len(test), probes)):
        row, seen, before = int(test[last]), test[: last + 1], expected[: last + 1]
        rng = np.random.default_rng(row)
        futures = opposite_futures(reviews, row, rng)
        # Rows to be predicted together with this one: none, a few, or many.
        asked_too = rng.random() ** 3
        asked = test[(rng.random(len(test)) < asked_too) | (test == row)]
        known = asked <= row
        bad, good = (trial.predicted(model, future, asked)[known] for future in futures)
        higher = trial.expect_same(bad, good, PEEKED, rows=asked[known])
        sides[_KNOWS_THE_FUTURE].add(higher[-1])
        sides[_CURVE_KNOWS_IT].add(_expect_same_curve(trial, model, futures, seen, rng))
        if nth % share:
            continue
        better = -1 if reviews.recalled[row] else 1
        changed = answered(reviews, np.array([row]), ~reviews.recalled[[row]], rng)
        moved = trial.predicted(model, changed)[: last + 1]
        higher = trial.expect_same(before, moved, PEEKED, rows=seen)
        sides[_KNOWS_ITS_ANSWER].add(better * higher[-1])
        alone = trial.predicted(model, cut_after(reviews, row), seen)
        trial.expect_same(before, alone, PEEKED, rows=seen)
        if nth % _SHARE**2 == 0:
            moved = trial.predicted(model, cut_after(changed, row), seen)
            higher = trial.expect_same(alone, moved, PEEKED, rows=seen)
            sides[_KNOWS_ITS_ANSWER].add(better * higher[-1])


@honesty_check("What is asked for are rows of the log that is given, whatever log was fitted to")
def check_time_of_prediction(trial: Trial) -> None:
    """Check that predictions are made when `when` says.

    Of the reviews of other cards, some come too late for a prediction: those since the card's
    previous review if it is made at the ``previous_review``, and those of the same day if it is
    made the ``day_before``. Reviews up to the last training row may have taught the model
    anything. The late ones, scored or not, are answered right and quickly, then wrong and slowly,
    and then they are removed. No prediction may move by more than rounding, nor by rounding to
    the same side row after row. Algorithms that predict ``at_review`` pass.
    """
    if when_of(trial.algorithm) == "at_review":
        return
    model, reviews, test = trial.fit(), trial.reviews, trial.fold.test
    told, sides = untimely(trial), SignTest()
    for last in evenly_spaced(len(test), _PROBED_ROWS):
        seen, row = test[: last + 1], test[last : last + 1]
        others = too_late_for(trial, int(row[0]))
        if not len(others):
            continue
        rng = np.random.default_rng(int(row[0]))
        futures = opposite_answers(reviews, others, rng)
        kept = np.setdiff1d(np.arange(row[0] + 1), others)
        others_gone = renamed(replace(reviews.take(kept), row=np.arange(len(kept))))
        low, high = (trial.predicted(model, log, seen)[-1:] for log in futures)
        rows = np.flatnonzero(np.isin(kept, seen))
        alone = trial.predicted(model, others_gone, rows)[-1:]
        sides.add(trial.expect_same(low, high, told, rows=row))
        trial.expect_same(low, alone, told, rows=row)
        sides.add(_expect_same_curve(trial, model, futures, row, rng, told))
    sides.expect_none(trial.algorithm, told)


def untimely(trial: Trial) -> str:
    """Return the advice where a prediction rests on what is too late for it."""
    return f'{_TOO_LATE} `when = "{when_of(trial.algorithm)}"`{_SAY_LATER}'


def too_late_for(trial: Trial, row: int) -> IntArray:
    """Return the reviews of other cards that the prediction of a row may not rest on."""
    card, day = trial.reviews.card, trial.reviews.day
    begin = int(rows_by_card(card).previous()[row])
    if when_of(trial.algorithm) == "day_before":
        begin = int(np.searchsorted(day, day[row])) - 1
    since = np.arange(max(int(trial.fold.train[-1]), begin) + 1, row)
    others: IntArray = since[card[since] != card[row]]
    return others


def opposite_answers(
    reviews: Reviews, rows: IntArray, rng: np.random.Generator
) -> tuple[Reviews, Reviews]:
    """Answer some reviews wrong and slowly, and right and quickly."""
    right = np.ones(len(rows), bool)
    return (
        answered(reviews, rows, ~right, rng, slowly=True),
        answered(reviews, rows, right, rng, slowly=False),
    )


PEEKED = (
    "moved when ratings and answer times of that row, and everything after it, were changed. "
    "A prediction may rest on earlier reviews and on its own elapsed time: look for columns "
    "indexed by `rows` itself, and for sums or means over the whole log"
)
_KNOWS_ITS_ANSWER = (
    "moved when nothing but its own answer was changed. A sum from which the own value is taken "
    "away again is rounded by it: add up what comes before instead"
)
_KNOWS_THE_FUTURE = "moved when everything from their row on was changed"
_CURVE_KNOWS_IT = f"by predict_at {_KNOWS_THE_FUTURE}"
_TOO_LATE = "moved when later reviews of other cards were changed or removed, but it declares"
_SAY_LATER = (
    ". Make it rest on what was known then, or declare `when` as it is: a result of one day, "
    "or of the session, makes it `day_before` or `at_review`"
)


def opposite_futures(
    reviews: Reviews, row: int, rng: np.random.Generator
) -> tuple[Reviews, Reviews]:
    """Invent a bad and a good one, from the answer at a row on."""
    right = np.ones(len(reviews) - row, bool)
    return (
        other_future(reviews, ~right, facts_from=row + 1, hard=True, rng=rng),
        other_future(reviews, right, facts_from=row + 1, hard=False, rng=rng),
    )


def _expect_same_curve(
    trial: Trial,
    model: MemoryModel,
    futures: tuple[Reviews, Reviews],
    seen: IntArray,
    rng: np.random.Generator,
    told: str = PEEKED,
) -> FloatArray:
    """Return by how much the curve of the last row is higher in the better future."""
    curve = curve_of(model)
    if curve is None:
        return np.empty(0)
    rows = np.unique(np.r_[rng.choice(seen, rng.integers(_CURVES)), seen[-1]])
    elapsed = other_times(futures[0], rows, rng)
    bad, good = (curve(future, rows, elapsed) for future in futures)
    there = np.repeat(rows[:, None], elapsed.shape[1], axis=1)
    higher: FloatArray = trial.expect_same(bad, good, told, rows=there)[-1]
    return higher
