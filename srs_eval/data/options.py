"""Options of readers of tables: names of columns, users, times, days, and odd rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints
from zoneinfo import available_timezones

from annotated_types import Ge, Le, Lt
from pydantic import AfterValidator, Strict, TypeAdapter, ValidationError

from srs_eval.data.cells import folded
from srs_eval.data.reviews import GROUPS
from srs_eval.errors import ConfigError

TimeUnit = Literal["auto", "iso", "s", "ms", "us"]
OddRows = Literal["error", "drop"]
Rating = Annotated[int, Strict(), Ge(1), Le(4)]


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table of reviews are called; None for what it does not have.

    Attributes
    ----------
    card : str
        Card of each review: numbers or text.
    rating : str
        1 Again, 2 Hard, 3 Good, 4 Easy, or words for them; true and false, pass and fail.
    time : str, optional
        When each review was.
    day : str, optional
        Day number of each review: read instead of `time`.
    elapsed_days, elapsed_seconds : str, optional
        Interval to the card's previous review, -1 or empty at its first; only with `day`.
    user : str, optional
        Whose review it is.
    duration_ms : str, optional
        Milliseconds spent answering.
    state : str, optional
        0 new, 1 learning, 2 review, 3 relearning, 4 filtered.
    deck, preset : str, optional
        Deck of the card and preset of the deck: numbers or text, empty where not known.
    note_type, template : str, optional
        Note type of the card and its card template, likewise. Templates of different note types
        need different names.
    note : str, optional
        Note of the card, likewise: its other cards are siblings.
    p : str or sequence of str, optional
        Probabilities of recall that were stored before the answers, from 0 to 1, empty where there
        is none: one column for each program that predicted (`algo=recorded`).
    recorded_at : str, optional
        When the predictions of a row were stored: later than the answer is an error. Only with
        `time`.

    Raises
    ------
    ConfigError
        If a column that every log needs is None, or columns are given that do not go together.
    """

    card: str = "card"
    rating: str = "rating"
    time: str | None = "time"
    day: str | None = None
    elapsed_days: str | None = None
    elapsed_seconds: str | None = None
    user: str | None = None
    duration_ms: str | None = None
    state: str | None = None
    deck: str | None = None
    preset: str | None = None
    note_type: str | None = None
    template: str | None = None
    note: str | None = None
    p: str | Sequence[str] | None = None
    recorded_at: str | None = None

    def __post_init__(self) -> None:
        """Check that there are the columns a log needs, and that they go together."""
        object.__setattr__(self, "p", (self.p,) if isinstance(self.p, str) else (*(self.p or ()),))
        wrong = []
        if not (self.card and self.rating and (self.time or self.day)):
            needed = (
                "data.columns.card, data.columns.rating, and data.columns.time or data.columns.day"
            )
            wrong = [f"a table of reviews needs {needed}"]
        if self.day is None and (self.elapsed_days or self.elapsed_seconds):
            wrong.append(
                "data.columns.elapsed_days and elapsed_seconds go with data.columns.day; "
                "where there are times, intervals are derived from them"
            )
        if self.recorded_at and (self.day or not self.p):
            wrong.append("data.columns.recorded_at goes with data.columns.p and data.columns.time")
        twice = sorted({name for name in self.every if self.every.count(name) > 1})
        wrong += [f"data.columns: {name!r} is the name of two columns" for name in twice]
        if wrong:
            raise ConfigError("\n".join(wrong))

    @property
    def used(self) -> dict[str, str]:
        """Name of each column that is read from the rows; predictions are ``p 0``, ``p 1``."""
        names = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        replaced = {"time" if self.day else "", "user", "p"}
        names = {noun: name for noun, name in names.items() if name and noun not in replaced}
        return names | {f"p {number}": name for number, name in enumerate(self.p or ())}

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns of names, which are text in a CSV: 007 and 7 are different cards and decks."""
        names = (getattr(self, noun) for noun in ("card", *GROUPS, "user"))
        return tuple(name for name in names if name)

    @property
    def every(self) -> list[str]:
        """All columns that are read."""
        return [*self.used.values(), *([self.user] if self.user else [])]

    @classmethod
    def of(cls, names: Columns | Mapping[str, Any] | None) -> Columns:
        """Build from a mapping; raise `ConfigError` at a name that is not one of these."""
        if isinstance(names, Columns):
            return names
        unknown = [name for name in names or {} if name not in cls.__slots__]
        if unknown:
            listed = f"{', '.join(unknown)}; there are {', '.join(cls.__slots__)}"
            raise ConfigError(f"data.columns has no {listed}")
        return cls(**(names or {}))


def _distinct(ratings: Mapping[Any, int] | None) -> Mapping[Any, int] | None:
    """Check that a word has one rating, however it is written."""
    alike: dict[str, set[int]] = {}
    for word, rating in (ratings or {}).items():
        alike.setdefault(folded(str(word)), set()).add(rating)
    twice = [word for word, each in alike.items() if len(each) > 1]
    if twice:
        raise ValueError(f"two ratings of {', '.join(twice)}: capital letters do not count")
    return ratings


def _known(zone: str) -> str:
    """Check that there is a time zone of this name."""
    if zone not in _zones():
        raise ValueError("expected one such as Europe/Vienna")
    return zone


Ratings = Annotated[Mapping[Any, Rating] | None, AfterValidator(_distinct)]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How the rows of a table are read; see `srs_eval.data.table.ReviewTable`."""

    time_unit: TimeUnit = "auto"
    time_zone: Annotated[str, AfterValidator(_known)] = "UTC"
    day_start_hour: Annotated[float, Ge(0), Lt(24)] = 4
    ratings: Ratings = field(default=None, hash=False)
    missing: OddRows = "error"
    duplicates: OddRows = "error"
    invalid_times: OddRows = "error"

    def __post_init__(self) -> None:
        """Check every option."""
        check_options(self)

    @property
    def remark(self) -> str:
        """Where days begin."""
        minutes = round(60 * self.day_start_hour)
        return (
            f"days begin at {minutes // 60:02}:{minutes % 60:02} in the time zone "
            f"{self.time_zone} (data.day_start_hour, data.time_zone); times with another offset "
            "are converted to it"
        )


def check_options(options: Any, **shown: str) -> None:
    """Give options of a dataclass their types; raise `ConfigError` with all that are impossible.

    In errors an option is called as its field, or as it is `shown`.
    """
    wrong = []
    for name, adapter in _adapters(options.__class__).items():
        value = getattr(options, name)
        try:
            object.__setattr__(options, name, adapter.validate_python(value))
        except ValidationError as error:
            said = "; ".join(
                each["msg"].removeprefix("Value error, ") for each in error.errors()[:3]
            )
            wrong.append(f"data.{shown.get(name, name)}={value}: {said}")
    if wrong:
        raise ConfigError("\n".join(wrong))


@cache
def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    """Return what checks each option."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}


# The system's files are searched for them.
_zones = cache(available_timezones)
