"""FSRS settings of an Anki collection: whether it is on, and the parameters of each preset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_eval.data.anki.database import open_collection
from srs_eval.data.anki.groups import FLOAT, LENGTH, NUMBER, message_fields

# Where Anki keeps parameters, those of the newest FSRS first, the desired retention and the longest
# interval: fields of ``DeckConfig.Config`` of ``proto/anki/deck_config.proto`` in ankitects/anki,
# and the names that older versions have for them in JSON
_STORED = {
    (6, LENGTH): "$.fsrsParams6",
    (5, LENGTH): "$.fsrsParams5",
    (3, LENGTH): "$.fsrsWeights",
    (37, FLOAT): "$.desiredRetention",
    (16, NUMBER): "$.rev.maxIvl",
}
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
        stored = collection.entries("deck_config", "config", "dconf", *_STORED.values())
        kept = {number: each for number, each in stored.items() if isinstance(each, bytes | str)}
        return FsrsSettings(enabled, {number: preset_of(each) for number, each in kept.items()})


def preset_of(stored: bytes | str) -> Preset:
    """Return what can be used of the settings of a preset, and defaults in place of the others.

    `stored` is the column ``config`` of Anki's table of presets, or a list in JSON.
    """
    if isinstance(stored, bytes):
        fields = message_fields(stored)
        values = [fields.get(key) for key in _STORED]
        for place, value in enumerate(values):
            if isinstance(value, bytes):  # Anki keeps 4 decimals, in single precision
                singles = np.frombuffer(value[: len(value) // 4 * 4], "<f4").tolist()
                values[place] = [float(f"{number:.6g}") for number in singles]
    else:
        values = json.loads(stored)
    if not isinstance(values, list) or len(values) != len(_STORED):
        return Preset()
    *lists, retention, longest = values
    parameters = next((each for each in lists if isinstance(each, list) and each), [])
    usable = len(parameters) <= _PARAMETERS_AT_MOST and all(
        isinstance(number, int | float) and abs(number) < _LARGEST for number in parameters
    )
    if not isinstance(retention, int | float) or not 0 < retention < 1:
        retention = Preset().desired_retention
    if not isinstance(longest, int) or not 0 < longest < _LARGEST:
        longest = Preset().longest_interval
    return Preset(tuple(map(float, parameters)) if usable else (), round(retention, 4), longest)
