"""Score predictions that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from srs_eval.errors import ScoreError
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS
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
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    panel: Panel | None = None,
    nan_policy: str = "raise",
) -> dict[str, float]:
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
    card : int [n], optional
        Card of each review, for metrics of a panel of your own.
    thresholds : sequence of float
        Predictions at which the default panel takes the confusion statistics.
    panel : Panel, optional
        Metrics to compute instead of the default panel.
    nan_policy : str
        ``raise``, or ``omit`` to leave out the reviews where any column is NaN.

    Returns
    -------
    dict of str to float
        ``n``, ``n_dropped`` and each metric; the temporal check is NaN, it needs a model.

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
    columns = _columns(p, {"recalled": recalled, **facts, "card": card})
    length = columns["p"].size
    if nan_policy == "omit":
        columns = _without_missing(columns)
    predictions = _predictions(columns)
    chosen = default_panel(thresholds=thresholds) if panel is None else panel
    counts: dict[str, float] = {"n": len(predictions), "n_dropped": length - len(predictions)}
    return counts | chosen.score(predictions)


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
        user=zeros.reshape(p.shape),
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
