"""Find runs with the same predictions: one model under two names must not count as two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.predictions import OwnPredictions
from srs_eval.data.reviews import User

# Rounded scores of different models can agree in one metric by chance.
_FEWEST_METRICS = 2


class Duplicate(NamedTuple):
    """A run, left out of the statistics, and the one with the same predictions for both."""

    run: Entry
    twin: Entry


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
            duplicates.append(Duplicate(run, twin))
    return duplicates


def _is_same(run: Entry, twin: Entry, users: Sequence[User]) -> bool:
    if (run.traits, run.when) != (twin.traits, twin.when):
        return False
    defined = 0
    for name in run.scores.keys() & twin.scores.keys():
        ours, theirs = run.values(name, users), twin.values(name, users)
        if not np.array_equal(ours, theirs, equal_nan=True):
            return False
        defined += not np.isnan(ours).all()
    if not (run.has_predictions and twin.has_predictions):
        return defined >= _FEWEST_METRICS
    files = OwnPredictions(run), OwnPredictions(twin)
    pairs = ((file.read(user) for file in files) for user in users)
    return defined > 0 and all(
        np.array_equal(ours.row, theirs.row) and np.array_equal(ours.p, theirs.p)
        for ours, theirs in pairs
    )
