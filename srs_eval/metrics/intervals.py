"""Intervals of scores from resampling clusters: users, or the cards and days of one user."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from srs_eval.metrics.cluster_sums import ClusterSums, is_mergeable
from srs_eval.metrics.curve_rows import CurveMetric, reviews_of_curves
from srs_eval.metrics.means import FEWEST_EFFECTIVE, effective_users
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.resample import FEWEST_CLUSTERS, RESAMPLES, cluster_counts
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.summary import UNBOUNDED, clipped
from srs_eval.metrics.sums import codes_of
from srs_eval.metrics.tally import Tally, tally
from srs_eval.metrics.threshold import ThresholdBias, nearby
from srs_eval.nouns import Curves, FloatArray, IntArray, Metric, Predictions
from srs_eval.nouns.predictions import select

# Rows drawn for metrics that follow from nothing but the rows, in all resamples together.
ROWS_DRAWN, FEWEST_RESAMPLES = 4_000_000, 30


@runtime_checkable
class Bounded(Protocol):
    """A metric with known bounds."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest possible number."""
        ...


def single_user_intervals(
    panel: Panel,
    predictions: Predictions,
    *,
    resamples: int | None = None,
) -> dict[str, tuple[float, float]]:
    """Compute intervals of one user's scores, from resampling that user's cards, and days.

    Reviews of a card are alike, and so are reviews of a day. Each is resampled in turn, every
    metric is recomputed on each resample, and the spread by Student's t gives half a width. Degrees
    of freedom are one less than Kish's effective number of clusters, which is their number if all
    have equally many reviews. The squares of the two are added for an
    interval around the score itself, cut off at the `bounds` of the metrics that have any. It is
    NaN where a score is not defined, or half a width is (see `joint_half_widths`).

    By default there are 200 resamples, which give the width to 5 %. Metrics that are neither means
    nor computed from a sketch are recomputed from rows, fewer times above 20,000 reviews, and 30
    times from 133,333 on.
    """
    labels = [predictions.card] + ([] if predictions.day is None else [predictions.day])
    sketch = panel.sketch(predictions)
    if sketch is None:
        return dict.fromkeys(panel.names, (math.nan, math.nan))
    counted = sketch.tally
    widths = joint_half_widths(panel, predictions, labels, counted=counted, resamples=resamples)
    return intervals_around(panel, panel.of(sketch, predictions), widths)


def _are_alike(metric: Metric, counted: Tally) -> bool:
    """Whether a metric of outcomes rests on recalled ones alone, or on forgotten ones alone."""
    if isinstance(metric, CurveMetric):
        return False
    forgotten, recalled = counted.forgotten, counted.recalled
    if isinstance(metric, ThresholdBias):
        low, high = nearby(metric.threshold)
        near = (counted.p > low) & (counted.p < high)
        forgotten, recalled = forgotten[near], recalled[near]
    return not (forgotten.any() and recalled.any())


def joint_half_widths(
    panel: Panel,
    predictions: Predictions,
    labels: Sequence[NDArray[Any]],
    *,
    counted: Tally | None = None,
    resamples: int | None = None,
    seed: int = 0,
    level: float = LEVEL,
) -> dict[str, float]:
    """Compute half the width of each metric's interval; squares of several clusterings are added.

    Each of `labels` is a clustering: the cluster of each review. `counted` is the tally of the
    predictions, if it is computed already; other arguments are those of `single_user_intervals`.
    NaN where it is for any clustering: too few clusters of any kind say nothing, nor do outcomes
    that are all alike (of a bias, those near its threshold), as resamples have no others.
    """
    if not labels or not len(predictions):
        return {}
    counted = counted or tally(predictions.p, predictions.recalled)
    cells = PredictionCells.for_predictions(counted)
    widths = [
        _half_widths(panel, predictions, label, cells, resamples, seed, level) for label in labels
    ]
    joint = {name: math.hypot(*(of.get(name, math.nan) for of in widths)) for name in panel.names}
    return joint | {metric.name: math.nan for metric in panel if _are_alike(metric, counted)}


