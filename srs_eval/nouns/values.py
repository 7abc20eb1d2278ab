"""Frozen values that every part of srs_eval shares.

Row numbers always count from 0 and always refer to the `Reviews` they travel with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

User = int | str
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.floating[Any]]
# In double precision, of one dimension and of two.
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

Better = Literal["lower", "higher", "zero", "neither"]
FitStatus = Literal["ok", "fallback", "skipped", "failed"]


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
        Days since the card's previous review on the protocol's clock (whole days, or
        fractional days where the protocol says so); 0 at the first. Models read this.
    row : int64 [n]
        Position of the review in the log as it was read.
    elapsed_seconds : float64 [n], optional
        Seconds since the card's previous answer; -1 at its first review.
    duration_ms : float64 [n], optional
        Time spent answering, in milliseconds; NaN where that is not known.
    state : int64 [n], optional
        0 new, 1 learning, 2 review, 3 relearning, 4 filtered.
    truth : float64 [n], optional
        True probability of recall, known only for simulated users.
    deck, preset : int64 [n], optional
        Deck the card is in, and the preset of options of that deck, both as they were when the
        log was exported; -1 where that is not known, as of deleted cards.
    note_type, template : int64 [n], optional
        Note type of the card, and its card template, which belongs to one note type; -1 where
        that is not known.
    note : int64 [n], optional
        Note of the card, whose cards are siblings; -1 where that is not known.
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
    template: IntArray | None = None
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


# Its columns, in the order of the fields.
REVIEW_COLUMNS = tuple(f.name for f in fields(Reviews) if "Array" in str(f.type))


@dataclass(frozen=True, slots=True)
class Fold:
    """Row numbers to train and to test on; every train row precedes every test row."""

    number: int
    train: IntArray
    test: IntArray


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Part:
    """One fit of a model that is made of several."""

    # Unique in the model, such as ``all`` or ``preset 1``; ``preset 1/fsrs6`` is a part of
    # ``preset 1``
    name: str
    option: str  # Path of the part's algorithm in the options of the whole, such as ``base``
    parameters: tuple[float, ...] = ()  # As in `Fit`
    standard_errors: tuple[float, ...] = ()  # As in `Fit`
    n_train: int = 0  # Number of training reviews
    # Whether some reviews are predicted by this part alone, as those of a group are
    standalone: bool = False
    title: str = ""  # What people call the group, "" if that is not known


@dataclass(frozen=True, slots=True)
class Contribution:
    """How much log loss something saves on the training reviews."""

    name: str  # A group of features
    gain: float  # Mean log loss without it, less that with it
    standard_error: float  # Of the gain


@dataclass(frozen=True, slots=True)
class Fit:
    """How one fit went; `fold` is -1 where the whole user was skipped.

    `parameters` are the learned numbers of the model, empty where it has none; `parts` are the
    fits of a model that is made of several; `seconds` is CPU time; `traceback` is kept for
    failures that no algorithm announced; `converged` is False where an optimiser stopped early;
    `contributions` are what groups of features are worth; `training_loss` and `test_log_loss` are
    those after each step of the fit, which nothing chooses by.
    """

    user: User
    fold: int
    status: FitStatus
    reason: str = ""
    seconds: float = 0.0
    n_train: int = 0
    n_test: int = 0
    parameters: tuple[float, ...] = ()
    standard_errors: tuple[float, ...] = ()
    traceback: str = ""
    parts: tuple[Part, ...] = ()
    converged: bool = True
    contributions: tuple[Contribution, ...] = ()
    training_loss: tuple[float, ...] = ()
    test_log_loss: tuple[float, ...] = ()

    @property
    def predicts(self) -> bool:
        """Whether predictions came of it."""
        return self.status in ("ok", "fallback")


@dataclass(frozen=True, slots=True)
class Learned:
    """What a model may tell of its fit, in an attribute `learned`.

    `standard_errors` are those of its parameters, NaN where there is none, such as at a
    bound. `note` is what should be known of the fit; `fallback` says that something else
    took its place, and `note` what and why. `parts` are the fits of a model that is made of
    several. `converged` is False where an optimiser stopped early. `contributions` say what groups
    of features are worth. `training_loss` is what an optimiser minimised, per training review and
    after each step. `information` [parameters, parameters] is the curvature of what was
    minimised, at its minimum and in the coordinates of the fit; it is kept in memory only.
    """

    standard_errors: tuple[float, ...] = ()
    note: str = ""
    fallback: bool = False
    parts: tuple[Part, ...] = ()
    converged: bool = True
    contributions: tuple[Contribution, ...] = ()
    training_loss: tuple[float, ...] = ()
    information: FloatArray | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Curves:
    """Forgetting curves of a sample of scored reviews: same history, other elapsed times."""

    # [n]: Which review each curve belongs to; `user` is a code into `Predictions.users`
    user: IntArray
    fold: IntArray
    row: IntArray
    # float64 [n, k]: Elapsed days, strictly increasing along a row; NaN where a user has fewer
    # than k
    elapsed: FloatArray
    # float64 [n, k]: Share of the user's intervals each elapsed time stands for; 0 where NaN
    weight: FloatArray
    p: FloatArray  # [n, k]: Predicted probability of recall


@dataclass(frozen=True, slots=True)
class Predictions:
    """The hand-over between models and metrics: one entry per scored review.

    Attributes
    ----------
    users : tuple of user names
        What the codes in `user` stand for.
    user : int64 [n]
        Code of the user.
    fold : int64 [n]
        Fold the review was tested in.
    row : int64 [n]
        Position of the review in the user's log as it was read.
    card : int64 [n]
        Card of the review.
    p : float32 or float64 [n]
        Predicted probability of recall, in the precision the model computed it.
    recalled : bool [n]
        Outcome.
    day : int64 [n], optional
        Day of the review.
    elapsed_days : float64 [n], optional
        Whole days since the card's previous review.
    nth_review, lapses, last_rating, recalls : int64 [n], optional
        As in `Task`.
    curves : Curves, optional
        Absent where the model has no forgetting curve.
    """

    users: tuple[User, ...]
    user: IntArray
    fold: IntArray
    row: IntArray
    card: IntArray
    p: FloatArray
    recalled: BoolArray
    day: IntArray | None = None
    elapsed_days: FloatArray | None = None
    nth_review: IntArray | None = None
    lapses: IntArray | None = None
    last_rating: IntArray | None = None
    recalls: IntArray | None = None
    curves: Curves | None = None

    def __len__(self) -> int:
        """Count the scored reviews."""
        return len(self.p)


def columns_of(table: Reviews | Task | Predictions) -> dict[str, Any]:
    """Return the columns that a log, a task or predictions have, by name."""
    columns = {f.name: getattr(table, f.name) for f in fields(table) if "Array" in str(f.type)}
    return {name: column for name, column in columns.items() if column is not None}


_SCORED = tuple(f for f in fields(Predictions) if f.name not in ("users", "user", "curves"))
# What is known of each scored review, besides its user: the one list of these columns.
PREDICTION_COLUMNS = tuple(f.name for f in _SCORED)
# Of these, what metrics sort reviews by and any prediction can lack.
OPTIONAL_COLUMNS = tuple(f.name for f in _SCORED if f.default is not MISSING)
