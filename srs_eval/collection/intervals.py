"""Intervals and reviews a day that parameters make, with what the reviews leave open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srs_eval.algorithms.algorithm import MemoryModel, has_curve
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.current import CurrentParameters
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.collection.study import Study
from srs_eval.comparison.table import Table
from srs_eval.data.anki.presets import Preset
from srs_eval.data.cards import with_next_reviews
from srs_eval.data.reviews import IntArray, Reviews, Vector
from srs_eval.fitting import LEVEL, Ranges, next_intervals, sampled

# First answers of a card, and what they are called.
HISTORIES = {
    "Again": (1,),
    "Good": (3,),
    "Good twice": (3, 3),
    "Good three times": (3, 3, 3),
    "Good four times": (3, 3, 3, 3),
    "Good three times, then Again": (3, 3, 3, 1),
}
SHOWN = "Good three times"
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
        now = CurrentParameters(study.current).fit(study.log, _none(), np.random.default_rng(0))
        return cls(now, fitted.model, sampled(algorithm, fitted, _SEED, _DRAWS))


@dataclass(frozen=True, slots=True)
class Load:
    """Reviews a day that the next intervals of all cards ask for: the sum of their inverses."""

    cards: int
    now: float
    new: float
    # Change from now to new ones, as a share of now, and its range
    change: float
    lo: float
    hi: float
    recall: float = np.nan  # At the intervals of now, where SM-2 chose them, by the new ones


def load(study: Study, models: Models, kept: Collection[int]) -> Load | None:
    """Return the reviews a day of the cards that still exist; None if there are none.

    The presets in `kept` keep their parameters. Without FSRS, those of now are what Anki scheduled,
    of the cards of which that is known.
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

    def rates(model: MemoryModel) -> Vector:
        return 1 / np.clip(next_intervals(model, reviews, rows, wanted), 1, most)

    before, keeps = rates(models.now), np.isin(preset, list(kept))
    now = float((1 / days if study.is_off else before).sum())
    new, *draws = (
        np.array([np.where(keeps, before, rates(model)).sum()])
        for model in (models.new, *models.draws)
    )
    found = Ranges.of(new / now - 1, [draw / now - 1 for draw in draws], LEVEL)
    recall = np.nan
    if study.is_off and has_curve(models.new):
        recall = float(np.mean(models.new.predict_at(reviews, rows, days[:, None])))
    change, lo, hi = (float(each[0]) for each in found)
    return Load(len(rows), now, float(new[0]), change, lo, hi, recall)


@dataclass(frozen=True, slots=True)
class Next:
    """The interval of a card after usual answers, in a preset."""

    preset: int  # -1 where there are none
    now: float
    new: float
    lo: float
    hi: float
    most: float  # Days that the preset allows

    def too_long(self, longest: int) -> int | None:
        """Return a maximum to set, in days, if the new interval is far beyond the longest seen."""
        usual = max(round(_YEAR), longest)
        absurd = self.new > max(_LONG_ENOUGH, _TOO_LONG * longest) and self.most > usual
        return usual if absurd else None


def intervals(study: Study, models: Models) -> tuple[Table, list[Next]]:
    """Return the table of intervals after some answers, and one of them for each preset in it."""
    presets = list(study.presets)[:_MOST_PRESETS] or [-1]
    of_card = np.repeat(presets, len(HISTORIES))
    wanted, most = _asked(study, of_card)
    histories = [*HISTORIES.values()] * len(presets)
    reviews, rows = answered_on_time(models.new, histories, wanted, of_card.tolist())
    now, new, *draws = (
        np.minimum(next_intervals(model, reviews, rows, wanted), most)
        for model in (models.now, models.new, *models.draws)
    )
    found = Ranges.of(new, draws, LEVEL)
    lines, told = [], []
    for card, (days, lo, hi) in enumerate(zip(*found, strict=True)):
        preset, answers = int(of_card[card]), list(HISTORIES)[card % len(HISTORIES)]
        named = [study.title(preset)] if len(presets) > 1 else []
        lines.append([*named, answers, in_days(now[card]), in_days(days), span(lo, hi)])
        if answers == SHOWN:
            told.append(Next(preset, now[card], days, lo, hi, most[card]))
    shares = sorted({f"{100 * each:g} %" for each in wanted})
    columns = ["answers", "now" if study.current else "default", "new", f"{100 * LEVEL:g} % range"]
    title = f"Next interval of a card answered on time, at {' and '.join(shares)} recall"
    return Table([*["preset"] * (len(presets) > 1), *columns], lines, title=title), told


def in_days(days: float) -> str:
    """Format an interval.

    >>> [in_days(days) for days in (0.01, 0.3, 1.2, 23.4, 1000)]
    ['14 minutes', '7 hours', '1 day', '23 days', '2.7 years']
    """
    number, unit = _in_unit(days)
    return f"{number} {unit}"


def span(lo: float, hi: float) -> str:
    """Format the range of an interval; "-" where there is none.

    >>> span(17.2, 31), span(0.5, 2), span(17, 800), span(22.8, 23.1)
    ('17 to 31 days', '12 hours to 2 days', '17 days to 2.2 years', '23 days')
    """
    if np.isnan(lo):
        return "-"
    (low, first), (high, last) = _in_unit(lo), _in_unit(hi)
    if first.rstrip("s") != last.rstrip("s"):
        return f"{low} {first} to {high} {last}"
    return f"{high} {last}" if low == high else f"{low} to {high} {last}"


def _in_unit(days: float) -> tuple[str, str]:
    if days >= _LONG:
        return f"{days / _YEAR:.1f}", "years"
    sizes = ((1, "day"), (_HOURS, "hour"), (_MINUTES, "minute"))
    size, unit = next((each for each in sizes if round(days * each[0]) >= 1), sizes[-1])
    number = round(days * size)
    return str(number), unit if number == 1 else f"{unit}s"


def _asked(study: Study, preset: IntArray) -> tuple[Vector, Vector]:
    """Return the recall that presets ask for and their longest interval, or else Anki's usual."""
    wanted = np.full(len(preset), _USUAL)
    most = np.full(len(preset), float(Preset().longest_interval))
    for number, settings in study.settings.presets.items() if study.settings else ():
        wanted[preset == number] = settings.desired_retention
        most[preset == number] = settings.longest_interval
    return wanted, most


def _none() -> IntArray:
    return np.empty(0, np.int64)


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
    wanted = np.broadcast_to(np.asarray(retention, np.float64), len(histories))
    gaps = [[-1] for _ in histories]
    while True:
        reviews, rows = with_next_reviews(_log(histories, gaps, preset))
        rows = rows[np.argsort(reviews.card[rows])]
        open_cards = [n for n, own in enumerate(gaps) if len(own) < len(histories[n])]
        if not open_cards:
            return reviews, rows
        days = next_intervals(model, reviews, rows, wanted)
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
