"""The protocol of the public srs-benchmark in whole days, with five fits or more.

Source: open-spaced-repetition/srs-benchmark, 2026. `docs/method.md` states every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from annotated_types import Ge
from pydantic import Strict

from srs_eval.data.reviews import Reviews
from srs_eval.protocol.candidates import FOLDS, in_whole_days
from srs_eval.protocol.split import expanding_folds
from srs_eval.protocol.task import EvaluationProtocol, Flag, Task

Refits = Annotated[int, Strict(), Ge(FOLDS)]


@dataclass(frozen=True)
class SrsBenchmark:
    """Learn from and score each card's first review of each day after its first, in 5 folds.

    Fits learn from all of these before the block they are tested on, the first from a sixth. Others
    of a day are in the histories of algorithms that say so (``same_day``), and are never scored.
    Cards whose first interval is rare for the user are left out, and so is what follows a card's
    128th review; users with fewer than 6 rows are skipped (`in_whole_days`).

    How often a model is refitted moves its numbers more than which of its relatives it is, so more
    than five fits have a name of their own: their numbers belong beside each other.

    Parameters
    ----------
    refits : int
        Fits per user, 5 or more: the test rows are cut into so many blocks of nearly equal
        size, one for each row where there are fewer rows.
    warm_start : bool
        Whether algorithms that can (`WarmStarting`) start each of more than five fits from the one
        before. With five, every one starts from nothing, as in the public protocol.
    """

    version: ClassVar[str] = "1"
    refits: Refits = FOLDS
    warm_start: Flag = True

    @property
    def name(self) -> str:
        """The name, with the number of fits if unusual, and whether each began from nothing."""
        suffix = f"_refit{self.refits}" + ("" if self.warm_start else "_cold")
        return "srs_benchmark" + (suffix if self.refits > FOLDS else "")

    @property
    def folds(self) -> int:
        """Fits per user; fewer for users with fewer test rows."""
        return self.refits

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        task, targets = in_whole_days(reviews, same_day=same_day)
        folds = expanding_folds(targets, FOLDS, self.refits)
        return replace(task, folds=folds, warm_start=self.warm_start and self.refits > FOLDS)


@dataclass(frozen=True)
class AroundAnother:
    """Base of protocols that change which rows of another are scored or learned from."""

    base: EvaluationProtocol = field(default_factory=SrsBenchmark)

    @property
    def version(self) -> str:
        """Version of the rules, and of those of the base."""
        return f"1 of {self.base.version}"

    @property
    def folds(self) -> int:
        """Fits per user, as of the base."""
        return self.base.folds
