"""A log as models of sessions read it, and numbers that describe when a card is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from srs_eval.data.cards import CardRows, rows_by_card, stable_order
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews

# Answer times are cut off here, as collections do themselves at about a minute.
_LONGEST_MS, _USUAL_MS = 120_000.0, 8_000.0
# Sums are share for that many groups at most, although most of these may be empty.
_MOST_GROUPS = 1 << 16
# Cards at most so many places apart are neighbours; places and days after which one counts less.
_PLACES, _FADING_PLACES, _FADING_DAYS = 15, 5.0, 3.0


# Each step needs the one before, within groups of any order: no numpy function can do that.
@numba.njit()
def _faded(group: IntArray, value: FloatArray, share: float) -> FloatArray:
    before = np.empty(len(group))
    sums = np.zeros(group.max() + 1 if len(group) else 0)
    for row in range(len(group)):
        before[row] = sums[group[row]]
        sums[group[row]] = share * before[row] + value[row]
    return before


@numba.njit()
def _surrounded(
    card: IntArray, day: IntArray, learned: BoolArray, residual: FloatArray, information: FloatArray
) -> tuple[FloatArray, FloatArray]:
    cards = card.max() + 1 if len(card) else 0
    last_day = np.full(cards, -1)
    last = np.zeros((cards, 2))
    sums = np.zeros((2, len(card)))
    by_place = np.exp(-np.arange(_PLACES + 1) / _FADING_PLACES)
    by_age = 0.5 ** (np.arange(day[-1] + 1 if len(day) else 0) / _FADING_DAYS)
    for row in range(len(card)):
        if not learned[row]:
            continue
        own = card[row]
        for other in range(max(0, own - _PLACES), min(cards, own + _PLACES + 1)):
            if other != own and last_day[other] >= 0:
                share = by_place[abs(other - own)] * by_age[day[row] - last_day[other]]
                sums[0, row] += share * last[other, 0]
                sums[1, row] += share * last[other, 1]
        last_day[own] = day[row]
        last[own, 0], last[own, 1] = residual[row], information[row]
    return sums[0], sums[1]


@dataclass(frozen=True)
class Answers:
    """A log with the log-odds of a base model, and columns [n] that follow from both.

    A later-day review is one on a later day than the review before of its card. Cards and days
    are numbered in the order of their first review, so that no number depends on what follows.
    """

    reviews: Reviews  # The log in time order
    z: FloatArray  # Log-odds of recall, as the base model predicts them; 0 where it cannot
    cards: CardRows  # The rows of each card
    previous: IntArray  # Row of the card's review before, -1 where there is none
    predicted: BoolArray  # Whether the base model can predict the review
    later: BoolArray  # Whether it is a later-day review
    residual: FloatArray  # Outcome less predicted probability, 0 where nothing is predicted
    information: FloatArray  # Variance p (1 - p) of the outcome, 0 where nothing is predicted
    card: IntArray  # Number of the card
    deck: IntArray  # Number of its deck; without decks the collection is one
    day: IntArray  # Days since the first day of the log
    last_day: IntArray  # Day of the card's review before, -1 where there is none
    interval: IntArray  # Days since the card's review before, -1 where there is none
    log_seconds: FloatArray  # Logarithm of the answer time in seconds, to which 0.3 is added

    @cached_property
    def sibling(self) -> IntArray:
        """Row of the latest earlier review of another card of the note, -1 where none is known."""
        if self.reviews.note is None or not len(self.z):
            return np.full(len(self.z), -1)
        note = np.unique(self.reviews.note, return_inverse=True)[1]
        note = np.where(self.reviews.note == -1, len(self.z) + self.card, note)
        order = stable_order(note)
        begins = np.diff(note[order], prepend=-1) != 0
        turns = begins | (np.diff(self.card[order], prepend=-1) != 0)
        before = np.where(begins, -1, np.roll(order, 1))
        latest = np.empty(len(self.z), np.int64)
        latest[order] = before[np.maximum.accumulate(np.where(turns, np.arange(len(self.z)), 0))]
        return latest

    def of_previous(self, values: NDArray[np.generic]) -> FloatArray:
        """Return each value of the card's review before, 0 where there is none."""
        return np.where(self.previous < 0, 0.0, values[self.previous].astype(np.float64))

    def grouped(self, *columns: IntArray) -> IntArray:
        """Return numbers of the groups of reviews that are alike in all columns."""
        group = np.zeros(len(self.z), np.int64)
        for column in columns:
            group = group * (column.max(initial=0) + 2) + column + 1
            if group.max(initial=0) > _MOST_GROUPS:
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
        return group

    def faded(
        self,
        values: NDArray[np.generic],
        group: IntArray,
        share: float = 1.0,
        counted: BoolArray | None = None,
    ) -> FloatArray:
        """Sum the counted values before each of them, of which each later one keeps a share.

        Groups are numbers from `grouped`. A share of 1 gives the sum, 0 the latest value.
        """
        if counted is None:
            return _faded(group, values.astype(np.float64), share)
        sums = np.zeros(len(self.z))
        sums[counted] = _faded(group[counted], values[counted].astype(np.float64), share)
        return sums


