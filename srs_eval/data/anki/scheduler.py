"""Which version of Anki's scheduler the answers of a collection were given under.

Version 1 had three buttons for cards in learning (1 Again, 2 Good, 3 Easy), versions 2 and 3 have
four. Anki renumbers all earlier answers when the version changes, so that its setting ``schedVer``
holds for all of a collection. Packages of decks are fresh collections, with the setting of a fresh
one whatever the person who exported them had.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from srs_eval.data.anki.database import Collection, Revlog
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import BoolArray

VersionOption = Literal["auto", 1, 2]

# Answers given in Anki 1, which had four buttons, were kept as they were until it died out.
_ANKI_1_GONE_MS = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)
_SAY_WHICH = (
    "Say which it was: data.scheduler=1 (answers 2 and 3 to cards in learning are Good and Easy) "
    "or data.scheduler=2 (they are Hard and Good; also for version 3)."
)


def scheduler_version(
    collection: Collection, revlog: Revlog, settings: Mapping[str, Any], option: VersionOption
) -> tuple[int, str]:
    """Decide under which version the answers were given, and say by what; 2 stands for 3 too."""
    if option != "auto":
        return option, f"data.scheduler={option}"
    stated = settings.get("schedVer", 1)
    if type(stated) is not int or stated not in (1, 2):
        what = f"setting schedVer is {str(stated)[:40]!r}; expected 1 or 2"
        raise ReviewLogError(collection.source, [what], _SAY_WHICH)
    answered, answers = _told_by_answers(revlog)
    both = f"schedVer={stated}" + (f"; {answers}" if answers else "")
    if answered == stated or (answered is None and (stated == 2 or not collection.is_of_decks)):
        return stated, both
    # A card can leave learning with Hard if its steps are days.
    if stated == 2 and not collection.is_of_decks:
        return 2, f"schedVer={stated}"
    if answered == 2 and collection.is_of_decks:
        return 2, answers
    if not has_other_meaning(revlog).any():
        return stated, f"schedVer={stated}; no answer depends on it"
    what = "it is not clear which version of Anki's scheduler its answers are of"
    raise ReviewLogError(collection.source, [f"{what} ({both})"], _SAY_WHICH)


def _told_by_answers(revlog: Revlog) -> tuple[int | None, str]:
    """Return the version that answers to cards in learning tell, and how.

    Easy is 4 in version 2 alone. In version 1 it is mostly 2, Good, that ends learning; in version
    2 that is Hard, which mostly repeats a step.
    """
    learning = np.isin(revlog.type, (0, 2))
    easy = np.sum(learning & (revlog.ease == 4) & (revlog.id >= _ANKI_1_GONE_MS))
    if easy:
        return 2, f"{easy:,} answers in learning are 4 (Easy), which version 1 does not have"
    ends = learning & (revlog.ivl > 0)
    twos, threes = (np.sum(ends & (revlog.ease == button)) for button in (2, 3))
    if twos > threes:
        return 1, f"learning is ended by {twos:,} answers 2 and {threes:,} answers 3"
    return None, ""


def has_other_meaning(revlog: Revlog) -> BoolArray:
    """Mark the answers whose meaning depends on the version, by one in the rating."""
    return np.isin(revlog.type, (0, 2)) & np.isin(revlog.ease, (2, 3))
