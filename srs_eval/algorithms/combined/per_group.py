"""Another algorithm, fitted to each group of cards, such as those of a preset."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar, Literal

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, Learned, MemoryModel, Part, Sampling
from srs_eval.algorithms.combined.wrapping import (
    Asked,
    Combination,
    Combined,
    as_part,
    learned_together,
    require_algorithm,
)
from srs_eval.algorithms.options import Count
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitSkipped

Group = Literal["deck", "preset", "note_type", "template", "note"]
_UNKNOWN = -1


def groups_of(reviews: Reviews, group: Group, rows: IntArray) -> IntArray:
    """Return the group of each of `rows`, -1 where it is not known."""
    column: IntArray | None = getattr(reviews, group)
    return np.full(len(rows), _UNKNOWN) if column is None else column[rows]


@dataclass(frozen=True, slots=True)
class PerGroupModel(Combination):
    """A model of all reviews, and those of the groups that have enough of them."""

    group: Group
    whole: MemoryModel  # Fitted to everything
    models: Mapping[int, MemoryModel]  # By group
    learned: Learned = field(default_factory=Learned)  # Its parts have the parameters
    parameters: ClassVar[tuple[float, ...]] = ()

    def made_of(self) -> tuple[MemoryModel, ...]:
        return (self.whole, *self.models.values())

    def answer(self, asked: Asked) -> FloatArray:
        """Ask the model of the group of each row, or else that of all reviews."""
        groups = groups_of(asked.reviews, self.group, asked.rows)
        parts = [(model, groups == group) for group, model in self.models.items()]
        return asked.by_rows([*parts, (self.whole, ~np.isin(groups, list(self.models)))])


@dataclass(frozen=True, slots=True)
class PerGroup(Combined):
    """Another algorithm, fitted to each deck, preset, note type, card template or note.

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
    group : {"deck", "preset", "note_type", "template", "note"}
        What has parameters of its own: a deck (subdecks by themselves), all decks of a preset,
        all cards of a note type, of one card template of a note type, or of a note.
    fewest : int
        Training reviews that a group needs for a fit of its own, 1 or more.
    """

    base: Algorithm
    group: Group = "preset"
    fewest: Count = 400

    def __post_init__(self) -> None:
        require_algorithm("per_group", "base", self.base)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> PerGroupModel:
        """Fit to all of `rows`, and to those of each group that has enough of them."""
        groups, whole = groups_of(reviews, self.group, rows), self.base.fit(reviews, rows, rng)
        numbers, sizes = np.unique(groups[groups != _UNKNOWN], return_counts=True)
        models: dict[int, MemoryModel] = {}
        for number in numbers[sizes >= self.fewest].tolist():
            with suppress(FitSkipped):
                models[number] = self.base.fit(reviews, rows[groups == number], rng)
        label, titles = self.group.replace("_", " "), reviews.titles.get(self.group, {})
        note = f"{len(models)} of {len(numbers)} {label}s have a fit of their own"
        if getattr(reviews, self.group) is None:
            note = f"the log has no {label} of a card: one fit for all"
        part = Part("all", "base", n_train=len(rows), standalone=True)
        parts = [replace(part, title=f"every {'other ' if models else ''}{label}")]
        for number in models:
            size, title = int((groups == number).sum()), titles.get(number, "")
            parts.append(replace(part, name=f"{self.group} {number}", n_train=size, title=title))
        fits = {"": whole} | {f"{self.group} {number}": each for number, each in models.items()}
        described = chain.from_iterable(map(as_part, fits.values(), parts))
        learned = learned_together(fits, described, note, fallback=not models)
        return PerGroupModel(self.group, whole, models, learned)

    def sample(
        self,
        reviews: Reviews,
        rows: IntArray,
        model: PerGroupModel,
        rng: np.random.Generator,
        count: int,
    ) -> list[MemoryModel]:
        """Draw models around the fit of all reviews and around that of each group."""
        if not isinstance(self.base, Sampling):
            return []
        groups = groups_of(reviews, self.group, rows)
        fits = [(model.whole, rows)]
        fits += [(each, rows[groups == number]) for number, each in model.models.items()]
        draws = [self.base.sample(reviews, own, each, rng, count) for each, own in fits]
        return [
            replace(model, whole=whole, models=dict(zip(model.models, own, strict=True)))
            for whole, *own in zip(*draws, strict=False)
        ]
