"""Intervals and reviews a day that parameters make, with what the reviews leave open."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srs_eval.algorithms.algorithm import MemoryModel, has_curve
from srs_eval.algorithms.combined import PerGroup
from srs_eval.algorithms.fsrs.current import CurrentParameters
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.collection.study import Study
from srs_eval.comparison.words import counted
from srs_eval.data.anki.groups import Preset
from srs_eval.data.cards import with_next_reviews
from srs_eval.data.reviews import IntArray, Reviews, Vector
from srs_eval.exports.intervals import LEVEL, next_intervals, ranges, sampled

# First answers of a card, and what they are called.
HISTORIES = {
    "Again": (1,),
    "Good": (3,),
    "2 Good": (3, 3),
    "3 Good": (3, 3, 3),
    "4 Good": (3, 3, 3, 3),
    "3 Good, Again": (3, 3, 3, 1),
}
SHOWN = "3 Good"
_USUAL = 0.9
_DRAWS, _SEED = 100, 0
_MOST_PRESETS = 3
_HOURS, _MINUTES, _YEAR = 24, 1440, 365.25
_LONG = 730  # Days that are told as years
# An interval is too long if it is so many times the longest that was reviewed, and as many days.
_TOO_LONG, _LONG_ENOUGH = 3, 730


@dataclass(frozen=True, slots=True)
class Models:
    """Parameters of now and new ones as models, and draws around the new ones."""

    now: MemoryModel
    new: MemoryModel
    draws: list[MemoryModel]

    @classmethod
    def of(cls, study: Study) -> Models | None:
        """Return the models of a collection; None if nothing could be fitted."""
        fitted = study.final.by_user[study.log.user]
        if fitted.model is None:
            return None
        algorithm: Any = PerGroup(Fsrs6()) if study.fitted is study.several else Fsrs6()
        now = CurrentParameters(study.current).fit(
            study.log, np.empty(0, np.int64), np.random.default_rng(0)
        )
        return cls(now, fitted.model, sampled(algorithm, fitted, _SEED, _DRAWS))


@dataclass(frozen=True, slots=True)
class Load:
    """Reviews a day that the next intervals of all cards ask for: the sum of their inverses."""

    cards: int
    now: float
    # With new parameters, and the range that the reviews leave open about these
    new: float
    lo: float
    hi: float
    recall: float  # At the new intervals, by the new parameters


def load(
    study: Study, models: Models, kept: Collection[int] = (), maximum: float = math.inf
) -> Load | None:
    """Return the reviews a day of the cards that still exist; None if there are none.

    The presets in `kept` keep their parameters; `maximum` is the longest new interval. Without
    FSRS, those of now are what Anki scheduled, of the cards of which that is known.
    """
    reviews, rows = with_next_reviews(study.log)
    if reviews.preset is not None:
        rows = rows[reviews.preset[rows] >= 0]
    days = np.array([study.scheduled.get(card, 0.0) for card in reviews.card[rows].tolist()])
    if study.is_off:
        rows, days = rows[days > 0], days[days > 0]
    if not len(rows):
        return None
    preset = np.full(len(rows), -1) if reviews.preset is None else reviews.preset[rows]
    wanted, most = _asked(study, preset)
    keeps = np.isin(preset, list(kept))

    def spaced(model: MemoryModel) -> Vector:
        return np.clip(next_intervals(model, reviews, rows, wanted), 1, most)

    before = spaced(models.now)

    def by_new(model: MemoryModel) -> Vector:
        return np.where(keeps, before, np.minimum(spaced(model), maximum))

    new = by_new(models.new)
    rates = [np.array([(1 / each).sum()]) for each in (new, *map(by_new, models.draws))]
    (lo,), (hi,) = ranges(rates[0], rates[1:], LEVEL)
    assert has_curve(models.new)
    recall = float(np.mean(models.new.predict_at(reviews, rows, new[:, None])))
    now = float((1 / (days if study.is_off else before)).sum())
    return Load(len(rows), now, float(rates[0][0]), float(lo), float(hi), recall)


@dataclass(frozen=True, slots=True)
class Next:
    """The interval of a card after some answers, in a preset."""

    preset: int  # -1 where there are none
    answers: str
    now: float
    new: float
    lo: float
    hi: float
    most: float  # Days that the preset allows

    def is_too_long(self, longest: int, *, supported: bool = True) -> bool:
        """Whether the new interval is far beyond the longest that was reviewed.

        Where reviews do not support long intervals, whether it is beyond that at all.
        """
        far = max(_LONG_ENOUGH, _TOO_LONG * longest) if supported else longest
        return self.new > far and self.most > usual_maximum(longest)


def usual_maximum(longest: int) -> int:
    """Return the maximum interval that reviews support: the longest, at least a year."""
    return max(round(_YEAR), longest)


def intervals(study: Study, models: Models) -> list[Next]:
    """Return the interval after some answers on time, in the largest presets."""
    presets = list(study.presets)[:_MOST_PRESETS] or [-1]
    of_card = np.repeat(presets, len(HISTORIES))
    wanted, most = _asked(study, of_card)
    histories = [*HISTORIES.values()] * len(presets)
    reviews, rows = answered_on_time(models.new, histories, wanted, of_card.tolist())
    now, new, *draws = (
        np.minimum(next_intervals(model, reviews, rows, wanted), most)
        for model in (models.now, models.new, *models.draws)
    )
    columns = (of_card, [*HISTORIES] * len(presets), now, new, *ranges(new, draws, LEVEL), most)
    return [Next(int(preset), *rest) for preset, *rest in zip(*columns, strict=True)]


def in_days(days: float) -> str:
    """Format an interval.

    >>> [in_days(days) for days in (0.01, 0.3, 1.2, 23.4, 1000)]
    ['14 minutes', '7 hours', '1 day', '23 days', '2.7 years']
    """
    if days >= _LONG:
        return f"{days / _YEAR:.1f} years"
    sizes = ((1, "day"), (_HOURS, "hour"), (_MINUTES, "minute"))
    size, unit = next((each for each in sizes if round(days * each[0]) >= 1), sizes[-1])
    return counted(days * size, unit)


def _asked(study: Study, preset: IntArray) -> tuple[Vector, Vector]:
    """Return the recall that presets ask for and their longest interval, or else Anki's usual."""
    retention = np.full(len(preset), _USUAL)
    most = np.full(len(preset), float(Preset().longest_interval))
    for number, settings in study.settings.presets.items() if study.settings else ():
        retention[preset == number] = settings.desired_retention
        most[preset == number] = settings.longest_interval
    return retention, most


