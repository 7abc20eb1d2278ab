"""Bootstrap over clusters: users where there are many, else the cards of the one user."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr, ndtri

from srs_eval.errors import ScoreError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Curves, FloatArray, IntArray, Metric, Predictions

LEVEL = 0.99
USER_RESAMPLES = 9_999
CARD_RESAMPLES = 200
PREDICTION_COLUMNS = (
    "user",
    "fold",
    "row",
    "card",
    "p",
    "recalled",
    "elapsed_days",
    "nth_review",
    "lapses",
)
# Draws held at once: 10,000 users are resampled 100 times in a block.
BLOCK = 1_000_000


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
    values: FloatArray, means: FloatArray, *, level: float = LEVEL
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

    Returns
    -------
    lo, hi : float
        Both the mean where all values are equal; NaN where there are fewer than two.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, doi:10.2307/2289144.
    """
    defined = values[~np.isnan(values)]
    drawn = means[~np.isnan(means)]
    if len(defined) < 2 or not len(drawn):
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
    tails = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
    shares = ndtr(bias + tails / (1 - acceleration * tails))
    lo, hi = np.quantile(drawn, shares)
    return float(lo), float(hi)


def card_intervals(
    panel: Panel,
    predictions: Predictions,
    *,
    resamples: int = CARD_RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> dict[str, tuple[float, float]]:
    """Intervals of one user's scores, from resampling that user's cards.

    Every metric is recomputed on each resample; its standard deviation gives a normal
    interval around the score itself, cut off at the `bounds` of the metrics that have any.

    Parameters
    ----------
    panel : Panel
        What to compute.
    predictions : Predictions
        Of one user.
    resamples : int
        How often the cards are drawn with replacement.
    seed : int
        Of the draws.
    level : float
        Share of intervals that should hold the true score.

    Returns
    -------
    dict of str to (lo, hi)
        NaN where a score is not defined, or there are fewer than two cards.
    """
    scores = panel.score(predictions)
    _, card = np.unique(predictions.card, return_inverse=True)
    cards = int(card.max(initial=-1)) + 1
    if cards < 2:
        return dict.fromkeys(scores, (math.nan, math.nan))
    card_of_curve = _card_of_curve(predictions, card)
    curve_means = {metric.name: metric for metric in panel if isinstance(metric, CurveMean)}
    whole = {metric.name: metric for metric in panel if metric.name not in curve_means}
    totals = _curve_totals(curve_means, predictions.curves, card_of_curve, cards)
    drawn = {name: np.full(resamples, np.nan) for name in scores}
    begin = 0
    for block in _cluster_counts(cards, resamples, seed):
        for name, (sums, held) in totals.items():
            numbers = block @ held
            target = drawn[name][begin : begin + len(block)]
            np.divide(block @ sums, numbers, out=target, where=numbers > 0)
        for position, counts in enumerate(block.astype(np.int64), begin):
            sample = _repeated(predictions, counts[card], counts[card_of_curve])
            for name, metric in whole.items():
                drawn[name][position] = metric(sample)
        begin += len(block)
    return {
        metric.name: _normal_interval(metric, scores[metric.name], drawn[metric.name], level)
        for metric in panel
    }


def _normal_interval(
    metric: Metric, score: float, drawn: FloatArray, level: float
) -> tuple[float, float]:
    """Score plus and minus some standard deviations of its resamples, within its range."""
    defined = drawn[np.isfinite(drawn)]
    if math.isnan(score) or len(defined) < 2:
        return math.nan, math.nan
    spread = float(ndtri((1 + level) / 2)) * float(defined.std(ddof=1))
    lowest, highest = metric.bounds if isinstance(metric, Bounded) else (-math.inf, math.inf)
    return max(lowest, score - spread), min(highest, score + spread)


def _curve_totals(
    metrics: Mapping[str, CurveMean], curves: Curves | None, card_of_curve: IntArray, cards: int
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Sum and number of defined curve scores of each card [cards], for each metric."""
    totals: dict[str, tuple[FloatArray, FloatArray]] = {}
    for name, metric in metrics.items():
        values = np.empty(0) if curves is None else metric.per_curve(curves)
        defined = ~np.isnan(values)
        sums = np.zeros(cards)
        held = np.zeros(cards)
        np.add.at(sums, card_of_curve, np.where(defined, values, 0))
        np.add.at(held, card_of_curve, defined)
        totals[name] = (sums, held)
    return totals


def _card_of_curve(predictions: Predictions, card: IntArray) -> IntArray:
    """Find the card of each forgetting curve through its review."""
    curves = predictions.curves
    if curves is None:
        return np.empty(0, np.int64)
    keys = np.stack([predictions.user, predictions.fold, predictions.row])
    wanted = np.stack([curves.user, curves.fold, curves.row])
    _, number = np.unique(np.concatenate([keys, wanted], axis=1), axis=1, return_inverse=True)
    known = np.full(int(number.max(initial=-1)) + 1, -1)
    known[number[: len(card)]] = card
    found: IntArray = known[number[len(card) :]]
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
