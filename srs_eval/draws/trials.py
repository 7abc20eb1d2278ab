"""Reviews whose interval was drawn by lot, and what a model says of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from srs_eval.cards import rows_by_card
from srs_eval.draws.estimate import Effect, effect
from srs_eval.draws.lots import Lots, joined
from srs_eval.errors import ConfigError
from srs_eval.nouns import (
    Algorithm,
    BoolArray,
    FloatArray,
    IntArray,
    MemoryModel,
    Reviews,
    has_curve,
)
from srs_eval.protocol.candidates import in_whole_days

_NEVER = -1
_HALVES = (0, 1)
# How long before the last day of its deck the latest possible due day has to be.
_MARGIN_DAYS, _MARGIN_SHARE = 7, 0.3


@dataclass(frozen=True, slots=True)
class Assignments:
    """Intervals that were drawn by lot: a table beside a log, which no model reads."""

    row: IntArray  # [n]: Row of the log whose answer got the interval
    drawn: IntArray  # [n]: Days
    lots: Lots  # What else could have been drawn

    def __len__(self) -> int:
        """Count the intervals."""
        return len(self.row)

    def take(self, chosen: IntArray | BoolArray) -> Assignments:
        """Select some, by number or by mask."""
        return Assignments(self.row[chosen], self.drawn[chosen], self.lots.take(chosen))


def in_time(assigned: Assignments, day: IntArray, last_day: IntArray) -> BoolArray:
    """Return which intervals end, however they were drawn, well before a last day; [n] each."""
    high = assigned.lots.high
    margin = np.maximum(_MARGIN_DAYS, _MARGIN_SHARE * high)
    kept: BoolArray = day + high + margin <= last_day
    return kept


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of the card after each interval; [n] each."""

    seen: BoolArray  # Whether it was reviewed on a later day
    row: IntArray  # Row of the log of that review, -1 if there was none
    elapsed: IntArray  # Days until then
    recalled: BoolArray
    later_row: IntArray  # Row of the review on a later day after that, -1 if there was none
    later_recalled: BoolArray


def outcomes(reviews: Reviews, row: IntArray) -> Outcomes:
    """Find the next two reviews on later days of the cards of some rows."""
    (kept,) = np.nonzero(reviews.elapsed_days != 0)
    following = np.full(len(kept), _NEVER)
    previous = rows_by_card(reviews.card[kept]).previous()
    (after,) = np.nonzero(previous >= 0)
    following[previous[after]] = after
    place = np.searchsorted(reviews.row[kept], row)
    is_kept = np.isin(row, reviews.row[kept])
    place[~is_kept] = 0
    first = np.where(is_kept, following[place], _NEVER)
    second = np.where(first >= 0, following[first], _NEVER)
    log_row = reviews.row[kept]
    return Outcomes(
        seen=first >= 0,
        row=np.where(first >= 0, log_row[first], _NEVER),
        elapsed=reviews.elapsed_days[kept][first],
        recalled=reviews.recalled[kept][first],
        later_row=np.where(second >= 0, log_row[second], _NEVER),
        later_recalled=reviews.recalled[kept][second],
    )


