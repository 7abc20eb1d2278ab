"""Logistic regression on 34 features of a card's history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import FittedLogOdds, LogLoss, LogOddsOf, linear
from srs_eval.algorithms.fitted import Problem
from srs_eval.algorithms.history import History, history_of
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Adam, Recipe, shuffles

_MEAN = (
    -.9012, -.6941, -.6258, -.4678, .3926, .1316, .3508, -.3259, -.2125, -.1402, 1.2775, .0669,
    .3914, .5828, .9292, 1.1583, 1.4103, .9388, .9164, .9797, -.6411, .4951, .1038, -.1564, .4332,
    .3287, .3429, .4068, -.1779, -.0585, -.1062, -.3521, -.1613, -.1758,
)  # fmt: skip
_SPREAD = (
    .2869, .2811, .2910, .2166, .1740, .1612, .1428, .1352, .1284, .0331, .4013, .2065, .2022,
    .1670, .2454, .2954, .2896, .3473, .5685, .2795, .1298, .0467, .1200, .1317, .0785, .1190,
    .0854, .1634, .1892, .1052, .0750, .1913, .1372, .0783,
)  # fmt: skip
_DECAY = 0.3
_SHUFFLE_SEED = 42
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4


def features(history: History, rows: IntArray, elapsed: FloatArray) -> FloatArray:
    """Compute the published 34 features of reviews that come `elapsed` days after the one before.

    A review is *counted* if it came at a later time than the one before it on its card. Each
    counted review stands for the rating of the review just before it, and for the interval of the
    counted review before it. What is said of a card's first review means nothing.
    """
    reviews, cards = history.reviews, history.cards
    counted = (reviews.elapsed > 0) & (history.cards.nth > 0)
    previous = np.maximum(cards.previous(), 0)
    ratings, latest = reviews.rating[previous], _last_before(history, counted)
    failed, is_first = ratings == _AGAIN, latest < 0
    # The interval that a card's first counted review stands for is of no day.
    later = ~is_first & (reviews.elapsed_days[latest] > 0)
    sooner = ~is_first & ~later
    intervals = np.where(is_first, 0.0, reviews.elapsed[latest])
    # This review may itself be one from which time counts anew; it stands for what was before it.
    anew = failed | is_first
    since = np.where(anew, np.arange(len(reviews)), _last_before(history, counted & anew))
    age = history.clock[history.place][previous]

    def log_count(event: BoolArray) -> FloatArray:
        """Logarithm of 1 + the reviews of an event up to each of `rows`, which itself counts."""
        count = (cards.earlier(event & counted) + event)[rows]
        return np.log1p(count.astype(np.float64))

    failed_sooner, passed_sooner = log_count(failed & sooner), log_count(~failed & sooner)
    failed_later, passed_later = log_count(failed & later), log_count(~failed & later)
    rating, first, first_rating = ratings[rows], is_first[rows], reviews.rating[cards.first()][rows]
    time, same_day = _squeezed(elapsed), on_same_day(history, rows, elapsed)
    of_rating = [rating == each for each in (_HARD, _GOOD, _EASY)]
    of_first_rating = [first_rating == each for each in (_HARD, _GOOD, _EASY)]
    passed_first = first_rating > _AGAIN
    columns = [
        time,
        *(time * each for each in of_rating),
        *(time * (first & each) for each in (rating == _HARD, rating > _HARD)),
        time * failed_sooner,
        *(time * each * ~same_day for each in (passed_later, failed_later)),
        time * passed_sooner,
        np.ones(len(rows)),
        *of_rating,
        *of_first_rating,
        *(first & each for each in of_first_rating),
        failed_sooner,
        passed_later * ~same_day,
        _squeezed(intervals[rows]),
        failed_later,
        passed_later,
        passed_sooner * same_day,
        log_count(~failed) > 0,
        _squeezed((age - age[since])[rows]),
        same_day,
        _squeezed(age[rows]),
        *(passed_first * each for each in (failed_sooner, failed_later)),
        *(passed_first * log_count(each) for each in (~later, later)),
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
    happened = event[order]
    earlier: IntArray = (np.cumsum(happened) - happened)[history.place]  # on other cards, too
    latest = np.append(order[happened], -1)[earlier - 1]
    return np.where(history.cards.earlier(event) > 0, latest, -1)


def _squeezed(days: FloatArray) -> FloatArray:
    """Logarithm of a time, on a scale where intervals lie around 0."""
    squeezed: FloatArray = (np.log(days + 1e-5) + 1.3) / 5
    return squeezed


@dataclass(frozen=True, slots=True)
class LogisticEquations:
    """Log-odds of recall as a weighted sum of 34 features."""

    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        _MEAN, lower=(-math.inf,) * 34, upper=(math.inf,) * 34, spread=_SPREAD
    )

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        return linear(features(history, rows, elapsed))


class Logistic(FittedLogOdds):
    """Logistic regression of recall on features of a card's history.

    From the public benchmark (srs-benchmark, 2026). Reads elapsed time, whole days and ratings,
    those of same-day reviews included; 34 parameters. Made for fractional days: in
    whole days it cannot count same-day reviews, and is far worse. More recent training reviews
    count more: 0.1 + 0.9 x**4 with x from 0 for the oldest to 1, unless said otherwise. Published
    row, without same-day reviews: log loss 0.3393, RMSE(bins) 0.0604, AUC 0.7108.

    The public trainer moves each coefficient in units of a scale of its own; ``newton`` takes
    these scales for the spread among users, with a prior of weight 0.3.
    """

    name = "logistic"
    mathematics = LogisticEquations
    same_day = True
    own_recency = "quartic"
    published_recency = "quartic"
    own_prior_weight = 0.3
    recipe = Recipe(
        learning_rate=0.2,
        betas=(0.0, 0.85),
        epochs=10,
        batch=2048,
        keep="last",
        sort=False,
        longest_history=None,
        decimals=None,
    )

    def trained(self, problem: Problem, rows: IntArray, start: FloatArray) -> FloatArray:
        """Train as the public benchmark does: AdamW on how many spreads each one has moved.

        The original shuffles reviews without a seed; here it is PyTorch's order of seed 42.
        """
        reviews, recipe, spread = problem.reviews, self.recipe, np.asarray(_SPREAD)
        inputs = features(history_of(reviews), rows, reviews.elapsed[rows])
        recalled, weight = reviews.recalled[rows].astype(np.float64), self.weights(len(rows))
        cuts, moved = recipe.cuts(len(rows)), np.zeros(len(start))
        steps = len(cuts) * recipe.epochs
        adam = Adam(recipe, len(start), steps)
        orders = islice(shuffles(len(rows), _SHUFFLE_SEED), recipe.epochs)
        batches = (np.array(order)[cut] for order in orders for cut in cuts)
        for step, batch in enumerate(batches):
            loss = LogLoss(linear(inputs[batch]), recalled[batch], weight[batch])
            gradient = loss.gradient(start + spread * moved).gradient
            rate = recipe.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
            moved = moved * (1 - rate * _DECAY) - adam.step(gradient * spread)
        return start + spread * moved
