"""Numbers that describe the moment at which a card is shown: what the session filter weighs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from srs_eval.algorithms.sessions.answers import FADING_DAYS, Answers
from srs_eval.data.reviews import FloatArray

_AGAIN, _HARD, _EASY = 1, 2, 4
LEVEL = "level"
_RECENT, _CARD, _TIMES = "recent answers", "history of the card", "answer times"
_NOTE = "siblings"
# What is left of the means of answer times after another: of the user's, and of a card's.
_USER_KEEPS, _CARD_KEEPS = 0.966, 0.7
_USUAL_LOG_SECONDS = 2.0
# A sibling says some three times as much as the other features do.
_SIBLING = 3.0


class Feature(ABC):
    """A number for each review, known when its card is shown.

    Features should be about 0 on average and at most about 1 in size: nothing is standardised.
    """

    group: str = "other"  # Features that are shown together in tables and figures

    @abstractmethod
    def __call__(self, answers: Answers) -> FloatArray:
        """Return the feature at each review from what was known before its answer.

        Only values at later-day reviews count.
        """


@dataclass(frozen=True)
class Recent(Feature):
    """How much better recent answers were than the base model predicted, as a bias of log-odds."""

    half_life: float = math.inf  # Answers after which an answer counts half
    # Columns of `Answers` in which answers must be alike: ``day``, ``deck``, ``last_day`` or
    # ``interval``
    within: tuple[str, ...] = ()
    prior: float = 1.0  # Strength of the pull towards 0
    same_day: bool = False  # Whether same-day answers count as well
    group: str = _RECENT

    def __call__(self, answers: Answers) -> FloatArray:
        """Return the bias at each review."""
        columns = [getattr(answers, name) for name in self.within]
        counted = answers.predicted if self.same_day else answers.later
        return answers.bias(self.half_life, answers.grouped(*columns), self.prior, counted)


def _shifted(values: FloatArray) -> FloatArray:
    """Return the value of the review before each, whatever its card."""
    return np.concatenate([[0.0], values[:-1]])[: len(values)]


def _in_a_row(answers: Answers, *, recalled: bool) -> FloatArray:
    """Count the later-day answers of the day before each review, since one ended otherwise."""
    alike = answers.later & (answers.reviews.recalled == recalled)
    otherwise = answers.later & ~alike
    new_day = np.diff(answers.day, prepend=answers.day[:1]) > 0
    ended = np.concatenate([[False], otherwise[:-1]])[: len(answers)] | new_day
    return answers.faded(alike, np.cumsum(ended))


def _agains(answers: Answers) -> FloatArray:
    today = answers.grouped(answers.day)
    again = answers.faded(~answers.reviews.recalled, today)
    return (again + 0.5) / (answers.faded(np.ones(len(answers)), today) + 2) - 0.2


def _pause(answers: Answers) -> FloatArray:
    days = np.diff(answers.day, prepend=answers.day[:1])
    begins = np.maximum.accumulate(np.where(days > 0, np.arange(len(answers)), 0))
    return np.log(np.maximum(days[begins], 1))


def _mean_of_user(answers: Answers) -> FloatArray:
    """Return the running mean of the user's log answer times, each answer included."""
    new = (1 - _USER_KEEPS) * answers.log_seconds
    new[:1] += _USER_KEEPS * _USUAL_LOG_SECONDS
    everything = np.zeros(len(answers), np.int64)
    return _USER_KEEPS * answers.faded(new, everything, _USER_KEEPS) + new


def _time_above_mean(answers: Answers) -> FloatArray:
    """Return each answer's log time less the running mean of the user's."""
    return answers.log_seconds - _mean_of_user(answers)


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
    """Count the card's same-day answers since its last later-day review."""
    counted = ~answers.later & (answers.previous >= 0)
    if failed:
        counted &= ~answers.reviews.recalled
    # A later-day answer belongs to the stretch it begins.
    stretch = answers.grouped(answers.card, answers.cards.earlier(answers.later) + answers.later)
    before = answers.faded(counted, stretch) + counted
    return answers.of_previous(before)


def _successes(answers: Answers) -> FloatArray:
    return np.asarray(
        np.log1p(answers.cards.earlier(answers.later))
        - np.log1p(_since_later(answers, failed=True))
        - np.log1p(answers.cards.nth) / 2
        - 0.25
    )


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


