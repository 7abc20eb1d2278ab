"""What an algorithm is, its models, what they tell of their fit, and when they predict."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeGuard, get_args, runtime_checkable

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray, Reviews

# Ordered by how much may be known: each includes the one before.
When = Literal["previous_review", "day_before", "at_review"]
WHEN: tuple[When, ...] = get_args(When)

# Of published scores and runs that do not say.
UNKNOWN = "unknown"

IN_WORDS: dict[str, str] = {
    "previous_review": "at the card's previous review",
    "day_before": "the day before",
    "at_review": "at the review",
    UNKNOWN: "at an unknown time",
}
# Names of the first and the last in public tables.
ALIASES = {"ahead": "previous_review", "imm": "at_review"}


def when_of(algorithm: object) -> When:
    """Return when an algorithm predicts."""
    when: When | None = getattr(algorithm, "when", None)
    if when not in WHEN:
        raise ValueError(f"when={when!r}: there are {', '.join(WHEN)}")
    return when


class MemoryModel(Protocol):
    """What an algorithm learned from one user: frozen, and blind to what comes after.

    A model that has a forgetting curve also has
    ``predict_at(reviews, rows, elapsed[n, k]) -> p[n, k]``: see `CurveModel`.
    """

    @property
    def parameters(self) -> Sequence[float]:
        """Learned numbers, empty if there are none."""

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows` from the reviews before it and its elapsed time.

        Returns
        -------
        p : float [len(rows)], in (0, 1)
        """


@runtime_checkable
class CurveModel(MemoryModel, Protocol):
    """What a memory model with a forgetting curve has besides.

    A class of which only some models have a curve declares in an attribute `has_curve` whether
    one has; see `has_curve`.
    """

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, the history staying as it is.

        Parameters
        ----------
        elapsed : float [len(rows), k]
            Days since the card's previous review.

        Returns
        -------
        p : float [len(rows), k], in (0, 1)
        """


def has_curve(model: MemoryModel) -> TypeGuard[CurveModel]:
    """Return whether a model has a forgetting curve."""
    return isinstance(model, CurveModel) and getattr(model, "has_curve", True)


class Algorithm(Protocol):
    """Hyper-parameters and a way to learn: what a plug-in writes.

    Class attributes
    ----------------
    same_day : bool
        Whether its histories keep the reviews made on the day of the review before.
        The scored reviews are the same either way.
    when : {"previous_review", "day_before", "at_review"}
        When its predictions are made, which tables are grouped by. Of the reviews after the
        training rows of the fold, a prediction may rest on those of its own card and, of other
        cards, on those until the card's previous review; or until the end of the day before; or
        until the predicted review itself.
    sees_truth : bool
        Whether it reads `Reviews.truth`, as only an upper bound does; from all others it
        is kept away.
    """

    same_day: ClassVar[bool] = False
    when: ClassVar[When] = "previous_review"
    sees_truth: ClassVar[bool] = False

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        """Learn from the outcomes of `rows`, and of nothing later than the last of them.

        Raises
        ------
        FitSkipped
            If there is a reason not to fit, such as too few reviews.
        FitError
            If the fit went wrong.
        """


def undeclared(algorithm: object) -> list[str]:
    """Return what an algorithm fails to declare, with the values that are possible."""
    choices: dict[str, tuple[object, ...]] = dict.fromkeys(
        ("same_day", "sees_truth"), (True, False)
    )
    choices["when"] = WHEN
    return [
        f"{name} ({', '.join(map(str, values))})"
        for name, values in choices.items()
        if getattr(algorithm, name, None) not in values
    ]


@runtime_checkable
class WarmStarting(Algorithm, Protocol):
    """An algorithm that can start from an earlier fit of the same user.

    Where a protocol fits often, `refit` takes the place of `fit` after a fold that worked.
    """

    def refit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator, previous: MemoryModel
    ) -> MemoryModel:
        """Learn from `rows`, starting from what was learned before from the earlier of them.

        Everything said of `fit` holds, and `previous` is left as it is.
        """


@runtime_checkable
class FittingInSteps(Algorithm, Protocol):
    """An algorithm that can show its model after each step of learning, such as an epoch.

    Where it starts from nothing, `fit_in_steps` takes the place of `fit`, and the loss on the test
    rows after each step is shown beside that on the training rows, and is otherwise not used.
    """

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        """Take all steps: return the last model of `fit_in_steps`."""
        return deque(self.fit_in_steps(reviews, rows, rng), maxlen=1).pop()

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[MemoryModel]:
        """Learn as `fit` does, yielding the model as it stands after each step.

        There is at least one; the last is exactly what `fit` returns from the same `rng`. Each can
        predict, and stays as it is while learning goes on; that it is asked changes nothing in what
        comes after. A step should mean the same whatever the options are: trials are compared after
        the same number of steps. What `fit` raises is raised here, once it is known.
        """


@runtime_checkable
class Sampling(Algorithm, Protocol):
    """An algorithm that can say which other models its training reviews leave possible."""

    def sample(
        self,
        reviews: Reviews,
        rows: IntArray,
        model: MemoryModel,
        rng: np.random.Generator,
        count: int,
    ) -> Sequence[MemoryModel]:
        """Draw models around one that `fit` returned for the same reviews and rows.

        They are spread as the error of the fit is, over users and over what they might have
        answered. Empty where that is not known.
        """


@runtime_checkable
class Pretrainable(Algorithm, Protocol):
    """An algorithm that can first learn from other users, whom its `fit` then refuses to score."""

    @property
    def weights(self) -> object:
        """What it starts from, or the file that holds it; None before anything was learned."""

    def pretrain(
        self, users: Iterable[tuple[Reviews, IntArray]], rng: np.random.Generator
    ) -> Pretrainable:
        """Return an algorithm that has learned from the outcomes of the given rows of each user.

        Logs are as a protocol makes them (`Task.reviews`). What was learned is in its `weights`,
        which a file holds that `weights.save` writes. Its `fit` starts from there, and raises
        `FitSkipped` for a user who was learned from.
        """


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
