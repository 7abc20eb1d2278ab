"""The draws behind a collection of Anki: which rule gave each interval, found month by month.

A table of reviews has the interval that each answer gave, and not the rule. A month counts as
reconstructed where one rule explains nearly all of its intervals, with the modifier of the preset
or with another, since presets change. Rules that repeat the draw have to give the very interval;
others, one of their lots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from srs_eval.cards import rows_by_card
from srs_eval.data.anki.collection import CollectionLog
from srs_eval.data.anki.fuzz import fuzz_bounds, fuzz_factor, fuzzed
from srs_eval.data.anki.presets import IntervalOptions
from srs_eval.data.anki.rules import FILTERED, MANUAL
from srs_eval.draws.lots import Lots, joined
from srs_eval.draws.rules import Before, Rule, drawn, lots_of
from srs_eval.draws.trials import Assignments
from srs_eval.nouns import BoolArray, FloatArray, IntArray

MATCHED = 0.95
FEWEST_ROWS = 15
SEED = "v3, draw only"  # the interval before the draw is not known, or was balanced

_REVIEW = 1
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_EASE_STEP, _LEAST_EASE = 150, 1300
_DIFFICULTY = (100, 1100)  # where FSRS writes a difficulty in place of the ease
_ALMOST_ONE = 1 - 2**-24
_FACTORS = np.arange(0.3, 2.6, 0.02)
_WORTH_A_FACTOR = 0.3  # log likelihood per row
_MISMATCH, _EXACT, _BALANCED = np.log(0.001), np.log(0.99), 0.02
_LOOKED_AT = 1500

UNREAD = "in learning, relearning or a filtered deck"
FORGOTTEN = "forgotten"
BY_HAND = "after a change by hand, by rescheduling or by cramming"
NO_INTERVAL = "after an interval of less than a day"
EARLY = "before the card was due"
NO_EASE = "whose ease before the answer is not known"
FEW = f"in months with fewer than {FEWEST_ROWS} such answers"
UNEXPLAINED = f"in months of which no rule explains {MATCHED:.0%}"
OTHERWISE = "not given by the rule of their month"
CERTAIN = "with only one possible interval"


class Month(NamedTuple):
    """Which rule explains the intervals of a month."""

    month: str
    rows: int
    rule: str
    modifier: float  # Of the one in the preset
    matched: float  # Share of the rows


@dataclass(frozen=True, slots=True)
class Draws:
    """What was drawn by lot for one user, and what was not and why."""

    assigned: Assignments  # Of answers with at least two lots
    rule: Sequence[str]  # Of each
    months: Sequence[Month] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)  # Answers, by reason


@dataclass(slots=True)
class _Sieve:
    """Answers that are still in, and how many are out for which reason."""

    kept: BoolArray
    excluded: dict[str, int]

    def drop(self, reason: str, rows: BoolArray) -> None:
        """Leave rows out, [n]."""
        if count := int(np.sum(self.kept & rows)):
            self.excluded[reason] = self.excluded.get(reason, 0) + count
        self.kept = self.kept & ~rows


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers whose interval may have been drawn; [n] each."""

    row: IntArray  # Row of the log
    before: Before
    interval: IntArray  # Days that were given
    draw: FloatArray  # What version 3 draws
    elapsed: IntArray
    by_fsrs: BoolArray
    month: IntArray  # Months since 1970

    def take(self, chosen: IntArray | BoolArray) -> _Answers:
        """Select some, by number or by mask."""
        names = ("row", "interval", "draw", "elapsed", "by_fsrs", "month")
        taken = {name: getattr(self, name)[chosen] for name in names}
        return _Answers(before=self.before.take(chosen), **taken)


