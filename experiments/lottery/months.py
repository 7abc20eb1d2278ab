"""The draws behind a collection of Anki: which rule gave each interval, month by month.

A table of reviews has the interval that each answer gave, and not the rule. A month counts as
reconstructed where one rule explains nearly all of its intervals, with the modifier of the preset
or with another, since presets change. Rules that repeat the draw have to give the very interval;
others, one of their lots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from options import IntervalOptions
from rules import EASY, GOOD, HARD, Answers, Lots, Rule, drawn, fuzz_bounds, fuzz_factor, possible

from srs_eval.data.anki.collection import FILTERED, MANUAL, CollectionLog
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

MATCHED = 0.95
FEWEST_ROWS = 15
SEED = "v3, draw only"  # the interval before the draw is not known, or was balanced

EASE_STEP, LEAST_EASE = 150, 1300
DIFFICULTY = (100, 1100)  # where FSRS writes a difficulty in place of the ease
ALMOST_ONE = 1 - 2**-24
FACTORS = np.arange(0.3, 2.6, 0.02)
WORTH_A_FACTOR = 0.3  # log likelihood per row
MISMATCH, EXACT, BALANCED = np.log(0.001), np.log(0.99), 0.02
LOOKED_AT = 1500

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
    """Which rule explains the intervals of a month best; compared by what comes first."""

    explained: bool  # whether the rule can have given nearly all intervals
    likelihood: float  # mean logarithm per row
    matched: float  # share of the rows
    rule: str
    modifier: float  # of the one in the preset


@dataclass(frozen=True)
class Draws:
    """What was drawn by lot for one user, and what was not and why."""

    table: pd.DataFrame  # `row` of the log whose answer got the interval, its `days`, and `rule`
    lots: Lots  # what could have been drawn, at least two intervals each
    months: pd.DataFrame
    excluded: Counter[str]  # answers, by reason


def reconstructed(log: CollectionLog, options: Mapping[int, IntervalOptions]) -> Draws:
    """Reconstruct the draws of a collection, whose presets have the given options."""
    excluded: Counter[str] = Counter()
    answers = in_review(log, options, excluded)
    months = []
    nothing = np.zeros(0, np.int64)
    parts = [pd.DataFrame({"row": nothing, "days": nothing, "rule": ""})]
    lots = [pd.DataFrame({"days": nothing, "weight": np.zeros(0)})]
    for number in np.unique(answers.month):
        own = answers[(answers.month == number) & ~answers.by_fsrs]
        if len(own) < FEWEST_ROWS:
            excluded[FEW] += len(own)
            continue
        month = best_rule(own)
        own.modifier *= month.modifier
        matched = matches(month.rule, own)[0]
        share = float(matched.mean())
        name = str(np.datetime64(int(number), "M"))
        months.append({"month": name, "rows": len(own), "rule": month.rule})
        months[-1] |= {"modifier": month.modifier, "matched": share}
        if share < MATCHED:
            excluded[UNEXPLAINED] += len(own)
            continue
        excluded[OTHERWISE] += int(np.sum(~matched))
        own = own[matched]
        rule = Rule.V3 if month.rule == SEED else Rule(month.rule)
        days = drawn(rule, own, own.draw) if rule.is_seeded else own.given
        parts.append(pd.DataFrame({"row": own.row, "days": days, "rule": str(month.rule)}))
        answer, days, weight = possible(rule, own)
        lots.append(pd.DataFrame({"days": days, "weight": weight}, own.row[answer]))
    own = answers[answers.by_fsrs]
    if len(own):
        days, answer, every = around_a_guess(own)
        parts.append(pd.DataFrame({"row": own.row, "days": days, "rule": SEED}))
        lots.append(pd.DataFrame({"days": every, "weight": 1.0}, own.row[answer]))
    table, every = pd.concat(parts).sort_values("row"), pd.concat(lots)
    place = np.searchsorted(table["row"], every.index)
    found = Lots.of_weights(len(table), place, every["days"].to_numpy(), every["weight"].to_numpy())
    several = np.bincount(found.answer, minlength=len(table)) > 1
    excluded[CERTAIN] += int(np.sum(~several))
    table = table[several].reset_index(drop=True)
    return Draws(table, found.take(several), pd.DataFrame(months), +excluded)


def in_review(
    log: CollectionLog, options: Mapping[int, IntervalOptions], excluded: Counter[str]
) -> Answers:
    """Return the answers to cards in review, on their day or later, and what was known before.

    Beside what rules need: the `row` of the log, the days `given`, the `draw` of version 3, the
    days `elapsed`, whether FSRS gave the interval, and the `month` since 1970.
    """
    table, rows = log.revlog, log.rows
    day = (table.id - 1000 * log.start) // 86_400_000
    cards = rows_by_card(table.cid)
    before = cards.previous()[rows]
    count = cards.earlier((table.ease > 0) & (table.type <= FILTERED))[rows]
    rating, factor, given = table.ease[rows], table.factor[rows], table.ivl[rows]
    last, last_factor = table.ivl[before], table.factor[before]
    elapsed = day[rows] - day[before]
    by_fsrs = (factor >= DIFFICULTY[0]) & (factor <= DIFFICULTY[1])
    ease, is_known = ease_before(rating, factor, np.maximum(last_factor, 0))
    crammed = (table.type[before] == FILTERED) & (last_factor == 0)
    kept = np.ones(len(rows), np.bool_)
    for reason, out in {
        UNREAD: (table.type[rows] != 1) | (before < 0),
        FORGOTTEN: (rating == 1) | (given <= 0),
        BY_HAND: (table.type[before] >= MANUAL) | crammed,
        NO_INTERVAL: last <= 0,
        EARLY: elapsed < last,
        NO_EASE: ~is_known & ~by_fsrs,
    }.items():
        excluded[reason] += int(np.sum(kept & out))
        kept &= ~out
    columns = {
        "row": log.reviews.row,
        **{"rating": rating, "interval": last, "late": elapsed - last, "ease": ease},
        **preset_options(log.reviews.preset, len(rows), options),
        **{"given": given, "draw": fuzz_factor(table.cid[rows], count), "elapsed": elapsed},
        "by_fsrs": by_fsrs,
        "month": table.id[rows].astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64),
    }
    return np.rec.fromarrays([column[kept] for column in columns.values()], names=[*columns])


def ease_before(rating: IntArray, factor: IntArray, last: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return the ease before each answer, and whether the row before agrees; `last` 0: unknown."""
    ease = factor - np.select([rating == HARD, rating == EASY], [-EASE_STEP, EASE_STEP], 0)
    clipped = (rating == HARD) & (factor == LEAST_EASE)
    could_be = np.clip(last, LEAST_EASE, LEAST_EASE + EASE_STEP)
    ease = np.where(clipped, np.where(last > 0, could_be, LEAST_EASE), ease)
    return ease / 1000, (last == 0) | (last == ease) | clipped


