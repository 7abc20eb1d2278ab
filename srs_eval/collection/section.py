"""What a report consists of, before it is text or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A row of a picture: a value with its interval, and what it is held against."""

    name: str
    value: float
    lo: float
    hi: float
    expected: float
    stands_out: bool  # Whether the interval excludes what is expected
    reviews: int = 0  # Shown behind the name, unless it is 0


@dataclass(frozen=True, slots=True)
class Picture:
    """Values with intervals, one below the other."""

    # What is shown, and what its dots and its strokes are
    title: str
    value: str
    expected: str
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column is text."""

    caption: str  # What it shows
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: int = 1  # Number of columns that are text


@dataclass(frozen=True, slots=True)
class Paste:
    """Parameters to copy into Anki."""

    title: str
    numbers: str


@dataclass(frozen=True, slots=True)
class Section:
    """A question and its answer."""

    question: str
    answer: str  # In one sentence or two; the terminal shows the first
    notes: Sequence[str] = ()  # Sentences that explain it
    parts: Sequence[Picture | Table | Paste] = ()
    label: str = ""  # The question in a word, for the terminal
