"""What a report consists of, before it is text or HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from srs_eval.collection.words import between
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import percent

_LETTERS = 25
_TICKS = 6


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

    def __str__(self) -> str:
        span = f" ({between(self.lo, self.hi)})" if self.has_range else ""
        return f"{self.name}: {percent(self.value)}{span} against {percent(self.expected)}"

    @property
    def has_range(self) -> bool:
        """Whether the interval is known."""
        return not math.isnan(self.lo)

    @property
    def label(self) -> str:
        """The name, shortened in the middle if there is no room for it, and the reviews."""
        count = f" ({self.reviews:,})" if self.reviews else ""
        most = _LETTERS - len(count)
        half = most // 2
        whole = len(self.name) <= most
        return (
            self.name if whole else f"{self.name[: most - half - 1]}…{self.name[-half:]}"
        ) + count


@dataclass(frozen=True)
class Picture:
    """Values with intervals, one below the other."""

    # What is shown, and what its dots and its strokes are
    title: str
    value: str
    expected: str
    marks: Sequence[Mark]

    @cached_property
    def ticks(self) -> list[float]:
        """Round numbers with a line; the first and the last are the ends of the axis."""
        values = [n for m in self.marks for n in (m.value, m.lo, m.hi, m.expected)]
        known = [value for value in values if not math.isnan(value)]
        least = max((max(known) - min(known)) / _TICKS, 1e-4)
        power = 10.0 ** math.floor(math.log10(least))
        step = next(power * size for size in (1, 2, 5, 10) if power * size >= least * 0.999)
        first = math.floor(min(known) / step + 1e-9)
        last = max(math.ceil(max(known) / step - 1e-9), first + 1)
        return [number * step for number in range(first, last + 1)]

    def tick_label(self, tick: float) -> str:
        """Format a tick in percent, with as many digits as tell it from the next."""
        step = self.ticks[1] - self.ticks[0]
        digits = 0 if step >= 0.01 - 1e-9 else 2 if step < 0.001 - 1e-9 else 1
        return f"{100 * tick:z.{digits}f}" + " %" * (tick == self.ticks[-1])

    def along(self, value: float) -> float:
        """Return where a value is on the axis, from 0 to 1."""
        first, last = self.ticks[0], self.ticks[-1]
        return (min(max(value, first), last) - first) / (last - first)


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
    pictures: Sequence[Picture] = ()
    parts: Sequence[Table | Paste] = ()
    lines: Sequence[str] = ()  # The rest of the answer, a line each, on the terminal as well
    label: str = ""  # The question in a word, for the terminal
