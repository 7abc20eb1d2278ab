"""A user's review log as columns, what each column may hold, and where logs come from.

Row numbers, as in `Fold` and in `fit`, count from 0 in the `Reviews` they travel with.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

User = int | str
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.floating[Any]]
# In double precision, of one dimension and of two.
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reviews:
    """One user's review log in time order, as numpy columns of equal length n.

    Built by `srs_eval.data.schema.reviews_from_columns`, which validates it once.

    Attributes
    ----------
    user : int or str
        Whose log it is.
    card : int64 [n]
        Card of each review.
    day : int64 [n]
        Day number, never decreasing; days begin at the user's own hour.
    rating : int64 [n]
        1 Again, 2 Hard, 3 Good, 4 Easy. Recalled means rating > 1.
    elapsed_days : int64 [n]
        Whole days since the card's previous review; -1 at its first.
    elapsed : float64 [n]
        The same on the clock of the protocol, which sets it: whole days, or fractional days
        where the protocol says so; 0 at the first. Models read this.
    row : int64 [n]
        Position of the review in the log as it was read; in a `Task`, in its histories.
    elapsed_seconds : float64 [n], optional
        Seconds since the card's previous answer; -1 at its first review. No model sees them.
    duration_ms : float64 [n], optional
        Time spent answering, in milliseconds; NaN where that is not known.
    state : int64 [n], optional
        0 new, 1 learning, 2 review, 3 relearning, 4 filtered.
    truth : float64 [n], optional
        True probability of recall, known only for simulated users.
    deck, preset : int64 [n], optional
        Deck the card is in, and the preset of options of that deck, both as they were when the
        log was exported; -1 where that is not known, as of deleted cards.
    note_type, note : int64 [n], optional
        Note type and note of the card, whose other cards are siblings; -1 where not known.
    titles : mapping of str to mapping of int to str
        Names of cards and groups by their numbers, for the columns ``card`` and those in `GROUPS`,
        as far as they are known.
    left_out : mapping of str to int
        Rows of the source that are not reviews, counted by reason.
    notes : sequence of str
        Remarks of the source on this log, printed with the results.
    recorded : float64 [n, k], optional
        Probabilities that other programs stored before each answer; NaN where there is none. Only
        algorithms with ``reads_recorded = True`` see them.
    recorded_names : sequence of str
        What predicted each of these columns.
    first_day : int, optional
        Days from 1970-01-01 to day 0, by the user's own days; None where the log has no dates.
    whole_days : bool
        Whether `elapsed` counts whole days: short logs do not tell by their numbers.
    """

    user: User
    card: IntArray
    day: IntArray
    rating: IntArray
    elapsed_days: IntArray
    elapsed: FloatArray
    row: IntArray
    elapsed_seconds: FloatArray | None = None
    duration_ms: FloatArray | None = None
    state: IntArray | None = None
    truth: FloatArray | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    whole_days: bool = True
    deck: IntArray | None = None
    preset: IntArray | None = None
    note_type: IntArray | None = None
    note: IntArray | None = None
    titles: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    recorded: FloatArray | None = None
    recorded_names: Sequence[str] = ()
    first_day: int | None = None

    def __len__(self) -> int:
        """Count the reviews."""
        return len(self.card)

    @property
    def recalled(self) -> BoolArray:
        """Whether each review was recalled (any rating but Again)."""
        return self.rating > 1

    def seen_by(self, algorithm: object) -> Reviews:
        """Return the log without the columns that an algorithm may not read."""
        hidden: dict[str, Any] = {
            column: None
            for column, trait in (("truth", "sees_truth"), ("recorded", "reads_recorded"))
            if getattr(self, column) is not None and not getattr(algorithm, trait, False)
        }
        return replace(self, **hidden) if hidden else self

    def take(self, rows: IntArray | BoolArray) -> Reviews:
        """Select rows, by number or by mask, in the given order."""
        return replace(self, **{name: each[rows] for name, each in columns_of(self).items()})


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns that a log, a task or predictions have, by name."""
    columns = {f.name: getattr(table, f.name) for f in fields(table) if "Array" in str(f.type)}
    return {name: column for name, column in columns.items() if column is not None}


def reviews_fingerprint(reviews: Reviews) -> str:
    """Digest of a log: its cards, days, ratings and elapsed times."""
    digest = hashlib.sha256(str(reviews.user).encode())
    for column in (reviews.card, reviews.day, reviews.rating, reviews.elapsed_days):
        digest.update(np.ascontiguousarray(column, "<i8").data)
    if reviews.elapsed_seconds is not None:
        digest.update(np.ascontiguousarray(reviews.elapsed_seconds, "<f8").data)
    return digest.hexdigest()[:16]


_CENTURY_SECONDS = 36_525 * 86_400.0
# What cards can be grouped by; each is a column of `Reviews`.
GROUPS = ("deck", "preset", "note_type", "note")


@dataclass(frozen=True, slots=True)
class Column:
    """What the values of a column may be."""

    meaning: str  # As errors say it of values outside the range
    low: float = -math.inf
    high: float = math.inf
    is_whole: bool = True  # Whether values are whole numbers


COLUMNS = {
    "card": Column("a whole number"),
    "rating": Column("1 (Again), 2 (Hard), 3 (Good) or 4 (Easy)", 1, 4),
    "day": Column("day numbers"),
    "elapsed_days": Column("days since the card's previous row, -1 at its first"),
    "elapsed_seconds": Column("at most 100 years", high=_CENTURY_SECONDS, is_whole=False),
    "duration_ms": Column("0 to 100 years", 0, 1000 * _CENTURY_SECONDS, is_whole=False),
    "state": Column("0 (new), 1 (learning), 2 (review), 3 (relearning) or 4 (filtered)", 0, 4),
    "truth": Column("a probability from 0 to 1", 0, 1, is_whole=False),
    **{group: Column("a whole number, -1 where not known") for group in GROUPS},
}


class Source(Protocol):
    """Where review logs come from: a file, a folder, or a simulator."""

    @property
    def name(self) -> str:
        """Short name for tables, such as ``synthetic`` or a file's name."""

    @property
    def location(self) -> str:
        """Path, or a description of what is simulated."""

    def users(self) -> Sequence[User]:
        """Return the users, in a fixed order, without reading their reviews."""

    def read(self, user: User) -> Reviews:
        """Read one user's log; raise `ReviewLogError` if it cannot be used."""
