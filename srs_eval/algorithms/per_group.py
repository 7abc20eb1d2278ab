"""Another algorithm, fitted to each deck or preset by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from srs_eval.algorithms.options import require_choice
from srs_eval.algorithms.wrapping import (
    as_part,
    curve_of,
    fitted,
    has_curve,
    learned_by,
    require_algorithm,
)
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Learned, MemoryModel, Part, Reviews

Group = Literal["deck", "preset"]
_NOT_KNOWN = -1
# Name of the part that is fitted to the reviews of all groups.
ALL = "all"


def groups_of(reviews: Reviews, group: Group) -> IntArray:
    """Tell the group of each review, -1 where it is not known."""
    column = reviews.deck if group == "deck" else reviews.preset
    return np.full(len(reviews), _NOT_KNOWN) if column is None else column


@dataclass(frozen=True, slots=True)
class PerGroupModel:
    """A model of all reviews, and those of the groups that have enough of them.

    Attributes
    ----------
    group : {"deck", "preset"}
    whole : MemoryModel
        Fitted to everything.
    models : mapping of int to MemoryModel
        By group.
    learned : Learned
        How many groups have a model of their own, and the parameters of all models.
    """

    group: Group
    whole: MemoryModel
    models: Mapping[int, MemoryModel]
    learned: Learned = field(default_factory=Learned)

    @property
    def parameters(self) -> tuple[float, ...]:
        """None: each group has its own, which are in `learned.parts`."""
        return ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each of `rows` by the model of its group, or else by that of all reviews."""
        p = np.empty(len(rows))
        for model, some in self._parts(reviews, rows):
            p[some] = model.predict(reviews, rows[some])
        return p

    def _parts(self, reviews: Reviews, rows: IntArray) -> list[tuple[MemoryModel, IntArray]]:
        """Say which of `rows` each model predicts."""
        groups = groups_of(reviews, self.group)[rows]
        own = np.isin(groups, list(self.models))
        parts = [(model, np.flatnonzero(groups == group)) for group, model in self.models.items()]
        parts.append((self.whole, np.flatnonzero(~own)))
        return [(model, some) for model, some in parts if len(some)]


