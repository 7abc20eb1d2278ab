"""What a protocol makes of a log: histories a model may see, and folds of rows to score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import Strict

from srs_eval.data.reviews import BoolArray, IntArray, Reviews, columns_of

# An option that is true or false, and no number or word in their place.
Flag = Annotated[bool, Strict()]


@dataclass(frozen=True)
class Fold:
    """Row numbers to train and to test on; every train row precedes every test row."""

    number: int
    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class Task:
    """What a protocol makes of one user's log, for one algorithm.

    Attributes
    ----------
    reviews : Reviews
        The histories the algorithm may see; scored rows are a subset of them.
    folds : sequence of Fold
        Row numbers into `reviews`.
    nth_review : int64 [len(reviews)]
        1 + reviews of the card on a later day than the one before, up to and including
        this one: the i of RMSE(bins).
    log_row : int64 [len(reviews)]
        Position of each review in the whole log: its identity, which algorithms do not see,
        because a gap would tell them of reviews that were filtered out.
    lapses : int64 [len(reviews)]
        Earlier Agains of the card: those given at least a day after the review before them,
        or all, as the protocol says.
    warm_start : bool
        Whether algorithms that can (`WarmStarting`) start from the fit of the fold before.
    last_rating : int64 [len(reviews)], optional
        Answer of the card's review before in the log, seen by the algorithm or not; 0 where
        there is none.
    recalls : int64 [len(reviews)], optional
        Earlier recalls of the card in the log, same-day ones included.
    dropped : mapping of str to int
        Reviews that are not scored because of a rule of the protocol, counted by rule.
    unscored : mapping of str to int
        Other reviews that are neither scored nor learned from, counted by reason, such as the
        first of each card.
    """

    reviews: Reviews
    folds: Sequence[Fold]
    nth_review: IntArray
    lapses: IntArray
    log_row: IntArray
    warm_start: bool = False
    last_rating: IntArray | None = None
    recalls: IntArray | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    unscored: Mapping[str, int] = field(default_factory=dict)

    def take(self, rows: IntArray | BoolArray) -> Task:
        """Select histories, by number or by mask, and number them anew; folds are left out."""
        columns: dict[str, Any] = {name: each[rows] for name, each in columns_of(self).items()}
        reviews = self.reviews.take(rows)
        reviews = replace(reviews, row=np.arange(len(reviews)))
        return replace(self, reviews=reviews, folds=(), **columns)


class EvaluationProtocol(Protocol):
    """Which reviews are scored, and what may be learned before each of them."""

    @property
    def name(self) -> str:
        """Name that goes with every number produced under it."""

    @property
    def version(self) -> str:
        """Changes whenever a change of code can move a number."""

    @property
    def folds(self) -> int:
        """Fits per user."""

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter and split one user's log; raise `FitSkipped` if nothing can be scored."""
