"""The protocols of the public srs-benchmark whose clock counts fractions of days.

Source: open-spaced-repetition/srs-benchmark, 2026. `docs/method.md` states every step, and
why the answer time of a review is taken off the interval before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from srs_eval.nouns import Fold, Reviews, Task
from srs_eval.protocol.candidates import FOLDS, in_seconds, in_whole_days
from srs_eval.protocol.split import (
    expanding_folds,
    expanding_refits,
    require_bool,
    require_refits,
)


@dataclass(frozen=True, slots=True)
class SrsBenchmarkSecs:
    """Score same-day reviews as well, on a clock of fractional days, in 5 expanding folds.

    Histories keep same-day reviews for every algorithm, whatever its ``same_day`` says:
    where they are scored, none can do without them.

    Parameters
    ----------
    answer_time : bool
        Whether each interval includes the time its own answer took, as in the published
        tables. That time is not known before the answer and carries information about it, so it
        is only there to reproduce published numbers.
    """

    version: ClassVar[str] = "1"
    folds: ClassVar[int] = FOLDS
    in_fractional_days: ClassVar[bool] = True
    answer_time: bool = False

    def __post_init__(self) -> None:
        """Refuse what only looks like true or false."""
        require_bool("answer_time", self.answer_time)

    @property
    def name(self) -> str:
        """The name, with a suffix where intervals include the answer time."""
        return "srs_benchmark_secs" + _suffix(answer_time=self.answer_time)

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        candidates = in_seconds(reviews, answer_time=self.answer_time)
        return candidates.task(expanding_folds(candidates.targets, FOLDS))


@dataclass(frozen=True, slots=True)
class SrsBenchmarkEqualised:
    """Score the reviews that `SrsBenchmark` scores, by models on a clock of fractional days.

    Training rows are all reviews before a fold's first test row, same-day reviews and cards
    with unusual first intervals included; so they differ from those of `SrsBenchmark`.
    Histories keep same-day reviews for every algorithm, whatever its ``same_day`` says.

    Parameters
    ----------
    answer_time : bool
        As in `SrsBenchmarkSecs`.
    refits : int
        Fits per user, as in `SrsBenchmarkRefit`; each starts from the one before where there
        are more than 5 and the algorithm can.
    """

    version: ClassVar[str] = "1"
    in_fractional_days: ClassVar[bool] = True
    answer_time: bool = False
    refits: int = FOLDS

    def __post_init__(self) -> None:
        """Refuse fewer fits than the public protocol has."""
        require_refits(self.refits)
        require_bool("answer_time", self.answer_time)

    @property
    def name(self) -> str:
        """The name, with the number of fits if unusual, and answer times if counted."""
        often = f"_refit{self.refits}" if self.refits != FOLDS else ""
        return f"srs_benchmark_equalised{often}" + _suffix(answer_time=self.answer_time)

    @property
    def folds(self) -> int:
        """Fits per user; fewer for users with fewer test rows."""
        return self.refits

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        candidates = in_seconds(reviews, answer_time=self.answer_time)
        # With their same-day reviews, both have the same rows, so row numbers agree.
        days = in_whole_days(reviews, same_day=True)
        learned = candidates.targets
        folds = [
            Fold(fold.number, train=learned[learned < fold.test[0]], test=fold.test)
            for fold in expanding_refits(days.targets, FOLDS, self.refits)
        ]
        often = self.refits != FOLDS
        return replace(candidates, lapses=days.lapses).task(folds, warm_start=often)


def _suffix(*, answer_time: bool) -> str:
    return "_published" if answer_time else ""
