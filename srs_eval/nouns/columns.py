"""The columns of a review log, as a source may give them: the one list of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

_CENTURY_SECONDS = 36_525 * 86_400.0
# What cards can be grouped by; each is a column of `Reviews`.
GROUPS = ("deck", "preset", "note_type", "template", "note")


@dataclass(frozen=True, slots=True)
class Column:
    """What the values of a column may be."""

    meaning: str  # As errors say it of values outside the range
    is_whole: bool = True  # Whether values are whole numbers
    low: float = -math.inf
    high: float = math.inf
    is_needed: bool = False  # Whether every log has it


COLUMNS = {
    "card": Column("a whole number", is_needed=True),
    "rating": Column("1 (Again), 2 (Hard), 3 (Good) or 4 (Easy)", low=1, high=4, is_needed=True),
    "day": Column("day numbers", is_needed=True),
    "elapsed_days": Column("days since the card's previous row, -1 at its first"),
    "elapsed_seconds": Column("at most 100 years", is_whole=False, high=_CENTURY_SECONDS),
    "duration_ms": Column(
        "0 or more, at most 100 years", is_whole=False, low=0, high=1000 * _CENTURY_SECONDS
    ),
    "state": Column(
        "0 (new), 1 (learning), 2 (review), 3 (relearning) or 4 (filtered)", low=0, high=4
    ),
    "truth": Column("a probability from 0 to 1", is_whole=False, low=0, high=1),
    **{group: Column("a whole number, -1 where not known") for group in GROUPS},
}