def intervals_around(
    panel: Panel, scores: Mapping[str, float], widths: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return intervals around scores, clipped to the bounds of the metrics."""
    intervals = {}
    for metric in panel:
        score, half = scores[metric.name], widths.get(metric.name, math.nan)
        intervals[metric.name] = clipped((score - half, score + half), bounds_of(metric))
    return intervals


def bounds_of(metric: Metric) -> tuple[float, float]:
    """Return the bounds of a metric, infinite if it declares none."""
    return metric.bounds if isinstance(metric, Bounded) else UNBOUNDED


def half_widths(
    clusters: ClusterSums, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> dict[str, float]:
    """Compute half the width of each mergeable metric's interval when clusters are resampled.

    The spread of the resampled scores by Student's t: the same draws for all metrics, and for every
    set of equally many clusters with the same seed. NaN with fewer than five clusters, where one
    outweighs all others, and where a metric is hardly ever defined.
    """
    if len(clusters) < FEWEST_CLUSTERS:
        return dict.fromkeys(clusters.panel.names, math.nan)
    drawn = list(clusters.resampled(cluster_counts(len(clusters), resamples, seed)))
    factor = _factor(clusters, level)
    names = drawn[0] if drawn else ()
    return {name: factor * _spread(np.array([each[name] for each in drawn])) for name in names}


def _half_widths(
    panel: Panel,
    predictions: Predictions,
    label: NDArray[Any],
    cells: PredictionCells,
    resamples: int | None,
    seed: int,
    level: float,
) -> dict[str, float]:
    """Half the width of each metric's interval when one kind of cluster is resampled."""
    cluster, clusters = codes_of(label)
    if clusters < FEWEST_CLUSTERS:
        return dict.fromkeys(panel.names, math.nan)
    sums = ClusterSums.of(panel, predictions, cluster, clusters, cells)
    widths = half_widths(sums, resamples=resamples or RESAMPLES, seed=seed, level=level)
    of_rows = [metric for metric in panel if not is_mergeable(metric)]
    if of_rows:
        affordable = ROWS_DRAWN // max(1, len(predictions))
        count = resamples or max(FEWEST_RESAMPLES, min(RESAMPLES, affordable))
        drawn = _from_rows(of_rows, predictions, cluster, cluster_counts(clusters, count, seed))
        factor = _factor(sums, level)
        widths |= {name: factor * _spread(np.array(scores)) for name, scores in drawn.items()}
    return widths


def _factor(clusters: ClusterSums, level: float) -> float:
    """Return the half width in standard deviations, corrected for resampling variance."""
    effective = effective_users(clusters.reviews)
    if effective < FEWEST_EFFECTIVE:
        return math.nan
    return float(stdtrit(effective - 1, (1 + level) / 2)) * math.sqrt(effective / (effective - 1))


def _spread(drawn: FloatArray) -> float:
    """Return the standard deviation of the finite values; NaN for fewer than two."""
    defined = drawn[np.isfinite(drawn)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else math.nan


def _from_rows(
    metrics: list[Metric],
    predictions: Predictions,
    cluster: IntArray,
    blocks: Iterator[FloatArray],
) -> dict[str, list[float]]:
    """Recompute metrics on rows that are repeated as often as their cluster is drawn."""
    curves = predictions.curves
    at = None if curves is None else reviews_of_curves(predictions)
    drawn: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    for block in blocks:
        for counts in block.astype(np.int64):
            times = counts[cluster]
            sample = select(predictions, np.repeat(np.arange(len(times)), times))
            if curves is not None:
                chosen = np.repeat(np.arange(len(curves.p)), times[at])
                columns = {f.name: getattr(curves, f.name)[chosen] for f in fields(Curves)}
                sample = replace(sample, curves=Curves(**columns))
            for metric in metrics:
                drawn[metric.name].append(metric(sample))
    return drawn
