"""The protocol of the public srs-benchmark in whole days.

Source: open-spaced-repetition/srs-benchmark, 2026. `docs/method.md` states every step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from srs_eval.cards import earlier_on_card, first_of_card
from srs_eval.errors import FitSkipped
from srs_eval.nouns import BoolArray, IntArray, Reviews, Task
from srs_eval.protocol.outliers import unusual_first_intervals
from srs_eval.protocol.split import expanding_folds

_LONGEST_HISTORY = 128
_FEWEST_TARGETS = 6
_FOLDS = 5
_AGAIN = 1


@dataclass(frozen=True, slots=True)
class SrsBenchmark:
    """Score the first review of each card and later day, in 5 expanding folds.

    Reviews on the day of the card's review before are never scored. Algorithms that say so
    (``same_day``) see them in the histories; the scored reviews are the same either way.
    """

    @property
    def name(self) -> str:
        """The name under which numbers are published."""
        return "srs_benchmark"

    @property
    def version(self) -> str:
        """Version of the rules below."""
        return "1"

    @property
    def folds(self) -> int:
        """Fits per user."""
        return _FOLDS

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter and split one user's log.

        Raises
        ------
        FitSkipped
            If fewer than 6 reviews can be scored.
        """
        everything = np.zeros(len(reviews), bool)
        seen = earlier_on_card(reviews.card, ~everything) < _LONGEST_HISTORY
        histories = reviews.take(seen)
        later_day = histories.elapsed_days > 0
        scored = later_day & ~_after_unusual_interval(histories, later_day)
        if scored.sum() < _FEWEST_TARGETS:
            reason = (
                f"user {reviews.user}: only {scored.sum()} of {len(reviews)} reviews can be "
                f"scored, {_FEWEST_TARGETS} are needed for {_FOLDS} folds"
            )
            raise FitSkipped(reason)
        nth_review = 1 + earlier_on_card(histories.card, later_day) + later_day
        lapses = earlier_on_card(histories.card, later_day & (histories.rating == _AGAIN))
        if not same_day:
            kept = histories.elapsed_days != 0
            histories, scored = histories.take(kept), scored[kept]
            nth_review, lapses = nth_review[kept], lapses[kept]
        return Task(
            reviews=_in_whole_days(histories),
            folds=expanding_folds(np.flatnonzero(scored), _FOLDS),
            nth_review=nth_review,
            lapses=lapses,
            log_row=histories.row,
        )


def _in_whole_days(reviews: Reviews) -> Reviews:
    """Give a log the clock of this protocol, and nothing finer.

    Seconds from answer to answer would tell how long the answer to be predicted took, and
    gaps between row numbers which reviews were filtered out.
    """
    return replace(
        reviews,
        elapsed=np.maximum(reviews.elapsed_days, 0).astype(np.float64),
        elapsed_seconds=None,
        row=np.arange(len(reviews)),
    )


def _after_unusual_interval(reviews: Reviews, later_day: BoolArray) -> BoolArray:
    """Mark every review of the cards whose first interval is an outlier."""
    second = np.flatnonzero(later_day & (earlier_on_card(reviews.card, later_day) == 0))
    first: IntArray = first_of_card(reviews.card)
    unusual = unusual_first_intervals(reviews.elapsed_days[second], reviews.rating[first[second]])
    return np.isin(reviews.card, reviews.card[second[unusual]])
