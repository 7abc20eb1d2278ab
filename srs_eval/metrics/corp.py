"""CORP: a proper score as miscalibration, discrimination and uncertainty.

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
from srs_eval.metrics.proper import CLIP, SCORES, score_totals
from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.sums import CHUNK, Sums
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import Better, FloatArray, IntArray

Part = Literal["miscalibration", "discrimination", "uncertainty"]
Score = Literal["brier", "log"]

# Fewer predictions than this are not worth joining beforehand.
FEW = 2**14
# Quantiles between which the band holds 95 % of the curves.
TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)
# Cells of the consistency band, so that its time does not grow with the reviews.
BAND_CELLS = 2**10


@dataclass(frozen=True, slots=True)
class CorpParts:
    """Parts of a mean score: miscalibration - discrimination + uncertainty."""

    # None below 0; in nats for the log score. NaN if there are no reviews
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Corp:
    """An increasing calibration curve, and the two scores decomposed by it."""

    p: FloatArray  # [m], increasing: Distinct predictions
    # [blocks + 1]: Where in `p` each level stretch of the curve begins; the last entry is m
    start: IntArray
    share: FloatArray  # [blocks], increasing: Share of recalls of each stretch
    # Parts of the Brier score and of the log loss
    brier: CorpParts
    log: CorpParts

    @property
    def recalibrated(self) -> FloatArray:
        """Height of the curve at each distinct prediction, float64 [m]."""
        return np.repeat(self.share, np.diff(self.start))


@dataclass(frozen=True, slots=True)
class ConsistencyBand:
    """Pointwise band of the calibration curve for true predictions."""

    p: FloatArray  # [m], increasing: Predictions, joined where there are many
    # [m]: Quantiles of the curve there
    lo: FloatArray
    hi: FloatArray


def corp(counted: Tally) -> Corp:
    """Decompose the Brier score and the log loss, clipped as `LogLoss` is, into MCB, DSC and UNC.

    >>> from srs_eval.metrics.tally import tally
    >>> p, recalled = np.array([0.9, 0.8, 0.6, 0.3]), np.array([True, False, True, False])
    >>> parts = corp(tally(p, recalled)).brier
    >>> round(parts.miscalibration, 6), round(parts.discrimination, 6), parts.uncertainty
    (0.1, 0.125, 0.25)
    """
    if not len(counted):
        unknown = CorpParts(math.nan, math.nan, math.nan, math.nan)
        return Corp(counted.p, np.zeros(1, np.int64), np.empty(0), unknown, unknown)
    n, start = counted.n, _blocks(counted)
    recalled = np.add.reduceat(counted.recalled, start[:-1])
    forgotten = np.add.reduceat(counted.forgotten, start[:-1])
    scores = _scores(counted)
    rates = _rate_scores(recalled, forgotten)
    brier, log = (
        # The fit is never worse than the predictions, or than a constant, but for rounding.
        CorpParts(score / n, max(0.0, score - fit) / n, max(0.0, base - fit) / n, base / n)
        for score, (fit, base) in zip(scores, rates, strict=True)
    )
    return Corp(counted.p, start, recalled / (recalled + forgotten), brier, log)


def corp_consistency_band(
    counted: Tally, *, resamples: int = 200, seed: int = 0
) -> ConsistencyBand:
    """Compute a band that holds 95 % of the curves fitted to outcomes drawn from the predictions.

    Time does not grow with the reviews, which are drawn independently of each other; counts that
    are not whole are rounded.
    """
    cells = counted.at_most(BAND_CELLS)
    number = np.rint(cells.count).astype(np.int64)
    p, number = cells.p[number > 0], number[number > 0]
    if not len(p):
        return ConsistencyBand(p, p, p)
    drawn = np.random.default_rng(seed).binomial(number, p, (resamples, len(p)))
    curves = np.array([isotonic_regression(row / number, weights=number).x for row in drawn])
    lo, hi = np.quantile(curves, TAILS, axis=0)
    return ConsistencyBand(p, lo, hi)


def _blocks(counted: Tally) -> IntArray:
    """Where the level stretches of the isotonic fit begin, and the number of predictions."""
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
    fit = isotonic_regression(recalled / count, weights=count)
    inner: IntArray = fit.blocks[:-1] if begin is None else begin[fit.blocks[:-1]]
    return np.append(inner, len(counted))


def _scores(counted: Tally) -> tuple[float, float]:
    """Add up the Brier score and the log loss over reviews."""
    squares = loss = 0.0
    for begin in range(0, len(counted), CHUNK):  # parts that stay in the cache
        rows = slice(begin, begin + CHUNK)
        p, forgotten, recalled = counted.p[rows], counted.forgotten[rows], counted.recalled[rows]
        q = 1 - p
        squares += float(recalled @ (q * q) + forgotten @ (p * p))
        loss -= float(recalled @ np.log(np.clip(p, CLIP, 1 - CLIP)))
        loss -= float(forgotten @ np.log(np.clip(q, CLIP, 1 - CLIP)))
    return squares, loss


def _rate_scores(recalled: FloatArray, forgotten: FloatArray) -> list[tuple[float, float]]:
    """Add up each score over reviews, where groups of them are predicted by their share.

    And where all are predicted by the share of all.
    """
    recalled = np.append(recalled, recalled.sum())
    forgotten = np.append(forgotten, forgotten.sum())
    share = recalled / (recalled + forgotten)
    # A share of 0 or 1 is right, and costs nothing.
    loss = -xlogy(recalled, share) - xlogy(forgotten, 1 - share)
    costs = recalled * (1 - share), loss
    return [(float(cost[:-1].sum()), float(cost[-1])) for cost in costs]


BETTER: dict[Part, Better] = {
    "miscalibration": "lower",
    "discrimination": "higher",
    "uncertainty": "neither",
}
SECTION: dict[Part, str] = {
    "miscalibration": "calibration",
    "discrimination": "discrimination",
    "uncertainty": "test",
}
MOST: dict[Score, float] = {"brier": 0.25, "log": math.log(2)}


@dataclass(frozen=True, slots=True)
class CorpPart(SketchMetric):
    """One part of a CORP decomposition of the Brier score or the log loss: see `corp`."""

    part: Part = "miscalibration"
    score: Score = "brier"
    needs: ClassVar[tuple[Sums, ...]] = (SCORES,)

    def __post_init__(self) -> None:
        if self.part not in BETTER or self.score not in MOST:
            raise ConfigError(
                f"corp has the parts {', '.join(BETTER)} of the scores {', '.join(MOST)}, "
                f"not {self.part!r} of {self.score!r}"
            )

    @property
    def name(self) -> str:
        """Such as ``corp_miscalibration_brier``."""
        return f"corp_{self.part}_{self.score}"

    @property
    def better(self) -> Better:
        """Less miscalibration, more discrimination; uncertainty is not the model's."""
        return BETTER[self.part]

    @property
    def section(self) -> str:
        return SECTION[self.part]

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value there can be."""
        if self.part != "miscalibration":
            return 0.0, MOST[self.score]
        return 0.0, 1.0 if self.score == "brier" else math.inf

    def of(self, sketch: Sketch) -> float:
        parts: CorpParts = getattr(sketch.derived(corp), self.score)
        if self.part != "miscalibration":
            value: float = getattr(parts, self.part)
            return value
        # The score itself is exact where the tally has joined predictions of unequal costs.
        totals = score_totals(sketch)
        score = (totals.log_loss if self.score == "log" else totals.squares) / totals.n
        return max(0.0, score - parts.uncertainty + parts.discrimination)
