"""Find runs with the same predictions: one model under two names must not count as two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.predictions import OwnPredictions
from srs_eval.data.reviews import User

# Rounded scores of different models can agree in one metric by chance.
_FEWEST_METRICS = 2


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A run with the same predictions as another."""

    run: Entry  # Left out of the statistics
    twin: Entry  # Stands for both
    by_predictions: bool  # Where these were not saved, scores were compared

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
    different: list[Entry] = []
    duplicates = []
    for run in runs:
        twin = next((other for other in different if _is_same(run, other, users)), None)
        if twin is None:
            different.append(run)
        else:
            by_predictions = run.has_predictions and twin.has_predictions
            duplicates.append(Duplicate(run, twin, by_predictions))
    return duplicates


def _is_same(run: Entry, twin: Entry, users: Sequence[User]) -> bool:
    if (run.traits, run.when) != (twin.traits, twin.when):
        return False
    defined = 0
    for name in run.scores.keys() & twin.scores.keys():
        for some in (users[:1], users):  # Most runs differ for the first user
            ours, theirs = run.values(name, some), twin.values(name, some)
            if not np.array_equal(ours, theirs, equal_nan=True):
                return False
        defined += not np.isnan(ours).all()
    if not (run.has_predictions and twin.has_predictions):
        return defined >= _FEWEST_METRICS
    return defined > 0 and _predict_the_same(run, twin, users)


def _predict_the_same(run: Entry, twin: Entry, users: Sequence[User]) -> bool:
    """Compare the predictions of both runs, user by user."""
    files = OwnPredictions(run), OwnPredictions(twin)
    for user in users:
        ours, theirs = (file.read(user) for file in files)
        if len(ours) != len(theirs) or (ours.row != theirs.row).any() or (ours.p != theirs.p).any():
            return False
    return True
