"""Bases of algorithms and models that are made of others, and the record of their fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import logit

from srs_eval.algorithms.algorithm import (
    WHEN,
    Algorithm,
    CurveModel,
    Learned,
    MemoryModel,
    Part,
    Pretrainable,
    WarmStarting,
    When,
    has_curve,
    undeclared,
    when_of,
)
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews, User
from srs_eval.errors import ConfigError


def _any(declaration: str) -> Any:
    return property(lambda self: any(getattr(each, declaration, False) for each in self.combined))


class Combined(ABC):
    """Base of algorithms made of others, of `base` alone if not said otherwise; declares for all.

    It reads what any of them reads, and predicts at the latest of their times.
    """

    __slots__ = ()
    base: Algorithm
    same_day: ClassVar[bool] = _any("same_day")
    sees_truth: ClassVar[bool] = _any("sees_truth")
    reads_recorded: ClassVar[bool] = _any("reads_recorded")
    in_sample: ClassVar[bool] = _any("in_sample")
    pretrained: ClassVar[bool] = _any("pretrained")

    @property
    def combined(self) -> tuple[Algorithm, ...]:
        """The other algorithms."""
        return (self.base,)

    @property
    def when(self) -> When:
        return max(map(when_of, self.combined), key=WHEN.index)


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows of a log to be predicted, at their own elapsed times or at others."""

    reviews: Reviews
    rows: IntArray
    elapsed: FloatArray | None = None  # [rows, k]: Other days since the card's previous review

    def by(self, model: MemoryModel) -> FloatArray:
        """Ask a model: probabilities [rows], or [rows, k] along its forgetting curve."""
        if self.elapsed is None:
            return model.predict(self.reviews, self.rows)
        assert isinstance(model, CurveModel)
        return model.predict_at(self.reviews, self.rows, self.elapsed)

    def seen_by(self, algorithm: Algorithm) -> Asked:
        """Ask for the same of the log that a model of an algorithm may see."""
        return Asked(*as_seen_by(algorithm, self.reviews, self.rows), self.elapsed)

    def by_rows(self, parts: Iterable[tuple[MemoryModel, BoolArray]]) -> FloatArray:
        """Ask each model for rows of its own, which are marked; 0 for those of none."""
        p = np.zeros(len(self.rows) if self.elapsed is None else np.shape(self.elapsed))
        for model, own in parts:
            if own.any():
                elapsed = None if self.elapsed is None else self.elapsed[own]
                p[own] = Asked(self.reviews, self.rows[own], elapsed).by(model)
        return p


