"""Which users of a source are read: lists, ranges such as ``1-100``, samples, or everyone."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Gt
from pydantic import BeforeValidator, Strict

from srs_eval.data.cells import listed
from srs_eval.data.options import check_options
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, ReviewLogError, Violation

Selection = User | Sequence[User] | None
_Count = Annotated[int, Strict(), Gt(0)] | None

# Longer rows of digits are names: no data set numbers its users so.
_RANGE = re.compile(r"([0-9]{1,18})(?:\s*-\s*([0-9]{1,18}))?")
_MOST = 1_000_000
_ALL = "leave it out (null) for all users"


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
    names: dict[User, None] = {}
    for part in [users] if isinstance(users, int | str) else users:
        for piece in [part] if isinstance(part, int) else part.split(","):
            of_piece = _spelled_out(piece)
            if len(names) + len(of_piece) > _MOST:
                raise ConfigError(f"data.users: at most {_MOST:,} users can be named; {_ALL}")
            names.update(dict.fromkeys(of_piece))
    if not names:
        raise ConfigError(f"data.users selects no users; {_ALL}")
    return tuple(names)


def _spelled_out(piece: User) -> Sequence[User]:
    """Return the users that one part of a selection stands for."""
    name = str(piece).strip()
    match = _RANGE.fullmatch(name)
    if isinstance(piece, int) or match is None:
        return [piece] if isinstance(piece, int) else [name] * bool(name)
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ConfigError(f"data.users: the range {name} runs backwards; write {last}-{first}")
    return range(first, last + 1)


def select(names: Sequence[User], known: Mapping[str, User], source: str) -> tuple[User, ...]:
    """Return users as a source has them, numbers or texts, by their names.

    Raise `ReviewLogError` with everyone who is not there, and who is.
    """
    missing = [name for name in names if str(name) not in known]
    if missing:
        users = "1 user" if len(known) == 1 else f"{len(known):,} users"
        hint = f"It has {users}: {listed([*known.values()])}."
        if len(missing) == 1 and isinstance(missing[0], int):
            hint += (
                f" data.users takes names; data.first={missing[0]} takes so many users, and "
                f"data.sample={missing[0]} a random sample."
            )
        there_is = "there is no user" if len(missing) == 1 else "there are no users"
        raise ReviewLogError(source, [Violation(f"{there_is} {listed(missing)}", "unknown")], hint)
    return tuple(known[str(name)] for name in names)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which users of a source are evaluated.

    A sample has the users whose names have the smallest digests: the same ones each time, and for
    the most part still the same ones when users are added.
    """

    users: Annotated[Any, BeforeValidator(wanted_users)] = None  # Everyone if None
    sample: _Count = None  # How many of these users at most
    first: _Count = None  # How many at most, in the order of the source

    def __post_init__(self) -> None:
        """Check that numbers are numbers, and spell out the users."""
        check_options(self)
        if self.sample is not None and self.first is not None:
            one = f"data.sample={self.sample} and data.first={self.first}: give one of them"
            raise ConfigError(one)

    def among(self, known: Mapping[str, User], source: str) -> tuple[User, ...]:
        """Return the chosen users, in the order of the source or of the selection."""
        users = select([*known] if self.users is None else self.users, known, source)[: self.first]
        if self.sample is None or self.sample >= len(users):
            return users
        sample = set(heapq.nsmallest(self.sample, users, key=_digest))
        return tuple(user for user in users if user in sample)

    def remarks(self, known: Sized) -> tuple[str, ...]:
        """Return a remark on the sample or the first users, if not all are taken."""
        count = len(known if self.users is None else self.users)
        if self.first is not None:
            return (f"the first {min(count, self.first):,} of {count:,} users",)
        if self.sample is None:
            return ()
        size = min(count, self.sample)
        return (f"a sample of {size:,} of {count:,} users, chosen by a digest of their names",)


def _digest(user: User) -> bytes:
    return hashlib.sha256(str(user).encode()).digest()[:16]
