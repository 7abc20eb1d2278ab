"""What people plug in: sources of logs, protocols, algorithms and their models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np

from srs_eval.nouns.values import (
    FloatArray,
    IntArray,
    Reviews,
    Task,
    User,
)
from srs_eval.nouns.when import When


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
class CurveModel(Protocol):
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


class _Curved(MemoryModel, CurveModel, Protocol):
    """Both at once."""


def has_curve(model: MemoryModel) -> TypeGuard[_Curved]:
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

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[MemoryModel]:
        """Learn as `fit` does, yielding the model as it stands after each step.

        The last model is exactly what `fit` returns from the same `rng`; there is at least one.
        Each can predict, and stays as it is while learning goes on; that it is asked changes
        nothing in what comes after. A step should mean the same whatever the options are: trials
        are compared after the same number of steps. What `fit` raises is raised here, once it is
        known.
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


class SeenUser(Protocol):
    """A user whom an algorithm has learned from before."""

    @property
    def reviews(self) -> int:
        """Number of reviews that were learned from."""


class PretrainedWeights(Protocol):
    """What an algorithm has learned from other users."""

    @property
    def parameters(self) -> Sequence[float]:
        """Learned numbers."""

    @property
    def seen(self) -> Sequence[SeenUser]:
        """Whom they were learned from."""

    def save(self, path: Path) -> None:
        """Write everything to a file that the option ``weights`` of the algorithm then takes."""


@runtime_checkable
class Pretrainable(Algorithm, Protocol):
    """An algorithm that can first learn from other users, whom its `fit` then refuses to score."""

    @property
    def weights(self) -> PretrainedWeights | str | Path | None:
        """What it starts from, or the file that holds it; None before anything was learned."""

    def pretrain(
        self, users: Iterable[tuple[Reviews, IntArray]], rng: np.random.Generator
    ) -> Pretrainable:
        """Return an algorithm that has learned from the outcomes of the given rows of each user.

        Logs are as a protocol makes them (`Task.reviews`). What was learned is in its `weights`,
        as `PretrainedWeights`. Its `fit` starts from there, and raises `FitSkipped` for a user
        who was learned from.
        """
