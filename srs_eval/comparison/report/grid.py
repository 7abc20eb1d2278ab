"""A table of text, as every output of a comparison has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text.

    Attributes
    ----------
    key : str
        What files and links call it.
    text : int
        How many of the first columns are words; the others are numbers.
    bold : frozenset of int
        Rows that stand out.
    shade : sequence of sequence of float
        For each cell, from -1 (in favour of the row) to 1 (against it); 0 is plain. Empty:
        nothing is shaded.
    below : sequence of sequence of str
        A second, smaller line of each cell; empty: none has one.
    """

    key: str
    title: str
    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int = 1
    bold: frozenset[int] = frozenset()
    shade: Sequence[Sequence[float]] = field(default=())
    below: Sequence[Sequence[str]] = field(default=())