def reconstructed(log: CollectionLog, options: Mapping[int, IntervalOptions]) -> Draws:
    """Reconstruct the draws of a collection, whose presets have the given options."""
    sieve = _Sieve(np.ones(len(log.rows), np.bool_), {})
    answers = _answers(log, options, sieve)
    parts = list(_by_rule(answers, sieve.excluded))
    months = [month for part in parts for month in part.months]
    if not parts:
        nothing = Lots(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        empty = np.zeros(0, np.int64)
        return Draws(Assignments(empty, empty, nothing), [], months, sieve.excluded)
    found = [part.assigned for part in parts]
    rows = np.concatenate([one.row for one in found])
    days = np.concatenate([one.drawn for one in found])
    rules = np.repeat([part.rule for part in parts], [len(one) for one in found])
    together = Assignments(rows, days, joined([one.lots for one in found]))
    order = np.argsort(rows)
    order = order[together.lots.count[order] > 1]
    if certain := len(rows) - len(order):
        sieve.excluded[CERTAIN] = certain
    return Draws(together.take(order), rules[order].tolist(), months, sieve.excluded)


def _answers(log: CollectionLog, options: Mapping[int, IntervalOptions], sieve: _Sieve) -> _Answers:
    """Find the answers to cards in review, on their day or later, and what was known before."""
    table, rows, day = log.revlog, log.rows, log.day
    cards = rows_by_card(table.cid)
    before = cards.previous()[rows]
    count = cards.earlier((table.ease >= _AGAIN) & (table.type <= FILTERED))[rows]
    kind, rating, factor = table.type[rows], table.ease[rows], table.factor[rows]
    last, last_factor = table.ivl[before], table.factor[before]
    elapsed = day[rows] - day[before]
    by_fsrs = (factor >= _DIFFICULTY[0]) & (factor <= _DIFFICULTY[1])
    ease, is_known = _ease_before(rating, factor, np.maximum(last_factor, 0))
    crammed = (table.type[before] == FILTERED) & (last_factor == 0)
    sieve.drop(UNREAD, (kind != _REVIEW) | (before < 0))
    sieve.drop(FORGOTTEN, (rating == _AGAIN) | (table.ivl[rows] <= 0))
    sieve.drop(BY_HAND, (table.type[before] >= MANUAL) | crammed)
    sieve.drop(NO_INTERVAL, last <= 0)
    sieve.drop(EARLY, elapsed < last)
    sieve.drop(NO_EASE, ~is_known & ~by_fsrs)
    preset = log.reviews.preset
    chosen = _options(np.full(len(rows), -1) if preset is None else preset, options)
    known = Before(rating, last, elapsed - last, ease, *chosen)
    month = table.id[rows].astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    draw = fuzz_factor(table.cid[rows], count)
    row = log.reviews.row
    answers = _Answers(row, known, table.ivl[rows], draw, elapsed, by_fsrs, month)
    return answers.take(sieve.kept)


def _ease_before(
    rating: IntArray, factor: IntArray, last: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Return the ease before each answer, and whether the row before agrees; `last` 0: unknown."""
    step = np.select([rating == _HARD, rating == _EASY], [-_EASE_STEP, _EASE_STEP], 0)
    ease = factor - step
    clipped = (rating == _HARD) & (factor == _LEAST_EASE)
    could_be = np.clip(last, _LEAST_EASE, _LEAST_EASE + _EASE_STEP)
    ease = np.where(clipped, np.where(last > 0, could_be, _LEAST_EASE), ease)
    return ease / 1000, (last == 0) | (last == ease) | clipped


def _options(preset: IntArray, options: Mapping[int, IntervalOptions]) -> Iterator[FloatArray]:
    """Yield modifier, factors of Hard and Easy, and longest interval, as the presets have them."""
    usual = next(iter(options.values())) if len(options) == 1 else IntervalOptions()
    presets, place = np.unique(preset, return_inverse=True)
    every = [options.get(number, usual) for number in presets.tolist()]
    for name in ("modifier", "hard", "easy", "maximum"):
        yield np.array([getattr(each, name) for each in every], np.float64)[place]


class _Part(NamedTuple):
    """Draws by one rule, and the months they are from."""

    rule: str
    assigned: Assignments
    months: list[Month]


def _by_rule(answers: _Answers, excluded: dict[str, int]) -> Iterator[_Part]:
    """Reconstruct each month, and yield those of the same rule together."""
    groups: dict[str, list[_Answers]] = {}
    months: dict[str, list[Month]] = {}
    for number in np.unique(answers.month):
        own = answers.take((answers.month == number) & ~answers.by_fsrs)
        if len(own.row) < FEWEST_ROWS:
            _count(excluded, FEW, len(own.row))
            continue
        found, own, matched = _explained(own)
        months.setdefault(found.rule, []).append(found)
        if found.matched < MATCHED:
            _count(excluded, UNEXPLAINED, found.rows)
            continue
        _count(excluded, OTHERWISE, int(np.sum(~matched)))
        groups.setdefault(found.rule, []).append(own.take(matched))
    for rule, parts in groups.items():
        yield _Part(
            rule, joined_assignments([_lots(rule, part) for part in parts]), months.pop(rule)
        )
    by_fsrs = answers.take(answers.by_fsrs)
    if len(by_fsrs.row):
        unexplained = [month for rest in months.values() for month in rest]
        yield _Part(SEED, _around_a_guess(by_fsrs), unexplained)


def _count(excluded: dict[str, int], reason: str, rows: int) -> None:
    if rows:
        excluded[reason] = excluded.get(reason, 0) + rows


def joined_assignments(parts: Sequence[Assignments]) -> Assignments:
    """Return the intervals of several tables, one after the other."""
    rows, days = (np.concatenate([getattr(p, n) for p in parts]) for n in ("row", "drawn"))
    return Assignments(rows, days, joined([part.lots for part in parts]))


def _explained(own: _Answers) -> tuple[Month, _Answers, BoolArray]:
    """Find the rule and the modifier that explain a month best, and which of its rows."""
    some = own.take(np.arange(0, len(own.row), -(-len(own.row) // _LOOKED_AT)))
    best = max(_tried(some, np.ones(1)))
    if not best.explains:
        other = max(_tried(some, _FACTORS))
        if other.likelihood > best.likelihood + _WORTH_A_FACTOR:
            best = other
    own = _modified(own, best.factor)
    matched = _matches(best.rule, own)[0]
    name = str(np.datetime64(int(own.month[0]), "M"))
    month = Month(name, len(own.row), best.rule, best.factor, float(matched.mean()))
    return month, own, matched


class _Trial(NamedTuple):
    """How well a rule explains a month; compared by what comes first."""

    explains: bool  # Whether it can have given nearly all intervals
    likelihood: float  # Mean logarithm per row
    matched: float
    rule: str
    factor: float


def _tried(own: _Answers, factors: FloatArray) -> Iterator[_Trial]:
    """Try every rule with factors of the modifier, all at once."""
    n = len(own.row)
    every = own.take(np.tile(np.arange(n), len(factors)))
    modified = _modified(every, np.repeat(factors, n))
    for rule in (*Rule, SEED):
        matched, likelihood = _matches(rule, modified)
        means = np.where(matched, likelihood, _MISMATCH).reshape(-1, n).mean(1).tolist()
        shares = matched.reshape(-1, n).mean(1).tolist()
        for factor, mean, share in zip(factors.tolist(), means, shares, strict=True):
            yield _Trial(share >= MATCHED, mean, share, rule, factor)


def _modified(own: _Answers, factor: FloatArray | float) -> _Answers:
    return replace(own, before=replace(own.before, modifier=own.before.modifier * factor))


def _matches(rule: str, own: _Answers) -> tuple[BoolArray, FloatArray]:
    """Return which intervals a rule can have given, and the log likelihood of those, [n] each."""
    base = Rule.V3 if rule == SEED else Rule(rule)
    if rule != SEED and base.is_seeded:
        return drawn(base, own.before, own.draw) == own.interval, np.full(len(own.row), _EXACT)
    low, high = drawn(base, own.before, 0.0), drawn(base, own.before, _ALMOST_ONE)
    likelihood = -np.log(high - low + 1) - (_BALANCED if rule == SEED else 0)
    return (low <= own.interval) & (own.interval <= high), likelihood


def _lots(rule: str, own: _Answers) -> Assignments:
    """Return the lots of answers; where only the draw is known, what it would have given."""
    base = Rule.V3 if rule == SEED else Rule(rule)
    days = drawn(base, own.before, own.draw) if base.is_seeded else own.interval
    return Assignments(own.row, days, lots_of(base, own.before))


def _around_a_guess(own: _Answers) -> Assignments:
    """Return what version 3 would have drawn around an interval that is guessed beforehand.

    FSRS derives intervals from its memory of the card, which the table does not have. The draw
    stays random whatever the interval was; a poor guess only makes it a weaker instrument. The
    guess is the time that went by, times the median growth after the rating.
    """
    guess = np.zeros(len(own.row))
    for rating in (_HARD, _GOOD, _EASY):
        chosen = own.before.rating == rating
        if chosen.any():
            growth = np.median(own.interval[chosen] / own.elapsed[chosen])
            guess[chosen] = own.elapsed[chosen] * growth
    low, high = fuzz_bounds(guess, 1, own.before.maximum)
    return Assignments(own.row, fuzzed(low, high, own.draw), Lots.uniform(low, high))
