"""The one place where columns become a validated `Reviews`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srs_eval.data.columns import numbers, violations, whole_numbers
from srs_eval.data.intervals import FIRST, previous_review, since_previous
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Reviews, User

_CENTURY_DAYS = 36_525
_LATEST_DAY = 3_000_000  # Julian day numbers are below it; dates like 20240329 and seconds are not
_NOT_DAYS = (
    "day numbers (at most 3,000,000, and at most 100 years apart; give seconds, milliseconds or "
    "dates as times)"
)
# Largest value of a column that measures an interval: a hundred years.
_CENTURY = {
    "elapsed_seconds": _CENTURY_DAYS * 86_400.0,
    "duration_ms": _CENTURY_DAYS * 86_400_000.0,
}

_REAL = frozenset({"elapsed_seconds", "duration_ms", "truth"})
_STATES = "0 (new), 1 (learning), 2 (review), 3 (relearning) or 4 (filtered)"
_FIRST_EXPECTED = "-1 at a card's first review"
_LATER_EXPECTED = "0 or more after a card's first review"


def reviews_from_columns(
    *,
    user: User,
    source: str,  # file or table the columns come from, named in errors
    card: Any,  # whole numbers
    rating: Any,  # 1 to 4
    day: Any,  # day number: whole, never decreasing, within 100 years
    elapsed_days: Any = None,  # whole days since the card's previous review, -1 at its first
    elapsed_seconds: Any = None,  # since the card's previous answer, -1 at its first review
    duration_ms: Any = None,  # spent answering, not negative
    state: Any = None,  # 0 new, 1 learning, 2 review, 3 relearning, 4 filtered
    truth: Any = None,  # true probability of recall, in [0, 1]
    deck: Any = None,  # whole numbers, as the next three: -1 where not known
    preset: Any = None,  # of the deck
    note_type: Any = None,
    template: Any = None,
    left_out: Mapping[str, int] | None = None,  # rows that are not reviews, counted by reason
    notes: Sequence[str] = (),  # remarks on the log for the person
    row_name: Callable[[int], str] | None = None,  # of row i (from 0) in errors; else ``row i+1``
    column_names: Mapping[str, str] | None = None,  # of the source, in errors; else those above
) -> Reviews:
    """Build one user's log from columns [n] in time order, checking all of it once.

    Elapsed days are derived from `card` and `day` if absent, and compared with them if given. Raise
    `ReviewLogError` with every kind of violation found, the first rows of each, and how many more.

    >>> log = reviews_from_columns(
    ...     user=1, source="example", card=[7, 9, 7], rating=[3, 1, 4], day=[0, 0, 5]
    ... )
    >>> log.elapsed_days.tolist()
    [-1, -1, 5]
    """
    given = {"card": card, "rating": rating, "day": day, "elapsed_days": elapsed_days}
    given |= {"elapsed_seconds": elapsed_seconds, "duration_ms": duration_ms}
    given |= {"state": state, "truth": truth, "deck": deck, "preset": preset}
    given |= {"note_type": note_type, "template": template}
    given = {name: values for name, values in given.items() if values is not None}
    n = _common_length(source, given)
    check = _Check(row_name or _row_number, dict(column_names or {}))
    for name, values in given.items():
        check.read(name, values)
    previous = previous_review(check.whole["card"])
    derived = since_previous(check.whole["day"], previous)
    check.order_and_intervals(derived, first=previous == FIRST)
    check.ranges()
    if check.violations:
        raise ReviewLogError(source, check.violations)
    whole, real = check.whole, check.real
    return Reviews(
        user=user,
        card=whole["card"],
        day=whole["day"],
        rating=whole["rating"],
        elapsed_days=derived,
        elapsed=np.maximum(derived, 0).astype(np.float64),
        row=np.arange(n, dtype=np.int64),
        elapsed_seconds=real.get("elapsed_seconds"),
        duration_ms=real.get("duration_ms"),
        state=whole.get("state"),
        truth=real.get("truth"),
        deck=whole.get("deck"),
        preset=whole.get("preset"),
        note_type=whole.get("note_type"),
        template=whole.get("template"),
        left_out=dict(left_out or {}),
        notes=tuple(notes),
    )


def _row_number(row: int) -> str:
    """Return the number of a row, counted from 1."""
    return f"row {row + 1}"


def _common_length(source: str, given: Mapping[str, Any]) -> int:
    """Length of all columns; raise if they differ or are empty."""
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        what = f"the columns differ in length: {listed} rows"
        raise ReviewLogError(source, [Violation(what, "length")])
    if lengths["card"] == 0:
        raise ReviewLogError(source, [Violation("there are no reviews in it", "empty")])
    return lengths["card"]


@dataclass(slots=True)
class _Check:
    """Collects the columns that could be read, and everything wrong with them."""

    row_name: Callable[[int], str]
    column_names: dict[str, str]
    violations: list[Violation] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    whole: dict[str, IntArray] = field(default_factory=dict)
    real: dict[str, FloatArray] = field(default_factory=dict)
    readable: dict[str, BoolArray] = field(default_factory=dict)

    def read(self, name: str, values: Any) -> None:
        """Convert one column, and note the values that are not numbers of its kind."""
        self.given[name] = values
        if name in _REAL:
            self.real[name] = numbers(values)
            bad, expected = ~np.isfinite(self.real[name]), "a number"
        else:
            self.whole[name], bad = whole_numbers(values)
            expected = "a whole number"
        self._report(name, bad, expected, "wrong_type")
        self.readable[name] = ~bad

    def order_and_intervals(self, derived: IntArray, *, first: BoolArray) -> None:
        """Check that days never decrease and that given intervals follow from them."""
        if not self.readable["card"].all():
            return
        self._seconds(first)
        if not self.readable["day"].all():
            return
        day = self.whole["day"]
        plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
        plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
        self._require("day", plausible, _NOT_DAYS)
        if not plausible.all():
            return
        backwards = np.r_[False, day[1:] < day[:-1]]
        in_order = "no day before that of the row above (time order)"
        self._require("day", ~backwards, in_order, "order")
        if "elapsed_days" in self.whole:
            stated = self.whole["elapsed_days"]
            self._require("elapsed_days", ~first | (stated == FIRST), _FIRST_EXPECTED)
            self._require("elapsed_days", first | (stated >= 0), _LATER_EXPECTED)
            follows = first | (stated < 0) | (stated == derived) | backwards.any()
            expected = "the days since the card's previous row"
            self._require("elapsed_days", follows, expected, "order")

    def ranges(self) -> None:
        """Check the columns whose values have bounds."""
        rating = self.whole["rating"]
        known = (rating >= 1) & (rating <= 4)
        self._require("rating", known, "1 (Again), 2 (Hard), 3 (Good) or 4 (Easy)")
        if "state" in self.whole:
            state = self.whole["state"]
            self._require("state", (state >= 0) & (state <= 4), _STATES)
        if "duration_ms" in self.real:
            self._require("duration_ms", self.real["duration_ms"] >= 0, "0 or more")
        for name in _CENTURY.keys() & self.real.keys():
            self._require(name, self.real[name] <= _CENTURY[name], "at most 100 years")
        if "truth" in self.real:
            truth = self.real["truth"]
            self._require("truth", (truth >= 0) & (truth <= 1), "a probability from 0 to 1")

    def _seconds(self, first: BoolArray) -> None:
        """Check the sign of the intervals in seconds."""
        if "elapsed_seconds" in self.real:
            seconds = self.real["elapsed_seconds"]
            self._require("elapsed_seconds", ~first | (seconds == FIRST), _FIRST_EXPECTED)
            self._require("elapsed_seconds", first | (seconds >= 0), _LATER_EXPECTED)

    def _require(
        self, name: str, good: BoolArray, expected: str, kind: str = "out_of_range"
    ) -> None:
        """Report the readable values of a column that break a rule."""
        self._report(name, ~good & self.readable[name], expected, kind)

    def _report(self, name: str, bad: BoolArray, expected: str, kind: str) -> None:
        """Add one violation that quotes the first bad rows of a column."""
        shown_name = self.column_names.get(name, name)
        self.violations += violations(
            shown_name, self.given[name], bad, expected, self.row_name, kind
        )
