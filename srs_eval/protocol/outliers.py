"""The public benchmark's rule for unusual first intervals."""

from __future__ import annotations

import numpy as np

from srs_eval.data.reviews import BoolArray, IntArray

_KEPT_SHARE = 0.05
_KEPT_AT_LEAST = 20
_RARE_GROUP = 6
_LONG_DAYS = 100
_LONG_DAYS_AFTER_EASY = 365
_EASY = 4


def unusual_first_intervals(elapsed_days: IntArray, first_rating: IntArray) -> BoolArray:
    """Mark second reviews whose interval is rare for the card's first rating.

    For each rating of a card's very first review, the reviews are grouped by interval and the
    groups are visited from the smallest (of equal ones, the longest interval first). Groups go
    while fewer than ``max(5 %, 20)`` reviews have gone; after that only those of fewer than 6
    reviews or with an interval above 100 days (365 after Easy).

    The rule looks at the whole log, test rows included: what is scored depends on it, for every
    algorithm alike.
    """
    removed = np.zeros(len(elapsed_days), bool)
    for rating in np.unique(first_rating):
        of_rating = np.flatnonzero(first_rating == rating)
        intervals, group, sizes = np.unique(
            elapsed_days[of_rating], return_inverse=True, return_counts=True
        )
        gone = _removed_groups(intervals, sizes, after_easy=bool(rating == _EASY))
        removed[of_rating] = gone[group]
    return removed


def _removed_groups(intervals: IntArray, sizes: IntArray, *, after_easy: bool) -> BoolArray:
    quota = max(_KEPT_SHARE * sizes.sum(), _KEPT_AT_LEAST)
    longest = _LONG_DAYS_AFTER_EASY if after_easy else _LONG_DAYS
    gone = np.zeros(len(intervals), bool)
    count = 0
    for group in np.lexsort((-intervals, sizes)):
        within_quota = count + sizes[group] < quota
        if within_quota or sizes[group] < _RARE_GROUP or intervals[group] > longest:
            gone[group] = True
            count += int(sizes[group])
    return gone
