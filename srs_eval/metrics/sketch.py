"""What the metrics of a panel are computed from, whichever reviews it stands for.

A sketch may stand for the reviews of one user, exactly; for all users of a run, whose
predictions are never in memory together; or for a resample of users or cards. A metric that
has `of` is computed from it in the same way in each case.
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

from srs_eval.metrics.sums import Sums, add_up
from srs_eval.metrics.tally import Tally, tally
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, BoolArray, FloatArray, IntArray, Predictions

T = TypeVar("T")


class Sketch:
    """Sums over some reviews, and their predictions counted by outcome.

    Parameters
    ----------
    sums : mapping of Sums to float64 [used, columns]
        What each of the sums came to in the cells that hold reviews, in order of the cells.
    count : callable
        Makes the tally when it is first asked for.
    """

    def __init__(self, sums: Mapping[Sums, FloatArray], count: Callable[[], Tally]) -> None:
        self._sums = sums
        self._count = count
        self._derived: dict[Callable[[Tally], object], object] = {}

    def __getitem__(self, sums: Sums) -> FloatArray:
        """Get what some sums came to [used, columns]."""
        return self._sums[sums]

    def with_tally(self, counted: Tally) -> Sketch:
        """Put other, finer counts of the same predictions beside the sums."""
        return Sketch(self._sums, lambda: counted)

    @cached_property
    def tally(self) -> Tally:
        """Predictions in order, counted by outcome."""
        return self._count()

    def derived(self, make: Callable[[Tally], T]) -> T:
        """Compute something from the tally, once for all metrics that ask for it."""
        if make not in self._derived:
            self._derived[make] = make(self.tally)
        return cast(T, self._derived[make])


@runtime_checkable
class ReviewMean(Protocol):
    """A metric that is the mean of a number of each review."""

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own [n]."""


@dataclass(frozen=True, slots=True)
class ReviewMeanSums:
    """Adds up the scores of reviews, for a metric that is their mean and nothing else."""

    metric: ReviewMean
    cells: ClassVar[int] = 1

    def cell(self, predictions: Predictions) -> IntArray | None:
        """Say that there is one cell."""
        return None

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Score of each review, and 1."""
        return self.metric.per_review(predictions), np.ones(len(predictions), np.bool_)


@dataclass(frozen=True, slots=True)
class SketchMetric(ABC):
    """Base class of metrics computed from a sketch.

    Subclasses set the properties below as class attributes. Those with parameters are frozen
    dataclasses.

    Class attributes
    ----------------
    has_interval : bool
        Whether the metric depends on outcomes, so that resampling gives an interval. Floors
        (the expected value for true predictions) do not.
    """

    has_interval: ClassVar[bool] = True

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
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible value."""

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


def exact_sketch(predictions: Predictions, metrics: Iterable[object]) -> Sketch:
    """Sum up predictions for some metrics.

    Parameters
    ----------
    predictions : Predictions
        Of one user or many, checked before, and at least one.
    metrics : iterable of Metric
        Those that cannot be computed from a sketch are passed over.
    """
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


def alone(metric: SketchMetric, p: ArrayLike, recalled: ArrayLike) -> float:
    """Compute one metric of predictions and outcomes, which are checked; NaN if n is 0."""
    return metric(bare_predictions(*paired(p, recalled)))


def bare_predictions(p: FloatArray, recalled: BoolArray) -> Predictions:
    """Put predictions and outcomes of an unnamed user together, checked before."""
    zeros = np.zeros(len(p), np.int64)
    return Predictions(("",), zeros, zeros, np.arange(len(p)), zeros, p, recalled)
