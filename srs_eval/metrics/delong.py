"""The area under the ROC curve, and how sure it is, by DeLong's variance.

Both follow from a tally by cumulative counts: how many forgotten reviews lie below each
prediction, and how many recalled ones above it, ties counting half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from srs_eval.errors import ConfigError
from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.tally import Tally, tally
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, FloatArray

DEFAULT_LEVEL = 0.95
# A variance needs at least this many reviews of either outcome.
FEWEST = 2


@dataclass(frozen=True, slots=True)
class AucInterval:
    """Area under the ROC curve with its confidence interval.

    Attributes
    ----------
    auc : float
        In [0, 1]; NaN if only one outcome happened.
    se : float
        Standard error; NaN if either outcome happened less than twice.
    lo, hi : float
        Ends of the interval; NaN where `se` is, and where `separated`.
    level : float
        Confidence.
    separated : bool
        Whether the area is exactly 0 or 1: the variance is 0 then, and says nothing.
    """

    auc: float
    se: float
    lo: float
    hi: float
    level: float
    separated: bool


def auc_interval(
    p: ArrayLike, recalled: ArrayLike, *, level: float = DEFAULT_LEVEL, wald: bool = False
) -> AucInterval:
    """Area under the ROC curve with DeLong's confidence interval.

    It takes reviews as independent: with many users or repeated cards it is too narrow.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.
    level : float, in (0, 1)
        Confidence.
    wald : bool
        Symmetric about the area, and so possibly above 1, rather than on the logit scale.

    Returns
    -------
    AucInterval

    Raises
    ------
    ScoreError
        If the predictions cannot be scored.
    ConfigError
        If `level` is not between 0 and 1.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), doi:10.2307/2531595; Sun and Xu (2014),
    doi:10.1109/LSP.2014.2337313.

    Examples
    --------
    >>> interval = auc_interval([0.9, 0.8, 0.8, 0.4, 0.3], [True, True, False, False, True])
    >>> round(interval.auc, 6), round(interval.se, 6)
    (0.583333, 0.311805)
    """
    _check_level(level)
    return interval_of(tally(*paired(p, recalled)), level, wald=wald)


def auc_of(counted: Tally) -> float:
    """Area under the ROC curve of a tally, ties counting half; NaN with one outcome only.

    Exact for whole counts: all sums are of whole numbers, as long as there are fewer than
    2**52 pairs of a recalled and a forgotten review.
    """
    pairs = counted.n_recalled * counted.n_forgotten
    if not pairs > 0:
        return math.nan
    twice = float(counted.recalled @ _twice_below(counted.forgotten))
    return min(1.0, twice / (2 * pairs))


def delong_of(counted: Tally) -> tuple[float, float]:
    """Area under the ROC curve of a tally, and its standard error."""
    recalls, lapses = counted.n_recalled, counted.n_forgotten
    area = auc_of(counted)
    if min(recalls, lapses) < FEWEST:
        return area, math.nan
    # Share of the lapses that each prediction beats, and of the recalls that beat it.
    beats = _twice_below(counted.forgotten)
    beats /= 2 * lapses
    beaten = _twice_below(counted.recalled)
    beaten /= 2 * recalls
    variance = _spread(beats, counted.recalled, area) / (recalls - 1) / recalls
    variance += _spread(beaten, counted.forgotten, 1 - area) / (lapses - 1) / lapses
    return area, math.sqrt(variance)


def interval_of(counted: Tally, level: float = DEFAULT_LEVEL, *, wald: bool = False) -> AucInterval:
    """Area under the ROC curve of a tally with its interval: see `auc_interval`."""
    return _interval(delong_of(counted), level, separated=_is_separated(counted), wald=wald)


def _interval(
    estimate: tuple[float, float], level: float, *, separated: bool, wald: bool
) -> AucInterval:
    """Put an interval around an area with a standard error."""
    area, error = estimate
    lo = hi = math.nan
    if not separated and not math.isnan(error):
        reach = float(ndtri((1 + level) / 2)) * error
        if wald:
            lo, hi = area - reach, area + reach
        else:
            middle, reach = float(logit(area)), reach / (area * (1 - area))
            lo, hi = float(expit(middle - reach)), float(expit(middle + reach))
    return AucInterval(area, error, lo, hi, level, separated)


def _twice_below(counts: FloatArray) -> FloatArray:
    """Twice the reviews below each prediction, those at it counting half."""
    below = np.cumsum(counts)
    below *= 2
    below -= counts
    return below


def _spread(values: FloatArray, counts: FloatArray, mean: float) -> float:
    """Sum of squared deviations over reviews; overwrites the values."""
    values -= mean
    values *= values
    return float(values @ counts)


def _is_separated(counted: Tally) -> bool:
    """Whether every recalled review lies above every forgotten one, or below."""
    if not counted.has_both_outcomes:
        return False
    recalled, forgotten = counted.recalled > 0, counted.forgotten > 0
    last = len(counted) - 1
    return bool(
        np.argmax(recalled) > last - np.argmax(forgotten[::-1])
        or np.argmax(forgotten) > last - np.argmax(recalled[::-1])
    )


def _check_level(level: float) -> None:
    """Refuse a confidence that is none."""
    if not 0 < level < 1:
        raise ConfigError(f"the level of an interval lies between 0 and 1, not {level}")


@dataclass(frozen=True, slots=True)
class _AucDelongEnd(SketchMetric):
    """One end of DeLong's interval."""

    level: float = DEFAULT_LEVEL
    better: ClassVar[Better] = "higher"
    section: ClassVar[str] = "discrimination"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Refuse a confidence that is none."""
        _check_level(self.level)

    def _named(self, end: str) -> str:
        """Name an end, with the level in per cent where it is unusual."""
        usual = self.level == DEFAULT_LEVEL
        return f"auc_delong_{end}" + ("" if usual else f"_{100 * self.level:g}".replace(".", "_"))

    def _interval(self, sketch: Sketch) -> AucInterval:
        """Compute the interval, sharing what does not depend on the level."""
        separated = sketch.derived(_is_separated)
        return _interval(sketch.derived(delong_of), self.level, separated=separated, wald=False)


@dataclass(frozen=True, slots=True)
class AucDelongLow(_AucDelongEnd):
    """Lower end of the interval of the area under the ROC curve: see `auc_interval`.

    Parameters
    ----------
    level : float
        Confidence; part of the name unless it is 0.95.
    """

    @property
    def name(self) -> str:
        """``auc_delong_low``, with the level in per cent where it is unusual."""
        return self._named("low")

    def of(self, sketch: Sketch) -> float:
        """Compute the metric."""
        return self._interval(sketch).lo


@dataclass(frozen=True, slots=True)
class AucDelongHigh(_AucDelongEnd):
    """Upper end of the interval of the area under the ROC curve: see `auc_interval`.

    Parameters
    ----------
    level : float
        Confidence; part of the name unless it is 0.95.
    """

    @property
    def name(self) -> str:
        """``auc_delong_high``, with the level in per cent where it is unusual."""
        return self._named("high")

    def of(self, sketch: Sketch) -> float:
        """Compute the metric."""
        return self._interval(sketch).hi
