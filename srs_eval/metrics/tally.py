"""Reviews counted by prediction and outcome: what metrics are functions of.

A tally stands for the reviews of one user, exactly; for those of all users, whose predictions are
counted in cells; or for a resample of users, cards or days, in which counts are weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.metrics.bins import Bins
from srs_eval.metrics.predictions import Predictions, predictions_of
from srs_eval.metrics.temporal import curve_columns

# Predictions are kept this far from 0 and 1 in log losses, whatever their own precision, so that a
# certain and wrong prediction always costs 36.04 nats.
CLIP = 2.0**-52
Precision = np.dtype[np.floating[Any]]
DOUBLE: Precision = np.dtype(np.float64)
COMPACT = 2**16


class Tally:
    """Reviews counted by prediction and outcome, with their sums of other kinds.

    Parameters
    ----------
    p : float64 [m], increasing, in [0, 1]
        Distinct predictions, or the mean prediction of each cell.
    forgotten, recalled : float64 [m], at least 0
        Reviews with each prediction that were forgotten, and recalled; never both 0.
    precision : dtype
        Precision of the predictions; thresholds are rounded to it.
    reviews : Predictions, optional
        The reviews, of which `curves` and bins are added up when they are first read.
    losses, curves, bins
        These sums of reviews that are counted in cells.

    Attributes
    ----------
    count : float64 [m]
        Reviews with each prediction.
    residual : float64 [m]
        Sum of prediction minus outcome over the reviews with each prediction.
    n, n_forgotten, n_recalled : float
        Number of all reviews, of forgotten and of recalled ones.
    """

    def __init__(
        self,
        p: FloatArray,
        forgotten: FloatArray,
        recalled: FloatArray,
        precision: Precision = DOUBLE,
        *,
        reviews: Predictions | None = None,
        losses: FloatArray | None = None,
        curves: FloatArray | None = None,
        bins: Mapping[Bins, FloatArray] | None = None,
    ) -> None:
        self.p, self.forgotten, self.recalled = p, forgotten, recalled
        self.count = forgotten + recalled
        self.residual: FloatArray = p * self.count - recalled
        for column in (p, forgotten, recalled, self.count, self.residual):  # metrics share them
            column.flags.writeable = False
        self.n_forgotten, self.n_recalled = float(forgotten.sum()), float(recalled.sum())
        self.n = self.n_forgotten + self.n_recalled
        self.precision = precision
        self._reviews = reviews
        self._bins = dict(bins or {})
        self._confusion: dict[float, Mapping[str, float]] = {}
        if losses is not None:
            self.losses = losses
        if curves is not None:
            self.curves = curves

    @classmethod
    def of(cls, predictions: Predictions) -> Tally:
        """Count checked predictions, exactly and in any precision."""
        # Doubles from 0 to 1 are ordered as their bits are; the outcome rides along as the last
        # bit, so that one sort of integers does. Adding 0 makes an ordinary zero of -0.
        exact = predictions.p.astype(np.float64)
        exact += 0.0
        keys = exact.view(np.int64)
        keys <<= 1
        keys |= predictions.recalled
        keys.sort()
        recalled = (keys & 1).astype(np.float64)
        keys >>= 1
        first = np.flatnonzero(np.r_[len(keys) > 0, keys[1:] != keys[:-1]])
        if len(first) < len(keys):
            recalled = np.add.reduceat(recalled, first)
        p, count = keys[first].view(np.float64), np.diff(first, append=len(keys))
        return cls(p, count - recalled, recalled, predictions.p.dtype, reviews=predictions)

    def __len__(self) -> int:
        """Count the distinct predictions."""
        return len(self.p)

    @cached_property
    def losses(self) -> FloatArray:
        """Sums of log losses and of squared errors, and number of certain wrong predictions [3]."""
        outcomes = (self.recalled, np.ones(1, np.bool_)), (self.forgotten, np.zeros(1, np.bool_))
        log_loss = sum(count @ log_losses(self.p, outcome) for count, outcome in outcomes)
        squares = self.recalled @ (1 - self.p) ** 2 + self.forgotten @ self.p**2
        certain = self.recalled[self.p < CLIP].sum() + self.forgotten[self.p > 1 - CLIP].sum()
        return np.array([log_loss, squares, certain])

    @cached_property
    def isotonic_loss(self) -> float:
        """Mean log loss of the isotonic regression of outcomes on predictions."""
        recalled, count = self.recalled, self.count
        blocks = isotonic_regression(recalled / count, weights=count).blocks[:-1]
        recalled, count = np.add.reduceat(recalled, blocks), np.add.reduceat(count, blocks)
        rate = recalled / count
        return float(-(xlogy(recalled, rate) + xlogy(count - recalled, 1 - rate)).sum()) / self.n

    @cached_property
    def curves(self) -> FloatArray:
        """Sums of `curve_columns`: number of forgetting curves, and their violations [3]."""
        curves = None if self._reviews is None else self._reviews.curves
        return np.asarray(curve_columns(curves).sum(axis=1))

    def bins(self, bins: Bins) -> FloatArray:
        """Reviews, residuals and variances of the bins of RMSE(bins) that hold reviews [used, 3].

        NaN where the reviews lack a fact that they are grouped by.
        """
        if bins not in self._bins:
            reviews = self._reviews
            self._bins[bins] = np.full((1, 3), np.nan) if reviews is None else bins.sums(reviews)
        return self._bins[bins]

    @property
    def sums(self) -> dict[str, Any]:
        """Sums of other kinds, as arguments of another tally of the same reviews."""
        return {"losses": self.losses, "curves": self.curves, "bins": self._bins}

    @cached_property
    def compact(self) -> Tally:
        """At most `COMPACT` joined neighbours."""
        return self.at_most(COMPACT)

    def at_most(self, size: int) -> Tally:
        """Join neighbouring predictions until there are at most `size`.

        They are joined in `size` equal cells of [0, 1] and their means kept, which moves no
        prediction by more than 1 / `size`.
        """
        if len(self) <= size:
            return self
        cell = np.minimum((self.p * size).astype(np.int64), size - 1)
        return from_sums(self.in_cells(cell)[1], self.precision)

    def in_cells(self, cell: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the cells that hold predictions, and their outcomes and sums [3, cells].

        `cell` is that of each prediction, increasing; see `from_sums`.
        """
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        columns = self.forgotten, self.recalled, self.p * self.count
        return cell[first], np.stack([np.add.reduceat(column, first) for column in columns])

    def first_at_least(self, threshold: float) -> int:
        """Index [0, m] of the first prediction at or above a threshold of their precision."""
        return int(self.p.searchsorted(float(self.precision.type(threshold))))

    def confusion(self, threshold: float) -> Mapping[str, float]:
        """Count ``tp fp fn tn`` of the rule "recalled if p >= threshold": positives are recalls."""
        if threshold not in self._confusion:
            tn, fn = self.below[:, self.first_at_least(threshold)].tolist()
            tp, fp = self.n_recalled - fn, self.n_forgotten - tn
            self._confusion[threshold] = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
        return self._confusion[threshold]

    @cached_property
    def below(self) -> FloatArray:
        """Forgotten and recalled reviews before each prediction, and before the end [2, m + 1]."""
        before = np.zeros((2, len(self) + 1))
        np.cumsum([self.forgotten, self.recalled], axis=1, out=before[:, 1:])
        return before


