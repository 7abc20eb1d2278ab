"""Numbers that describe the moment at which a card is shown: what the session filter weighs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from srs_eval.algorithms.sessions.answers import Answers
from srs_eval.nouns import Vector

_AGAIN, _HARD, _EASY = 1, 2, 4
# What is left of the means of answer times after another: of the user's, and of a card's.
_USER_KEEPS, _CARD_KEEPS = 0.966, 0.7
_USUAL_LOG_SECONDS = 2.0


class Feature(ABC):
    """A number for each review, known when its card is shown.

    Features should be about 0 on average and at most about 1 in size: nothing is standardised.
    """

    group: str = "other"  # Features that are shown together in tables and figures

    @abstractmethod
    def __call__(self, answers: Answers) -> Vector:
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
    group: str = "recent answers"

    def __call__(self, answers: Answers) -> Vector:
        """Return the bias at each review."""
        columns = [getattr(answers, name) for name in self.within]
        counted = answers.predicted if self.same_day else answers.later
        return answers.bias(self.half_life, answers.grouped(*columns), self.prior, counted)


@dataclass(frozen=True)
class Formula(Feature):
    """A feature that is a formula of the answers."""

    formula: Callable[[Answers], Vector]
    group: str

    def __call__(self, answers: Answers) -> Vector:
        """Return the formula at each review."""
        return self.formula(answers)


def _bias(answers: Answers) -> Vector:
    return np.ones(len(answers))


def _slope(answers: Answers) -> Vector:
    return answers.z


def _deviation(answers: Answers) -> Vector:
    return answers.z - 2


def _neighbours(answers: Answers) -> Vector:
    return answers.bias_of_neighbours(prior=0.5)


def _in_a_row(answers: Answers, *, recalled: bool) -> Vector:
    """Count the later-day answers of the day before each review, since one ended otherwise."""
    alike = answers.later & (answers.reviews.recalled == recalled)
    otherwise = answers.later & ~alike
    new_day = np.diff(answers.day, prepend=answers.day[:1]) > 0
    ended = np.concatenate([[False], otherwise[:-1]])[: len(answers)] | new_day
    return answers.faded(alike, np.cumsum(ended))


def _fails(answers: Answers) -> Vector:
    return np.log1p(_in_a_row(answers, recalled=False))


def _passes(answers: Answers) -> Vector:
    return np.log1p(_in_a_row(answers, recalled=True)) / 2


def _agains(answers: Answers) -> Vector:
    today = answers.grouped(answers.day)
    again = answers.faded(~answers.reviews.recalled, today)
    return (again + 0.5) / (answers.faded(np.ones(len(answers)), today) + 2) - 0.2


def _pause(answers: Answers) -> Vector:
    days = np.diff(answers.day, prepend=answers.day[:1])
    begins = np.maximum.accumulate(np.where(days > 0, np.arange(len(answers)), 0))
    return np.log(np.maximum(days[begins], 1))


def _mean_of_user(answers: Answers) -> Vector:
    """Return the running mean of the user's log answer times, each answer included."""
    new = (1 - _USER_KEEPS) * answers.log_seconds
    new[:1] += _USER_KEEPS * _USUAL_LOG_SECONDS
    everything = np.zeros(len(answers), np.int64)
    return _USER_KEEPS * answers.faded(new, everything, _USER_KEEPS) + new


def _mean_of_card(answers: Answers) -> Vector:
    """Return the running mean of the card's log answer times before each review."""
    time = answers.log_seconds
    new = np.where(answers.previous < 0, time, (1 - _CARD_KEEPS) * time)
    return answers.faded(new, answers.card, _CARD_KEEPS)


def _tempo(answers: Answers) -> Vector:
    latest = answers.log_seconds - _mean_of_user(answers)
    return np.concatenate([[0.0], latest[:-1]])[: len(answers)]


def _last_time(answers: Answers) -> Vector:
    return answers.of_previous(answers.log_seconds - _mean_of_user(answers))


def _mean_time(answers: Answers) -> Vector:
    return _mean_of_card(answers) - 2


def _change_of_time(answers: Answers) -> Vector:
    return answers.of_previous(answers.log_seconds) - _mean_of_card(answers)


def _last_rating_is(answers: Answers, rating: int) -> Vector:
    return np.asarray(answers.of_previous(answers.reviews.rating) == rating, np.float64)


def _last_again(answers: Answers) -> Vector:
    return _last_rating_is(answers, _AGAIN)


def _last_hard(answers: Answers) -> Vector:
    return _last_rating_is(answers, _HARD)


def _last_easy(answers: Answers) -> Vector:
    return _last_rating_is(answers, _EASY)


def _again_before_last(answers: Answers) -> Vector:
    before_last = answers.of_previous(answers.of_previous(answers.reviews.rating))
    return np.asarray(before_last == _AGAIN, np.float64)


