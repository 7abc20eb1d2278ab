"""Numbers that describe the moment at which a card is shown: what the session filter weighs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from srs_eval.algorithms.sessions.answers import FADING_DAYS, Answers
from srs_eval.data.reviews import FloatArray

# A feature at each review, from what was known before its answer; read at later-day reviews only.
# About 0 on average and at most about 1 in size: nothing is standardised.
Formula = Callable[[Answers], FloatArray]

_AGAIN, _HARD, _EASY = 1, 2, 4
LEVEL = "level"
# What is left of the means of answer times after another: of the user's, and of a card's.
_USER_KEEPS, _CARD_KEEPS = 0.966, 0.7
_USUAL_LOG_SECONDS = 2.0
# A sibling says some three times as much as the other features do.
_SIBLING = 3.0


def _recent(
    half_life: float, *within: str, prior: float = 1.0, same_day: bool = False
) -> Callable[[Answers], FloatArray]:
    """Bias of the base model, in log-odds, over the answers before.

    After `half_life` answers an answer counts half. Answers are alike in the columns `within` of
    `Answers`. `prior` is the strength of the pull towards 0; `same_day` counts those answers too.
    """

    def bias(answers: Answers) -> FloatArray:
        columns = [getattr(answers, name) for name in within]
        counted = answers.predicted if same_day else answers.later
        return answers.bias(half_life, answers.grouped(*columns), prior, counted)

    return bias


def _in_a_row(answers: Answers, *, recalled: bool) -> FloatArray:
    """Count the later-day answers of the day before each review, since one ended otherwise."""
    alike = answers.later & (answers.reviews.recalled == recalled)
    otherwise = answers.later & ~alike
    new_day = np.diff(answers.day, prepend=answers.day[:1]) > 0
    ended = np.concatenate([[False], otherwise[:-1]])[: len(answers)] | new_day
    return np.log1p(answers.faded(alike, np.cumsum(ended)))


def _agains(answers: Answers) -> FloatArray:
    today = answers.grouped(answers.day)
    again = answers.faded(~answers.reviews.recalled, today)
    return (again + 0.5) / (answers.faded(np.ones(len(answers)), today) + 2) - 0.2


def _pause(answers: Answers) -> FloatArray:
    days = np.diff(answers.day, prepend=answers.day[:1])
    begins = np.maximum.accumulate(np.where(days > 0, np.arange(len(answers)), 0))
    return np.log(np.maximum(days[begins], 1))


def _time_above_mean(answers: Answers) -> FloatArray:
    """Each answer's log time less the running mean of the user's, this answer included."""
    new = (1 - _USER_KEEPS) * answers.log_seconds
    new[:1] += _USER_KEEPS * _USUAL_LOG_SECONDS
    everything = np.zeros(len(answers), np.int64)
    mean = _USER_KEEPS * answers.faded(new, everything, _USER_KEEPS) + new
    return answers.log_seconds - mean


def _tempo(answers: Answers) -> FloatArray:
    """Return the log time above the mean of the review before, whatever its card."""
    return np.concatenate([[0.0], _time_above_mean(answers)[:-1]])[: len(answers)]


def _mean_of_card(answers: Answers) -> FloatArray:
    """Return the running mean of the card's log answer times before each review."""
    time = answers.log_seconds
    new = np.where(answers.previous < 0, time, (1 - _CARD_KEEPS) * time)
    return answers.faded(new, answers.card, _CARD_KEEPS)


def _growth_of_interval(answers: Answers) -> FloatArray:
    days = np.log1p(answers.days)
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
    fresh: FloatArray = _SIBLING * 0.5 ** (ago / FADING_DAYS) * ((row >= 0) & ((ago == 0) == today))
    return np.where(answers.reviews.recalled[row] | (not answer), fresh, -fresh)


# By the groups that are shown together in tables and figures.
_BY_GROUP: Mapping[str, Mapping[str, Formula]] = {
    LEVEL: {
        "bias": lambda answers: np.ones(len(answers)),
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
        "neighbours": lambda answers: answers.bias_of_neighbours(prior=0.5),
        "same_interval": _recent(math.inf, "day", "interval"),
        "same_last_day": _recent(math.inf, "day", "last_day"),
    },
    "break": {"pause": _pause},
    "answer times": {
        "tempo": _tempo,
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
        "interval": lambda answers: np.log1p(answers.days) / 2 - 1,
        "growth_of_interval": _growth_of_interval,
    },
}
FORMULAS = {name: formula for each in _BY_GROUP.values() for name, formula in each.items()}
GROUP_OF = {name: group for group, each in _BY_GROUP.items() for name in each}

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