def answers_of(reviews: Reviews, z: FloatArray) -> Answers:
    """Compute the columns of a log with the log-odds of a base model."""
    cards, day = rows_by_card(reviews.card), reviews.day - reviews.day[:1]
    previous, p = cards.previous(), expit(z)
    predicted = (reviews.elapsed > 0) & (previous >= 0)
    deck = np.zeros(len(reviews), np.int64) if reviews.deck is None else reviews.deck
    time = np.full(len(reviews), np.nan) if reviews.duration_ms is None else reviews.duration_ms
    time = np.nan_to_num(time.astype(np.float64), nan=_USUAL_MS)
    return Answers(
        *(reviews, z, cards, previous, predicted),
        later=predicted & (reviews.elapsed_days > 0),
        residual=np.where(predicted, reviews.recalled - p, 0.0),
        information=np.where(predicted, p * (1 - p), 0.0),
        card=(np.cumsum(previous < 0) - 1)[cards.first()],
        deck=np.unique(deck, return_inverse=True)[1].astype(np.int64),
        day=day,
        last_day=np.where(previous < 0, -1, day[previous]),
        interval=reviews.elapsed_days,
        log_seconds=np.log(np.clip(time, 0.0, _LONGEST_MS) / 1000 + 0.3),
    )


# A feature at each review, from what was known before its answer; read at later-day reviews only.
# About 0 on average and at most about 1 in size: nothing is standardised.
Formula = Callable[[Answers], FloatArray]

_AGAIN, _HARD, _EASY = 1, 2, 4
# What is left of the means of answer times after another: of the user's, and of a card's.
_USER_KEEPS, _CARD_KEEPS = 0.966, 0.7
_USUAL_LOG_SECONDS = 2.0
# A sibling says some three times as much as the other features do.
_SIBLING = 3.0


def _recent(
    half_life: float, *within: str, prior: float = 1.0, same_day: bool = False
) -> Callable[[Answers], FloatArray]:
    """Bias of the base model, in log-odds, over the answers before: one step of Newton's method.

    After `half_life` answers, which may be infinite, an answer counts half. Answers are alike in
    the columns `within` of `Answers`. `prior` is the strength of the pull towards 0; `same_day`
    counts those answers too.
    """

    def bias(answers: Answers) -> FloatArray:
        group = answers.grouped(*(getattr(answers, name) for name in within))
        share, counted = 0.5 ** (1 / half_life), answers.predicted if same_day else answers.later
        total = answers.faded(answers.residual, group, share, counted)
        return total / (answers.faded(answers.information, group, share, counted) + prior)

    return bias


def _neighbours(answers: Answers) -> FloatArray:
    """Return such a step for cards that were introduced just before or after each card."""
    columns = (answers.card, answers.day, answers.later, answers.residual, answers.information)
    total, information = _surrounded(*columns)
    return total / (information + 0.5)


