"""Which reviews of a log the public rules keep, and which of them can be scored.

Every protocol of this package begins with these rules, and goes on with a split.
`docs/method.md` states each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from srs_eval.cards import CardRows, rows_by_card
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.nouns import BoolArray, FloatArray, Fold, IntArray, Reviews, Task
from srs_eval.protocol.outliers import unusual_first_intervals
from srs_eval.protocol.pauses import pause_warning, until_previous_answer

FOLDS = 5
_LONGEST_HISTORY = 128
_FEWEST_TARGETS = 6
_AGAIN = 1
_SECONDS_PER_DAY = 86_400
_SHORTEST_SECONDS = 1.0
_FIRST_OF_CARD = "the first of their card"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Histories on a protocol's clock, and what of them can be scored."""

    reviews: Reviews  # The histories as algorithms may see them
    # [n]: Row numbers of the reviews that can be scored or learned from, in time order
    targets: IntArray
    # [len(reviews)]: As in `Task`
    nth_review: IntArray
    lapses: IntArray
    last_rating: IntArray
    recalls: IntArray
    log_row: IntArray
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    unscored: Mapping[str, int] = field(default_factory=dict)

    def task(self, folds: Sequence[Fold], *, warm_start: bool = False) -> Task:
        """Return which targets are learned from, and which are scored."""
        return Task(
            reviews=self.reviews,
            folds=folds,
            nth_review=self.nth_review,
            lapses=self.lapses,
            last_rating=self.last_rating,
            recalls=self.recalls,
            log_row=self.log_row,
            warm_start=warm_start,
            notes=self.notes,
            dropped=self.dropped,
            unscored=self.unscored,
        )


def in_whole_days(reviews: Reviews, *, same_day: bool) -> Candidates:
    """Keep the first review of each card and later day, but for cards with an odd beginning.

    With `same_day`, histories keep reviews on the day of the card's review before. The targets are
    the same either way.
    """
    histories, cards = _within_longest_history(reviews)
    later_day = histories.elapsed_days > 0
    earlier_days = cards.earlier(later_day)
    unusual = _after_unusual_interval(histories, cards, later_day & (earlier_days == 0))
    scored = later_day & ~unusual
    out = _LeftOut(
        _counted({"of cards whose first interval is rare in the user's log": later_day & unusual})
        | _after_longest(reviews, histories),
        _counted(
            {
                _FIRST_OF_CARD: histories.elapsed_days < 0,
                "on the day of the card's review before": histories.elapsed_days == 0,
            }
        ),
    )
    _require_enough(reviews, histories, scored, out)
    nth_review = 1 + earlier_days + later_day
    lapses = cards.earlier(later_day & (histories.rating == _AGAIN))
    last_rating, recalls = cards.last(histories.rating), cards.earlier(histories.recalled)
    if not same_day:
        kept = histories.elapsed_days != 0
        histories, scored = histories.take(kept), scored[kept]
        nth_review, lapses = nth_review[kept], lapses[kept]
        last_rating, recalls = last_rating[kept], recalls[kept]
    days = np.maximum(histories.elapsed_days, 0).astype(np.float64)
    return Candidates(
        reviews=_on_a_clock(histories, days, whole_days=True),
        targets=np.flatnonzero(scored),
        nth_review=nth_review,
        lapses=lapses,
        last_rating=last_rating,
        recalls=recalls,
        log_row=histories.row,
        dropped=out.dropped,
        unscored=out.unscored,
    )


def in_seconds(reviews: Reviews, *, answer_time: bool, previous_answer: bool) -> Candidates:
    """Keep every review but a card's first, and those within the second of the one before.

    Same-day reviews are kept in all histories, and no card is an outlier. Intervals end when the
    question is shown; with `answer_time` with its answer, as published; with `previous_answer`
    with the previous answer to any card, within a session. The targets are always the same.
    """
    histories, cards = _within_longest_history(reviews)
    later_day = histories.elapsed_days > 0
    since_answer = _seconds_since_answer(histories)
    targets = np.flatnonzero(since_answer > 0)
    first = histories.elapsed_days < 0
    out = _LeftOut(
        _counted({"within a second of the answer before": ~first & (since_answer <= 0)})
        | _after_longest(reviews, histories),
        _counted({_FIRST_OF_CARD: first}),
    )
    _require_enough(reviews, histories, since_answer > 0, out)
    seconds = since_answer if answer_time else _until_asked(since_answer, histories.duration_ms)
    notes: tuple[str, ...] = ()
    if previous_answer:
        until_answer, goes_on = until_previous_answer(histories)
        until_answer = np.maximum(np.rint(until_answer), _SHORTEST_SECONDS)
        seconds = np.where(goes_on & (since_answer > 0), until_answer, seconds)
    elif warning := pause_warning(histories):
        notes = (f"user {reviews.user}: {warning}",)
    return Candidates(
        reviews=_on_a_clock(histories, seconds / _SECONDS_PER_DAY, whole_days=False),
        targets=targets,
        nth_review=1 + cards.earlier(later_day) + later_day,
        lapses=cards.earlier(histories.rating == _AGAIN),
        last_rating=cards.last(histories.rating),
        recalls=cards.earlier(histories.recalled),
        log_row=histories.row,
        notes=notes,
        dropped=out.dropped,
        unscored=out.unscored,
    )