def answered_on_time(
    model: MemoryModel,
    histories: Sequence[Sequence[int]],
    retention: float | Vector = 0.9,
    preset: Sequence[int] | None = None,
) -> tuple[Reviews, IntArray]:
    """Return a log with a card for each history of ratings, and the row of each card's next review.

    Each answer but the first is given after the interval of `model`, in whole days, at least one
    and at most 100 years. `preset` is that of each card.
    """
    target = np.broadcast_to(np.asarray(retention, np.float64), len(histories))
    gaps = [[-1] for _ in histories]
    while True:
        reviews, rows = with_next_reviews(_log(histories, gaps, preset))
        rows = rows[np.argsort(reviews.card[rows])]
        open_cards = [n for n, own in enumerate(gaps) if len(own) < len(histories[n])]
        if not open_cards:
            return reviews, rows
        days = next_intervals(model, reviews, rows, target)
        for card in open_cards:
            gaps[card].append(int(np.clip(np.rint(days[card]), 1, 36500)))


def _log(
    histories: Sequence[Sequence[int]], gaps: Sequence[Sequence[int]], preset: Sequence[int] | None
) -> Reviews:
    """Return the log of the answers whose intervals are known."""
    sizes = [len(own) for own in gaps]
    card = np.repeat(np.arange(len(gaps)), sizes)
    rating = np.concatenate([h[:n] for h, n in zip(histories, sizes, strict=True)])
    gap = np.concatenate(gaps)
    day = np.concatenate([np.cumsum([0, *own[1:]]) for own in gaps])
    order = np.argsort(day, kind="stable")
    return Reviews(
        user="made up",
        card=card,
        day=day,
        rating=rating,
        elapsed_days=gap,
        elapsed=np.maximum(gap, 0).astype(np.float64),
        row=np.arange(len(card)),
        preset=None if preset is None else np.asarray(preset)[card],
    ).take(order)
