"""FSRS settings of an Anki collection: whether it is on, and the parameters of each preset."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.data.anki.database import open_collection
from srs_eval.data.anki.groups import message_field

_DEFAULT_RETENTION = 0.9
# Keys of a message of protocol buffers: 8 * number of the field + kind of value.
_PARAMETERS = (8 * 6 + 2, 8 * 5 + 2, 8 * 3 + 2)
_RETENTION = 8 * 37 + 5
_FACTORS = {"modifier": 8 * 15 + 5, "hard": 8 * 13 + 5, "easy": 8 * 12 + 5}
_MAXIMUM = 8 * 16
_FACTORS_IN_TEXT = {"modifier": "ivlFct", "hard": "hardFactor", "easy": "ease4"}
_MAXIMUM_IN_TEXT = "maxIvl"
_PARAMETERS_IN_TEXT = ("fsrsParams6", "fsrsParams5", "fsrsWeights")
_RETENTION_IN_TEXT = "desiredRetention"
_NUMBERS_AT_MOST = 100
_LEAST_FACTOR, _MOST_FACTOR = 0.01, 100


@dataclass(frozen=True, slots=True)
class IntervalOptions:
    """What a preset does to the intervals of cards in review, without FSRS."""

    modifier: float = 1.0  # Factor of all intervals
    hard: float = 1.2  # Factors of Hard and of Easy
    easy: float = 1.3
    maximum: int = 36500  # Days


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of a preset that concern FSRS and intervals."""

    # As they are stored; empty if FSRS was never optimised for the preset, or they cannot be read.
    parameters: tuple[float, ...] = ()
    desired_retention: float = _DEFAULT_RETENTION
    intervals: IntervalOptions = IntervalOptions()


@dataclass(frozen=True, slots=True)
class FsrsSettings:
    """FSRS settings of a collection."""

    enabled: bool  # whether Anki schedules by FSRS
    presets: Mapping[int, Preset]  # by the number of the preset


def read_fsrs_settings(path: str | Path) -> FsrsSettings:
    """Read the FSRS settings of a collection or package.

    Raise `ReviewLogError` if the file is missing, no collection, or damaged. The settings are
    ``DeckConfig.Config`` of ``proto/anki/deck_config.proto`` in ankitects/anki.
    """
    with open_collection(Path(path).expanduser()) as collection:
        _, settings = collection.settings()
        presets = {
            number: preset_in_text(kept) if isinstance(kept, dict) else preset_in_message(kept)
            for number, kept in collection.kept("deck_config", "config", "dconf", is_needed=True)
            if isinstance(kept, dict | bytes)
        }
        return FsrsSettings(settings.get("fsrs") is True, presets)


def preset_in_message(message: bytes) -> Preset:
    """Parse the column ``config`` of Anki's table of presets.

    >>> preset_in_message(b"").desired_retention
    0.9
    """
    parameters: tuple[float, ...] = ()
    try:
        for key in _PARAMETERS:
            packed = message_field(message, key)
            if isinstance(packed, bytes) and len(packed) % 4 == 0:
                parameters = parameters or struct.unpack(f"<{len(packed) // 4}f", packed)
        retention = _float(message_field(message, _RETENTION))
        factors = {name: _float(message_field(message, key)) for name, key in _FACTORS.items()}
        maximum = message_field(message, _MAXIMUM)
    except (IndexError, ValueError):
        return Preset()
    # Anki keeps 4 decimals, in single precision.
    kept = [float(f"{number:.6g}") for number in parameters]
    return _preset(kept, retention, factors, maximum)


def _float(stored: int | bytes | None) -> float | None:
    return float(struct.unpack("<f", stored)[0]) if isinstance(stored, bytes) else None


def preset_in_text(options: Mapping[str, Any]) -> Preset:
    """Read a preset as older versions of Anki keep it."""
    lists = (options.get(key) for key in _PARAMETERS_IN_TEXT)
    parameters = next((found for found in lists if isinstance(found, list) and found), [])
    review = options.get("rev")
    given = review if isinstance(review, dict) else {}
    factors = {name: given.get(key) for name, key in _FACTORS_IN_TEXT.items()}
    maximum = given.get(_MAXIMUM_IN_TEXT)
    return _preset(parameters, options.get(_RETENTION_IN_TEXT), factors, maximum)


def _preset(
    parameters: list[Any], retention: Any, factors: Mapping[str, Any], maximum: Any
) -> Preset:
    """Return what can be used of the settings of a preset, and defaults in place of the others."""
    are_numbers = all(isinstance(number, int | float) for number in parameters)
    usable = are_numbers and len(parameters) <= _NUMBERS_AT_MOST
    usable = usable and all(math.isfinite(number) for number in parameters)
    is_share = isinstance(retention, int | float) and 0 < retention < 1
    intervals: dict[str, Any] = {
        name: round(float(value), 4)
        for name, value in factors.items()
        if isinstance(value, int | float) and _LEAST_FACTOR <= value <= _MOST_FACTOR
    }
    if isinstance(maximum, int) and maximum > 0:
        intervals["maximum"] = maximum
    return Preset(
        tuple(map(float, parameters)) if usable else (),
        round(float(retention), 4) if is_share else _DEFAULT_RETENTION,
        IntervalOptions(**intervals),
    )
