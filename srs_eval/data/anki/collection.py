"""Review logs of Anki collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic import Strict

from srs_eval.data.anki.database import DAY_SECONDS, Collection, open_collection
from srs_eval.data.anki.groups import groups_of
from srs_eval.data.cards import rows_by_card, since_previous
from srs_eval.data.cells import listed
from srs_eval.data.files import existing
from srs_eval.data.options import check_options, select
from srs_eval.data.reviews import COLUMNS, BoolArray, IntArray, Reviews, User
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ReviewLogError, Violation

VersionOption = Literal["auto"] | Annotated[int, Strict(), Ge(1), Le(2)]
LEARNING, FILTERED, MANUAL, RESCHEDULED = 0, 3, 4, 5
ELSEWHERE = "card of another deck or preset"
# Answers given in Anki 1, which had four buttons, were kept as they were until it died out.
_ANKI_1_GONE_MS = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class CollectionLog:
    """A log, with the table that it comes from."""

    reviews: Reviews
    revlog: Any  # The valid rows of `Collection.revlog`, answers renumbered
    rows: IntArray  # [len(reviews)]: Row of the table that each review is
    start: int  # Second of the UTC day at which days begin


@dataclass(frozen=True, slots=True)
class AnkiCollection:
    """The review log of one Anki collection or package: one file, one user.

    The file is copied, never opened in place, so Anki may be running and nothing is changed.
    Which rows of the review table are reviews is decided as in the public data set
    ``anki-revlogs-10k``; each other row, also one with impossible values, is counted in
    ``Reviews.left_out`` by its reason.
    Reviews of deleted cards count, because the review table keeps them; their decks and note types
    are not known.

    Days have 86,400 seconds and begin at one time of the UTC day for the whole log, as in the data
    set. When they begin, which version of the scheduler was assumed, and why, is in
    `Reviews.notes`.

    Parameters
    ----------
    path : str or Path
        A ``.colpkg``, ``.apkg``, ``.anki2`` or ``.anki21`` file.
    user : int or str, optional
        What to call the user; the file name without its ending if None.
    rollover_hour : int, optional
        Hour of the local day, 0 to 23, at which days begin; what the collection says if None.
    utc_offset_minutes : int, optional
        Local time minus UTC in minutes, such as 120 for UTC+2; what the collection says if
        None.
    scheduler : {"auto", 1, 2}
        Version of Anki's scheduler under which the answers were given (2 also for version 3):
        in version 1, answers 2 and 3 to cards in learning are Good and Easy. With "auto", all that
        the file says decides, and it is an error if it contradicts itself.
    decks, presets : str or sequence of str, optional
        Names of decks or presets, with ``*`` and ``?``: reviews of other cards are left out and
        counted. A deck includes its subdecks. All of them if None.
    """

    path: str | Path
    user: User | None = None
    rollover_hour: Annotated[int, Ge(0), Le(23)] | None = None
    utc_offset_minutes: Annotated[int, Ge(-840), Le(840)] | None = None
    scheduler: VersionOption = "auto"
    decks: User | Sequence[User] | None = None
    presets: User | Sequence[User] | None = None

    def __post_init__(self) -> None:
        """Check the options, all at once."""
        check_options(self)

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.path).name

    @property
    def location(self) -> str:
        """Path of the file, with ``~`` replaced."""
        return str(Path(self.path).expanduser())

    def users(self) -> Sequence[User]:
        """Return the name of the one user of the file, which must be there."""
        existing(self.location)
        return (Path(self.path).stem if self.user is None else self.user,)

    def read(self, user: User) -> Reviews:
        """Read the log; every row of the review table is kept or counted in `left_out`."""
        return self.read_with_table(user).reviews

    def read_with_table(self, user: User) -> CollectionLog:
        """Read the log, and the table that it comes from."""
        (user,) = select([user], {str(name): name for name in self.users()}, self.location)
        with open_collection(Path(self.location)) as collection:
            revlog, invalid = collection.revlog()
            version, told_by = scheduler_version(collection, revlog, self.scheduler)
            if version == 1:  # renumbered as Anki does when the version changes
                revlog.ease += has_other_meaning(revlog)
            hour, offset = self.rollover_hour, self.utc_offset_minutes
            start, begin = day_start(collection, version, hour, offset)
            groups, titles = groups_of(collection, revlog.cid)
        chosen = np.ones(len(revlog), np.bool_)
        for group, names in (("deck", self.decks), ("preset", self.presets)):
            if patterns := [names] if isinstance(names, str | int) else names:
                matched = matching(self.location, f"data.{group}s", patterns, titles[group])
                chosen &= np.isin(groups.get(group, -1), matched)
        rows, state, left_out = select_reviews(revlog, chosen)
        left_out |= invalid
        if not len(rows):
            why = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items()) or "there are none"
            what = f"none of its rows is a review that can be used: {why}"
            hint = "Learn cards in Anki; export with 'Include scheduling information' ticked."
            raise ReviewLogError(self.location, [Violation(what, "empty")], hint)
        notes = [
            f"ratings read as those of version {version} of Anki's scheduler ({told_by})",
            f"days begin at {start // 3600:02}:{start // 60 % 60:02} UTC ({begin})",
        ]
        answers = revlog[rows]
        # People have answer times below 0 ms. They say nothing of the review, which stays.
        is_known = (answers.time >= 0) & (answers.time <= COLUMNS["duration_ms"].high)
        if not is_known.all():
            unknown = f"{np.sum(~is_known):,} of {len(answers):,} answers"
            notes.append(f"how long {unknown} took is not known: below 0 ms, or above 100 years")
        day = (answers.id - start * 1000) // (DAY_SECONDS * 1000)
        milliseconds = since_previous(answers.id, answers.cid)
        columns: dict[str, Any] = {name: column[rows] for name, column in groups.items()}
        reviews = reviews_from_columns(
            user=user,
            source=self.location,
            left_out=left_out,
            notes=notes,
            card=answers.cid,
            rating=answers.ease,
            day=day - day[0],
            elapsed_seconds=milliseconds // 1000,  # -1 stays -1
            state=state,
            **columns,
        )
        took = np.where(is_known, answers.time, np.nan) if is_known.any() else None
        return CollectionLog(replace(reviews, titles=titles, duration_ms=took), revlog, rows, start)


def scheduler_version(
    collection: Collection, revlog: Any, option: VersionOption
) -> tuple[int, str]:
    """Decide under which version of the scheduler answers were given, and say by what.

    Version 1 had three buttons for cards in learning (1 Again, 2 Good, 3 Easy), versions 2 and 3,
    for both of which 2 is returned, have four. Anki renumbers all earlier answers when the version
    changes, so that its setting ``schedVer`` holds for all of a collection. Packages of decks are
    fresh collections, and those of older versions of Anki have 1 whatever the person who exported
    them had: only an answer 4 (Easy) in learning tells then.
    """
    if option != "auto":
        return option, f"data.scheduler={option}"
    stated = collection.settings().get("schedVer", 1)
    learning = np.isin(revlog.type, (0, 2))
    easy = int(np.sum(learning & (revlog.ease == 4) & (revlog.id >= _ANKI_1_GONE_MS)))
    said = f"schedVer={stated}; {easy:,} answers in learning are 4 (Easy)"
    if stated == 2 or bool(easy) == collection.is_of_decks:
        return 1 + (stated == 2 or collection.is_of_decks), said
    if not has_other_meaning(revlog).any():
        return 1, f"{said}; no answer depends on it"
    what = f"it is not clear which version of Anki's scheduler its answers are of ({said})"
    hint = (
        "Say which it was: data.scheduler=1 (answers 2 and 3 to cards in learning are Good and "
        "Easy) or data.scheduler=2 (they are Hard and Good; also for version 3)."
    )
    raise ReviewLogError(collection.source, [what], hint)


def has_other_meaning(revlog: Any) -> BoolArray:
    """Mark the answers whose meaning depends on the version, by one in the rating."""
    return np.isin(revlog.type, (0, 2)) & np.isin(revlog.ease, (2, 3))


def day_start(
    collection: Collection, version: int, hour: int | None, offset: int | None
) -> tuple[int, str]:
    """Return the second of the UTC day at which days begin, and what says so.

    Version 1 of the scheduler counts days from the creation stamp. Later versions begin them at the
    rollover hour, in the time zone that the collection records: where it was last used, or else
    where it was created. An `hour` and an `offset` in minutes take the place of what is recorded.
    """
    settings = collection.settings()
    west = settings.get("localOffset", settings.get("creationOffset"))
    west = west if offset is None else -offset
    if hour is None and (version == 1 or west is None):
        # Before it recorded time zones, Anki set the creation stamp to the rollover hour.
        created = settings["crt"]
        stamp = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d %H:%M}"
        return created % DAY_SECONDS, f"time of the creation stamp, {stamp}"
    if west is None:
        what = f"its time zone is not recorded, so {hour}:00 may be any time"
        raise ReviewLogError(collection.source, [what], "Give data.utc_offset_minutes as well.")
    hour = (settings.get("rollover", 4) if hour is None else hour) % 24
    zone = f"UTC{'-' if west > 0 else '+'}{abs(west) // 60:02}:{abs(west) % 60:02}"
    return (hour * 3600 + west * 60) % DAY_SECONDS, f"{hour}:00 at {zone}"


def select_reviews(revlog: Any, wanted: BoolArray) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Choose the rows that are reviews, of cards that are `wanted`, as the public data set does.

    Return their numbers, their states (0 new, 1 learning, 2 review, 3 relearning, 4 filtered), and
    how many other rows there are by the reason for which they are left out.

    Kept are answers with a button, but not in a filtered deck that leaves the schedule alone; of
    each card what follows its last learning start: the last learning step whose row before is of
    another kind. A reset begins a card anew even in the middle of its learning steps, as in Anki's
    own optimizer (``reviews_for_fsrs`` in ``rslib/src/scheduler/fsrs/params.rs``); the data set
    (``build_parquet.py`` of open-spaced-repetition/anki-revlogs-dataset-builder) overlooks it.
    """
    by_hand, button = revlog.type == MANUAL, (revlog.type < MANUAL) & (revlog.ease > 0)
    cramming = button & (revlog.type == FILTERED) & (revlog.factor == 0)
    counted = button & ~cramming
    events = np.flatnonzero(counted | (by_hand & (revlog.factor == 0)))
    cards = rows_by_card(revlog.cid[events])
    learning = counted[events] & (revlog.type[events] == LEARNING)
    start = learning & ~cards.last(learning)
    starts, of_card = np.zeros((2, len(revlog)), np.int64)  # So far, and in all
    starts[events] = cards.earlier(start) + start
    of_card[events] = np.bincount(cards.number, start)[cards.number]
    is_review = counted & (of_card > 0) & (starts == of_card)
    reasons = {
        "set by hand (due date or reset)": by_hand,
        "rescheduled by Anki": revlog.type == RESCHEDULED,
        "no button pressed": (revlog.type < MANUAL) & (revlog.ease == 0),
        "filtered deck without rescheduling": cramming,
        "before the card was last learnt from the start": counted & (starts < of_card),
        "card without a learning step": counted & (of_card == 0),
        ELSEWHERE: is_review & ~wanted,
    }
    rows = np.flatnonzero(is_review & wanted)
    state = revlog.type + 1
    state[events[start]] = 0
    return rows, state[rows], {reason: int(n.sum()) for reason, n in reasons.items() if n.any()}


