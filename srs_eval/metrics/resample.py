"""Bootstrap over clusters: users where there are many, else cards and days of the one user."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from srs_eval.errors import ScoreError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Curves, FloatArray, IntArray, Predictions

LEVEL = 0.99
USER_RESAMPLES = 9_999
RESAMPLES, FEWEST_RESAMPLES = 200, 30
# Rows drawn for the intervals of a single user, in all resamples together.
ROWS_DRAWN = 4_000_000
FEWEST_CLUSTERS = 5
PREDICTION_COLUMNS = (
    "user",
    "fold",
    "row",
    "card",
    "p",
    "recalled",
    "day",
    "elapsed_days",
    "nth_review",
    "lapses",
)
# Draws held at once: 10,000 users are resampled 100 times in a block.
BLOCK = 1_000_000


@runtime_checkable
class RatioOfSums(Protocol):
    """A metric that is one sum over reviews divided by another."""

    def terms(self, predictions: Predictions) -> tuple[FloatArray, FloatArray]:
        """Each review's share [n] of the sum above and of the sum below."""
        ...


@runtime_checkable
class ReviewMean(Protocol):
    """A metric that is the mean of a number of each review."""

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own [n]."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """A metric that says in which range its numbers lie."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest possible number."""
        ...


@runtime_checkable
class CurveMean(Protocol):
    """A metric that is the mean of a number of each forgetting curve."""

    def per_curve(self, curves: Curves) -> FloatArray:
        """Score each curve on its own [n]; NaN where it is not defined."""
        ...


def resampled_means(
    values: FloatArray, *, resamples: int = USER_RESAMPLES, seed: int = 0
) -> FloatArray:
    """Mean of each column over clusters drawn with replacement.

    Every column is resampled with the same draws, and so is every table of equally many
    clusters with the same seed: differences between columns or tables keep their pairing.

    Parameters
    ----------
    values : float [clusters, columns]
        NaN where a column is not defined for a cluster, which is then left out of it.

    Returns
    -------
    float64 [resamples, columns]
        NaN where a resample has no cluster with a value.
    """
    present = ~np.isnan(values)
    patterns, pattern = np.unique(present, axis=1, return_inverse=True)
    # Columns are centred so that rounding does not depend on how far they are from 0.
    centre = np.array([_middle(column) for column in values.T])
    centred = np.where(present, values - centre, 0.0)
    weights = np.concatenate([centred, patterns.astype(np.float64)], axis=1)
    means = np.empty((resamples, values.shape[1]))
    begin = 0
    for counts in _cluster_counts(len(values), resamples, seed):
        sums = counts @ weights
        held = sums[:, values.shape[1] :][:, pattern.ravel()]
        block = means[begin : begin + len(counts)]
        np.divide(sums[:, : values.shape[1]], held, out=block, where=held > 0)
        block[held == 0] = np.nan
        block += centre
        begin += len(counts)
    return means


