"""Another algorithm, fitted to each group of cards, such as those of a preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, cast

import numpy as np

from srs_eval.algorithms.combined.pooling import Pooling, choose_pooling, near
from srs_eval.algorithms.combined.wrapping import (
    Asked,
    Combination,
    Wrapper,
    as_part,
    fitted,
    learned_together,
    require_algorithm,
)
from srs_eval.algorithms.fitted import FitOptions
from srs_eval.algorithms.options import require_choice
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import (
    GROUPS,
    Algorithm,
    FloatArray,
    IntArray,
    Learned,
    MemoryModel,
    Part,
    Reviews,
    Sampling,
)

Group = Literal["deck", "preset", "note_type", "template", "note"]
_NOT_KNOWN = -1
_LABEL = {name: name for name in GROUPS} | {"note_type": "note type", "template": "card template"}
_PLURAL = {name: f"{label}s" for name, label in _LABEL.items()}
_FEWEST = {"partial": 50, "none": 400}
# Name of the part that is fitted to the reviews of all groups.
ALL = "all"


def groups_of(reviews: Reviews, group: Group) -> IntArray:
    """Return the group of each review, -1 where it is not known."""
    column: IntArray | None = getattr(reviews, group)
    return np.full(len(reviews), _NOT_KNOWN) if column is None else column


@dataclass(frozen=True, slots=True)
class PerGroupModel(Combination):
    """A model of all reviews, and those of the groups that have enough of them."""

    group: Group
    whole: MemoryModel  # Fitted to everything
    models: Mapping[int, MemoryModel]  # By group
    # Whether groups differ, and the parameters of all models
    learned: Learned = field(default_factory=Learned)

    # Each group has its own, which are in `learned.parts`
    parameters: ClassVar[tuple[float, ...]] = ()

    def made_of(self) -> tuple[MemoryModel, ...]:
        return (self.whole, *self.models.values())

    def answer(self, asked: Asked) -> FloatArray:
        """Ask the model of the group of each row, or else that of all reviews."""
        groups = groups_of(asked.reviews, self.group)[asked.rows]
        parts = [(model, groups == group) for group, model in self.models.items()]
        return asked.by_rows([*parts, (self.whole, ~np.isin(groups, list(self.models)))])


@dataclass(frozen=True, slots=True)
class PerGroup(Wrapper):
    """Another algorithm, fitted to each deck, preset, note type, card template or note.

    Anki has parameters for each preset (Anki manual, *Deck Options*,
    https://docs.ankiweb.net/deck-options.html#fsrs). With partial pooling, the fit of a group is
    pulled towards the fit of all reviews: small groups stay close to it, large ones move as far
    as their reviews say. The strength of the pull is chosen by cross-validation over the cards of
    the training reviews. If the groups' fits do not predict held-out cards better by more than
    2 standard errors, one set of parameters serves all groups. The note of each fit says which
    is the case. With ``pooling=none`` each group has a fit to its own reviews alone.

    Small groups, and cards whose group is not known, are predicted by the fit of all reviews. A
    log without groups is recorded as a fallback. Reads what the other algorithm reads, and the
    group; the number of parameters is the other's for each group and once for all. No
    published row.

    Groups are those at the time the log was exported: cards may have been moved since they were
    reviewed.

    Parameters
    ----------
    base : Algorithm
        The other algorithm. Partial pooling needs one that can be fitted around other parameters:
        HLR, SM-2, SBD or a version of FSRS, by `newton` or `lbfgs`.
    group : {"deck", "preset", "note_type", "template", "note"}
        What has parameters of its own: a deck (subdecks by themselves), all decks of a preset,
        all cards of a note type, of one card template of a note type, or of a note.
    pooling : {"partial", "none"}
        Whether the fits of groups are pulled towards the fit of all reviews.
    fewest : int, optional
        Training reviews that a group needs for a fit of its own, 1 or more. By default 50 with
        partial pooling, 400 without.
    """

    base: Algorithm
    group: Group = "preset"
    pooling: Literal["partial", "none"] = "partial"
    fewest: int | None = None

    def __post_init__(self) -> None:
        require_algorithm("per_group", "base", self.base)
        require_choice("per_group", "group", self.group, GROUPS)
        require_choice("per_group", "pooling", self.pooling, tuple(_FEWEST))
        fewest = self.fewest
        whole = isinstance(fewest, int) and not isinstance(fewest, bool)
        if fewest is not None and not (whole and fewest >= 1):
            raise ConfigError(
                f"per_group: fewest={fewest} must be a whole number, 1 or more, or null"
            )
        poolable = isinstance(self.base, FitOptions) and self.base.can_fit_near
        if self.pooling == "partial" and not poolable:
            raise ConfigError(
                f"per_group: base={type(self.base).__name__} cannot be fitted around the "
                "parameters of another fit: use pooling=none, or HLR, SM-2, SBD or FSRS as base, "
                "with fit=newton or fit=lbfgs and prior_weight above 0"
            )

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> PerGroupModel:
        """Fit to all of `rows`, and to those of each group that has enough of them."""
        return self.refit(reviews, rows, rng, None)

    def refit(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        previous: PerGroupModel | None,
    ) -> PerGroupModel:
        """Fit again from an earlier fit.

        Without pooling, a group starts from its own earlier fit, or else from that of all
        reviews.
        """
        rows = np.sort(rows)
        groups = groups_of(reviews, self.group)[rows]
        names, sizes = np.unique(groups[groups != _NOT_KNOWN], return_counts=True)
        fewest = self.fewest or _FEWEST[self.pooling]
        rows_of = {name: rows[groups == name] for name in names[sizes >= fewest].tolist()}
        begin, earlier = (previous.whole, previous.models) if previous is not None else (None, {})
        whole = fitted(self.base, reviews, rows, rng, begin)
        found: Pooling | None = None
        models: dict[int, MemoryModel] = {}
        if self.pooling == "none":
            for name, own in rows_of.items():
                # A group that cannot be fitted has no fit of its own, and is counted accordingly.
                with suppress(FitSkipped):
                    models[name] = fitted(self.base, reviews, own, rng, earlier.get(name, begin))
            verdict = f"{len(models)} of {len(names)} {_PLURAL[self.group]} have a fit of their own"
        else:
            base = cast(FitOptions, self.base)
            if rows_of and len(np.unique(groups)) > 1:
                found = choose_pooling(base, reviews, rows, groups, list(rows_of), rng)
            if found is not None and found.helps:
                models = near(base, reviews, rows_of, rng, whole, found.weight)
            verdict = self._verdict(found, len(rows_of), len(names))
        if getattr(reviews, self.group) is None:
            verdict = f"the log has no {_LABEL[self.group]} of a card: one fit for all"
        parts = self._parts(reviews, whole, models, {ALL: rows, **rows_of})
        named = {"": whole, **{f"{self.group} {name}": model for name, model in models.items()}}
        is_fallback = found is None and not models
        learned = learned_together(named, parts, verdict, fallback=is_fallback)
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
        groups = groups_of(reviews, self.group)[rows]
        whole = self.base.sample(reviews, rows, model.whole, rng, count)
        of_groups = [
            self.base.sample(reviews, rows[groups == name], own, rng, count)
            for name, own in model.models.items()
        ]
        return [
            replace(model, whole=one, models=dict(zip(model.models, own, strict=True)))
            for one, *own in zip(whole, *of_groups, strict=False)
        ]

    def _verdict(self, found: Pooling | None, fitted_groups: int, groups: int) -> str:
        """Return whether groups differ, in words."""
        plural = _PLURAL[self.group]
        if found is None:
            return f"too few reviews of different {plural} to compare them: one fit for all"
        by = f"{abs(found.gain):.4f} ± {found.standard_error:.4f}"
        counted = f"{fitted_groups} of {groups} {plural}"
        if found.helps:
            return (
                f"{plural} differ: own parameters for {counted} predict better, by {by} of log "
                "loss on held-out training reviews"
            )
        change = "lower" if found.gain > 0 else "raise"
        return (
            f"one set of parameters predicts as well: own parameters for {counted} would {change} "
            f"log loss on held-out training reviews by {by}"
        )

    def assembled(
        self, parameters: Sequence[float], models: Mapping[str, MemoryModel]
    ) -> PerGroupModel:
        """Build the fitted model again, from those of its groups."""
        groups = {name: model for name, model in models.items() if name != ALL}
        of_groups = {int(name.removeprefix(self.group)): model for name, model in groups.items()}
        return PerGroupModel(self.group, models[ALL], of_groups)

    def _parts(
        self,
        reviews: Reviews,
        whole: MemoryModel,
        models: Mapping[int, MemoryModel],
        rows_of: Mapping[int | str, IntArray],
    ) -> tuple[Part, ...]:
        """Return the fits with what is known of their groups."""
        titles = reviews.titles.get(self.group, {})
        title = f"every {'other ' if models else ''}{_LABEL[self.group]}"
        told = [(ALL, ALL, whole, title)] + [
            (name, f"{self.group} {name}", model, titles.get(name, ""))
            for name, model in models.items()
        ]
        return tuple(
            part
            for key, name, model, title in told
            for part in as_part(
                model,
                Part(name, "base", n_train=len(rows_of[key]), standalone=True, title=title),
            )
        )