def matching(
    source: str, option: str, patterns: Sequence[object], names: Mapping[int, str]
) -> list[int]:
    """Return the numbers of the groups whose names match one of the patterns.

    As in Anki's search, upper and lower case are the same, ``*`` and ``?`` stand for any letters
    and any letter, and a deck includes its subdecks. Raise `ReviewLogError` with the names that
    exist if a pattern matches none of them.
    """
    matched: list[int] = []
    wrong = []
    for pattern in patterns:
        glob = f"{pattern}::*".casefold().replace("[", "[[]")  # brackets are letters of names
        numbers = [n for n, name in names.items() if fnmatchcase(f"{name.casefold()}::", glob)]
        matched += numbers
        wrong += [] if numbers else [f"{option}={pattern}: no such name in the collection"]
    if wrong:
        titles = sorted(names.values(), key=str.casefold)
        hint = f"There are: {listed(titles, 20) or 'no names'}."
        raise ReviewLogError(source, wrong, hint)
    return matched


def scheduled_now(revlog: Any) -> dict[int, int]:
    """Return the whole days after its last answer at which each card is due.

    Cards in learning, with less than a day, and those whose due date was set by hand are left out.
    """
    days = np.where(revlog.type == MANUAL, 0, revlog.ivl)
    last = dict(zip(revlog.cid.tolist(), days.tolist(), strict=True))
    return {card: days for card, days in last.items() if days > 0}
