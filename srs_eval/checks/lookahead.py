"""Checks that predictions rest on what came before, and on no more than `when` says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from srs_eval.cards import rows_by_card
from srs_eval.checks.assertions import SignTest, expect_same
from srs_eval.checks.harness import (
    curve_of,
    evenly_spaced,
    fit,
    honesty_check,
    other_times,
    predicted,
)
from srs_eval.checks.perturb import answered, cut_after, other_future, renamed, twice
from srs_eval.nouns import Algorithm, FloatArray, Fold, IntArray, MemoryModel, Reviews, when_of

_PROBED_ROWS = 200
# In a log that is twice as long.
_FURTHER_ON = 8
# Of many rows, one in so many has its answer changed alone, and is the last of its log; of these
# one in so many both at once.
_MANY, _SHARE = 20, 3
_CURVES = 4


@honesty_check("Read only rows before the predicted one")
def check_blind_to_the_future(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that no prediction moves when its own outcome and everything later changes.

    Every test row takes its turn as t, or 200 of them where there are more, and 8 rows of a log
    twice as long. The answer at t alone is changed, with the time it took; all that comes later is
    cut off; and two opposite futures take its place from t on, with other ratings, answer times,
    days, elapsed times, states, row numbers, cards, decks and presets. No prediction at t or
    before may move by more than rounding, which is 1e-12, and 1e-6 of float32; and what rounding
    there is may not take the side of the outcome at t, or of the better future, row after row.
    Some rows are asked for alone, some with many others.
    """
    model = fit(algorithm, reviews, fold.train)
    expect_blind(algorithm, model, reviews, fold.test, _PROBED_ROWS)


def expect_blind(
    algorithm: Algorithm, model: MemoryModel, reviews: Reviews, test: IntArray, probes: int
) -> None:
    """Raise if a prediction of the model moves with its outcome or with the future.

    So many rows of the log are looked at, and a few of one that is twice as long.
    """
    sides = {
        advice: SignTest() for advice in (_KNOWS_ITS_ANSWER, _KNOWS_THE_FUTURE, _CURVE_KNOWS_IT)
    }
    _probe(algorithm, model, reviews, test, probes, sides)
    further_on = test + len(reviews)
    _probe(algorithm, model, twice(reviews), further_on, min(probes, _FURTHER_ON), sides)
    for advice, taken in sides.items():
        taken.expect_none(algorithm, advice)


def _probe(
    algorithm: Algorithm,
    model: MemoryModel,
    reviews: Reviews,
    test: IntArray,
    probes: int,
    sides: dict[str, SignTest],
) -> None:
    """Raise if a prediction moves by more than rounding; what else it moves is added to `sides`."""
    expected = predicted(algorithm, model, reviews, test)
    share = _SHARE if min(len(test), probes) > _MANY else 1
    for nth, last in enumerate(evenly_spaced(len(test), probes)):
        row, seen, before = int(test[last]), test[: last + 1], expected[: last + 1]
        rng = np.random.default_rng(row)
        futures = opposite_futures(reviews, row, rng)
        # Rows to be predicted together with this one: none, a few, or many.
        asked_too = rng.random() ** 3
        asked = test[(rng.random(len(test)) < asked_too) | (test == row)]
        sides[_KNOWS_THE_FUTURE].add(_expect_blind_to(algorithm, model, futures, asked, row))
        sides[_CURVE_KNOWS_IT].add(_expect_same_curve(algorithm, model, futures, seen, rng))
        if nth % share:
            continue
        better = -1 if reviews.recalled[row] else 1
        changed = answered(reviews, np.array([row]), ~reviews.recalled[[row]], rng)
        moved = predicted(algorithm, model, changed, test)[: last + 1]
        expect_same(algorithm, before, moved, seen, PEEKED)
        sides[_KNOWS_ITS_ANSWER].add(better * (moved[-1] - before[-1]))
        alone = predicted(algorithm, model, cut_after(reviews, row), seen)
        expect_same(algorithm, before, alone, seen, PEEKED)
        if nth % _SHARE**2 == 0:
            moved = predicted(algorithm, model, cut_after(changed, row), seen)
            expect_same(algorithm, alone, moved, seen, PEEKED)
            sides[_KNOWS_ITS_ANSWER].add(better * (moved[-1] - alone[-1]))


@honesty_check("What is asked for are rows of the log that is given, whatever log was fitted to")
def check_time_of_prediction(algorithm: Algorithm, fold: Fold, reviews: Reviews) -> None:
    """Check that predictions are made when `when` says.

    Of the reviews of other cards, some come too late for a prediction: those since the card's
    previous review if it is made at the ``previous_review``, and those of the same day if it is
    made the ``day_before``. Reviews up to the last training row may have taught the model
    anything. The late ones, scored or not, are answered right and quickly, then wrong and slowly,
    and then they are removed. No prediction may move by more than rounding, nor by rounding to
    the same side row after row. Algorithms that predict ``at_review`` pass.
    """
    if when_of(algorithm) == "at_review":
        return
    model = fit(algorithm, reviews, fold.train)
    told = untimely(algorithm)
    sides = SignTest()
    for last in evenly_spaced(len(fold.test), _PROBED_ROWS):
        seen = fold.test[: last + 1]
        row = int(seen[-1])
        others = too_late_for(algorithm, fold, reviews, row)
        if not len(others):
            continue
        rng = np.random.default_rng(row)
        bad, good = opposite_answers(reviews, others, rng)
        kept = np.setdiff1d(np.arange(row + 1), others)
        others_gone = renamed(replace(reviews.take(kept), row=np.arange(len(kept))))
        low, high, alone = (
            predicted(algorithm, model, log, rows)[-1:]
            for log, rows in (
                (bad, seen),
                (good, seen),
                (others_gone, np.flatnonzero(np.isin(kept, seen))),
            )
        )
        expect_same(algorithm, low, high, seen[-1:], told)
        expect_same(algorithm, low, alone, seen[-1:], told)
        sides.add(high - low)
        sides.add(_expect_same_curve(algorithm, model, (bad, good), seen[-1:], rng, told))
    sides.expect_none(algorithm, told)


def untimely(algorithm: Algorithm) -> str:
    """Return the advice where a prediction rests on what is too late for it."""
    return f'{_TOO_LATE} `when = "{when_of(algorithm)}"`{_SAY_LATER}'


def too_late_for(algorithm: Algorithm, fold: Fold, reviews: Reviews, row: int) -> IntArray:
    """Return the reviews of other cards that the prediction of a row may not rest on."""
    begin = int(rows_by_card(reviews.card).previous()[row])
    if when_of(algorithm) == "day_before":
        begin = int(np.searchsorted(reviews.day, reviews.day[row])) - 1
    since = np.arange(max(int(fold.train[-1]), begin) + 1, row)
    others: IntArray = since[reviews.card[since] != reviews.card[row]]
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


def _expect_blind_to(
    algorithm: Algorithm,
    model: MemoryModel,
    futures: tuple[Reviews, Reviews],
    asked: IntArray,
    row: int,
) -> FloatArray:
    """Return by how much a row's prediction is higher in the better future."""
    bad, good = (predicted(algorithm, model, future, asked) for future in futures)
    known = asked <= row
    expect_same(algorithm, bad[known], good[known], asked[known], PEEKED)
    higher: FloatArray = good[asked == row] - bad[asked == row]
    return higher


def _expect_same_curve(
    algorithm: Algorithm,
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
    expect_same(algorithm, bad, good, there, told)
    higher: FloatArray = (good - bad)[-1]
    return higher
