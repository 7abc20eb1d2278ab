"""The review log of one simulated user: the k-th review of all their cards at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from srs_eval.data.simulated.answers import draw_duration, draw_rating, recall_of
from srs_eval.data.simulated.calendar import Calendar, draw_calendar
from srs_eval.data.simulated.cards import NEW, Cards, learn, new_cards, next_reviews
from srs_eval.data.simulated.learner import Learner
from srs_eval.nouns import FloatArray, IntArray

_FIRST_CARDS = 24
_SPARE = 1.03


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of one user; `second` counts from the user's first day change to the question.

    The other columns are as in `Reviews`.
    """

    card: IntArray
    day: IntArray
    second: FloatArray
    rating: IntArray
    elapsed_days: IntArray
    elapsed_seconds: FloatArray
    duration_ms: FloatArray
    state: IntArray
    truth: FloatArray
    deck: IntArray
    # Days of the interval drawn after each answer, with the least and the most; 0 if none was
    drawn: IntArray
    low: IntArray
    high: IntArray


def simulate_log(learner: Learner, rng: np.random.Generator) -> Answers:
    """Simulate one user until they have made their reviews.

    Cards do not influence one another, so they are simulated in groups until there are enough
    reviews; then the log ends with the last review that was asked for. Answers are in the order the
    questions were shown, with exactly ``learner.later_reviews`` reviews on a later day than the one
    before. Days and cards count from 0.
    """
    calendar = draw_calendar(learner, rng)
    groups: list[Answers] = []
    cards, reviews = 0, 0
    while reviews < learner.later_reviews:
        missing = learner.later_reviews - reviews
        # The number of further cards is estimated from the cards so far; the first few are a guess.
        more = _SPARE * missing * cards / reviews if reviews else missing / 12
        count = int(more) + _FIRST_CARDS
        group = _study(new_cards(cards, count, learner, calendar, rng), learner, calendar, rng)
        reviews += int(np.count_nonzero(group.elapsed_days > 0))
        cards += count
        groups.append(group)
    return _in_order(groups, learner.later_reviews)


def _study(cards: Cards, learner: Learner, calendar: Calendar, rng: np.random.Generator) -> Answers:
    """Follow cards through the whole life, one wave of answers for each k."""
    waves = []
    while len(cards.card):
        moment = calendar.moment(cards.slot, cards.second)
        recall = recall_of(cards, moment, learner, calendar)
        recalled = rng.random(len(cards.card)) < recall.truth
        rating = draw_rating(cards, recalled, recall.odds, learner, rng)
        duration_ms = draw_duration(cards, rating, recall.ease, moment, learner, calendar, rng)
        asked = cards.card, cards.cohort, cards.state, cards.day, cards.second
        before = cards.last_day, cards.answered
        learn(cards, rating, recall.odds, learner, rng)
        cards, draws = next_reviews(cards, rating, duration_ms, learner, calendar, rng)
        waves.append((*asked, *before, rating, duration_ms, recall.truth, *draws))
    columns = (np.concatenate(column) for column in zip(*waves, strict=True))
    card, cohort, state, day, second, last_day, answered, *of_answer = columns
    rating, duration_ms, truth, drawn, low, high = of_answer
    first = state == NEW
    return Answers(
        card=card,
        day=day,
        second=second,
        rating=rating,
        elapsed_days=np.where(first, -1, day - last_day),
        elapsed_seconds=np.where(first, -1, _until_answer(second - answered, duration_ms)),
        duration_ms=duration_ms,
        state=state,
        truth=truth,
        deck=calendar.deck_of_cohort[cohort],
        drawn=drawn,
        low=low,
        high=high,
    )


def _until_answer(until_asked: FloatArray, duration_ms: FloatArray) -> FloatArray:
    """Whole seconds from answer to answer, so that without its time an answer ends the interval."""
    seconds: FloatArray = np.rint(np.floor(until_asked) + duration_ms / 1000)
    return seconds


def _in_order(groups: list[Answers], later_reviews: int) -> Answers:
    """Sort the answers by time, stop at the last one needed, and number what is left from 0."""
    column = {
        field.name: np.concatenate([getattr(group, field.name) for group in groups])
        for field in fields(Answers)
    }
    order = np.argsort(column["second"])
    if (np.diff(column["second"][order]) == 0).any():
        # Two cards may come up in the same instant; the card number then decides.
        order = np.lexsort((column["card"], column["second"]))
    needed = np.searchsorted(np.cumsum(column["elapsed_days"][order] > 0), later_reviews)
    kept = order[: needed + 1]
    column = {name: values[kept] for name, values in column.items()}
    column["card"] = _by_appearance(column["card"])
    column["day"] = column["day"] - column["day"][0]
    return Answers(**column)


def _by_appearance(card: IntArray) -> IntArray:
    """Return card numbers from 0 in order of first review.

    >>> _by_appearance(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    first = np.full(card.max() + 1, len(card))
    first[card[::-1]] = np.arange(len(card))[::-1]
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[card]
