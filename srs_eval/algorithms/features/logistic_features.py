"""Features of a card's history that the logistic regression of the public benchmark reads."""

from __future__ import annotations

import numpy as np

from srs_eval.algorithms.history import History
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4


def features(history: History, rows: IntArray, elapsed: FloatArray) -> FloatArray:
    """Compute the published 34 features of reviews that come `elapsed` days after the one before.

    A review is *counted* if it came at a later time than the one before it on its card. Each
    counted review stands for the rating of the review just before it, and for the interval of the
    counted review before it. What is said of a card's first review means nothing.
    """
    reviews, cards, log = history.reviews, history.cards, np.log1p
    counted = (reviews.elapsed > 0) & (history.nth > 0)
    previous = np.maximum(cards.previous(), 0)
    ratings = reviews.rating[previous]
    failed = ratings == _AGAIN
    latest = _last_before(history, counted)
    is_first = latest < 0
    intervals = np.where(is_first, 0.0, reviews.elapsed[np.maximum(latest, 0)])
    # The interval that a card's first counted review stands for is of no day.
    later = ~is_first & (reviews.elapsed_days[np.maximum(latest, 0)] > 0)
    sooner = ~is_first & ~later
    # This review may itself be one from which time counts anew; it stands for what was before it.
    anew = failed | is_first
    since = np.where(anew, np.arange(len(reviews)), _last_before(history, counted & anew))
    age = history.clock[history.place][previous]

    def count(event: BoolArray) -> FloatArray:
        """Count reviews of an event up to each of `rows`, which itself counts."""
        return (cards.earlier(event & counted) + event)[rows].astype(np.float64)

    failed_sooner, passed_sooner = count(failed & sooner), count(~failed & sooner)
    failed_later, passed_later = count(failed & later), count(~failed & later)
    rating, first = ratings[rows], is_first[rows]
    first_rating = reviews.rating[cards.first()][rows]
    same_day = on_same_day(history, rows, elapsed)
    time, passed_first = _squeezed(elapsed), first_rating > _AGAIN
    columns = [
        time,
        *(time * (rating == each) for each in (_HARD, _GOOD, _EASY)),
        time * (first & (rating == _HARD)),
        time * (first & (rating > _HARD)),
        time * log(failed_sooner),
        time * log(passed_later * ~same_day),
        time * log(failed_later * ~same_day),
        time * log(passed_sooner),
        np.ones(len(rows)),
        *(rating == each for each in (_HARD, _GOOD, _EASY)),
        *(first_rating == each for each in (_HARD, _GOOD, _EASY)),
        *(first & (first_rating == each) for each in (_HARD, _GOOD, _EASY)),
        log(failed_sooner),
        log(passed_later * ~same_day),
        _squeezed(intervals[rows]),
        log(failed_later),
        log(passed_later),
        log(passed_sooner * same_day),
        count(~failed) > 0,
        _squeezed((age - age[since])[rows]),
        same_day,
        _squeezed(age[rows]),
        passed_first * log(failed_sooner),
        passed_first * log(failed_later),
        passed_first * log(count(~later)),
        passed_first * log(count(later)),
    ]
    return np.stack(columns, axis=1, dtype=np.float64)


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


def _last_before(history: History, event: BoolArray) -> IntArray:
    """Row number of the card's last earlier review with the event, -1 where there is none."""
    order = history.cards.order
    places = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(event[order], places, -1))
    before = np.concatenate([[-1], latest[:-1]]) if len(order) else latest
    begin = places - history.nth[order]
    rows = np.where(before >= begin, order[np.maximum(before, 0)], -1)
    return rows[history.place]


def _squeezed(days: FloatArray) -> FloatArray:
    """Logarithm of a time, on a scale where intervals lie around 0."""
    squeezed: FloatArray = (np.log(days + 1e-5) + 1.3) / 5
    return squeezed
