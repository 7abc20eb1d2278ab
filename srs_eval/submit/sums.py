"""Sums of each user's reviews, and the metrics that follow from them.

Kept are the sums of few numbers: totals of scores, and reviews by equal bins, by logarithmic bins
and at thresholds. Metrics of bins of intervals, reviews and lapses need hundreds of numbers a
user, and others every prediction: these are recomputed where predictions are submitted, and
otherwise only bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from srs_eval.metrics.panel import finite
from srs_eval.metrics.sketch import Sketch, SketchMetric, bare_predictions, sums_of
from srs_eval.metrics.sums import Sums, add_up
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray, Metric, Predictions

# Sums with more cells are not kept.
_MOST_CELLS = 32


def kept_sums(metrics: Iterable[Metric]) -> list[Sums]:
    """Return the sums of some metrics that are small enough to be kept."""
    return [sums for sums in sums_of(metrics) if sums.cells <= _MOST_CELLS]


def name_of(sums: Sums) -> str:
    """Return the name of sums in ``results.parquet``, which has their options.

    >>> from srs_eval.metrics.calibration import EqualBinSums
    >>> name_of(EqualBinSums(10))
    'EqualBinSums(cells=10)'
    """
    return repr(sums)


def width(sums: Sums) -> int:
    """Return how many numbers a user has."""
    return len(sums_of_user([sums], bare_predictions(np.array([0.5]), np.array([True])))[0])


def sums_of_user(sums: Sequence[Sums], predictions: Predictions) -> list[FloatArray]:
    """Return the totals of all cells, of each of the sums, as flat arrays."""
    dense: list[FloatArray] = []
    for each, totals in zip(sums, add_up(sums, predictions), strict=True):
        found = np.zeros((each.cells, totals.values.shape[-1]))
        found[totals.cell] = totals.values[0]
        dense.append(found.ravel())
    return dense


def recomputed(
    metrics: Iterable[Metric], totals: Mapping[Sums, FloatArray]
) -> dict[str, FloatArray]:
    """Compute the metrics that follow from sums alone, as from `sums_of_user`: [n_users].

    NaN where a metric is not defined, or where no reviews have such sums.
    """
    return {
        metric.name: np.array(scores)
        for metric in metrics
        if isinstance(metric, SketchMetric) and metric.needs and set(metric.needs) <= totals.keys()
        if (scores := _scores(metric, totals)) is not None
    }


class _NeedsPredictionsError(Exception):
    """A metric asks for more than sums."""


def _scores(metric: SketchMetric, totals: Mapping[Sums, FloatArray]) -> list[float] | None:
    """Compute a metric for each user; None if it does not follow from sums."""
    columns = [_in_cells(sums, totals[sums]) for sums in metric.needs]
    try:
        return [
            _score(metric, dict(zip(metric.needs, of_user, strict=True)))
            for of_user in zip(*columns, strict=True)
        ]
    except _NeedsPredictionsError:
        return None


def _score(metric: SketchMetric, sums: Mapping[Sums, FloatArray]) -> float:
    try:
        return finite(metric.of(Sketch(sums, _no_tally)))
    except (ArithmeticError, ValueError):  # sums that no reviews have
        return math.nan


def _in_cells(sums: Sums, totals: FloatArray) -> Iterator[FloatArray]:
    """Return the sums [used, columns] of each user, as sketches have them."""
    for flat in totals:
        cells = flat.reshape(sums.cells, -1)
        yield cells[cells.any(axis=1)] if sums.cells > 1 else cells


def _no_tally() -> Tally:
    raise _NeedsPredictionsError
