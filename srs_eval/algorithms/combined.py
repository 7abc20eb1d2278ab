"""Algorithms and models that are made of others, and another algorithm for each group of cards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

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
    Sampling,
    WarmStarting,
    When,
    has_curve,
    undeclared,
    when_of,
)
from srs_eval.algorithms.options import Count
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews, User
from srs_eval.errors import ConfigError, FitSkipped


def _any(declaration: str) -> Any:
    return property(lambda self: any(getattr(each, declaration, False) for each in self.combined))


class Combined:
    """Base of algorithms that have others as options, and declare for all of them.

    They read what any of them reads, and predict at the latest of their times.
    """

    __slots__ = ()
    options: ClassVar[tuple[str, ...]] = ("base",)  # Names of the other algorithms
    same_day: ClassVar[bool] = _any("same_day")
    sees_truth: ClassVar[bool] = _any("sees_truth")
    reads_recorded: ClassVar[bool] = _any("reads_recorded")
    in_sample: ClassVar[bool] = _any("in_sample")
    pretrained: ClassVar[bool] = _any("pretrained")

    def __post_init__(self) -> None:
        for name in self.options:
            value = getattr(self, name)
            if undeclared(value) or not callable(getattr(value, "fit", None)):
                raise ConfigError(
                    f"{type(self).__name__}: {name}={value} is no algorithm; write "
                    f"algo@algo.{name}=fsrs6 or {name}={{_target_: package.module.Class}}"
                )

    @property
    def combined(self) -> tuple[Algorithm, ...]:
        """The other algorithms."""
        return tuple(getattr(self, name) for name in self.options)

    @property
    def when(self) -> When:
        return max(map(when_of, self.combined), key=WHEN.index)


@dataclass(frozen=True, slots=True)
class Query:
    """Rows of a log to be learned from or predicted, at their elapsed times or at others."""

    reviews: Reviews
    rows: IntArray
    elapsed: FloatArray | None = None  # [rows, k]: Other days since the card's previous review

    def by(self, model: MemoryModel) -> FloatArray:
        """Ask a model: probabilities [rows], or [rows, k] along its forgetting curve."""
        if self.elapsed is None:
            return model.predict(self.reviews, self.rows)
        assert isinstance(model, CurveModel)
        return model.predict_at(self.reviews, self.rows, self.elapsed)

    def seen_by(self, algorithm: Algorithm) -> Query:
        """Remove what an algorithm may not read, and renumber the rows accordingly.

        That is the truth of simulated users, recorded predictions, and on a clock of whole days,
        the reviews on the day of the review before, as protocols do.
        """
        seen, rows = self.reviews.seen_by(algorithm), self.rows
        later = np.flatnonzero(seen.elapsed_days != 0)
        if seen.whole_days and not algorithm.same_day and len(later) < len(seen):
            seen, rows = seen.take(later), np.searchsorted(later, rows)
            seen = replace(seen, row=np.arange(len(later)))
        return Query(seen, rows, self.elapsed)

    def by_rows(self, parts: Iterable[tuple[MemoryModel, BoolArray]]) -> FloatArray:
        """Ask each model for rows of its own, which are marked; 0 for those of none."""
        p = np.zeros(len(self.rows) if self.elapsed is None else np.shape(self.elapsed))
        for model, own in parts:
            if own.any():
                elapsed = None if self.elapsed is None else self.elapsed[own]
                p[own] = Query(self.reviews, self.rows[own], elapsed).by(model)
        return p


class Combination(ABC):
    """Base of models made of other models, which predict reviews and curves in the same way."""

    __slots__ = ()

    @abstractmethod
    def made_of(self) -> Iterable[MemoryModel]:
        """Return the other models."""

    @abstractmethod
    def answer(self, query: Query) -> FloatArray:
        """Return the probabilities of a query, of what the other models predict."""

    @property
    def has_curve(self) -> bool:
        """Whether all of the other models have a forgetting curve."""
        return all(map(has_curve, self.made_of()))

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return self.answer(Query(reviews, rows))

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times [len(rows), k], the history staying as it is."""
        return self.answer(Query(reviews, rows, elapsed))


def fitted(
    algorithm: Algorithm,
    reviews: Reviews,
    rows: IntArray,
    rng: np.random.Generator,
    previous: MemoryModel | None = None,
) -> MemoryModel:
    """Fit an algorithm to what it may see, from an earlier fit if there is one and it can."""
    seen = Query(reviews, rows).seen_by(algorithm)
    if previous is None or not isinstance(algorithm, WarmStarting):
        return algorithm.fit(seen.reviews, seen.rows, rng)
    return algorithm.refit(seen.reviews, seen.rows, rng, previous)


def log_odds(p: FloatArray) -> FloatArray:
    """Return log-odds, clipped at ±20."""
    return np.clip(logit(np.asarray(p, np.float64)), -20.0, 20.0)


def learned_by(model: MemoryModel) -> Learned:
    """Return what a model records about its fit."""
    learned: Learned = getattr(model, "learned", Learned())
    return learned


