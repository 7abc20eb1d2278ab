"""Which version of Anki's scheduler the answers of a collection were given under.

Version 1 had three buttons for cards in learning (1 Again, 2 Good, 3 Easy), versions 2 and 3 have
four. Anki renumbers all earlier answers when the version changes, so a collection has one
numbering. Its setting ``schedVer`` says which; but packages of decks are fresh collections that
have the setting of a fresh collection, not that of the person who exported them. So this module
weighs all the evidence in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from srs_eval.data.anki.database import Collection, Revlog
from srs_eval.errors import ReviewLogError

Version = Literal[1, 2]
VersionOption = Literal["auto", 1, 2]

_VERSIONS: Mapping[int, Version] = {1: 1, 2: 2}
_LEARNING_TYPES = (0, 2)
# Answers given in Anki 1, which had four buttons, were kept as they were until it died out.
_ANKI_1_GONE_MS = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)
_SAY_WHICH = "Say which it was: data.scheduler=1 or data.scheduler=2."
_RELEARNING_OF_2 = "type = 3 or queue in (-3, 4)"
_RELEARNING_OF_1 = "type = 2 and queue in (1, 3)"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The version that answers are read as."""

    version: Version  # {1, 2}: 2 stands for version 3 too, which has the same buttons
    reason: str  # What it was decided by

    def __str__(self) -> str:
        """Write it the way it is printed."""
        return (
            f"ratings read as those of version {self.version} of Anki's scheduler ({self.reason})"
        )

    def renumber(self, revlog: Revlog) -> Revlog:
        """Return answers on the scale of four buttons, as Anki converts them on upgrade."""
        if self.version == 2:
            return revlog
        return replace(revlog, ease=revlog.ease + _has_other_meaning(revlog))


def decide_scheduler(
    collection: Collection, revlog: Revlog, settings: Mapping[str, Any], option: VersionOption
) -> Scheduler:
    """Decide under which version the answers were given, unless the `option` says so."""
    if option != "auto":
        return Scheduler(option, f"data.scheduler={option}")
    setting = settings.get("schedVer", 1)
    stated = _VERSIONS.get(setting) if type(setting) is int else None
    if stated is None:
        what = f"setting schedVer is {str(setting)[:40]!r}; expected 1 or 2"
        raise ReviewLogError(collection.source, [what], _SAY_WHICH)
    packed, packing, fresh = _packing(collection)
    rows = _answers(revlog)
    if cards := collection.count_cards(_RELEARNING_OF_2):
        rows[2].append(f"{cards:,} cards in a state that version 1 does not have")
    if cards := collection.count_cards(_RELEARNING_OF_1):
        rows[1].append(f"{cards:,} cards in relearning in the way of version 1")
    if settings.get("sched2021") is True and not fresh:
        rows[2].append("version 3 is switched on")
    chosen = _decided(stated, packed, fresh=fresh, rows=rows)
    if chosen is None and not _has_other_meaning(revlog).any():
        return Scheduler(stated, f"schedVer={stated}; no answer depends on it")
    if packed is not None:
        rows[packed].insert(0, packing)
    rows[stated].insert(0, f"schedVer={stated}")
    if chosen is None:
        sides = [f"for version {version}: {'; '.join(rows[version])}" for version in (1, 2)]
        what = "the file contradicts itself about the version of Anki's scheduler"
        hint = (
            "Answers 2 and 3 to cards in learning are Good and Easy in version 1, Hard and Good "
            f"from version 2 on. {_SAY_WHICH}"
        )
        raise ReviewLogError(collection.source, [f"{what} ({', but '.join(sides)})"], hint)
    return Scheduler(chosen, "; ".join(rows[chosen]))


def _decided(
    stated: Version, packed: Version | None, *, fresh: bool, rows: Mapping[Version, list[str]]
) -> Version | None:
    """Return the version that everything fits; None if there is a contradiction.

    `stated` is the setting ``schedVer``, which may be that of a `fresh` collection; `packed` is
    what the packing says, as the first exporter wrote ``collection.anki21`` for version 2 only;
    `rows` are what answers and cards say for either version. What version 1 cannot have produced
    weighs more than what is merely unusual in version 3, where a card can leave learning with Hard
    if its steps are days.
    """
    impossible_in_1, unlike_2 = bool(rows[2]), bool(rows[1])
    if packed == stated == 2:
        return 2
    if packed is None and stated == 2:
        return None if fresh and unlike_2 and not impossible_in_1 else 2
    if packed == 2:  # but the setting is 1: that of a fresh collection, or of its owner
        if impossible_in_1:
            return 2
        if unlike_2:
            return None if fresh else 1
        return 2 if fresh else None
    if stated == 1:
        return None if impossible_in_1 else 1
    # Packed as version 1, but the setting is 2.
    if impossible_in_1 == unlike_2:
        return None
    return 2 if impossible_in_1 else 1


def _packing(collection: Collection) -> tuple[Version | None, str, bool]:
    """Return the evidence in the format of a package.

    That is the version; how it is packed; whether the settings may be those of a fresh collection.
    """
    suffix = PurePath(collection.source).suffix.lower()
    if collection.member is None:
        # Taken out of a package: of a deck by an old Anki, or of a collection by a newer one.
        if suffix == ".anki21":
            return 2, "named .anki21", False
        return None, "", False
    is_of_decks = suffix != ".colpkg"
    if collection.has_meta:
        return None, "", is_of_decks
    version: Version = 1 if collection.member == "collection.anki2" else 2
    marked = f"packed as {collection.member}, as older versions of Anki did for version {version}"
    return version, marked, is_of_decks


def _answers(revlog: Revlog) -> dict[Version, list[str]]:
    """Look for answers to cards in learning that one of the versions does not have.

    In version 1 Easy is 3 and always ends learning, and there is no 4. In version 2 Hard is 2 and
    repeats a step, so that it is Good, 3, that ends learning.
    """
    learning = np.isin(revlog.type, _LEARNING_TYPES)
    four = int(np.sum(learning & (revlog.ease == 4) & (revlog.id >= _ANKI_1_GONE_MS)))
    three, two = learning & (revlog.ease == 3), learning & (revlog.ease == 2)
    stays = int(np.sum(three & (revlog.ivl < 0)))
    ends = {ease: int(np.sum(rows & (revlog.ivl > 0))) for ease, rows in ((2, two), (3, three))}
    of_2, of_1 = [], []
    if four:
        of_2.append(f"{four:,} answers in learning are 4 (Easy), which version 1 does not have")
    if stays:
        of_2.append(f"{stays:,} answers 3 do not end learning, as Easy of version 1 does")
    if not of_2 and ends[2] > ends[3]:
        of_1.append(f"learning is ended by {ends[2]:,} answers 2 and {ends[3]:,} answers 3")
    return {1: of_1, 2: of_2}


def _has_other_meaning(revlog: Revlog) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Mark the answers whose meaning depends on the version."""
    return np.isin(revlog.type, _LEARNING_TYPES) & np.isin(revlog.ease, (2, 3))
