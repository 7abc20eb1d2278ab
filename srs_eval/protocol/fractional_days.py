"""The protocols of the public srs-benchmark whose clock counts fractions of days.

Source: open-spaced-repetition/srs-benchmark, 2026. `docs/method.md` states every step, and
why the answer time of a review is taken off the interval before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from srs_eval.data.reviews import Reviews
from srs_eval.protocol.candidates import FOLDS, in_seconds, in_whole_days
from srs_eval.protocol.split import expanding_folds, trained_before
from srs_eval.protocol.srs_benchmark import Refits
from srs_eval.protocol.task import Flag, Task


@dataclass(frozen=True)
class SrsBenchmarkSecs:
    """Score same-day reviews as well, on a clock of fractional days, in 5 expanding folds.

    Histories keep same-day reviews for every algorithm, whatever its ``same_day`` says: where
    they are scored, none can do without them.

    Parameters
    ----------
    answer_time : bool
        Whether each interval includes the time its own answer took, as in the published
        tables. That time is not known before the answer and carries information about it, so it
        is only there to reproduce published numbers.
    """

    version: ClassVar[str] = "1"
    folds: ClassVar[int] = FOLDS
    answer_time: Flag = False

    @property
    def name(self) -> str:
        """The name, with a suffix where intervals do not end with the question."""
        return "srs_benchmark_secs" + "_published" * self.answer_time

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        task, targets = in_seconds(reviews, answer_time=self.answer_time)
        return replace(task, folds=expanding_folds(targets, FOLDS))


@dataclass(frozen=True)
class SrsBenchmarkEqualised:
    """Score the reviews that `SrsBenchmark` scores, by models on a clock of fractional days.

    Training rows are all reviews before a fold's first test row, same-day reviews and cards
    with unusual first intervals included; so they differ from those of `SrsBenchmark`.

    Parameters
    ----------
    answer_time : bool
        As in `SrsBenchmarkSecs`.
    refits : int
        Fits per user, as in `SrsBenchmark`; each starts from the one before where there are more
        than 5 and the algorithm can.
    """

    version: ClassVar[str] = "1"
    answer_time: Flag = False
    refits: Refits = FOLDS

    @property
    def name(self) -> str:
        """The name, with the number of fits if unusual, and a suffix as in `SrsBenchmarkSecs`."""
        often = f"_refit{self.refits}" if self.refits != FOLDS else ""
        return f"srs_benchmark_equalised{often}" + "_published" * self.answer_time

    @property
    def folds(self) -> int:
        """Fits per user; fewer for users with fewer test rows."""
        return self.refits

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        task, learned = in_seconds(reviews, answer_time=self.answer_time)
        # With their same-day reviews, both have the same rows, so row numbers agree.
        days, scored = in_whole_days(reviews, same_day=True)
        blocks = [fold.test for fold in expanding_folds(scored, FOLDS, self.refits)]
        folds, often = trained_before(learned, blocks), self.refits != FOLDS
        return replace(task, folds=folds, lapses=days.lapses, warm_start=often)
