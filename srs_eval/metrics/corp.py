"""CORP: the log loss as miscalibration, discrimination and uncertainty.

Outcomes are regressed on predictions by isotonic regression. The score minus that of the fitted
curve is miscalibration (MCB), the score of the base rate minus that of the curve is
discrimination (DSC), and the score of the base rate is uncertainty (UNC):
score = MCB - DSC + UNC. There are no bins and no tuning parameters.

References
----------
Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from srs_eval.errors import ConfigError
from srs_eval.metrics.proper import SCORES, score_totals
from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.sums import Sums
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import Better, FloatArray, IntArray

Part = Literal["miscalibration", "discrimination"]

# Fewer predictions than this are not worth joining beforehand.
FEW = 2**14


@dataclass(frozen=True, slots=True)
class Corp:
    """Parts of the log loss that outcomes alone decide, in nats; NaN if there are no reviews."""

    discrimination: float
    uncertainty: float


def corp(counted: Tally) -> Corp:
    """Compute the log losses of the base rate, and of the isotonic fit below it.

    >>> from srs_eval.metrics.tally import tally
    >>> p, recalled = np.array([0.9, 0.8, 0.6, 0.3]), np.array([True, False, True, False])
    >>> parts = corp(tally(p, recalled))
    >>> round(parts.discrimination, 6), round(parts.uncertainty, 6)
    (0.346574, 0.693147)
    """
    if not len(counted):
        return Corp(math.nan, math.nan)
    first = _blocks(counted)
    fit = _loss_of_shares(*(np.add.reduceat(each, first) for each in _outcomes(counted)))
    base = _loss_of_shares(*(each.sum(keepdims=True) for each in _outcomes(counted)))
    # The fit is never worse than a constant, but for rounding.
    return Corp(max(0.0, base - fit) / counted.n, base / counted.n)


def _outcomes(counted: Tally) -> tuple[FloatArray, FloatArray]:
    return counted.recalled, counted.forgotten


def _blocks(counted: Tally) -> IntArray:
    """Where the level stretches of the isotonic fit begin."""
    recalled, count = counted.recalled, counted.count
    begin: IntArray | None = None
    # Neighbours that fall or stay equal end up on one level: joining them first leaves the
    # general algorithm a tenth of millions of predictions.
    while len(count) > FEW:
        rate = recalled / count
        first = np.append(0, 1 + np.flatnonzero(rate[1:] > rate[:-1]))
        if len(first) > 0.7 * len(count):
            break
        recalled, count = np.add.reduceat(recalled, first), np.add.reduceat(count, first)
        begin = first if begin is None else begin[first]
    blocks: IntArray = isotonic_regression(recalled / count, weights=count).blocks[:-1]
    return blocks if begin is None else begin[blocks]


def _loss_of_shares(recalled: FloatArray, forgotten: FloatArray) -> float:
    """Add up the log loss over reviews, where groups of them are predicted by their share."""
    share = recalled / (recalled + forgotten)
    # A share of 0 or 1 is right, and costs nothing.
    return float((-xlogy(recalled, share) - xlogy(forgotten, 1 - share)).sum())


BETTER: dict[Part, Better] = {"miscalibration": "lower", "discrimination": "higher"}
SECTION: dict[Part, str] = {"miscalibration": "calibration", "discrimination": "discrimination"}
MOST: dict[Part, float] = {"miscalibration": math.inf, "discrimination": math.log(2)}


@dataclass(frozen=True, slots=True)
class CorpPart(SketchMetric):
    """One part of the CORP decomposition of the log loss: see `corp`."""

    part: Part = "miscalibration"
    has_interval: ClassVar[bool] = False
    needs: ClassVar[tuple[Sums, ...]] = (SCORES,)

    def __post_init__(self) -> None:
        if self.part not in BETTER:
            raise ConfigError(f"corp has the parts {', '.join(BETTER)}, not {self.part!r}")

    @property
    def name(self) -> str:
        """Such as ``corp_miscalibration_log``."""
        return f"corp_{self.part}_log"

    @property
    def better(self) -> Better:
        """Less miscalibration, more discrimination."""
        return BETTER[self.part]

    @property
    def section(self) -> str:
        return SECTION[self.part]

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value there can be."""
        return 0.0, MOST[self.part]

    def of(self, sketch: Sketch) -> float:
        parts = sketch.derived(corp)
        if self.part == "discrimination":
            return parts.discrimination
        # The score is exact where the tally has joined predictions of unequal costs.
        totals = score_totals(sketch)
        return max(0.0, totals.log_loss / totals.n - parts.uncertainty + parts.discrimination)
