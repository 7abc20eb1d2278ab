"""When each review was due."""

from __future__ import annotations

import numpy as np

from srs_eval.data.anki.database import DAY_SECONDS, Revlog
from srs_eval.data.anki.rules import MANUAL
from srs_eval.data.intervals import previous_review
from srs_eval.nouns import IntArray

NOT_KNOWN = -1


def scheduled_days(revlog: Revlog) -> IntArray:
    """Return the whole days after its last answer at which each row was due, int64 [n].

    Takes the whole table in time order. A value is 0 for steps of less than a day, and -1 for the
    first row of a card and where the due date was set by hand.
    """
    previous = previous_review(revlog.cid)
    given = revlog.ivl[previous]  # of the last answer, or of a rescheduling since then
    days: IntArray = np.where(given >= 0, given, -given // DAY_SECONDS)
    days[(previous < 0) | (revlog.type[previous] == MANUAL)] = NOT_KNOWN
    return days
