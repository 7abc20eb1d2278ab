"""The Universal Metric of SuperMemo's community: one model's predictions judged by another's.

Reviews are binned by the predictions of one model, the referee, and in each bin the mean
prediction of the other, the player, is compared with the share recalled. A player cannot
win by watching its own bins; it can still win by watching the referee's, so this may not
rank models alone either.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.errors import ConfigError
from srs_eval.metrics.bins import log_bins
from srs_eval.metrics.validate import paired
from srs_eval.nouns import BoolArray, FloatArray, IntArray

Referee = Literal["log20", "round10"]

# Width of the bins of the difference between two models is one in this many.
DIFFERENCE_STEPS = 20


def universal_metric(
    player: ArrayLike, referee: ArrayLike, recalled: ArrayLike, *, bins: Referee = "log20"
) -> float:
    """Root mean square gap between a player's mean prediction and the share recalled, by bin.

    Parameters
    ----------
    player : float [n], in [0, 1]
        Predictions that are judged.
    referee : float [n], in [0, 1]
        Another model's predictions of the same reviews, which bin them.
    recalled : bool [n]
        Outcome.
    bins : {"log20", "round10"}
        20 bins, finer towards 1, as in most published numbers; or the referee's predictions
        rounded to tenths (half to even), as in fsrs-vs-sm17 since October 2025.

    Returns
    -------
    float
        In [0, 1]; lower is better. NaN if n is 0.

    Raises
    ------
    ScoreError
        If the predictions cannot be scored.
    ConfigError
        If there are no such bins.

    References
    ----------
    https://supermemo.guru/wiki/Universal_metric, as open-spaced-repetition/fsrs-vs-sm17
    computes it.

    Examples
    --------
    >>> round(universal_metric([0.9, 0.8, 0.7], [0.5, 0.5, 0.2], [1, 1, 0]), 6)
    0.422295
    """
    judged, outcome = paired(player, recalled)
    judge, _ = paired(referee, recalled)
    exact = judge.astype(np.float64, copy=False)
    if bins == "log20":
        return _rmse(judged, outcome, log_bins(exact))
    if bins == "round10":
        return _rmse(judged, outcome, np.rint(10 * exact).astype(np.int64))
    raise ConfigError(f"the referee's bins are log20 or round10, not {bins!r}")


def universal_metric_plus(player: ArrayLike, opponent: ArrayLike, recalled: ArrayLike) -> float:
    """UM+: as the Universal Metric, over bins of the difference between the two models.

    Predictions can only be told apart where models differ, so bins are the player's
    prediction less the opponent's, rounded to twentieths. Among more models a player's score
    is the largest over its opponents.

    Parameters
    ----------
    player, opponent : float [n], in [0, 1]
        Predictions of the same reviews; the player's are judged.
    recalled : bool [n]
        Outcome.

    Returns
    -------
    float
        In [0, 1]; lower is better. NaN if n is 0.

    Raises
    ------
    ScoreError
        If the predictions cannot be scored.

    References
    ----------
    open-spaced-repetition/fsrs-vs-sm17, commit 547fc64.

    Examples
    --------
    >>> round(universal_metric_plus([0.9, 0.8, 0.7], [0.8, 0.7, 0.7], [1, 1, 0]), 6)
    0.422295
    """
    judged, outcome = paired(player, recalled)
    other, _ = paired(opponent, recalled)
    difference = judged.astype(np.float64, copy=False) - other
    steps = np.rint(DIFFERENCE_STEPS * difference).astype(np.int64)
    return _rmse(judged, outcome, steps + DIFFERENCE_STEPS)


def _rmse(p: FloatArray, recalled: BoolArray, bins: IntArray) -> float:
    """Root of the mean over reviews of the squared gap of their bin."""
    if not len(p):
        return math.nan
    size = np.bincount(bins)
    gap = np.bincount(bins, p.astype(np.float64, copy=False) - recalled)
    held = size > 0
    return math.sqrt(float((gap[held] ** 2 / size[held]).sum()) / len(p))
