"""What the presets of a collection do to the intervals of cards in review, without FSRS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.data.anki.database import open_collection
from srs_eval.data.anki.groups import FLOAT, NUMBER, value_of

LEAST_FACTOR, MOST_FACTOR = 0.01, 100
# Fields of ``DeckConfig.Config`` of Anki, and the paths that older versions have for them in JSON
STORED = {
    "modifier": (15, "rev.ivlFct"),
    "hard": (13, "rev.hardFactor"),
    "easy": (12, "rev.ease4"),
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
        stored = collection.entries("deck_config", "config", "dconf")
        return {number: options_of(each) for number, each in stored.items()}


def options_of(stored: Any) -> IntervalOptions:
    """Return the options of a preset, and defaults for the unusable."""
    factors = {name: value_of(stored, path, (key, FLOAT)) for name, (key, path) in STORED.items()}
    usable: dict[str, Any] = {
        name: round(float(value), 4)
        for name, value in factors.items()
        if isinstance(value, int | float) and LEAST_FACTOR <= value <= MOST_FACTOR
    }
    maximum = value_of(stored, "rev.maxIvl", (16, NUMBER))
    if isinstance(maximum, int) and maximum > 0:
        usable["maximum"] = maximum
    return IntervalOptions(**usable)