class Combination(ABC):
    """Base of models made of other models, which predict reviews and curves in the same way."""

    __slots__ = ()

    @abstractmethod
    def made_of(self) -> Iterable[MemoryModel]:
        """Return the other models."""

    @abstractmethod
    def answer(self, asked: Asked) -> FloatArray:
        """Return the probabilities that are asked for, of what the other models predict."""

    @property
    def has_curve(self) -> bool:
        """Whether all of the other models have a forgetting curve."""
        return all(map(has_curve, self.made_of()))

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return self.answer(Asked(reviews, rows))

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times [len(rows), k], the history staying as it is."""
        return self.answer(Asked(reviews, rows, elapsed))


def require_algorithm(owner: str, option: str, value: object) -> None:
    """Raise unless `value` is an algorithm."""
    if undeclared(value) or not callable(getattr(value, "fit", None)):
        raise ConfigError(
            f"{owner}: {option}={value} is no algorithm; write "
            f"algo@algo.{option}=fsrs6 or {option}={{_target_: package.module.Class}}"
        )


def fitted(
    algorithm: Algorithm,
    reviews: Reviews,
    rows: IntArray,
    rng: np.random.Generator,
    previous: MemoryModel | None = None,
) -> MemoryModel:
    """Fit an algorithm, from an earlier fit if there is one and the algorithm can."""
    if previous is None or not isinstance(algorithm, WarmStarting):
        return algorithm.fit(reviews, rows, rng)
    return algorithm.refit(reviews, rows, rng, previous)


def log_odds(p: FloatArray) -> FloatArray:
    """Return log-odds, clipped at ±20."""
    return np.clip(logit(np.asarray(p, np.float64)), -20.0, 20.0)


def learned_by(model: MemoryModel) -> Learned:
    """Return what a model records about its fit."""
    learned: Learned = getattr(model, "learned", Learned())
    return learned


def learned_together(
    models: Mapping[str, MemoryModel],
    parts: Iterable[Part],
    note: str = "",
    *,
    fallback: bool = False,
) -> Learned:
    """Record fits as one; their notes follow `note`, each after the name of its model if any."""
    records = {name: learned_by(model) for name, model in models.items()}
    notes = {name: record.note for name, record in records.items() if record.note}
    named = (f"{name}: {text}" if name else text for name, text in notes.items())
    return Learned(
        note="; ".join([*([note] if note else []), *named]),
        fallback=fallback or any(record.fallback for record in records.values()),
        parts=tuple(parts),
        converged=all(record.converged for record in records.values()),
    )


def as_part(model: MemoryModel, part: Part) -> Iterator[Part]:
    """Put the numbers of a model into its description as a part of another one.

    The parts that the model has itself follow.
    """
    learned, parameters = learned_by(model), tuple(map(float, model.parameters))
    yield replace(part, parameters=parameters, standard_errors=learned.standard_errors)
    for inner in learned.parts:
        name, option = f"{part.name}/{inner.name}", f"{part.option}.{inner.option}"
        standalone = part.standalone and inner.standalone
        yield replace(inner, name=name, option=option, standalone=standalone)


def as_seen_by(algorithm: Algorithm, reviews: Reviews, rows: IntArray) -> tuple[Reviews, IntArray]:
    """Remove what an algorithm may not read, and renumber the rows accordingly.

    That is the truth of simulated users, recorded predictions, and on a clock of whole days, the
    reviews on the day of the review before, as protocols do.
    """
    seen = reviews.seen_by(algorithm)
    if algorithm.same_day or not reviews.whole_days:
        return seen, rows
    later = np.flatnonzero(reviews.elapsed_days != 0)
    if len(later) == len(reviews):
        return seen, rows
    seen = seen.take(later)
    return replace(seen, row=np.arange(len(later))), np.searchsorted(later, rows)


@dataclass(frozen=True, slots=True)
class CrossFitted(Combined):
    """An algorithm for each fold of users, learned from the users of the other folds."""

    algorithms: tuple[Algorithm, ...]  # By fold
    fold_of: Mapping[User, int]

    @property
    def combined(self) -> tuple[Algorithm, ...]:
        return self.algorithms

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        """Fit the algorithm that has not learned from this user."""
        return self.algorithms[self.fold_of[reviews.user]].fit(reviews, rows, rng)


def cross_fitted(
    algorithm: Pretrainable,
    fold_of: Mapping[User, int],
    lessons: Callable[[Sequence[User]], Iterable[tuple[Reviews, IntArray]]],
    seed: int,
) -> CrossFitted:
    """Pretrain an algorithm once for each fold, on the users of the other folds.

    `lessons` reads the logs of some users, with the rows to learn from. Raise `ConfigError` if the
    algorithm is to start from given weights, which would have no effect.
    """
    if algorithm.weights not in (None, "auto"):  # none, or those that come with the algorithm
        raise ConfigError(
            f"algo.weights={algorithm.weights} has no effect with user_folds, where weights are "
            "learned for each fold: leave one of them out"
        )
    algorithms = [
        deepcopy(algorithm).pretrain(
            lessons([user for user, own in fold_of.items() if own != fold]),
            np.random.default_rng((seed, fold)),
        )
        for fold in sorted(set(fold_of.values()))
    ]
    return CrossFitted(tuple(algorithms), dict(fold_of))