@dataclass(frozen=True, slots=True)
class PerGroupCurves(PerGroupModel):
    """The same of models with forgetting curves."""

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, the history staying as it is."""
        p = np.empty(np.shape(elapsed))
        for model, some in self._parts(reviews, rows):
            p[some] = curve_of(model, reviews, rows[some], elapsed[some])
        return p


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Another algorithm, fitted to the reviews of each deck or preset by themselves.

    As people do in Anki, whose optimiser has parameters for each preset (Anki manual, *Deck
    Options*, https://docs.ankiweb.net/deck-options.html#fsrs). Groups with few training
    reviews, and cards of which no group is known, are predicted by a fit to all reviews. So is
    everything where the log does not tell groups; that is recorded as a fallback. Reads what
    the other algorithm reads, and the group; the number of parameters is the other's for each
    group and once for all; not online, unless the other is. No published row.

    Groups are those at the time the log was exported: cards may have been moved since they were
    reviewed.

    Parameters
    ----------
    base : Algorithm
        The other algorithm.
    group : {"deck", "preset"}
        What has a fit of its own: a deck (subdecks by themselves), or all decks of a preset.
    fewest : int
        Training reviews that a group needs for a fit of its own, 1 or more.

    Raises
    ------
    ConfigError
        If `base` is no algorithm, or an option is none of its choices.
    """

    base: Algorithm
    group: Group = "preset"
    fewest: int = 400

    def __post_init__(self) -> None:
        """Check the options."""
        require_algorithm("per_group", "base", self.base)
        require_choice("per_group", "group", self.group, ("deck", "preset"))
        if isinstance(self.fewest, bool) or not isinstance(self.fewest, int) or self.fewest < 1:
            raise ConfigError(f"per_group: fewest={self.fewest} must be a whole number, 1 or more")

    @property
    def same_day(self) -> bool:
        """Whether the other algorithm's histories keep same-day reviews."""
        return self.base.same_day

    @property
    def online(self) -> bool:
        """Whether the other algorithm goes on learning while it is tested."""
        return self.base.online

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return bool(getattr(self.base, "pretrained", False))

    @property
    def sees_truth(self) -> bool:
        """Whether the other algorithm reads the truth."""
        return self.base.sees_truth

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> PerGroupModel:
        """Fit to all of `rows`, and to those of each group that has enough of them."""
        return self._learn(reviews, rows, rng, None)

    def refit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator, previous: PerGroupModel
    ) -> PerGroupModel:
        """Fit again, each group from its own earlier fit, or else from that to all reviews."""
        return self._learn(reviews, rows, rng, previous)

    def _learn(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: PerGroupModel | None,
    ) -> PerGroupModel:
        rows = np.sort(rows)
        groups = groups_of(reviews, self.group)[rows]
        begin = None if previous is None else previous.whole
        earlier = {} if previous is None else previous.models
        whole = fitted(self.base, reviews, rows, rng, begin)
        names, sizes = np.unique(groups[groups != _NOT_KNOWN], return_counts=True)
        models = {}
        for name in names[sizes >= self.fewest].tolist():
            try:
                models[name] = fitted(
                    self.base, reviews, rows[groups == name], rng, earlier.get(name, begin)
                )
            except FitSkipped:
                continue  # counted below among the groups without a fit of their own
        counts = dict(zip(names.tolist(), sizes.tolist(), strict=True))
        return self._grouped(whole, models, self._told(reviews, whole, models, counts, len(rows)))

    def assembled(
        self, parameters: Sequence[float], models: Mapping[str, MemoryModel]
    ) -> PerGroupModel:
        """Build the fitted model again, from those of its groups."""
        groups = {name: model for name, model in models.items() if name != ALL}
        of_groups = {int(name.removeprefix(self.group)): model for name, model in groups.items()}
        return self._grouped(models[ALL], of_groups)

    def _grouped(
        self,
        whole: MemoryModel,
        models: Mapping[int, MemoryModel],
        learned: Learned | None = None,
    ) -> PerGroupModel:
        curves = all(has_curve(model) for model in (whole, *models.values()))
        kind = PerGroupCurves if curves else PerGroupModel
        return kind(self.group, whole, models, learned or Learned())

    def _told(
        self,
        reviews: Reviews,
        whole: MemoryModel,
        models: Mapping[int, MemoryModel],
        counts: Mapping[int, int],
        n_train: int,
    ) -> Learned:
        """Say how many groups have a fit of their own, and what the fits tell of themselves."""
        told = learned_by(whole)
        untold = (reviews.deck if self.group == "deck" else reviews.preset) is None
        counted = f"{len(models)} of {len(counts)} {self.group}s have a fit of their own"
        missing = f"the log does not tell the {self.group} of a card: one fit for all"
        of_groups = [
            f"{self.group} {name}: {note}"
            for name, model in models.items()
            if (note := learned_by(model).note)
        ]
        notes = [missing if untold else counted, *([told.note] if told.note else []), *of_groups]
        fallback = (
            untold
            or not models
            or told.fallback
            or any(learned_by(m).fallback for m in models.values())
        )
        titles = reviews.titles.get(self.group, {})
        of_all = Part(
            ALL, "base", n_train=n_train, standalone=True, title=f"every other {self.group}"
        )
        parts = as_part(whole, of_all)
        for name, model in models.items():
            parts += as_part(
                model,
                Part(
                    f"{self.group} {name}",
                    "base",
                    n_train=counts[name],
                    standalone=True,
                    title=titles.get(name, ""),
                ),
            )
        converged = all(learned_by(model).converged for model in (whole, *models.values()))
        return Learned(note="; ".join(notes), fallback=fallback, parts=parts, converged=converged)
