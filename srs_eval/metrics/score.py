"""Score predictions that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from srs_eval.errors import ScoreError
from srs_eval.metrics.cluster_sums import ClusterSums
from srs_eval.metrics.intervals import around, half_widths
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.resample import LEVEL, RESAMPLES
from srs_eval.metrics.result import PanelResult
from srs_eval.metrics.sums import codes_of
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, threshold_rows
from srs_eval.metrics.validate import as_floats, as_numbers, check_predictions
from srs_eval.nouns import Predictions

NAN_POLICIES = ("raise", "omit")
Columns = dict[str, NDArray[Any]]


def score(
    p: ArrayLike,
    recalled: ArrayLike,
    *,
    elapsed_days: ArrayLike | None = None,
    nth_review: ArrayLike | None = None,
    lapses: ArrayLike | None = None,
    card: ArrayLike | None = None,
    user: ArrayLike | None = None,
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    panel: Panel | None = None,
    nan_policy: str = "raise",
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> PanelResult:
    """Compute the whole panel for predictions made elsewhere.

    Takes numpy arrays, lists, and columns of pandas, polars or torch (on the CPU).

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n], or 0 and 1
        Outcome.
    elapsed_days, nth_review, lapses : [n], optional
        What RMSE(bins) groups reviews by; without all three it is NaN. See `rmse_bins`.
    card, user : [n], optional
        Card and user of each review. All reviews are scored together; intervals come from
        resampling users, or cards where no users are given: reviews of one are alike, so
        that intervals which take them as independent are too narrow.
    thresholds : sequence of float
        Predictions at which the default panel takes the confusion statistics.
    panel : Panel, optional
        Metrics to compute instead of the default panel.
    nan_policy : str
        ``raise``, or ``omit`` to leave out the reviews where any column is NaN.
    resamples : int
        How often users or cards are drawn; 0 for no intervals.
    seed : int
        Of the draws: the same for equally many users, so that differences between models keep
        their pairing.
    level : float
        Share of intervals that should hold the true score.

    Returns
    -------
    PanelResult
        A dictionary of ``n``, ``n_dropped`` and each metric, with the intervals; it prints as
        a table. The temporal check is NaN, it needs a model.

    Raises
    ------
    ScoreError
        If the predictions cannot be scored; every problem is named.

    Examples
    --------
    >>> scores = score([0.9, 0.8, 0.3], [1, 1, 0])
    >>> scores["n"], round(scores["log_loss"], 6)
    (3, 0.228393)
    """
    if nan_policy not in NAN_POLICIES:
        raise ScoreError(f"nan_policy is {nan_policy!r}, expected 'raise' or 'omit'")
    facts = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
    labels = {name: _codes(name, of) for name, of in {"card": card, "user": user}.items()}
    columns = _columns(p, {"recalled": recalled, **facts, **labels})
    length = columns["p"].size
    if nan_policy == "omit":
        columns = _without_missing(columns)
    nameless = [name for name in labels if np.isnan(columns.get(name, np.empty(0))).any()]
    if nameless:
        raise ScoreError(f"{' and '.join(nameless)} has missing values; see nan_policy")
    predictions = _predictions(columns)
    chosen = default_panel(thresholds=thresholds) if panel is None else panel
    counts: dict[str, float] = {"n": len(predictions), "n_dropped": length - len(predictions)}
    sketch = chosen.sketch(predictions)
    scores = counts | chosen.of(sketch, predictions)
    at = () if sketch is None else threshold_rows(sketch, chosen)
    better = {metric.name: metric.better for metric in chosen}
    over = "user" if user is not None else "card"
    if over not in columns or not resamples or not len(predictions):
        return PanelResult(scores, better=better, thresholds=at)
    sums = ClusterSums.of(chosen, predictions, *codes_of(columns[over]))
    widths = half_widths(sums, resamples=resamples, seed=seed, level=level)
    intervals = around(chosen, scores, widths)
    return PanelResult(
        scores,
        better=better,
        thresholds=at,
        intervals=intervals,
        interval_over=f"{over}s",
        level=level,
    )


def _codes(name: str, labels: ArrayLike | None) -> NDArray[Any] | None:
    """Give what cards or users are called numbers, NaN where it is missing."""
    if labels is None:
        return None
    given = np.asarray(labels)
    if given.dtype.kind in "biuf":
        return given
    missing = np.array([label is None or label != label for label in given.ravel().tolist()])
    try:
        _, code = np.unique(np.where(missing, "", given.ravel()).astype(str), return_inverse=True)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"{name} cannot be read as names: {error}") from error
    codes: NDArray[Any] = np.where(missing, np.nan, code).reshape(given.shape)
    return codes


def _columns(p: ArrayLike, others: Mapping[str, ArrayLike | None]) -> Columns:
    """Take all that was given as arrays."""
    given = {name: values for name, values in others.items() if values is not None}
    return {
        "p": as_floats("p", p),
        **{name: as_numbers(name, values) for name, values in given.items()},
    }


def _without_missing(columns: Columns) -> Columns:
    """Leave out the reviews at which any column is NaN."""
    shapes = {name: column.shape for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or columns["p"].ndim != 1:
        raise ScoreError(f"columns must have one dimension and equal lengths, not {shapes}")
    whole = np.ones(len(columns["p"]), np.bool_)
    for column in columns.values():
        whole &= ~np.isnan(column.astype(np.float64))
    return {name: column[whole] for name, column in columns.items()}


def _predictions(columns: Columns) -> Predictions:
    """Put the columns together as the predictions of one unnamed user."""
    p = columns["p"]
    each = np.arange(p.size)
    zeros = np.zeros(p.size, np.int64)
    unchecked = Predictions(
        users=("",),
        user=columns.get("user", zeros.reshape(p.shape)),
        fold=zeros.reshape(p.shape),
        row=each.reshape(p.shape),
        card=columns.get("card", zeros.reshape(p.shape)),
        p=p,
        recalled=columns["recalled"],
        elapsed_days=columns.get("elapsed_days"),
        nth_review=columns.get("nth_review"),
        lapses=columns.get("lapses"),
    )
    check_predictions(unchecked)
    return replace(unchecked, recalled=unchecked.recalled.astype(np.bool_, copy=False))
