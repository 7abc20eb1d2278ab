"""Find runs with the same predictions: one model under two names must not count as two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.predictions import OwnPredictions
from srs_eval.data.reviews import FloatArray, User

# Rounded scores of different models can agree in one metric by chance.
_FEWEST_METRICS = 2


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A run with the same predictions as another."""

    run: Entry  # The run that is left out of the statistics
    twin: Entry  # The run that stands for both
    # Whether predictions were compared; where they were not saved, only scores were
    by_predictions: bool

    @property
    def in_words(self) -> str:
        """Sentence that explains the duplicate."""
        same = "makes the same predictions as" if self.by_predictions else "has the scores of"
        why = "" if self.by_predictions else " in every metric and for every user"
        return f"{self.run.name} {same} {self.twin.name}{why}; both count as one"


def find_duplicates(runs: Sequence[Entry], users: Sequence[User]) -> list[Duplicate]:
    """Find runs whose predictions equal those of an earlier run.

    Scores of `users` are compared first, exactly and in every metric that both runs have;
    predictions only where these are equal and both runs saved them. Runs without predictions need
    at least two metrics in common that are defined for some user.
    """
    kept: list[_Scored] = []
    found: list[Duplicate] = []
    for run in runs:
        scored = run, {name: run.values(name, users) for name in run.scores}
        duplicate = next((d for twin in kept if (d := _duplicate(scored, twin, users))), None)
        if duplicate is None:
            kept.append(scored)
        else:
            found.append(duplicate)
    return found


_Scored = tuple[Entry, Mapping[str, FloatArray]]  # A run, and the scores of some users


def _duplicate(ours: _Scored, theirs: _Scored, users: Sequence[User]) -> Duplicate | None:
    """Compare two runs; None if they differ."""
    (run, scores), (twin, others) = ours, theirs
    shared = [name for name in scores if name in others]
    if (run.traits, run.when) != (twin.traits, twin.when):
        return None
    if not all(_equal(scores[name], others[name]) for name in shared):
        return None
    defined = sum(not np.isnan(scores[name]).all() for name in shared)
    by_predictions = run.has_predictions and twin.has_predictions
    if by_predictions:
        is_same = defined > 0 and _equal_predictions(run, twin, users)
    else:
        is_same = defined >= _FEWEST_METRICS
    return Duplicate(run, twin, by_predictions) if is_same else None


def _equal(scores: FloatArray, others: FloatArray) -> bool:
    # most runs differ for the first user
    begin = np.array_equal(scores[:1], others[:1], equal_nan=True)
    return bool(begin and np.array_equal(scores, others, equal_nan=True))


def _equal_predictions(run: Entry, twin: Entry, users: Sequence[User]) -> bool:
    """Compare the predictions of both runs, user by user."""
    ours, theirs = OwnPredictions(run), OwnPredictions(twin)
    for user in users:
        own, other = ours.read(user), theirs.read(user)
        if own is None or other is None:
            return False
        if len(own) != len(other) or (own.row != other.row).any() or (own.p != other.p).any():
            return False
    return True
