"""What other runs are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.matching import shared_users

_USUAL = "avg"  # What knowing nothing about a card gives
# Scores with a natural zero that is perfect, so that a percentage is meaningful.
_IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")


def usual_baseline(runs: Sequence[Entry]) -> int:
    """Return the number of ``avg``, or else of the first run that may be called the best."""
    order = [(not run.is_eligible, run.facts.algo != _USUAL) for run in runs]
    return order.index(min(order))


def in_percent(run: Entry, baseline: Entry) -> dict[str, float]:
    """Return by how much the means of a run are above the baseline's, in percent of these.

    They are over the users for whom both scored the same reviews; metrics that only one has, or
    that are 0 for the baseline, are left out.
    """
    users = shared_users([run, baseline])
    percent = {}
    for name in _IN_PERCENT:
        ours, theirs = run.values(name, users), baseline.values(name, users)
        known = ~(np.isnan(ours) | np.isnan(theirs))
        if theirs[known].sum() > 0:
            percent[name] = 100 * float(ours[known].sum() / theirs[known].sum() - 1)
    return percent
