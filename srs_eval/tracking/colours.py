"""One colour for each algorithm, the same in every chart and every sweep of an experiment."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

COLOUR_TAG = "mlflow.runColor"

# Distinguishable with the common colour blindnesses as long as eight are enough
# (Okabe and Ito, 2008, with a darker yellow for white paper), then merely different.
PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#b8a800",
    "#555555",
    "#7b4fb0",
    "#8c5a2b",
    "#2f9e9e",
    "#b3202c",
    "#6b8e23",
    "#e377c2",
    "#1f3a93",
    "#9a9a9a",
)


def pick_colour(name: str, taken: Mapping[str, str]) -> str:
    """Choose the colour of a run; runs of one name have one colour.

    >>> pick_colour("lstm", {"avg": "#0072b2"})
    '#d55e00'
    >>> pick_colour("avg", {"avg": "#0072b2"})
    '#0072b2'
    """
    if name in taken:
        return taken[name]
    free = [colour for colour in PALETTE if colour not in taken.values()]
    return free[0] if free else PALETTE[zlib.crc32(name.encode()) % len(PALETTE)]