def _in_a_row(answers: Answers, *, recalled: bool) -> FloatArray:
    """Count the later-day answers of the day before each review, since one ended otherwise."""
    alike = answers.later & (answers.reviews.recalled == recalled)
    otherwise = answers.later & ~alike
    new_day = np.diff(answers.day, prepend=answers.day[:1]) > 0
    ended = np.concatenate([[False], otherwise[:-1]])[: len(answers.z)] | new_day
    return np.log1p(answers.faded(alike, np.cumsum(ended)))


def _agains(answers: Answers) -> FloatArray:
    today = answers.grouped(answers.day)
    again = answers.faded(~answers.reviews.recalled, today)
    return (again + 0.5) / (answers.faded(np.ones(len(answers.z)), today) + 2) - 0.2


def _pause(answers: Answers) -> FloatArray:
    days = np.diff(answers.day, prepend=answers.day[:1])
    begins = np.maximum.accumulate(np.where(days > 0, np.arange(len(answers.z)), 0))
    return np.log(np.maximum(days[begins], 1))


def _time_above_mean(answers: Answers) -> FloatArray:
    """Each answer's log time less the running mean of the user's, this answer included."""
    new = (1 - _USER_KEEPS) * answers.log_seconds
    new[:1] += _USER_KEEPS * _USUAL_LOG_SECONDS
    everything = np.zeros(len(answers.z), np.int64)
    mean = _USER_KEEPS * answers.faded(new, everything, _USER_KEEPS) + new
    return answers.log_seconds - mean


def _mean_of_card(answers: Answers) -> FloatArray:
    """Return the running mean of the card's log answer times before each review."""
    time = answers.log_seconds
    new = np.where(answers.previous < 0, time, (1 - _CARD_KEEPS) * time)
    return answers.faded(new, answers.card, _CARD_KEEPS)


def _growth_of_interval(answers: Answers) -> FloatArray:
    days = np.log1p(np.maximum(answers.interval, 0.0))
    before = answers.faded(days, answers.card, 0.0, answers.later)
    return np.clip(days - before, -3.0, 3.0)


def _since_later(answers: Answers, *, failed: bool) -> FloatArray:
    """Logarithm of 1 and the card's same-day answers since its last later-day review."""
    counted = ~answers.later & (answers.previous >= 0)
    if failed:
        counted &= ~answers.reviews.recalled
    # A later-day answer belongs to the stretch it begins.
    stretch = answers.grouped(answers.card, answers.cards.earlier(answers.later) + answers.later)
    before = answers.faded(counted, stretch) + counted
    return np.log1p(answers.of_previous(before))


def _later_reviews(answers: Answers) -> FloatArray:
    """Logarithm of 1 and the card's later-day reviews before."""
    return np.log1p(answers.cards.earlier(answers.later))


def _successes(answers: Answers) -> FloatArray:
    fails = _since_later(answers, failed=True)
    return _later_reviews(answers) - fails - np.log1p(answers.cards.nth) / 2 - 0.25


def _last_rating_is(answers: Answers, rating: int, *, reviews_ago: int = 1) -> FloatArray:
    last: FloatArray = answers.reviews.rating.astype(np.float64)
    for _ in range(reviews_ago):
        last = answers.of_previous(last)
    return np.asarray(last == rating, np.float64)


def _sibling(answers: Answers, *, today: bool, answer: bool) -> FloatArray:
    """Return how fresh the latest review of a sibling is, with the sign of its answer if asked.

    It is from this day, or else from an earlier one; 0 for the other.
    """
    row = answers.sibling
    ago = np.where(row < 0, 0, answers.day - answers.day[row])
    fresh: FloatArray = (
        _SIBLING * 0.5 ** (ago / _FADING_DAYS) * ((row >= 0) & ((ago == 0) == today))
    )
    return np.where(answers.reviews.recalled[row] | (not answer), fresh, -fresh)


