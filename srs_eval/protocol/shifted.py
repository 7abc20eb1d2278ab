"""Learn from short intervals and predict long ones, or the reverse.

A scheduler asks a model about intervals that its user has hardly had. Logs do not show how well it
answers, because reviews that are learned from and reviews that are scored have the same intervals.
Here they have not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.nouns import Fold, IntArray, Reviews, Task
from srs_eval.protocol.candidates import FOLDS, in_whole_days
from srs_eval.protocol.split import expanding_folds, on_folds, used_rows

_SIDES = ("short", "long")
_CHOICES = {"train": (*_SIDES, "both"), "test": _SIDES, "median": ("user", "card")}
_UNUSED = "outside both parts of the shifted split"


@dataclass(frozen=True, slots=True)
class Shifted:
    """Learn from one side of the median interval, and score the other, in the folds of the public.

    The blocks are those of `SrsBenchmark`. Of each, only the reviews on the side `test` are scored,
    by a model that learned from the reviews before the block on the side `train`. Short intervals
    are those up to the median of the intervals before the block, which is all that it is taken of.

    Parameters
    ----------
    train : str
        ``short``, ``long``, or ``both`` for a fit to compare with: it scores the same reviews, and
        learns from as many as the other side has, spread evenly over all reviews before the block.
    test : str
        ``long`` or ``short``, the side that `train` is not.
    median : str
        Whether the median is that of the ``user`` or of each ``card``. A card without an interval
        before the block has no median, and is not scored there.
    """

    version: ClassVar[str] = "1"
    folds: ClassVar[int] = FOLDS
    train: str = "short"
    test: str = "long"
    median: str = "user"

    def __post_init__(self) -> None:
        """Refuse unknown words, and a test of what was learned from."""
        wrong = [
            f"{option}={getattr(self, option)} is not one of: {', '.join(choices)}"
            for option, choices in _CHOICES.items()
            if getattr(self, option) not in choices
        ]
        if not wrong and self.train == self.test:
            wrong = [
                f"train={self.train} and test={self.test} are the same side of the median; "
                f"expected train={_other(self.test)} or train=both"
            ]
        if wrong:
            raise ConfigError("\n".join(wrong))

    @property
    def name(self) -> str:
        """The name, with both sides, and whose median it is if it is not the user's."""
        own = "_by_card" if self.median == "card" else ""
        return f"shifted_{self.train}_to_{self.test}{own}"

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter one user's log as `SrsBenchmark` does, and split it twice."""
        task, targets = in_whole_days(reviews, same_day=same_day)
        parts = [self._part(task.reviews, block) for block in expanding_folds(targets, FOLDS)]
        whole = [part for part in parts if len(part.train) and len(part.test)]
        unused = len(targets) - len(used_rows(whole))
        dropped = {**task.dropped, **({_UNUSED: unused} if unused else {})}
        what = (
            f"user {reviews.user}: no block of {len(targets)} reviews has {self.test} intervals "
            f"after {_other(self.test)} ones"
        )
        return on_folds(task, whole, dropped, what)

    def _part(self, reviews: Reviews, block: Fold) -> Fold:
        """Keep one side of a block, and the other side, or as many rows, of what comes before."""
        group = reviews.card if self.median == "card" else np.zeros_like(reviews.card)
        before, after = (
            _sides(reviews.elapsed_days, group, block.train, rows)
            for rows in (block.train, block.test)
        )
        train = block.train[before == _SIDES.index(_other(self.test))]
        if self.train == "both":
            spread = np.linspace(0, len(block.train) - 1, len(train))
            train = block.train[spread.round().astype(np.int64)]
        return replace(block, train=train, test=block.test[after == _SIDES.index(self.test)])


def _other(side: str) -> str:
    return _SIDES[1 - _SIDES.index(side)]


def _sides(days: IntArray, group: IntArray, known: IntArray, rows: IntArray) -> IntArray:
    """Return 0 for rows up to the median of their group's known rows, 1 above it, -1 without one.

    Of an even number of intervals, the median is the lower of the two in the middle.
    """
    order = known[np.lexsort((days[known], group[known]))]
    groups, begins, counts = np.unique(group[order], return_index=True, return_counts=True)
    medians = days[order[begins + (counts - 1) // 2]]
    at = np.minimum(np.searchsorted(groups, group[rows]), len(groups) - 1)
    return np.where(groups[at] == group[rows], days[rows] > medians[at], -1)
