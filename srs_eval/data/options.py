"""Options of readers of tables: names of columns, which users, times, days, and odd rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, Literal, get_type_hints
from zoneinfo import available_timezones

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BeforeValidator, Strict, TypeAdapter, ValidationError

from srs_eval.data.cells import folded, listed
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, ReviewLogError, Violation

TimeUnit = Literal["auto", "iso", "s", "ms", "us"]
OddRows = Literal["error", "drop"]
Rating = Annotated[int, Strict(), Ge(1), Le(4)]
Selection = User | Sequence[User] | None
_Count = Annotated[int, Strict(), Gt(0)] | None

# Longer rows of digits are names: no data set numbers its users so.
_RANGE = re.compile(r"([0-9]{1,18})(?:\s*-\s*([0-9]{1,18}))?")
_MOST = 1_000_000


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
    note_type, note : str, optional
        Note type and note of the card, likewise: other cards of a note are siblings.
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
    note: str | None = None
    p: str | Sequence[str] | None = None
    recorded_at: str | None = None

    def __post_init__(self) -> None:
        """Check that there are the columns a log needs, and that they go together."""
        object.__setattr__(self, "p", (self.p,) if isinstance(self.p, str) else (*(self.p or ()),))
        wrong = []
        if not (self.card and self.rating and (self.time or self.day)):
            time = "data.columns.time or data.columns.day"
            wrong.append(f"a table needs data.columns.card, data.columns.rating, and {time}")
        if self.day is None and (self.elapsed_days or self.elapsed_seconds):
            wrong.append("data.columns.elapsed_days and elapsed_seconds go with data.columns.day")
        if self.recorded_at and (self.day or not self.p):
            wrong.append("data.columns.recorded_at goes with data.columns.p and data.columns.time")
        names = [*self.every.values()]
        twice = sorted({name for name in names if names.count(name) > 1})
        wrong += [f"data.columns: {name!r} is the name of two columns" for name in twice]
        if wrong:
            raise ConfigError("\n".join(wrong))

    @property
    def used(self) -> dict[str, str]:
        """Name of each column that is read from the rows; predictions are ``p 0``, ``p 1``."""
        replaced = {"time" if self.day else "", "user", "p"}
        names = {noun: getattr(self, noun) for noun in self.__slots__ if noun not in replaced}
        names |= {f"p {number}": name for number, name in enumerate(self.p or ())}
        return {noun: name for noun, name in names.items() if name}

    @property
    def every(self) -> dict[str, str]:
        """Name of each column that is read, that of users among them."""
        return self.used | ({"user": self.user} if self.user else {})


def _by_word(ratings: Mapping[Any, int] | None) -> Mapping[str, int] | None:
    """Write words as they are compared; they must still differ."""
    by_word = {folded(word): rating for word, rating in (ratings or {}).items()}
    if len(by_word) < len(ratings or {}):
        raise ValueError("two words are alike: capital letters do not count")
    return by_word or None


def _known(zone: str) -> str:
    """Check that there is a time zone of this name."""
    if zone not in _zones():
        raise ValueError("expected one such as Europe/Vienna")
    return zone


_zones = cache(available_timezones)  # the system's files are searched for them


def wanted_users(users: Selection) -> tuple[User, ...] | None:
    """Spell out a selection of users; None stands for everyone.

    Each part is a user or a range of numbers; text may join parts with commas. Raise `ConfigError`
    if a range runs backwards, or no users or more than a million are selected.

    >>> wanted_users("1-3,8")
    (1, 2, 3, 8)
    >>> wanted_users([36, "anna"])
    (36, 'anna')
    """
    if users is None:
        return None
    parts = [users] if isinstance(users, int | str) else users
    names: dict[User, None] = {}
    for name in (piece.strip() for part in parts for piece in str(part).split(",")):
        match = _RANGE.fullmatch(name)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if last < first:
            raise ConfigError(f"data.users: the range {name} runs backwards")
        if len(names) + last - first >= _MOST:
            raise ConfigError(f"data.users: at most {_MOST:,} users can be named")
        names |= dict.fromkeys(range(first, last + 1) if match else [name] * bool(name))
    if not names:
        raise ConfigError("data.users selects no users; null stands for all of them")
    return tuple(names)


def select(names: Sequence[User], known: Mapping[str, User], source: str) -> tuple[User, ...]:
    """Return users as a source has them, numbers or texts, by their names.

    Raise `ReviewLogError` with everyone who is not there, and who is.
    """
    missing = [name for name in names if str(name) not in known]
    if missing:
        users = f"{len(known):,} users: {listed([*known.values()])}"
        hint = f"There are {users}. data.users takes names, data.first=N the first N of them."
        what = Violation(f"there is no user {listed(missing)}", "unknown")
        raise ReviewLogError(source, [what], hint)
    return tuple(known[str(name)] for name in names)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Which users of a table are read, and how; see `srs_eval.data.table.ReviewTable`.

    A sample has the users whose names have the smallest digests: the same ones each time, and for
    the most part still the same ones when users are added.
    """

    users: Annotated[Any, BeforeValidator(wanted_users)] = None  # Everyone if None
    sample: _Count = None  # How many of these users at most
    first: _Count = None  # How many at most, in the order of the source
    time_unit: TimeUnit = "auto"
    time_zone: Annotated[str, AfterValidator(_known)] = "UTC"
    day_start_hour: Annotated[float, Ge(0), Lt(24)] = 4
    ratings: Annotated[Mapping[Any, Rating] | None, AfterValidator(_by_word)] = None
    missing: OddRows = "error"
    duplicates: OddRows = "error"
    invalid_times: OddRows = "error"

    def __post_init__(self) -> None:
        """Check every option."""
        check_options(self)
        if self.sample is not None and self.first is not None:
            one = f"data.sample={self.sample} and data.first={self.first}: give one of them"
            raise ConfigError(one)

    def among(self, known: Mapping[str, User], source: str) -> tuple[User, ...]:
        """Return the chosen users, in the order of the source or of the selection."""
        users = select([*known] if self.users is None else self.users, known, source)[: self.first]
        if self.sample is None:
            return users
        by_digest = sorted(users, key=lambda user: sha256(str(user).encode()).digest())
        sample = {*by_digest[: self.sample]}
        return tuple(user for user in users if user in sample)


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
            said = [each["msg"].removeprefix("Value error, ") for each in error.errors()[:3]]
            wrong.append(f"data.{shown.get(name, name)}={value}: {'; '.join(said)}")
    if wrong:
        raise ConfigError("\n".join(wrong))


@cache
def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    """Return what checks each option."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}