def tally(p: ArrayLike, recalled: ArrayLike) -> Tally:
    """Count predictions of recall in [0, 1] and outcomes in any container, which are checked.

    >>> reviews = tally([0.9, 0.5, 0.9], [True, False, False])
    >>> reviews.p.tolist(), reviews.forgotten.tolist(), reviews.recalled.tolist()
    ([0.5, 0.9], [1.0, 1.0], [0.0, 1.0])
    """
    return Tally.of(predictions_of(p=p, recalled=recalled))


def from_sums(
    sums: ArrayLike,
    precision: Precision = DOUBLE,
    *,
    within: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
    **others: Any,
) -> Tally:
    """Build a tally from increasing cells: outcome counts and sums of predictions [3, m].

    `within` are bounds of the predictions of each cell; `others` are other sums of `Tally`.
    """
    forgotten, recalled, total = np.asarray(sums, np.float64)
    count = forgotten + recalled
    used = count != 0
    mean = np.divide(total, count, out=np.zeros(len(count)), where=used)
    # Adding up rounds: a mean must not leave its cell, nor fall behind the cell before.
    mean = np.maximum.accumulate(np.clip(mean, *within)[used])
    return Tally(mean, forgotten[used], recalled[used], precision, **others)


def log_losses(p: FloatArray, recalled: BoolArray) -> FloatArray:
    """Negative log-likelihood of each outcome [n], or [n, k], in nats; NaN where p is."""
    exact = p.astype(np.float64, copy=False)
    likelihood = np.where(recalled, exact, 1 - exact)
    return np.asarray(-np.log(np.clip(likelihood, CLIP, 1 - CLIP)))