def learned_together(
    fits: Iterable[tuple[MemoryModel, Part]], note: str = "", *, fallback: bool = False
) -> Learned:
    """Record fits as one: as its parts, and their notes, each with the name of its part."""
    fits = [*fits]
    records = {part.name: learned_by(model) for model, part in fits}
    notes = (f"{name}: {record.note}" for name, record in records.items() if record.note)
    return Learned(
        note="; ".join([*([note] if note else []), *notes]),
        fallback=fallback or any(record.fallback for record in records.values()),
        parts=tuple(each for model, part in fits for each in as_part(model, part)),
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


@dataclass(frozen=True, slots=True)
class CrossFitted(Combined):
    """An algorithm for each fold of users, learned from the users of the other folds."""

    options: ClassVar[tuple[str, ...]] = ()
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


Group = Literal["deck", "preset", "note_type", "note"]
# Cards of no known group, in the columns of a log; and the model of all groups without their own.
OTHERS = -1


def groups_of(reviews: Reviews, group: Group, rows: IntArray) -> IntArray:
    """Return the group of each of `rows`, -1 where it is not known."""
    column: IntArray | None = getattr(reviews, group)
    return np.full(len(rows), OTHERS) if column is None else column[rows]


@dataclass(frozen=True, slots=True)
class PerGroupModel(Combination):
    """Models of the groups that have enough reviews, and one of all reviews for the others."""

    group: Group
    models: Mapping[int, MemoryModel]  # By group; under -1 the model of all reviews
    learned: Learned = field(default_factory=Learned)  # Its parts have the parameters
    parameters: ClassVar[tuple[float, ...]] = ()

    def made_of(self) -> Iterable[MemoryModel]:
        return self.models.values()

    def answer(self, query: Query) -> FloatArray:
        """Ask the model of the group of each row, or else that of all reviews."""
        groups = groups_of(query.reviews, self.group, query.rows)
        groups = np.where(np.isin(groups, [*self.models]), groups, OTHERS)
        return query.by_rows((model, groups == group) for group, model in self.models.items())


@dataclass(frozen=True, slots=True)
class PerGroup(Combined):
    """Another algorithm, fitted to each deck, preset, note type or note.

    Anki has parameters for each preset (Anki manual, *Deck Options*,
    https://docs.ankiweb.net/deck-options.html#fsrs). A group with enough training reviews has a fit
    of its own; the others, and cards whose group is not known, are predicted by the fit of all
    reviews. A log without such groups is recorded as a fallback. Reads what the other algorithm
    reads, and the group; the number of parameters is the other's for each group and once for all.
    No published row.

    Groups are those at the time the log was exported: cards may have been moved since they were
    reviewed.

    Parameters
    ----------
    base : Algorithm
        The other algorithm.
    group : {"deck", "preset", "note_type", "note"}
        What has parameters of its own: a deck (subdecks by themselves), all decks of a preset,
        all cards of a note type, or of a note.
    fewest : int
        Training reviews that a group needs for a fit of its own, 1 or more.
    """

    base: Algorithm
    group: Group = "preset"
    fewest: Count = 400

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> PerGroupModel:
        """Fit to all of `rows`, and to those of each group that has enough of them."""
        groups = groups_of(reviews, self.group, rows)
        numbers, sizes = np.unique(groups[groups != OTHERS], return_counts=True)
        models = {OTHERS: self.base.fit(reviews, rows, rng)}
        for number in numbers[sizes >= self.fewest].tolist():
            with suppress(FitSkipped):
                models[number] = self.base.fit(reviews, rows[groups == number], rng)
        n_own, label = len(models) - 1, self.group.replace("_", " ")
        note = f"{n_own} of {len(numbers)} {label}s have a fit of their own"
        if getattr(reviews, self.group) is None:
            note = f"the log has no {label} of a card: one fit for all"
        titles = reviews.titles.get(self.group, {})
        whole = Part("all", "base", n_train=len(rows), standalone=True)
        parts = {OTHERS: replace(whole, title=f"every {'other ' if n_own else ''}{label}")}
        for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
            name, title = f"{self.group} {number}", titles.get(number, "")
            parts[number] = replace(whole, name=name, n_train=size, title=title)
        fits = [(model, parts[number]) for number, model in models.items()]
        return PerGroupModel(self.group, models, learned_together(fits, note, fallback=not n_own))

    def sample(
        self,
        reviews: Reviews,
        rows: IntArray,
        model: PerGroupModel,
        rng: np.random.Generator,
        count: int,
    ) -> list[PerGroupModel]:
        """Draw models around the fit of all reviews and around that of each group."""
        if not isinstance(self.base, Sampling):
            return []
        groups = groups_of(reviews, self.group, rows)
        own = {number: rows[groups == number] for number in model.models} | {OTHERS: rows}
        draws = [
            self.base.sample(reviews, own[number], each, rng, count)
            for number, each in model.models.items()
        ]
        drawn = zip(*draws, strict=False)  # none are, where one of the fits cannot be drawn from
        return [replace(model, models=dict(zip(model.models, each, strict=True))) for each in drawn]