def bca_interval(
    values: FloatArray, means: FloatArray, *, level: float = LEVEL, expanded: bool = True
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of a mean, from its resampled means.

    Parameters
    ----------
    values : float [clusters]
        NaN values are left out.
    means : float [resamples]
        Their mean in each resample: see `resampled_means`.
    level : float
        Share of intervals that should hold the true mean.
    expanded : bool
        Allow for the narrowness of resamples of few clusters, by Student's t; makes no
        difference with thousands. With a handful the tails lie beyond what can be drawn,
        and the bounds are the most extreme resamples.

    Returns
    -------
    lo, hi : float
        Both the mean where all values are equal; NaN where there are fewer than five.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, doi:10.2307/2289144. Hesterberg
    (2015), What teachers should know about the bootstrap, doi:10.1080/00031305.2015.1089789.
    """
    defined = values[~np.isnan(values)]
    drawn = means[~np.isnan(means)]
    count = len(defined)
    if count < FEWEST_CLUSTERS or not len(drawn):
        return math.nan, math.nan
    if np.ptp(defined) == 0:
        return float(defined[0]), float(defined[0])
    mean = float(defined.mean())
    deviation = defined - mean
    acceleration = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
    below = (np.count_nonzero(drawn < mean) + np.count_nonzero(drawn <= mean)) / (2 * len(drawn))
    bias = float(ndtri(below))
    if not math.isfinite(bias):
        bias = 0.0
    tail = float(ndtri((1 + level) / 2))
    if expanded:
        tail = math.sqrt(count / (count - 1)) * float(stdtrit(count - 1, (1 + level) / 2))
    tails = bias + np.array([-tail, tail])
    # Far out the correction for skewness turns back on itself: the tail itself is meant then.
    bend = 1 - acceleration * tails
    straight = np.where(bend > 0, tails / np.where(bend > 0, bend, 1), np.sign(tails) * 9)
    shares = ndtr(bias + straight)
    lo, hi = np.quantile(drawn, shares)
    return float(lo), float(hi)


def single_user_intervals(
    panel: Panel,
    predictions: Predictions,
    *,
    resamples: int | None = None,
    seed: int = 0,
    level: float = LEVEL,
) -> dict[str, tuple[float, float]]:
    """Intervals of one user's scores, from resampling that user's cards, and days.

    Reviews of a card are alike, and so are reviews of a day. Each is resampled in turn, every
    metric is recomputed on each resample, and the larger of the two spreads, by Student's t
    with one degree of freedom less than there are clusters, gives an interval around the
    score itself, cut off at the `bounds` of the metrics that have any.

    Parameters
    ----------
    panel : Panel
        What to compute.
    predictions : Predictions
        Of one user.
    resamples : int, optional
        How often cards and days are drawn; by default 200 times, fewer above 20,000 reviews
        and 30 from 133,333 on. The width is then known to 5 %, and to 13 % from 30.
    seed : int
        Of the draws.
    level : float
        Share of intervals that should hold the true score.

    Returns
    -------
    dict of str to (lo, hi)
        NaN where a score is not defined, or there are fewer than five cards or days.
    """
    scores = panel.score(predictions)
    affordable = ROWS_DRAWN // max(1, len(predictions))
    count = resamples or max(FEWEST_RESAMPLES, min(RESAMPLES, affordable))
    labels = [predictions.card] + ([] if predictions.day is None else [predictions.day])
    widths = [_half_widths(panel, predictions, cluster, count, seed, level) for cluster in labels]
    intervals = {}
    for metric in panel:
        name = metric.name
        # NaN in one clustering is NaN: too few clusters of any kind say nothing.
        half = float(np.max([of_cluster[name] for of_cluster in widths]))
        lowest, highest = metric.bounds if isinstance(metric, Bounded) else (-math.inf, math.inf)
        known = not math.isnan(scores[name] + half)
        bounds = (max(lowest, scores[name] - half), min(highest, scores[name] + half))
        intervals[name] = bounds if known else (math.nan, math.nan)
    return intervals


def _half_widths(
    panel: Panel,
    predictions: Predictions,
    cluster: IntArray,
    resamples: int,
    seed: int,
    level: float,
) -> dict[str, float]:
    """Half the width of each metric's interval when one kind of cluster is resampled."""
    _, code = np.unique(cluster, return_inverse=True)
    clusters = int(code.max(initial=-1)) + 1
    if clusters < FEWEST_CLUSTERS:
        return dict.fromkeys(panel.names, math.nan)
    of_curve = _cluster_of_curve(predictions, code)
    curve_means = {metric.name: metric for metric in panel if isinstance(metric, CurveMean)}
    totals = _curve_totals(curve_means, predictions.curves, of_curve, clusters)
    totals |= _review_totals(panel, predictions, code, clusters)
    whole = {metric.name: metric for metric in panel if metric.name not in totals}
    drawn = {name: np.full(resamples, np.nan) for name in panel.names}
    begin = 0
    for block in _cluster_counts(clusters, resamples, seed):
        for name, (above, below) in totals.items():
            held = block @ below
            target = drawn[name][begin : begin + len(block)]
            np.divide(block @ above, held, out=target, where=held > 0)
        for position, counts in enumerate(block.astype(np.int64), begin):
            sample = _repeated(predictions, counts[code], counts[of_curve])
            for name, metric in whole.items():
                drawn[name][position] = metric(sample)
        begin += len(block)
    # Resamples vary less than other clusters would, which the root makes up for.
    factor = float(stdtrit(clusters - 1, (1 + level) / 2)) * math.sqrt(clusters / (clusters - 1))
    return {name: factor * _spread(values) for name, values in drawn.items()}


def _spread(drawn: FloatArray) -> float:
    """Take the standard deviation of what is defined; NaN below two values."""
    defined = drawn[np.isfinite(drawn)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else math.nan


def _review_totals(
    panel: Panel, predictions: Predictions, code: IntArray, clusters: int
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Sum up each cluster, for each metric that is a mean or a ratio of sums."""
    totals: dict[str, tuple[FloatArray, FloatArray]] = {}
    for metric in panel:
        if isinstance(metric, RatioOfSums):
            above, below = metric.terms(predictions)
        elif isinstance(metric, ReviewMean):
            above, below = metric.per_review(predictions), np.ones(len(code))
        else:
            continue
        totals[metric.name] = (
            np.bincount(code, above, clusters).astype(np.float64),
            np.bincount(code, below, clusters).astype(np.float64),
        )
    return totals


def _curve_totals(
    metrics: Mapping[str, CurveMean], curves: Curves | None, of_curve: IntArray, clusters: int
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Sum and number of defined curve scores of each cluster, for each metric."""
    totals: dict[str, tuple[FloatArray, FloatArray]] = {}
    for name, metric in metrics.items():
        values = np.empty(0) if curves is None else metric.per_curve(curves)
        defined = ~np.isnan(values)
        sums = np.zeros(clusters)
        held = np.zeros(clusters)
        np.add.at(sums, of_curve, np.where(defined, values, 0))
        np.add.at(held, of_curve, defined)
        totals[name] = (sums, held)
    return totals


def _cluster_of_curve(predictions: Predictions, code: IntArray) -> IntArray:
    """Find the cluster of each forgetting curve through its review."""
    curves = predictions.curves
    if curves is None:
        return np.empty(0, np.int64)
    # Sorting the keys of a million reviews would take seconds; few of them have a curve.
    near = np.flatnonzero(np.isin(predictions.row, curves.row))
    keys = np.stack([predictions.user, predictions.fold, predictions.row])[:, near]
    wanted = np.stack([curves.user, curves.fold, curves.row])
    _, number = np.unique(np.concatenate([keys, wanted], axis=1), axis=1, return_inverse=True)
    known = np.full(int(number.max(initial=-1)) + 1, -1)
    known[number[: len(near)]] = code[near]
    found: IntArray = known[number[len(near) :]]
    if (found < 0).any():
        strangers = np.flatnonzero(found < 0)
        raise ScoreError(
            f"forgetting curve {strangers[0]} (and {len(strangers) - 1} more) belongs to a "
            "review that was not scored; curves must be of rows that are in the predictions"
        )
    return found


def _cluster_counts(clusters: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks [b, clusters] of how often each cluster is drawn, always the same."""
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK // clusters)
    for begin in range(0, resamples, size):
        rows = min(size, resamples - begin)
        draws = rng.integers(0, clusters, (rows, clusters))
        draws += np.arange(rows)[:, None] * clusters
        counts = np.bincount(draws.ravel(), minlength=rows * clusters)
        yield counts.reshape(rows, clusters).astype(np.float64)


def _middle(column: FloatArray) -> float:
    """Mean of what is defined, or 0."""
    defined = column[~np.isnan(column)]
    return float(defined.mean()) if len(defined) else 0.0


def _repeated(predictions: Predictions, times: IntArray, curve_times: IntArray) -> Predictions:
    """Repeat each prediction, and each forgetting curve, some times."""
    rows = np.repeat(np.arange(len(predictions)), times)
    curves = predictions.curves
    if curves is not None:
        chosen = np.repeat(np.arange(len(curves.p)), curve_times)
        names = ("user", "fold", "row", "elapsed", "weight", "p")
        curves = Curves(**{name: getattr(curves, name)[chosen] for name in names})
    columns = {name: getattr(predictions, name) for name in PREDICTION_COLUMNS}
    present = {name: column[rows] for name, column in columns.items() if column is not None}
    return replace(predictions, **present, curves=curves)
