"""What the logistic regression of the public benchmark reads from a card's history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from srs_eval.algorithms.history import History
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4


class Counted(NamedTuple):
    """What happened on a card up to some reviews: their own interval and rating not yet.

    A review is *counted* if it came at a later time than the one before it on its card. Each
    counted review stands for the rating of the review just before it, and for the interval of the
    counted review before it.
    """

    # [rows]: Of the card's last review, counted or not, and of its first
    rating: IntArray
    first_rating: IntArray
    first: BoolArray  # [rows]: Whether no earlier review of the card is counted
    # [rows]: Interval of the card's last counted review, in days; 0 if there is none
    elapsed: FloatArray
    # [rows]: How often the rating before was Again or not, by whether that interval was of the same
    # day or longer. The card's first counted review does not count as the same day
    failed_same_day: FloatArray
    passed_same_day: FloatArray
    failed_later: FloatArray
    passed_later: FloatArray
    # [rows]: How many intervals were of the same day (the first counts) or longer
    same_day: FloatArray
    later_day: FloatArray
    ever_passed: BoolArray  # [rows]: Whether any rating before was a pass
    # [rows]: Days from the card's first review to its last counted one, and what of them came after
    # the last review that was failed
    total: FloatArray
    since_failure: FloatArray


def counted_before(history: History, rows: IntArray) -> Counted:
    """Count along the cards of `rows`; none of them is its card's first review."""
    reviews, cards = history.reviews, history.cards
    counted = (reviews.elapsed > 0) & (history.nth > 0)
    before = np.maximum(cards.previous(), 0)
    rating = reviews.rating[before]
    last = _last_before(history, counted)
    first = last < 0
    elapsed = np.where(first, 0.0, reviews.elapsed[np.maximum(last, 0)])
    later_day = ~first & (reviews.elapsed_days[np.maximum(last, 0)] > 0)
    failed = rating == _AGAIN

    def count(event: BoolArray) -> FloatArray:
        """Count reviews of an event up to each of `rows`, which itself counts."""
        return (cards.earlier(event & counted) + event)[rows].astype(np.float64)

    ever_passed = count(~failed) > 0
    begins_anew = counted & (failed | first)
    # This review may itself begin anew; it stands for what was before it.
    anew = np.where(failed | first, np.arange(len(reviews)), _last_before(history, begins_anew))
    clock = history.clock[history.place]
    total = clock[before]
    return Counted(
        rating=rating[rows],
        first_rating=reviews.rating[cards.first()][rows],
        first=first[rows],
        elapsed=elapsed[rows],
        failed_same_day=count(failed & ~later_day & ~first),
        passed_same_day=count(~failed & ~later_day & ~first),
        failed_later=count(failed & later_day),
        passed_later=count(~failed & later_day),
        same_day=count(~later_day),
        later_day=count(later_day),
        ever_passed=ever_passed,
        total=total[rows],
        since_failure=(total - total[anew])[rows],
    )


def _last_before(history: History, event: BoolArray) -> IntArray:
    """Row number of the card's last earlier review with the event, -1 where there is none."""
    order = history.cards.order
    places = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(event[order], places, -1))
    before = np.concatenate([[-1], latest[:-1]]) if len(order) else latest
    begin = places - history.nth[order]
    found = np.where(before >= begin, order[np.maximum(before, 0)], -1)
    return found[history.place]


def on_same_day(history: History, rows: IntArray, elapsed: FloatArray) -> BoolArray:
    """Return whether reviews `elapsed` after the last one of the card come on the same day.

    At the log's own times that is known. Otherwise the day ends in the middle of the time in
    which it must have ended for the log to be as it is.
    """
    own = history.reviews.elapsed[rows]
    days = history.reviews.elapsed_days[rows]
    ends = (np.maximum(own - days, 0.0) + np.minimum(own - days + 1, 1.0)) / 2
    ends = np.where(days <= 0, np.maximum(ends, np.nextafter(own, np.inf)), np.minimum(ends, own))
    same_day: BoolArray = elapsed < ends
    return same_day


def features(history: History, rows: IntArray, elapsed: FloatArray) -> FloatArray:
    """Compute the published 34 features of reviews that come `elapsed` days after the one before.

    What is said of a card's first review means nothing.
    """
    known = counted_before(history, rows)
    same_day = on_same_day(history, rows, elapsed)
    other_day = ~same_day
    time, log = _squeezed(elapsed), np.log1p
    good_or_easy = known.rating > _HARD
    passed_first = known.first_rating > _AGAIN
    columns = [
        time,
        *(time * (known.rating == rating) for rating in (_HARD, _GOOD, _EASY)),
        time * (known.first & (known.rating == _HARD)),
        time * (known.first & good_or_easy),
        time * log(known.failed_same_day),
        time * log(known.passed_later * other_day),
        time * log(known.failed_later * other_day),
        time * log(known.passed_same_day),
        np.ones(len(rows)),
        *(known.rating == rating for rating in (_HARD, _GOOD, _EASY)),
        *(known.first_rating == rating for rating in (_HARD, _GOOD, _EASY)),
        *(known.first & (known.first_rating == rating) for rating in (_HARD, _GOOD, _EASY)),
        log(known.failed_same_day),
        log(known.passed_later * other_day),
        _squeezed(known.elapsed),
        log(known.failed_later),
        log(known.passed_later),
        log(known.passed_same_day * same_day),
        known.ever_passed,
        _squeezed(known.since_failure),
        same_day,
        _squeezed(known.total),
        passed_first * log(known.failed_same_day),
        passed_first * log(known.failed_later),
        passed_first * log(known.same_day),
        passed_first * log(known.later_day),
    ]
    return np.stack(columns, axis=1, dtype=np.float64)


def _squeezed(days: FloatArray) -> FloatArray:
    """Logarithm of a time, on a scale where intervals lie around 0."""
    squeezed: FloatArray = (np.log(days + 1e-5) + 1.3) / 5
    return squeezed
