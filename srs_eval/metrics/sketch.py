"""Sketches: sums and a tally of reviews, from which the metrics of a panel are computed.

A sketch may represent the reviews of one user, exactly; all users of a run, whose predictions
are never in memory together; or a resample of users or cards. A metric with the method `of` is
computed from it in the same way in each case.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.metrics.sums import OneCell, Sums, add_up
from srs_eval.metrics.tally import Tally, tally
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, BoolArray, FloatArray, Predictions

T = TypeVar("T")


class Sketch:
    """Sums over some reviews, and their predictions counted by outcome.

    `sums` has the totals [used, columns] of each of the sums in the cells that hold reviews, in
    order of the cells; `count` computes the tally on first use.
    """

    def __init__(self, sums: Mapping[Sums, FloatArray], count: Callable[[], Tally]) -> None:
        self._sums = sums
        self._count = count
        self._derived: dict[Callable[[Tally], object], object] = {}

    def __getitem__(self, sums: Sums) -> FloatArray:
        """Return the totals of some sums [used, columns]."""
        return self._sums[sums]

    def with_tally(self, counted: Tally) -> Sketch:
        """Return the same sums with another, finer tally of the same predictions."""
        return Sketch(self._sums, lambda: counted)

    @cached_property
    def tally(self) -> Tally:
        """Predictions in order, counted by outcome."""
        return self._count()

    def derived(self, make: Callable[[Tally], T]) -> T:
        """Return a function of the tally, computed once for all metrics."""
        if make not in self._derived:
            self._derived[make] = make(self.tally)
        return cast(T, self._derived[make])


@runtime_checkable
class ReviewMean(Protocol):
    """A metric that is the mean of a number of each review."""

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own [n]."""


@dataclass(frozen=True, slots=True)
class ReviewMeanSums(OneCell):
    """Adds up the scores of reviews, for a metric that is their mean and nothing else."""

    metric: ReviewMean

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Score of each review, and 1."""
        return self.metric.per_review(predictions), np.ones(len(predictions), np.bool_)


class DeclaredMetric(ABC):
    """Base class of metrics that declare what they are as class attributes, or properties."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the metric."""

    @property
    @abstractmethod
    def better(self) -> Better:
        """Which direction is better."""

    @property
    @abstractmethod
    def section(self) -> str:
        """Section of the panel."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        return -math.inf, math.inf


@dataclass(frozen=True, slots=True)
class SketchMetric(DeclaredMetric):
    """Base class of metrics computed from a sketch; those with parameters are frozen dataclasses.

    Class attributes
    ----------------
    has_interval : bool
        Whether clusters are resampled for an interval. Floors do not depend on outcomes, and
        errors along a smooth curve are compared with their floors.
    """

    has_interval: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Sums, ...]:
        """Sums the metric reads from the sketch; the tally is always available."""
        return ()

    @abstractmethod
    def of(self, sketch: Sketch) -> float:
        """Compute the metric."""

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return self.of(exact_sketch(predictions, [self])) if len(predictions) else math.nan

    def of_outcomes(self, p: ArrayLike, recalled: ArrayLike) -> float:
        """Score predictions and outcomes made elsewhere, which are checked; NaN if n is 0.

        `p`, [n], are predicted probabilities of recall, in [0, 1]; `recalled`, [n], are bool, or 0
        and 1. Raise `ScoreError` if they cannot be scored.
        """
        return self(bare_predictions(*paired(p, recalled)))


def exact_sketch(predictions: Predictions, metrics: Iterable[object]) -> Sketch:
    """Sum up predictions, checked and at least one, for the metrics that a sketch is enough for."""
    needed = sums_of(metrics)
    totals = add_up(needed, predictions)
    found = {sums: total.values[0] for sums, total in zip(needed, totals, strict=True)}
    return Sketch(found, lambda: tally(predictions.p, predictions.recalled))


def sums_of(metrics: Iterable[object]) -> list[Sums]:
    """Collect the sums some metrics need, each once."""
    return list(
        dict.fromkeys(
            sums for metric in metrics if isinstance(metric, SketchMetric) for sums in metric.needs
        )
    )


def bare_predictions(p: FloatArray, recalled: BoolArray) -> Predictions:
    """Build the predictions of an unnamed user from validated arrays."""
    zeros = np.zeros(len(p), np.int64)
    return Predictions(("",), zeros, zeros, np.arange(len(p)), zeros, p, recalled)