_SIBLINGS = {
    "sibling_today": (_NOTE, partial(_sibling, today=True, answer=False)),
    "sibling_today_answer": (_NOTE, partial(_sibling, today=True, answer=True)),
    "sibling_earlier": (_NOTE, partial(_sibling, today=False, answer=False)),
    "sibling_earlier_answer": (_NOTE, partial(_sibling, today=False, answer=True)),
}
# Group and formula of each feature that is no bias of recent answers.
_FORMULAS: Mapping[str, tuple[str, Callable[[Answers], FloatArray]]] = {
    "bias": (LEVEL, lambda answers: np.ones(len(answers))),
    "slope": (LEVEL, lambda answers: answers.z),
    "deviation": (LEVEL, lambda answers: answers.z - 2),
    "neighbours": ("cards learned together", lambda answers: answers.bias_of_neighbours(prior=0.5)),
    "fails": (_RECENT, lambda answers: np.log1p(_in_a_row(answers, recalled=False))),
    "passes": (_RECENT, lambda answers: np.log1p(_in_a_row(answers, recalled=True)) / 2),
    "tempo": (_TIMES, lambda answers: _shifted(_time_above_mean(answers))),
    "agains": (_RECENT, _agains),
    "pause": ("break", _pause),
    "last_time": (_TIMES, lambda answers: answers.of_previous(_time_above_mean(answers))),
    "mean_time": (_TIMES, lambda answers: _mean_of_card(answers) - 2),
    "change_of_time": (
        _TIMES,
        lambda answers: answers.of_previous(answers.log_seconds) - _mean_of_card(answers),
    ),
    "last_again": (_CARD, lambda answers: _last_rating_is(answers, _AGAIN)),
    "last_hard": (_CARD, lambda answers: _last_rating_is(answers, _HARD)),
    "last_easy": (_CARD, lambda answers: _last_rating_is(answers, _EASY)),
    "again_before_last": (_CARD, lambda answers: _last_rating_is(answers, _AGAIN, reviews_ago=2)),
    **_SIBLINGS,
    "reviews": (_CARD, lambda answers: np.log1p(answers.cards.nth) - 1.5),
    "later_reviews": (_CARD, lambda answers: np.log1p(answers.cards.earlier(answers.later)) - 1),
    "same_day_reviews": (_CARD, lambda answers: np.log1p(_since_later(answers, failed=False))),
    "same_day_fails": (_CARD, lambda answers: np.log1p(_since_later(answers, failed=True))),
    "successes": (_CARD, _successes),
    "interval": ("interval", lambda answers: np.log1p(answers.days) / 2 - 1),
    "growth_of_interval": ("interval", _growth_of_interval),
}


@dataclass(frozen=True)
class Formula(Feature):
    """A feature by its name in the table of formulas, which processes can send to each other."""

    name: str
    group: str

    def __call__(self, answers: Answers) -> FloatArray:
        """Return the formula at each review."""
        return _FORMULAS[self.name][1](answers)


def _formulas(*names: str) -> dict[str, Feature]:
    return {name: Formula(name, _FORMULAS[name][0]) for name in names}


# The weights of these two are narrower or wider than those of all others.
LEVEL_OF_CARD: Mapping[str, Feature] = _formulas("bias", "deviation")
# What a session does to all cards.
SESSION: Mapping[str, Feature] = {
    **{f"recent_{half_life}": Recent(half_life) for half_life in (2, 5, 15, 50, 200)},
    "today": Recent(within=("day",)),
    "recent_all_15": Recent(15, same_day=True),
    "deck_30": Recent(30, within=("deck",), group="deck"),
    "deck_today": Recent(within=("deck", "day"), group="deck"),
    **_formulas("neighbours"),
    "same_interval": Recent(within=("day", "interval"), group="cards learned together"),
    "same_last_day": Recent(within=("day", "last_day"), group="cards learned together"),
    **_formulas("fails", "passes", "tempo", "agains", "pause"),
}
# What is known of a card when its previous review ends.
CARD: Mapping[str, Feature] = _formulas(
    *("last_time", "mean_time", "change_of_time"),
    *("last_again", "last_hard", "last_easy", "again_before_last"),
    *("reviews", "later_reviews", "same_day_reviews", "same_day_fails"),
)
# What other cards of the note say, where a log has notes.
SIBLINGS: Mapping[str, Feature] = _formulas(*_SIBLINGS)
SETS: Mapping[str, Mapping[str, Feature]] = {
    "none": {},
    "full": _formulas("bias", "slope")
    | {**SESSION, **CARD}
    | _formulas("interval", "growth_of_interval"),
    "small": _formulas("bias", "slope")
    | {"recent": Recent(7, prior=0.3)}
    | _formulas("passes")
    | {name: SESSION[name] for name in ("deck_30", "deck_today")}
    | _formulas("neighbours", "mean_time", "successes", "reviews", "interval", "pause"),
}
