"""The protocol of the public srs-benchmark in whole days.

Source: open-spaced-repetition/srs-benchmark, 2026. `docs/method.md` states every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from srs_eval.nouns import Reviews, Task
from srs_eval.protocol.candidates import FOLDS, in_whole_days
from srs_eval.protocol.split import expanding_folds


@dataclass(frozen=True, slots=True)
class SrsBenchmark:
    """Score the first review of each card and later day, in 5 expanding folds.

    Reviews on the day of the card's review before are never scored. Algorithms that say so
    (``same_day``) see them in the histories; the scored reviews are the same either way.
    """

    name: ClassVar[str] = "srs_benchmark"
    version: ClassVar[str] = "1"
    folds: ClassVar[int] = FOLDS

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        candidates = in_whole_days(reviews, same_day=same_day)
        return candidates.task(expanding_folds(candidates.targets, FOLDS))
