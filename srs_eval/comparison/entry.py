"""What is compared: a run, or the published scores of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from srs_eval.algorithms.algorithm import UNKNOWN, WHEN
from srs_eval.comparison.words import one_line
from srs_eval.data.reviews import FloatArray, User
from srs_eval.errors import ConfigError
from srs_eval.runs.folder import Run
from srs_eval.runs.summary import TRAITS, Summary

MARK = "§"  # Of fits that are not what the name of a model says
# When predictions can have been made, in the order of tables
TIMES = (*WHEN, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Entry:
    """The scores of one model."""

    name: str  # Name in tables
    place: Path  # Folder or file it was read from
    # Digest of the scored reviews of each user without a missing fold; "" if unknown
    rows: dict[User, str]
    reviews: dict[User, int]  # Number of these reviews
    # By metric, [len(rows)]: of the same users in the same order; NaN where not defined
    scores: dict[str, FloatArray]
    facts: Summary  # As far as they are known
    incomplete: tuple[User, ...] = ()  # Users with a missing fold; they have no scores
    run: Run | None = field(default=None, compare=False)  # None of published scores

    @property
    def when(self) -> str:
        """When predictions were made: one of `TIMES`."""
        return self.facts.when if self.facts.when in WHEN else UNKNOWN

    @property
    def traits(self) -> tuple[str, ...]:
        """Traits of the model: keys of `TRAITS`."""
        return tuple(trait for trait in TRAITS if getattr(self.facts, trait))

    @property
    def algo(self) -> str:
        """Name of the algorithm: of published scores, that of the model."""
        return self.facts.algo or self.name.lower()

    @property
    def rank(self) -> int:
        """0 if the model may lead, 1 if some of its fits failed, 2 if it saw the answers."""
        saw_answers = self.facts.sees_truth or self.facts.in_sample
        return 2 if saw_answers else int(self.facts.failed > 0)

    @property
    def marks(self) -> str:
        """Marks for traits of the model and for irregular fits, behind a blank."""
        marks = "".join(TRAITS[trait][0] for trait in self.traits)
        marks += MARK if self.is_odd else ""
        return marks and f" {marks}"

    @property
    def is_odd(self) -> bool:
        """Whether some fit failed, fell back or did not converge; skipped ones have a reason."""
        return self.facts.failed + self.facts.fallback + self.facts.not_converged > 0

    @property
    def has_digests(self) -> bool:
        """Whether it is known which reviews were scored."""
        return all(self.rows.values())

    @property
    def has_predictions(self) -> bool:
        """Whether predictions were saved."""
        return self.run is not None and self.run.has_predictions

    def values(self, metric: str, users: Sequence[User]) -> FloatArray:
        """Scores of the users, in their order; NaN where the model has none."""
        column = self.scores.get(metric)
        if column is None:
            return np.full(len(users), math.nan)
        if [*users] == [*self.rows]:
            return column
        position = {user: number for number, user in enumerate(self.rows)}
        at = np.array([position.get(user, -1) for user in users], np.int64)
        values: FloatArray = np.append(column, math.nan)[at]
        return values


def entry_of(run: Run) -> Entry:
    """Return the scores of a run under its label."""
    scores = run.by_user
    whole = np.array([rows != "" for rows in scores.rows], np.bool_)
    rows = {user: digest for user, digest in zip(scores.users, scores.rows, strict=True) if digest}
    return Entry(
        name=one_line(run.facts.label),
        place=run.folder,
        rows=rows,
        reviews=dict(zip(rows, scores.reviews[whole].tolist(), strict=True)),
        scores=dict(zip(scores.names, scores.values[whole].T, strict=True)),
        facts=run.facts,
        incomplete=tuple(user for user in scores.users if user not in rows),
        run=run,
    )


def read_entry(folder: Path) -> Entry:
    """Read the scores of a finished run."""
    return entry_of(Run.read(folder))


def usual_protocol(entries: Iterable[Entry]) -> str:
    """Return the protocol of most; of equally frequent ones, the first."""
    named = [entry.facts.protocol for entry in entries if entry.facts.protocol]
    return max(named, key=named.count, default="")


def with_own_names(entries: Sequence[Entry]) -> list[Entry]:
    """Return what is compared under names that differ.

    Those under another protocol than most have it in their name; where names are still equal, the
    folder is added. Raise `ConfigError` if the same run is there twice.
    """
    usual, names = usual_protocol(entries), [entry.name for entry in entries]
    for number, protocol in enumerate(entry.facts.protocol for entry in entries):
        names[number] += f" ({protocol})" if protocol not in ("", usual) else ""
    for places in ([e.place.name for e in entries], [str(e.place) for e in entries]):
        several = [len({p for n, p in zip(names, places, strict=True) if n == m}) for m in names]
        names = [
            f"{name} ({place})" if count > 1 else name
            for name, place, count in zip(names, places, several, strict=True)
        ]
    names = [one_line(name) for name in names]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"the same run is given more than once: {', '.join(twice)}")
    return [replace(entry, name=name) for entry, name in zip(entries, names, strict=True)]
