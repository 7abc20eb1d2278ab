"""Which users of a source are wanted: lists, ranges such as ``1-100``, samples, or everyone."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.nouns import User

Selection = User | Sequence[User] | None

_NAMES_QUOTED = 8
# Longer rows of digits are names: no data set numbers its users so.
_NUMBER = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(rf"({_NUMBER.pattern})\s*-\s*({_NUMBER.pattern})")
_MOST = 1_000_000
_CHARACTERS_QUOTED = 40


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
    parts = [users] if isinstance(users, int | str) else list(users)
    chosen: dict[User, None] = {}
    for part in parts:
        pieces = [part] if isinstance(part, int) else [piece.strip() for piece in part.split(",")]
        for piece in pieces:
            spelled_out = _spelled_out(piece)
            if len(chosen) + len(spelled_out) > _MOST:
                raise ConfigError(
                    f"data.users={str(part)[:_CHARACTERS_QUOTED]}: at most {_MOST:,} users can be "
                    "named; leave it out (null) for all users"
                )
            chosen.update(dict.fromkeys(spelled_out))
    if not chosen:
        raise ConfigError("data.users selects no users; leave it out (null) for all users")
    return tuple(chosen)


def _spelled_out(piece: User) -> Sequence[User]:
    """Return the users that one part of a selection stands for."""
    if isinstance(piece, int):
        return [piece]
    if _NUMBER.fullmatch(piece):
        return [int(piece)]
    match = _RANGE.fullmatch(piece)
    if match is None:
        return [piece] if piece else []
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise ConfigError(f"data.users: the range {piece} runs backwards; write {last}-{first}")
    return range(first, last + 1)


@dataclass(frozen=True)
class KnownUsers:
    """The users of a source, in its order, to be looked up by name."""

    source: str  # named in errors
    users: tuple[User, ...]
    _by_text: dict[str, User] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the users by their names."""
        object.__setattr__(self, "_by_text", {str(user): user for user in self.users})

    def find(self, user: User) -> User:
        """Return a user as the source has it, a number or a text; raise as `select`."""
        return self.select([user])[0]

    def select(self, wanted: Sequence[User]) -> tuple[User, ...]:
        """Return the wanted users, in the order they were asked for.

        Raise `ReviewLogError` with everyone who is not there, and who is.
        """
        missing = [user for user in wanted if str(user) not in self._by_text]
        if missing:
            count = len(self.users)
            hint = f"It has {count} user{'s' * (count != 1)}: {listed(self.users)}."
            if len(missing) == 1 and isinstance(missing[0], int):
                hint += (
                    f" data.users takes names; data.first={missing[0]} takes so many users, and "
                    f"data.sample={missing[0]} a random sample."
                )
            there_is = "there is no user" if len(missing) == 1 else "there are no users"
            unknown = Violation(f"{there_is} {listed(missing)}", "unknown")
            raise ReviewLogError(self.source, [unknown], hint)
        return tuple(self._by_text[str(user)] for user in wanted)


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """Which users of a source are evaluated."""

    wanted: tuple[User, ...] | None  # as `wanted_users` returns it
    # How many of these users at most. Those are taken whose names have the smallest digests: the
    # same ones each time, and for the most part still the same ones when users are added.
    sample: int | None
    first: int | None  # how many of these users at most, in the order of the source

    def __init__(
        self, users: Selection = None, sample: int | None = None, first: int | None = None
    ) -> None:
        for name, count in {"sample": sample, "first": first}.items():
            if count is not None and (type(count) is not int or count < 1):
                raise ConfigError(f"data.{name}={count}: expected a whole number above 0, or null")
        if sample is not None and first is not None:
            raise ConfigError(f"data.sample={sample} and data.first={first}: give one of them")
        object.__setattr__(self, "wanted", wanted_users(users))
        object.__setattr__(self, "sample", sample)
        object.__setattr__(self, "first", first)

    def among(self, known: KnownUsers) -> tuple[User, ...]:
        """Return the chosen users, in the order of the source or of the selection."""
        users = known.users if self.wanted is None else known.select(self.wanted)
        users = users[: self.first]
        if self.sample is None or self.sample >= len(users):
            return users
        chosen = set(heapq.nsmallest(self.sample, users, key=name_digest))
        return tuple(user for user in users if user in chosen)

    def remarks(self, known: KnownUsers) -> tuple[str, ...]:
        """Return a remark on the sample or the first users, if not all are taken."""
        users = len(known.users if self.wanted is None else self.wanted)
        if self.first is not None:
            return (f"the first {min(users, self.first):,} of {users:,} users",)
        if self.sample is None:
            return ()
        sampled = min(users, self.sample)
        return (f"a sample of {sampled:,} of {users:,} users, chosen by a digest of their names",)


def name_digest(user: User) -> str:
    """Return the digest of a user's name: 32 hexadecimal digits of SHA-256.

    >>> name_digest(7), name_digest("7") == name_digest(7)
    ('7902699be42c8a8e46fbbb4501726517', True)
    """
    return hashlib.sha256(str(user).encode()).hexdigest()[:32]


def listed(users: Sequence[User]) -> str:
    """List users for a message, runs of numbers as ranges.

    >>> listed([1, 2, 3, 8, "anna"])
    '1-3, 8, anna'
    """
    numbers = enumerate(sorted(user for user in users if isinstance(user, int)))
    runs = [
        [number for _, number in run] for _, run in groupby(numbers, lambda pair: pair[1] - pair[0])
    ]
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    parts += [user for user in users if isinstance(user, str)]
    more = len(parts) > _NAMES_QUOTED
    return ", ".join(parts[:_NAMES_QUOTED]) + (" and more" if more else "")
