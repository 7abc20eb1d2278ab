"""FSRS settings of an Anki collection: whether it is on, and the parameters of each preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.data.anki.database import open_collection
from srs_eval.data.anki.groups import FLOAT, LENGTH, NUMBER, value_of

# Fields of ``DeckConfig.Config`` of ``proto/anki/deck_config.proto`` in ankitects/anki, and the
# names that older versions have for them: parameters, those of the newest FSRS first
_PARAMETERS = {6: "fsrsParams6", 5: "fsrsParams5", 3: "fsrsWeights"}
_PARAMETERS_AT_MOST, _LARGEST = 100, 2**31


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of a preset that concern FSRS and intervals."""

    # As they are stored; empty if FSRS was never optimised for the preset, or they cannot be read.
    parameters: tuple[float, ...] = ()
    desired_retention: float = 0.9
    longest_interval: int = 36500  # Days


@dataclass(frozen=True, slots=True)
class FsrsSettings:
    """FSRS settings of a collection."""

    enabled: bool  # whether Anki schedules by FSRS
    presets: Mapping[int, Preset]  # by the number of the preset


def read_fsrs_settings(path: str | Path) -> FsrsSettings:
    """Read the FSRS settings of a collection or package.

    Raise `ReviewLogError` if the file is missing, no collection, or damaged.
    """
    with open_collection(Path(path).expanduser()) as collection:
        enabled = collection.settings().get("fsrs") is True
        stored = collection.entries("deck_config", "config", "dconf")
        return FsrsSettings(enabled, {number: preset_of(each) for number, each in stored.items()})


def preset_of(stored: Any) -> Preset:
    """Return what can be used of the settings of a preset, and defaults in place of the others."""
    lists = [value_of(stored, name, (field, LENGTH)) for field, name in _PARAMETERS.items()]
    lists = [_singles(each) if isinstance(each, bytes) else each for each in lists]
    parameters = next((each for each in lists if isinstance(each, list) and each), [])
    usable = len(parameters) <= _PARAMETERS_AT_MOST and all(
        isinstance(number, int | float) and abs(number) < _LARGEST for number in parameters
    )
    retention = value_of(stored, "desiredRetention", (37, FLOAT))
    if not isinstance(retention, int | float) or not 0 < retention < 1:
        retention = Preset().desired_retention
    longest = value_of(stored, "rev.maxIvl", (16, NUMBER))
    if not isinstance(longest, int) or not 0 < longest < _LARGEST:
        longest = Preset().longest_interval
    return Preset(tuple(map(float, parameters)) if usable else (), round(retention, 4), longest)


def _singles(content: bytes) -> list[float]:
    """Return numbers in single precision, of which Anki keeps 4 decimals."""
    numbers = np.frombuffer(content[: len(content) // 4 * 4], "<f4").tolist()
    return [float(f"{number:.6g}") for number in numbers]
