"""How the rows of a table of reviews are to be read, checked before any file is opened."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, get_args
from zoneinfo import available_timezones

from srs_eval.data.ratings import contradictions
from srs_eval.data.times import TIME_UNITS, TimeUnit
from srs_eval.errors import ConfigError
from srs_eval.nouns import GROUPS

Duplicates = Literal["error", "drop"]
InvalidTimes = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table of reviews are called; None for what it does not have.

    Attributes
    ----------
    card : str
        Card of each review: numbers or text.
    rating : str, optional
        1 Again, 2 Hard, 3 Good, 4 Easy, or words for them.
    recalled : str, optional
        True and false, or 1 and 0, or words for them: read instead of `rating`, as Good and Again.
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
    p : str or sequence of str, optional
        Probabilities of recall that were stored before the answers, from 0 to 1, empty where there
        is none: one column for each program that predicted (`algo=recorded`).
    recorded_at : str, optional
        When the predictions of a row were stored: later than the answer is an error. Only with
        `time`.
    note_type, template : str, optional
        Note type of the card and its card template, likewise. Templates of different note types
        need different names.
    note : str, optional
        Note of the card, likewise: its other cards are siblings.

    Raises
    ------
    ConfigError
        If a column that every log needs is None, or columns are given that do not go together.
    """

    card: str = "card"
    rating: str | None = "rating"
    recalled: str | None = None
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
        recorded = (self.p,) if isinstance(self.p, str) else tuple(self.p or ())
        object.__setattr__(self, "p", recorded)
        lacking = [
            " or ".join(f"data.columns.{noun}" for noun in nouns)
            for nouns in (("card",), ("rating", "recalled"), ("time", "day"))
            if not any(getattr(self, noun) for noun in nouns)
        ]
        if lacking:
            raise ConfigError(f"a table of reviews needs {', and '.join(lacking)}")
        if self.day is None and (self.elapsed_days or self.elapsed_seconds):
            raise ConfigError(
                "data.columns.elapsed_days and elapsed_seconds go with data.columns.day; "
                "where there are times, intervals are derived from them"
            )
        if len({*recorded}) < len(recorded):
            raise ConfigError(f"data.columns.p names a column twice: {', '.join(recorded)}")
        if self.recorded_at and (self.day or not recorded):
            raise ConfigError(
                "data.columns.recorded_at goes with data.columns.p and data.columns.time: it is "
                "compared with the times of the answers"
            )

    def in_use(self) -> dict[str, str]:
        """Name of each column that is read from the rows."""
        names = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        replaced = {"rating" if self.recalled else "", "time" if self.day else "", "user"}
        used = {
            noun: name
            for noun, name in names.items()
            if name is not None and noun not in replaced and noun != "p"
        }
        return used | {f"p {name}": name for name in self.p or ()}

    def named_things(self) -> tuple[str, ...]:
        """Columns of names, which are text in a CSV: 007 and 7 are different cards and decks."""
        used = self.in_use()
        return tuple(used[noun] for noun in ("card", *GROUPS) if noun in used)

    @classmethod
    def of(cls, names: Columns | Mapping[str, Any] | None) -> Columns:
        """Build from a mapping; raise `ConfigError` at a name that is not one of these."""
        if isinstance(names, Columns):
            return names
        known = [entry.name for entry in fields(cls)]
        unknown = [name for name in names or {} if name not in known]
        if unknown:
            listed = f"{', '.join(unknown)}; there are {', '.join(known)}"
            raise ConfigError(f"data.columns has no {listed}")
        return cls(**(names or {}))


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read the rows of a table; see `srs_eval.data.table.ReviewTable`."""

    time_unit: TimeUnit = "auto"
    time_zone: str = "UTC"
    day_start_hour: float = 4
    duplicates: Duplicates = "error"
    ratings: Mapping[Any, int] | None = field(default=None, hash=False)
    invalid_times: InvalidTimes = "error"

    def __post_init__(self) -> None:
        """Check every option."""
        wrong = []
        if self.ratings is not None:
            object.__setattr__(self, "ratings", _by_value(self.ratings))
        if self.time_unit not in TIME_UNITS:
            wrong.append(f"data.time_unit={self.time_unit}; expected {', '.join(TIME_UNITS)}")
        if self.duplicates not in get_args(Duplicates):
            wrong.append(f"data.duplicates={self.duplicates}; expected error or drop")
        if self.invalid_times not in get_args(InvalidTimes):
            wrong.append(f"data.invalid_times={self.invalid_times}; expected error or drop")
        if not 0 <= self.day_start_hour < 24:
            wrong.append(f"data.day_start_hour={self.day_start_hour}; expected 0 to below 24")
        for word, rating in (self.ratings or {}).items():
            if rating not in (1, 2, 3, 4) or isinstance(rating, bool):
                wrong.append(f"data.ratings={{{word}: {rating}}}; expected 1 (Again) to 4 (Easy)")
        for words in contradictions(self.ratings or {}):
            wrong.append(f"data.ratings={{{words}}}: capital letters do not count")
        zones = _zones()
        if self.time_zone not in zones:
            near = difflib.get_close_matches(self.time_zone, sorted(zones), n=1)
            guess = f"; did you mean {near[0]}?" if near else ", such as Europe/Vienna"
            wrong.append(f"data.time_zone={self.time_zone} is no time zone{guess}")
        if wrong:
            raise ConfigError("\n".join(wrong))

    def remarks(self, columns: Columns) -> tuple[str, ...]:
        """Return a remark on where days begin, if that follows from times."""
        if columns.day is not None:
            return ()
        minutes = round(60 * self.day_start_hour)
        return (
            f"days begin at {minutes // 60:02}:{minutes % 60:02} in the time zone "
            f"{self.time_zone} (data.day_start_hour, data.time_zone); times with another offset "
            "are converted to it",
        )


def _by_value(ratings: Any) -> dict[Any, int]:
    """Return the rating of each value, which option files and commands may also list in pairs."""
    try:
        return dict(ratings)
    except (TypeError, ValueError):
        raise ConfigError(f"data.ratings={ratings}; expected {{VALUE: RATING, …}}") from None


# The system's files are searched for them.
_zones = lru_cache(available_timezones)
