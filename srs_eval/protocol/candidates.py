"""Which reviews of a log the public rules keep, and which of them can be scored.

Every protocol of this package begins with these rules, and goes on with a split.
`docs/method.md` states each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from srs_eval.data.cards import CardRows, rows_by_card
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.protocol.outliers import unusual_first_intervals
from srs_eval.protocol.task import Task

FOLDS = 5
_LONGEST_HISTORY = 128
_FEWEST_TARGETS = 6
_SECOND = 2
_SECONDS_PER_DAY = 86_400
_SHORTEST_SECONDS = 1.0
_AFTER_LONGEST = f"after the {_LONGEST_HISTORY}th of their card"
_FIRST_OF_CARD = "the first of their card"
_SAME_DAY = "on the day of the card's review before"


def in_whole_days(reviews: Reviews, *, same_day: bool) -> tuple[Task, IntArray]:
    """Keep the first review of each card and later day, but for cards with an odd beginning.

    With `same_day`, histories keep reviews on the day of the card's review before. The targets are
    the same either way. Return the histories on the clock, as a task without folds, and the row
    numbers of the targets: what can be scored or learned from, in time order.
    """
    histories, cards = _within_longest_history(reviews)
    later_day = histories.elapsed_days > 0
    days = np.maximum(histories.elapsed_days, 0).astype(np.float64)
    lapsed = later_day & ~histories.recalled
    task = _task(histories, cards, days, whole_days=True, lapsed=lapsed)
    is_second = later_day & (task.nth_review == _SECOND)
    unusual = later_day & _after_unusual_interval(histories, cards, is_second)
    scored = later_day & ~unusual
    task = replace(
        task,
        dropped=_counted(
            {
                "of cards whose first interval is rare in the user's log": unusual,
                _AFTER_LONGEST: len(reviews) - len(histories),
            }
        ),
        unscored=_counted(
            {
                _FIRST_OF_CARD: histories.elapsed_days < 0,
                _SAME_DAY: histories.elapsed_days == 0,
            }
        ),
    )
    _require_enough(reviews, scored, task)
    if not same_day:
        in_histories = histories.elapsed_days != 0
        task, scored = task.take(in_histories), scored[in_histories]
    return task, np.flatnonzero(scored)


def in_seconds(reviews: Reviews, *, answer_time: bool) -> tuple[Task, IntArray]:
    """Keep every review but a card's first, and those within the second of the one before.

    Same-day reviews are kept in all histories, and no card is an outlier. Intervals end when the
    question is shown, or with `answer_time` with its answer, as published. The targets are the same
    either way. Return what `in_whole_days` returns.
    """
    histories, cards = _within_longest_history(reviews)
    since_answer = _seconds_since_answer(histories)
    scored, first = since_answer > 0, histories.elapsed_days < 0
    seconds = since_answer if answer_time else _until_asked(since_answer, histories.duration_ms)
    task = _task(
        histories,
        cards,
        seconds / _SECONDS_PER_DAY,
        whole_days=False,
        lapsed=~histories.recalled,
        dropped=_counted(
            {
                "within a second of the answer before": ~first & ~scored,
                _AFTER_LONGEST: len(reviews) - len(histories),
            }
        ),
        unscored=_counted({_FIRST_OF_CARD: first}),
    )
    _require_enough(reviews, scored, task)
    return task, np.flatnonzero(scored)


def _task(
    histories: Reviews,
    cards: CardRows,
    elapsed: FloatArray,
    *,
    whole_days: bool,
    lapsed: BoolArray,
    **told: Any,
) -> Task:
    """Put the log on the clock of a protocol, and count what came before each review.

    The log has nothing finer: seconds from answer to answer would reveal how long the answer to be
    predicted took, and gaps between row numbers which reviews were filtered out.
    """
    later_day = histories.elapsed_days > 0
    row = np.arange(len(histories))
    return Task(
        reviews=replace(
            histories, elapsed=elapsed, whole_days=whole_days, elapsed_seconds=None, row=row
        ),
        folds=(),
        nth_review=1 + cards.earlier(later_day) + later_day,
        lapses=cards.earlier(lapsed),
        last_rating=cards.last(histories.rating),
        recalls=cards.earlier(histories.recalled),
        log_row=histories.row,
        **told,
    )


def _within_longest_history(reviews: Reviews) -> tuple[Reviews, CardRows]:
    """Drop what comes after the 128th review of a card, and find the rows of each card."""
    cards = rows_by_card(reviews.card)
    is_within = cards.nth < _LONGEST_HISTORY
    if is_within.all():
        return reviews, cards
    histories = reviews.take(is_within)
    return histories, rows_by_card(histories.card)


def _after_unusual_interval(reviews: Reviews, cards: CardRows, is_second: BoolArray) -> BoolArray:
    """Mark every review of the cards whose first interval is an outlier.

    `is_second` marks the first review of each card on a later day.
    """
    second = np.flatnonzero(is_second)
    first_rating = reviews.rating[cards.first()[second]]
    unusual = np.zeros(len(reviews), bool)
    unusual[second] = unusual_first_intervals(reviews.elapsed_days[second], first_rating)
    return np.bincount(cards.number, unusual)[cards.number] > 0


def _counted(rows: Mapping[str, BoolArray | int]) -> dict[str, int]:
    return {rule: int(count) for rule, chosen in rows.items() if (count := np.sum(chosen))}


def _require_enough(reviews: Reviews, scored: BoolArray, task: Task) -> None:
    """Raise if too few reviews can be scored, with the number that each rule leaves out."""
    targets = int(np.count_nonzero(scored))
    if targets >= _FEWEST_TARGETS:
        return
    counts = {**task.unscored, **task.dropped}
    reasons = ", ".join(f"{count:,} {rule}" for rule, count in counts.items())
    raise FitSkipped(
        f"user {reviews.user}: only {targets} of {len(reviews):,} reviews can be scored, "
        f"{_FEWEST_TARGETS} are needed for {FOLDS} folds; left out: {reasons}",
        dropped=task.dropped,
        unscored=task.unscored,
    )


def _seconds_since_answer(reviews: Reviews) -> FloatArray:
    if reviews.elapsed_seconds is None:
        raise ReviewLogError(
            f"user {reviews.user}",
            ["no seconds between answers (elapsed_seconds), which this protocol counts"],
            "Take a protocol in whole days, such as protocol=srs_benchmark, or a log with times.",
        )
    return np.maximum(reviews.elapsed_seconds, 0.0)


def _until_asked(since_answer: FloatArray, duration_ms: FloatArray | None) -> FloatArray:
    """Subtract each review's own answer time, so that its interval does not reveal it.

    What is left is rounded to whole seconds, like the intervals of the data: the fraction of
    a second would be that of the answer time. Where less than a second is left, which is
    within the error of the clock, there is one, so that no recall is asked for at no time.
    Nothing is subtracted where the answer time is not known.
    """
    if duration_ms is None:
        return since_answer
    until_asked = np.rint(since_answer - np.nan_to_num(duration_ms) / 1000)
    return np.where(since_answer > 0, np.maximum(until_asked, _SHORTEST_SECONDS), 0.0)
