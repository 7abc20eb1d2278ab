"""Anki's variant of SM-2, read as a memory model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import EASY, GOOD, HARD, ExponentialForgetting, quarter_widths
from srs_eval.algorithms.options import require_bool
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.recency import Recency

_LONGEST_INTERVAL = 36500.0
_LOWEST_EASE, _HIGHEST_EASE = 1.3, 5.5

_LOWER = (1.0, 1.0, 1.31, 1.0, 0.5, 0.0, 0.5)
_UPPER = (9999.0, 9999.0, 5.0, 5.0, 1.3, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class AnkiSm2Equations(ExponentialForgetting):
    """Anki's interval as the time after which recall has fallen to 90 %.

    Parameters, as the deck options call them: `w[0]` graduating interval, `w[1]` easy
    interval, `w[2]` starting ease, `w[3]` easy bonus, `w[4]` hard interval, `w[5]` new
    interval, `w[6]` interval modifier.
    """

    state_names: ClassVar[tuple[str, ...]] = ("interval", "ease")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(1.0, 4.0, 2.5, 1.3, 1.2, 0.0, 1.0),
        lower=_LOWER,
        upper=_UPPER,
        # None is published.
        spread=quarter_widths(_LOWER, _UPPER),
    )

    # Whether Good and Easy are exchanged on later reviews. That is a fault of the public benchmark
    # of 2024 to mid-2025, which its published rows come from
    published_order: bool = False

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Interval and ease after the first review."""
        return self._floored(m, m.where(rating == EASY, w[1], w[0])), w[2]

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Interval and ease after a further review; the interval reads the old ease."""
        old_interval, ease = state
        passed = w[6] * m.where(
            elapsed < old_interval,
            self._passed_early(m, w, state, elapsed, rating),
            self._passed_late(m, w, state, elapsed, rating),
        )
        interval = self._floored(m, m.where(rating > 1, passed, old_interval * w[5]))
        moved = m.where(rating == GOOD, 0.0, m.where(rating == EASY, 0.15, -0.15))
        moved = m.where(rating > 1, moved, -0.2)
        return interval, m.clip(ease + moved, _LOWEST_EASE, _HIGHEST_EASE)

    def _passed_early(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value
    ) -> Value:
        interval, ease = state
        hard = _larger(m, elapsed * w[4], interval * w[4] / 2)
        good = _larger(m, elapsed * ease, interval)
        easy = good * (w[3] + 1) / 2
        return self._by_rating(m, rating, hard, good, easy)

    def _passed_late(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value
    ) -> Value:
        interval, ease = state
        late = elapsed - interval
        hard = interval * w[4]
        good = (interval + late / 2) * ease
        easy = (interval + late) * ease * w[3]
        return self._by_rating(m, rating, hard, good, easy)

    def _by_rating(self, m: Maths, rating: Value, hard: Value, good: Value, easy: Value) -> Value:
        if self.published_order:
            good, easy = easy, good
        return m.where(rating == HARD, hard, m.where(rating == EASY, easy, good))

    def _floored(self, m: Maths, interval: Value) -> Value:
        # A floor at one day that lets a hundredth of the rest through.
        return m.minimum(_larger(m, interval, 0.99 + 0.01 * interval), _LONGEST_INTERVAL)


def _larger(m: Maths, left: Value, right: Value) -> Value:
    """Larger of two values; of equal ones each has half of the influence.

    Intervals often are equal to a bound. PyTorch divides the slope there, and published fits
    cannot be reproduced otherwise.
    """
    return m.where(left == right, (left + right) / 2, m.maximum(left, right))


class AnkiSm2(Fitted):
    """Anki's variant of SM-2, as it is or fitted to one user (Anki-SM-2).

    The Anki manual, *What spaced repetition algorithm does Anki use?*,
    https://faqs.ankiweb.net/what-spaced-repetition-algorithm.html. Reads elapsed time and
    ratings, not those of same-day reviews; 7 parameters. Published rows, without
    same-day reviews: log loss 0.5129, RMSE(bins) 0.1397, AUC 0.6179 trained, and 0.616, 0.1724,
    0.6133 with Anki's own parameters. Both were made with Good and Easy exchanged.

    Parameters
    ----------
    published_order : bool
        Whether Good and Easy are exchanged, as in the published rows.

    Other options: see `Fitted`.
    """

    name = "anki_sm2"

    def __init__(
        self,
        *,
        fit: str = "newton",
        parameters: Sequence[float] | None = None,
        recency: Recency | None = None,
        half_life: float = 0.5,
        prior_weight: float | None = None,
        binary: bool = False,
        published_order: bool = False,
    ) -> None:
        require_bool(self.name, "published_order", published_order)
        # First, because the other options are checked against the equations.
        self.published_order = published_order
        super().__init__(
            fit=fit,
            parameters=parameters,
            recency=recency,
            half_life=half_life,
            prior_weight=prior_weight,
            binary=binary,
        )

    def equations(self, *, whole_days: bool) -> AnkiSm2Equations:
        return AnkiSm2Equations(self.published_order)
