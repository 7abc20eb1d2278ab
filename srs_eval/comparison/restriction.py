"""Restrict runs to the reviews that they all scored, which are found in saved predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.predictions import SAME, OwnPredictions, in_common
from srs_eval.data.reviews import User
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.predictions import OPTIONAL_COLUMNS, rows_fingerprint

# Other inputs of metrics. Protocols may count them differently; those of one run serve all runs.
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in SAME)


def restrict(
    runs: Sequence[Entry], users: Sequence[User]
) -> tuple[tuple[Entry, ...], frozenset[User]]:
    """Score users, whom all runs scored, on the reviews that all runs scored.

    Return the runs with new digests, numbers of reviews and scores of the users who have reviews in
    common, and these users. Metrics that cannot be computed from saved predictions are NaN.
    """
    panel = default_panel()
    files = [OwnPredictions(run) for run in runs]
    anew = tuple(_copy(run) for run in runs)
    place = [{user: number for number, user in enumerate(run.rows)} for run in runs]
    restricted = set()
    for user in users:
        common = in_common(runs, [file.read(user) for file in files])
        if not len(common[0]):
            continue
        restricted.add(user)
        # one run's columns by which metrics group reviews, to group those of all runs alike
        facts = {name: getattr(common[0], name) for name in _FACTS}
        for run, at, predictions in zip(anew, place, common, strict=True):
            own = replace(predictions, **facts)
            scores = panel.score(own)
            run.rows[user], run.reviews[user] = rows_fingerprint(own), len(own)
            for name, column in run.scores.items():
                column[at[user]] = scores.get(name, math.nan)
    return anew, frozenset(restricted)


def _copy(run: Entry) -> Entry:
    scores = {name: column.copy() for name, column in run.scores.items()}
    return replace(run, rows=dict(run.rows), reviews=dict(run.reviews), scores=scores)