# By the groups that are shown together in tables and figures.
_BY_GROUP: Mapping[str, Mapping[str, Formula]] = {
    "level": {
        "bias": lambda answers: np.ones(len(answers.z)),
        "slope": lambda answers: answers.z,
        "deviation": lambda answers: answers.z - 2,
    },
    "recent answers": {
        **{f"recent_{half_life}": _recent(half_life) for half_life in (2, 5, 15, 50, 200)},
        "recent": _recent(7, prior=0.3),
        "recent_all_15": _recent(15, same_day=True),
        "today": _recent(math.inf, "day"),
        "fails": partial(_in_a_row, recalled=False),
        "passes": lambda answers: _in_a_row(answers, recalled=True) / 2,
        "agains": _agains,
    },
    "deck": {"deck_30": _recent(30, "deck"), "deck_today": _recent(math.inf, "deck", "day")},
    "cards learned together": {
        "neighbours": _neighbours,
        "same_interval": _recent(math.inf, "day", "interval"),
        "same_last_day": _recent(math.inf, "day", "last_day"),
    },
    "break": {"pause": _pause},
    "answer times": {
        # Of the review before, whatever its card
        "tempo": lambda answers: np.append(0.0, _time_above_mean(answers))[: len(answers.z)],
        "last_time": lambda answers: answers.of_previous(_time_above_mean(answers)),
        "mean_time": lambda answers: _mean_of_card(answers) - 2,
        "change_of_time": lambda answers: (
            answers.of_previous(answers.log_seconds) - _mean_of_card(answers)
        ),
    },
    "history of the card": {
        "last_again": partial(_last_rating_is, rating=_AGAIN),
        "last_hard": partial(_last_rating_is, rating=_HARD),
        "last_easy": partial(_last_rating_is, rating=_EASY),
        "again_before_last": partial(_last_rating_is, rating=_AGAIN, reviews_ago=2),
        "reviews": lambda answers: np.log1p(answers.cards.nth) - 1.5,
        "later_reviews": lambda answers: _later_reviews(answers) - 1,
        "same_day_reviews": partial(_since_later, failed=False),
        "same_day_fails": partial(_since_later, failed=True),
        "successes": _successes,
    },
    "siblings": {
        "sibling_today": partial(_sibling, today=True, answer=False),
        "sibling_today_answer": partial(_sibling, today=True, answer=True),
        "sibling_earlier": partial(_sibling, today=False, answer=False),
        "sibling_earlier_answer": partial(_sibling, today=False, answer=True),
    },
    "interval": {
        "interval": lambda answers: np.log1p(np.maximum(answers.interval, 0.0)) / 2 - 1,
        "growth_of_interval": _growth_of_interval,
    },
}
FORMULAS = {name: formula for each in _BY_GROUP.values() for name, formula in each.items()}
GROUP_OF = {name: group for group, each in _BY_GROUP.items() for name in each}

# A bias, and the log-odds of the base themselves.
LEVEL = tuple(_BY_GROUP["level"])
# What other cards of the note say, where a log has notes.
SIBLINGS = tuple(_BY_GROUP["siblings"])
# What a session does to all cards.
SESSION = (
    *("recent_2", "recent_5", "recent_15", "recent_50", "recent_200", "today", "recent_all_15"),
    *("deck_30", "deck_today", "neighbours", "same_interval", "same_last_day"),
    *("fails", "passes", "tempo", "agains", "pause"),
)
# What is known of a card when its previous review ends.
CARD = (
    *("last_time", "mean_time", "change_of_time"),
    *("last_again", "last_hard", "last_easy", "again_before_last"),
    *("reviews", "later_reviews", "same_day_reviews", "same_day_fails"),
)
SETS = {
    "full": ("bias", "slope", *SESSION, *CARD, "interval", "growth_of_interval"),
    "small": (
        *("bias", "slope", "recent", "passes", "deck_30", "deck_today", "neighbours"),
        *("mean_time", "successes", "reviews", "interval", "pause"),
    ),
}
