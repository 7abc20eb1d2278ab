"""FSRS settings of an Anki collection: whether it is on, and the parameters of each preset."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.data.anki.database import damaged, open_collection
from srs_eval.data.anki.groups import message_fields

# Keys of a message of protocol buffers, 8 * number of the field + kind of value, and the names that
# older versions of Anki have for them in JSON. Parameters of the newest FSRS first.
_PARAMETERS = {8 * 6 + 2: "fsrsParams6", 8 * 5 + 2: "fsrsParams5", 8 * 3 + 2: "fsrsWeights"}
_NUMBERS = {
    8 * 37 + 5: "desiredRetention",
    8 * 15 + 5: "ivlFct",
    8 * 13 + 5: "hardFactor",
    8 * 12 + 5: "ease4",
    8 * 16: "maxIvl",
}
_FACTORS = {"modifier": "ivlFct", "hard": "hardFactor", "easy": "ease4"}
_PARAMETERS_AT_MOST = 100
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
    desired_retention: float = 0.9
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
        columns = collection.columns_of("deck_config")
        if columns and not {"id", "config"} <= columns:
            raise damaged(collection.source, "its table deck_config has no id or no config")
        presets = {
            number: preset_in_text(kept) if isinstance(kept, dict) else preset_in_message(kept)
            for number, kept in collection.objects("deck_config", "config", "dconf").items()
            if isinstance(kept, dict | bytes)
        }
        return FsrsSettings(settings.get("fsrs") is True, presets)


def preset_in_message(message: bytes) -> Preset:
    """Parse the column ``config`` of Anki's table of presets.

    >>> preset_in_message(b"").desired_retention
    0.9
    """
    try:
        fields = message_fields(message)
    except ValueError:
        return Preset()
    options: dict[str, Any] = {}
    for key, name in (_PARAMETERS | _NUMBERS).items():
        value = fields.get(key)
        if isinstance(value, bytes) and len(value) % 4 == 0:
            numbers = struct.unpack(f"<{len(value) // 4}f", value)
            # Anki keeps 4 decimals, in single precision.
            precise = [float(f"{number:.6g}") for number in numbers]
            options[name] = precise if key in _PARAMETERS else numbers[0]
        elif key % 8 == 0:
            options[name] = value
    return _preset(options)


def preset_in_text(options: Mapping[str, Any]) -> Preset:
    """Read a preset as older versions of Anki keep it."""
    review = options.get("rev")
    return _preset({**options, **(review if isinstance(review, dict) else {})})


def _preset(options: Mapping[str, Any]) -> Preset:
    """Return what can be used of the settings of a preset, and defaults in place of the others."""
    lists = (options.get(name) for name in _PARAMETERS.values())
    parameters = next((each for each in lists if isinstance(each, list) and each), [])
    usable = len(parameters) <= _PARAMETERS_AT_MOST and all(
        isinstance(number, int | float) and math.isfinite(number) for number in parameters
    )
    retention, maximum = options.get("desiredRetention"), options.get("maxIvl")
    if not isinstance(retention, int | float) or not 0 < retention < 1:
        retention = Preset().desired_retention
    factors = {name: options.get(key) for name, key in _FACTORS.items()}
    intervals: dict[str, Any] = {
        name: round(float(value), 4)
        for name, value in factors.items()
        if isinstance(value, int | float) and _LEAST_FACTOR <= value <= _MOST_FACTOR
    }
    if isinstance(maximum, int) and maximum > 0:
        intervals["maximum"] = maximum
    return Preset(
        tuple(map(float, parameters)) if usable else (),
        round(float(retention), 4),
        IntervalOptions(**intervals),
    )