def _within_longest_history(reviews: Reviews) -> tuple[Reviews, CardRows]:
    """Drop what comes after the 128th review of a card, and find the rows of each card."""
    cards = rows_by_card(reviews.card)
    if cards.lengths.max(initial=0) <= _LONGEST_HISTORY:
        return reviews, cards
    histories = reviews.take(cards.nth < _LONGEST_HISTORY)
    return histories, rows_by_card(histories.card)


def _after_unusual_interval(reviews: Reviews, cards: CardRows, is_second: BoolArray) -> BoolArray:
    """Mark every review of the cards whose first interval is an outlier.

    `is_second` marks the first review of each card on a later day.
    """
    second = np.flatnonzero(is_second)
    first_rating = reviews.rating[cards.first()[second]]
    unusual = np.zeros(len(reviews), bool)
    unusual[second] = unusual_first_intervals(reviews.elapsed_days[second], first_rating)
    return cards.any(unusual)


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Reviews that are no targets, as in `Task`."""

    dropped: Mapping[str, int]
    unscored: Mapping[str, int]


def _counted(rows: Mapping[str, BoolArray]) -> dict[str, int]:
    counts = {rule: int(np.count_nonzero(chosen)) for rule, chosen in rows.items()}
    return {rule: count for rule, count in counts.items() if count}


def _after_longest(reviews: Reviews, histories: Reviews) -> dict[str, int]:
    count = len(reviews) - len(histories)
    return {f"after the {_LONGEST_HISTORY}th of their card": count} if count else {}


def _require_enough(reviews: Reviews, histories: Reviews, scored: BoolArray, out: _LeftOut) -> None:
    """Raise if too few reviews can be scored, with the number that each rule leaves out.

    `histories` are the log without what comes after the longest history.
    """
    targets = int(np.count_nonzero(scored))
    if targets >= _FEWEST_TARGETS:
        return
    counts = {**out.unscored, **out.dropped}
    reasons = ", ".join(f"{count:,} {rule}" for rule, count in counts.items())
    raise FitSkipped(
        f"user {reviews.user}: only {targets} of {len(reviews):,} reviews can be scored, "
        f"{_FEWEST_TARGETS} are needed for {FOLDS} folds; left out: {reasons}",
        dropped=out.dropped,
        unscored=out.unscored,
        could_score=_more_in_seconds(histories, targets),
    )


def _more_in_seconds(histories: Reviews, targets: int) -> dict[str, int]:
    """Return the protocol that has no outliers and scores same-day reviews, if it scores more."""
    if histories.elapsed_seconds is None:
        return {}
    in_seconds = int(np.count_nonzero(histories.elapsed_seconds > 0))
    if in_seconds < _FEWEST_TARGETS or in_seconds <= targets:
        return {}
    return {"srs_benchmark_secs": FOLDS * (in_seconds // (FOLDS + 1))}


def _seconds_since_answer(reviews: Reviews) -> FloatArray:
    if reviews.elapsed_seconds is None:
        raise ReviewLogError(
            f"user {reviews.user}",
            ["no seconds between answers (elapsed_seconds), which this protocol counts"],
            "Take a protocol in whole days, such as protocol=srs_benchmark, or a log with times.",
        )
    return np.maximum(reviews.elapsed_seconds, 0.0)


def _until_asked(since_answer: FloatArray, duration_ms: FloatArray | None) -> FloatArray:
    """Subtract each review's own answer time, so that its interval does not reveal it.

    What is left is rounded to whole seconds, like the intervals of the data: the fraction of
    a second would be that of the answer time. Where less than a second is left, which is
    within the error of the clock, there is one, so that no recall is asked for at no time.
    """
    if duration_ms is None:
        return since_answer
    until_asked = np.rint(since_answer - duration_ms / 1000)
    return np.where(since_answer > 0, np.maximum(until_asked, _SHORTEST_SECONDS), 0.0)


def _on_a_clock(reviews: Reviews, elapsed: FloatArray, *, whole_days: bool) -> Reviews:
    """Return the log on the clock of a protocol, without anything finer.

    Seconds from answer to answer would reveal how long the answer to be predicted took, and
    gaps between row numbers which reviews were filtered out.
    """
    return replace(
        reviews,
        elapsed=elapsed,
        whole_days=whole_days,
        elapsed_seconds=None,
        row=np.arange(len(reviews)),
    )