def preset_options(
    preset: IntArray | None, n: int, options: Mapping[int, IntervalOptions]
) -> dict[str, FloatArray]:
    """Return modifier, factors of Hard and Easy, and longest interval, as the presets have them."""
    usual = next(iter(options.values())) if len(options) == 1 else IntervalOptions()
    presets, place = np.unique(np.full(n, -1) if preset is None else preset, return_inverse=True)
    every = [options.get(number, usual) for number in presets.tolist()]
    names = ("modifier", "hard", "easy", "maximum")
    return {name: np.array([float(getattr(one, name)) for one in every])[place] for name in names}


def best_rule(own: Answers) -> Month:
    """Find the rule, and the factor of the modifier, that explain a month best."""
    some = own[:: -(-len(own) // LOOKED_AT)]
    best = max(tried(some, np.ones(1)))
    if not best.explained:
        other = max(tried(some, FACTORS))
        if other.likelihood > best.likelihood + WORTH_A_FACTOR:
            return other
    return best


def tried(own: Answers, factors: FloatArray) -> Iterator[Month]:
    """Try every rule with factors of the modifier, all at once."""
    n = len(own)
    every = own[np.tile(np.arange(n), len(factors))]
    every.modifier *= np.repeat(factors, n)
    for rule in (*Rule, SEED):
        matched, likelihood = matches(rule, every)
        means = np.where(matched, likelihood, MISMATCH).reshape(-1, n).mean(1).tolist()
        shares = matched.reshape(-1, n).mean(1).tolist()
        for factor, mean, share in zip(factors.tolist(), means, shares, strict=True):
            yield Month(share >= MATCHED, mean, share, rule, factor)


def matches(rule: str, own: Answers) -> tuple[BoolArray, FloatArray]:
    """Return which intervals a rule can have given, and the log likelihood of those, [n] each."""
    base = Rule.V3 if rule == SEED else Rule(rule)
    if rule != SEED and base.is_seeded:
        return drawn(base, own, own.draw) == own.given, np.full(len(own), EXACT)
    low, high = drawn(base, own, 0.0), drawn(base, own, ALMOST_ONE)
    likelihood = -np.log(high - low + 1) - (BALANCED if rule == SEED else 0)
    return (low <= own.given) & (own.given <= high), likelihood


def around_a_guess(own: Answers) -> tuple[IntArray, IntArray, IntArray]:
    """Return what version 3 would have drawn around an interval that is guessed beforehand.

    FSRS derives intervals from its memory of the card, which the table does not have. The draw
    stays random whatever the interval was; a poor guess only makes it a weaker instrument. The
    guess is the time that went by, times the median growth after the rating. Beside the days, all
    possible ones, which are equally probable, with the number of their answer.
    """
    growth = np.ones(len(own))
    for rating in (HARD, GOOD, EASY):
        chosen = own.rating == rating
        growth[chosen] = np.median(own.given[chosen] / own.elapsed[chosen]) if chosen.any() else 1
    low, high = fuzz_bounds(own.elapsed * growth, 1, own.maximum)
    width = (1 + high - low).astype(np.float32)
    days = np.floor(low.astype(np.float32) + own.draw * width).astype(np.int64)
    count = high - low + 1
    number = np.repeat(np.arange(len(own)), count)
    every = np.arange(count.sum()) + np.repeat(low - np.cumsum(count) + count, count)
    return np.minimum(days, high), number, every
