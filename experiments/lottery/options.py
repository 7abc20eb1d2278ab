"""What the presets of a collection do to the intervals of cards in review, without FSRS."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.data.anki.database import open_collection
from srs_eval.data.anki.groups import FLOAT, NUMBER, message_fields

LEAST_FACTOR, MOST_FACTOR = 0.01, 100
# Fields of ``DeckConfig.Config`` of Anki, and the names that older versions have for them in JSON
STORED = {
    (15, FLOAT): "$.rev.ivlFct",
    (13, FLOAT): "$.rev.hardFactor",
    (12, FLOAT): "$.rev.ease4",
    (16, NUMBER): "$.rev.maxIvl",
}


@dataclass(frozen=True, slots=True)
class IntervalOptions:
    """What a preset does to intervals."""

    modifier: float = 1.0  # Factor of all intervals
    hard: float = 1.2  # Factors of Hard and of Easy
    easy: float = 1.3
    maximum: int = 36500  # Days


def interval_options(path: str | Path) -> dict[int, IntervalOptions]:
    """Read the options of all presets of a collection or package, by their numbers."""
    with open_collection(Path(path).expanduser()) as collection:
        stored = collection.entries("deck_config", "config", "dconf", *STORED.values())
        return {number: options_of(each) for number, each in stored.items()}


def options_of(stored: bytes | str) -> IntervalOptions:
    """Return the options in a message, or in a list in JSON, and defaults for the unusable."""
    if isinstance(stored, bytes):
        fields = message_fields(stored)
        values = [fields.get(key) for key in STORED]
    else:
        values = json.loads(stored)
    *factors, maximum = values
    usable: dict[str, Any] = {
        name: round(float(value), 4)
        for name, value in zip(("modifier", "hard", "easy"), factors, strict=True)
        if isinstance(value, int | float) and LEAST_FACTOR <= value <= MOST_FACTOR
    }
    if isinstance(maximum, int) and maximum > 0:
        usable["maximum"] = maximum
    return IntervalOptions(**usable)