@dataclass(frozen=True, slots=True)
class Trials:
    """Reviews after an interval that was drawn by lot; [n] each."""

    user: IntArray  # Code of the user
    card: IntArray  # Code of the card, different for all users
    recalled: FloatArray  # Outcome, 0 or 1
    elapsed: FloatArray  # Days that went by
    drawn: IntArray  # Days that were drawn
    lots: Lots
    rule: NDArray[np.str_]  # By which the interval was drawn
    row: IntArray  # Row of the user's log
    later_recalled: FloatArray  # Outcome of the review after; NaN where there is none

    def __len__(self) -> int:
        """Count the reviews."""
        return len(self.user)

    @property
    def log_drawn(self) -> FloatArray:
        """Logarithm of the interval drawn, less its mean over the lots: the instrument."""
        return np.log(self.drawn) - self.lots.mean_log

    @property
    def log_elapsed(self) -> FloatArray:
        """Logarithm of the days that went by, less the same mean: the exposure."""
        return np.log(self.elapsed) - self.lots.mean_log

    @property
    def cell(self) -> IntArray:
        """Number of the user, rule and lots."""
        _, rule = np.unique(self.rule, return_inverse=True)
        return self.lots.cells(self.user, rule)

    def take(self, chosen: IntArray | BoolArray) -> Trials:
        """Select some, by number or by mask."""
        arrays = [field.name for field in fields(self) if field.name != "lots"]
        taken = {name: getattr(self, name)[chosen] for name in arrays}
        return Trials(**taken, lots=self.lots.take(chosen))


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a model says of trials, having learned from other cards; [n] each, NaN where nothing."""

    actual: FloatArray  # Recall after the days that went by
    drawn: FloatArray  # Recall after the days that were drawn
    mean: FloatArray  # Mean of the recall after all days that could have been drawn
    later: FloatArray  # Recall at the review after

    @property
    def instrument(self) -> FloatArray:
        """By how much the draw changed the prediction; its mean is 0 by design."""
        return self.drawn - self.mean

    def take(self, chosen: IntArray | BoolArray) -> Predicted:
        """Select some, by number or by mask."""
        return Predicted(*[getattr(self, field.name)[chosen] for field in fields(self)])


def nothing_predicted(n: int) -> Predicted:
    """Return that nothing is known of n trials."""
    return Predicted(*np.full((4, n), np.nan))


def trials_of(
    reviews: Reviews,
    assigned: Assignments,
    found: Outcomes,
    rule: NDArray[np.str_] | None = None,
) -> Trials:
    """Return the trials of one user: intervals after which the card was seen again."""
    rules = np.full(len(assigned), "") if rule is None else rule
    kept = assigned.take(found.seen)
    _, card = np.unique(reviews.card, return_inverse=True)
    has_later = found.later_row[found.seen] >= 0
    return Trials(
        user=np.zeros(len(kept), np.int64),
        card=card[np.searchsorted(reviews.row, kept.row)],
        recalled=found.recalled[found.seen].astype(float),
        elapsed=found.elapsed[found.seen].astype(float),
        drawn=kept.drawn,
        lots=kept.lots,
        rule=rules[found.seen],
        row=found.row[found.seen],
        later_recalled=np.where(has_later, found.later_recalled[found.seen], np.nan),
    )


def pooled(parts: Sequence[Trials]) -> Trials:
    """Return the trials of several users, each with a code of its own."""
    renamed, cards = [], 0
    for code, part in enumerate(parts):
        renamed.append(replace(part, user=part.user + code, card=part.card + cards))
        cards += int(part.card.max(initial=-1)) + 1
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in renamed])
        for field in fields(Trials)
        if field.name != "lots"
    }
    return Trials(**columns, lots=joined([part.lots for part in renamed]))


def predicted(
    reviews: Reviews,
    assigned: Assignments,
    found: Outcomes,
    algorithm: Algorithm,
    rng: np.random.Generator,
) -> Predicted:
    """Predict the trials of one user by models that have learned from the other half of the cards.

    Raise what the algorithm raises, and `ConfigError` if its model has no forgetting curve.
    """
    known, targets = in_whole_days(reviews.seen_by(algorithm), same_day=algorithm.same_day)
    _, card = np.unique(known.reviews.card, return_inverse=True)
    half = rng.permutation(card.max() + 1)[card] % 2
    seen = assigned.take(found.seen)
    target = _places(known.log_row, found.row[found.seen])
    later = _places(known.log_row, found.later_row[found.seen])
    result = nothing_predicted(len(seen))
    for side in _HALVES:
        rows = targets[half[targets] != side]
        model = algorithm.fit(known.reviews, rows, rng)
        (own,) = np.nonzero((target >= 0) & (half[target] == side))
        if len(own):
            elapsed = found.elapsed[found.seen][own].astype(float)
            values = _at(model, known.reviews, target[own], elapsed, seen.take(own))
            result.actual[own], result.drawn[own], result.mean[own] = values
        (own,) = np.nonzero((later >= 0) & (half[later] == side))
        if len(own):
            result.later[own] = model.predict(known.reviews, later[own])
    return result


def _at(
    model: MemoryModel, reviews: Reviews, target: IntArray, elapsed: FloatArray, seen: Assignments
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predict at the days that went by, those drawn, and, on average, those possible."""
    if not has_curve(model):
        raise ConfigError(f"{type(model).__name__} has no forgetting curve")
    actual, drawn, mean = np.empty((3, len(target)))
    for own, days in _alike(seen.lots):
        at = np.column_stack([elapsed[own], seen.drawn[own], days])
        p = np.asarray(model.predict_at(reviews, target[own], at), np.float64)
        actual[own], drawn[own] = p[:, 0], p[:, 1]
        lots = seen.lots.take(own)
        possible = np.arange(days.shape[1]) < lots.count[:, None]
        mean[own] = lots.mean(p[:, 2:][possible])
    return actual, drawn, mean


def _alike(lots: Lots) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield answers with about as many possible intervals, and these, with the last repeated."""
    count = lots.count
    size = 2 ** np.ceil(np.log2(count)).astype(np.int64)
    for width in np.unique(size):
        (own,) = np.nonzero(size == width)
        place = np.minimum(np.arange(width), count[own, None] - 1)
        yield own, lots.days[lots.begins[own, None] + place].astype(float)


def _places(log_row: IntArray, wanted: IntArray) -> IntArray:
    """Return where rows of the log are among those kept, -1 where they are not."""
    place = np.minimum(np.searchsorted(log_row, wanted), len(log_row) - 1)
    return np.where(log_row[place] == wanted, place, _NEVER)


def ratio(trials: Trials, model: Predicted, outcome: FloatArray, cluster: IntArray) -> Effect:
    """Return how much an outcome changes by lot, over how much the model says it changes.

    1 if the model is causally right. With the true probability of recall as `outcome`, it is the
    ratio that the truth has.
    """
    held = ~np.isnan(model.actual)
    own, kept = model.take(held), cluster[held]
    return effect(own.instrument, outcome[held] - own.mean, own.actual - own.mean, kept)