def _interval(answers: Answers) -> Vector:
    return np.log1p(np.maximum(answers.reviews.elapsed_days, 0)) / 2 - 1


def _growth_of_interval(answers: Answers) -> Vector:
    days = np.log1p(np.maximum(answers.reviews.elapsed_days, 0).astype(np.float64))
    before = answers.faded(days, answers.card, 0.0, answers.later)
    return np.clip(days - before, -3.0, 3.0)


def _reviews(answers: Answers) -> Vector:
    return np.log1p(answers.cards.nth) - 1.5


def _later_reviews(answers: Answers) -> Vector:
    return np.log1p(answers.cards.earlier(answers.later)) - 1


def _since_later(answers: Answers, *, failed: bool) -> Vector:
    """Count the card's same-day answers since its last later-day review."""
    counted = ~answers.later & (answers.previous >= 0)
    if failed:
        counted &= ~answers.reviews.recalled
    # A later-day answer belongs to the stretch it begins.
    stretch = answers.grouped(answers.card, answers.cards.earlier(answers.later) + answers.later)
    before = answers.faded(counted, stretch) + counted
    return answers.of_previous(before)


def _same_day_reviews(answers: Answers) -> Vector:
    return np.log1p(_since_later(answers, failed=False))


def _same_day_fails(answers: Answers) -> Vector:
    return np.log1p(_since_later(answers, failed=True))


def _successes(answers: Answers) -> Vector:
    return (
        np.log1p(answers.cards.earlier(answers.later))
        - np.log1p(_since_later(answers, failed=True))
        - np.log1p(answers.cards.nth) / 2
        - 0.25
    )


LEVEL = "level"
_CARD, _TIMES, _BREAK = "history of the card", "answer times", "break"

# The weights of these two are narrower or wider than those of all others.
_LEVEL = {"bias": Formula(_bias, LEVEL), "slope": Formula(_slope, LEVEL)}
LEVEL_OF_CARD: Mapping[str, Feature] = MappingProxyType(
    {"bias": Formula(_bias, LEVEL), "deviation": Formula(_deviation, LEVEL)}
)
# What a session does to all cards.
SESSION: Mapping[str, Feature] = MappingProxyType(
    {
        "recent_2": Recent(2),
        "recent_5": Recent(5),
        "recent_15": Recent(15),
        "recent_50": Recent(50),
        "recent_200": Recent(200),
        "today": Recent(within=("day",)),
        "recent_all_15": Recent(15, same_day=True),
        "deck_30": Recent(30, within=("deck",), group="deck"),
        "deck_today": Recent(within=("deck", "day"), group="deck"),
        "neighbours": Formula(_neighbours, "cards learned together"),
        "same_interval": Recent(within=("day", "interval"), group="cards learned together"),
        "same_last_day": Recent(within=("day", "last_day"), group="cards learned together"),
        "fails": Formula(_fails, "recent answers"),
        "passes": Formula(_passes, "recent answers"),
        "tempo": Formula(_tempo, _TIMES),
        "agains": Formula(_agains, "recent answers"),
        "pause": Formula(_pause, _BREAK),
    }
)
# What is known of a card when its previous review ends.
CARD: Mapping[str, Feature] = MappingProxyType(
    {
        "last_time": Formula(_last_time, _TIMES),
        "mean_time": Formula(_mean_time, _TIMES),
        "change_of_time": Formula(_change_of_time, _TIMES),
        "last_again": Formula(_last_again, _CARD),
        "last_hard": Formula(_last_hard, _CARD),
        "last_easy": Formula(_last_easy, _CARD),
        "again_before_last": Formula(_again_before_last, _CARD),
        "reviews": Formula(_reviews, _CARD),
        "later_reviews": Formula(_later_reviews, _CARD),
        "same_day_reviews": Formula(_same_day_reviews, _CARD),
        "same_day_fails": Formula(_same_day_fails, _CARD),
    }
)
_INTERVAL = {
    "interval": Formula(_interval, "interval"),
    "growth_of_interval": Formula(_growth_of_interval, "interval"),
}
SETS: Mapping[str, Mapping[str, Feature]] = MappingProxyType(
    {
        "full": MappingProxyType({**_LEVEL, **SESSION, **CARD, **_INTERVAL}),
        "small": MappingProxyType(
            {
                **_LEVEL,
                "recent": Recent(7, prior=0.3),
                "passes": SESSION["passes"],
                "deck_30": SESSION["deck_30"],
                "deck_today": SESSION["deck_today"],
                "neighbours": SESSION["neighbours"],
                "mean_time": CARD["mean_time"],
                "successes": Formula(_successes, _CARD),
                "reviews": CARD["reviews"],
                "interval": _INTERVAL["interval"],
                "pause": SESSION["pause"],
            }
        ),
    }
)
