"""Select the cards of some decks or presets by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from srs_eval.data.anki.rules import Selection
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import BoolArray

ELSEWHERE = "card of another deck or preset"
_SUBDECK = "::"
_NAMED_AT_MOST = 20


def patterns_of(wanted: object) -> tuple[str, ...]:
    """Return the patterns of an option that takes one name or several; none for None.

    Raise `TypeError` if it is anything else.
    """
    found: list[object] = [] if wanted is None else [wanted]
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        found = list(wanted)
    # A name such as 2024 is read as a number.
    if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in found):
        raise TypeError(f"{wanted!r} is no name or list of names")
    return tuple(map(str, found))


def matching(
    source: str, option: str, patterns: Sequence[str], names: Mapping[int, str]
) -> set[int]:
    """Return the numbers of the groups whose names match one of the patterns.

    As in Anki's search, upper and lower case are the same, ``*`` and ``?`` stand for any letters
    and any letter, and a deck includes its subdecks. Raise `ReviewLogError` with the names that
    exist if a pattern matches none of them.
    """
    found: set[int] = set()
    unmatched = []
    for pattern in patterns:
        matched = {number for number, name in names.items() if _matches(name, pattern)}
        found |= matched
        if not matched:
            unmatched.append(f"{option}={pattern}: no such name in the collection")
    if unmatched:
        known = sorted(names.values(), key=str.casefold)
        more = len(known) - _NAMED_AT_MOST
        listed = ", ".join(known[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
        raise ReviewLogError(source, unmatched, f"There are: {listed or 'no names'}.")
    return found


def _matches(name: str, pattern: str) -> bool:
    name, pattern = name.casefold(), pattern.casefold()
    parts = name.split(_SUBDECK)
    upper = [_SUBDECK.join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    # Brackets are letters of names, as in Anki.
    glob = pattern.replace("[", "[[]")
    return any(deck == pattern or fnmatchcase(deck, glob) for deck in upper)


def of_cards(selection: Selection, cards: BoolArray) -> Selection:
    """Keep the rows whose cards are marked, bool [len(selection.rows)], and count the others."""
    dropped = int(np.count_nonzero(~cards))
    left_out = dict(selection.left_out) | ({ELSEWHERE: dropped} if dropped else {})
    return replace(
        selection, rows=selection.rows[cards], state=selection.state[cards], left_out=left_out
    )
