"""Which users of a source are wanted: lists, ranges such as ``1-100``, or everyone."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import User

Selection = User | Sequence[User] | None

_NAMES_QUOTED = 8
# Longer rows of digits are names: no data set numbers its users so.
_NUMBER = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(rf"({_NUMBER.pattern})\s*-\s*({_NUMBER.pattern})")
_MOST = 1_000_000
_QUOTED = 40  # characters


def wanted_users(users: Selection) -> tuple[User, ...] | None:
    """Spell out a selection of users; None stands for everyone.

    Parameters
    ----------
    users : int, str, sequence of either, or None
        Each part is a user or a range of numbers; text may join parts with commas.

    Raises
    ------
    ConfigError
        If a range runs backwards, or no users or more than a million are selected.

    Examples
    --------
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
                    f"data.users={str(part)[:_QUOTED]}: at most {_MOST:,} users can be named; "
                    "leave it out (null) for all users"
                )
            chosen.update(dict.fromkeys(spelled_out))
    if not chosen:
        raise ConfigError("data.users selects no users; leave it out (null) for all users")
    return tuple(chosen)


def select_users(
    source: str, available: Sequence[User], wanted: Sequence[User] | None
) -> tuple[User, ...]:
    """Pick the wanted users out of those there are, in the order they were asked for.

    Raises
    ------
    ReviewLogError
        Naming everyone who is not there, and who is.
    """
    if wanted is None:
        return tuple(available)
    named = {str(user): user for user in available}
    missing = [user for user in wanted if str(user) not in named]
    if missing:
        near = difflib.get_close_matches(str(missing[0]), named, n=1)
        hint = f"It has {len(available)} user{'s' * (len(available) != 1)}: {listed(available)}."
        if near and isinstance(missing[0], str):
            hint += f" Did you mean {near[0]}?"
        there_is = "there is no user" if len(missing) == 1 else "there are no users"
        raise ReviewLogError(source, [f"{there_is} {listed(missing)}"], hint)
    return tuple(named[str(user)] for user in wanted)


def listed(users: Sequence[User]) -> str:
    """List users for a message, runs of numbers as ranges.

    Examples
    --------
    >>> listed([1, 2, 3, 8, "anna"])
    '1-3, 8, anna'
    """
    parts: list[str] = []
    numbers = sorted(user for user in users if isinstance(user, int))
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            first, last = numbers[start], numbers[end - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = end
    parts += [user for user in users if isinstance(user, str)]
    more = len(parts) - _NAMES_QUOTED
    return ", ".join(parts[:_NAMES_QUOTED]) + (" and more" if more > 0 else "")


def _spelled_out(piece: User) -> Sequence[User]:
    """Users that one part of a selection stands for."""
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
