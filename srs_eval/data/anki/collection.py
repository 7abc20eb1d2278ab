"""Review logs of Anki collections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from srs_eval.cards import previous_review, since_previous
from srs_eval.data.anki.calendar import MINUTES_FROM_UTC, day_start
from srs_eval.data.anki.database import DAY_SECONDS, Collection, Revlog, open_collection
from srs_eval.data.anki.groups import groups_of
from srs_eval.data.anki.rules import (
    Selection,
    matching,
    patterns_of,
    select_reviews,
)
from srs_eval.data.anki.scheduler import VersionOption, has_other_meaning, scheduler_version
from srs_eval.data.cells import quoted
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.nouns import BoolArray, IntArray, Reviews, User

_EARLIEST_MS = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp() * 1000)
_CLOCK_TOLERANCE_S = DAY_SECONDS
_CENTURY_MS = 36_525 * DAY_SECONDS * 1000
_ROWS_QUOTED = 3


@dataclass(frozen=True, slots=True)
class CollectionLog:
    """A log, with the table that it comes from."""

    reviews: Reviews
    revlog: Revlog  # The whole table, answers renumbered
    rows: IntArray  # [len(reviews)]: Row of the table that each review is
    start: int  # Second of the UTC day at which days begin


@dataclass(frozen=True, slots=True)
class AnkiCollection:
    """The review log of one Anki collection or package: one file, one user.

    The file is copied, never opened in place, so Anki may be running and nothing is changed.
    Which rows of the review table are reviews is decided as in the public data set
    ``anki-revlogs-10k``; each other row is counted in ``Reviews.left_out`` by its reason.
    Reviews of deleted cards count, because the review table keeps them; which deck those were in
    and what they looked like is not known.

    Days have 86,400 seconds and begin at one time of the UTC day for the whole log, as in
    the data set: daylight saving and journeys are not followed. With version 1 of Anki's
    scheduler they begin at the time of the creation stamp; with later ones at the rollover
    hour (4:00 unless set), in the time zone that the collection records. Day 0 is the day of
    the first review. When days begin, which version was assumed, and why, is in `Reviews.notes`.

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
    invalid_rows : {"error", "drop"}
        Whether rows with impossible values are an error, or dropped and counted.
    scheduler : {"auto", 1, 2}
        Version of Anki's scheduler under which the answers were given (2 also for version 3):
        in version 1, answers 2 and 3 to cards in learning are Good and Easy. With "auto", all that
        the file says decides, and it is an error if it contradicts itself.
    decks, presets : str or sequence of str, optional
        Names of decks or presets, with ``*`` and ``?``: reviews of other cards are left out and
        counted. A deck includes its subdecks. All of them if None.

    Raises
    ------
    ConfigError
        If an option is outside its range.

    References
    ----------
    https://github.com/open-spaced-repetition/anki-revlogs-dataset-builder
    """

    path: str | Path
    user: User | None = None
    rollover_hour: int | None = None
    utc_offset_minutes: int | None = None
    invalid_rows: Literal["error", "drop"] = "error"
    scheduler: VersionOption = "auto"
    decks: str | Sequence[str] | None = None
    presets: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Check the options, all at once."""
        most, hour, offset = MINUTES_FROM_UTC, self.rollover_hour, self.utc_offset_minutes
        is_number = isinstance(self.scheduler, bool | float)
        rules = {
            "rollover_hour": (hour is None or 0 <= hour <= 23, "0 to 23 or null"),
            "utc_offset_minutes": (
                offset is None or -most <= offset <= most,
                f"minutes from -{most} to {most} or null",
            ),
            "invalid_rows": (self.invalid_rows in ("error", "drop"), "error or drop"),
            "scheduler": (self.scheduler in ("auto", 1, 2) and not is_number, "auto, 1 or 2"),
            "decks": (patterns_of(self.decks) is not None, "a name or a list of names"),
            "presets": (patterns_of(self.presets) is not None, "a name or a list of names"),
        }
        wrong = [
            f"data.{name} is {getattr(self, name)}; expected {expected}"
            for name, (is_right, expected) in rules.items()
            if not is_right
        ]
        if wrong:
            raise ConfigError("\n".join(wrong))

    @property
    def name(self) -> str:
        """Name of the file."""
        return self._file.name

    @property
    def location(self) -> str:
        """Path of the file."""
        return str(self._file)

    @property
    def _file(self) -> Path:
        """Path of the file, with ``~`` replaced."""
        return Path(self.path).expanduser()

    def users(self) -> Sequence[User]:
        """Return the name of the one user of the file."""
        return (self._file.stem if self.user is None else self.user,)

    def read(self, user: User) -> Reviews:
        """Read the log; every row of the review table is kept or counted in `left_out`."""
        return self.read_with_table(user).reviews

    def read_with_table(self, user: User) -> CollectionLog:
        """Read the log, and the table that it comes from."""
        if user not in self.users():
            what = f"there is no user {user!r}"
            raise ReviewLogError(self.location, [what], f"Its one user is {self.users()[0]!r}.")
        with open_collection(self._file) as collection:
            revlog = collection.revlog()
            valid = self._valid(revlog, collection)
            created, settings = collection.settings()
            version, told_by = scheduler_version(collection, revlog, settings, self.scheduler)
            if version == 1:  # renumbered as Anki does when the version changes
                revlog = replace(revlog, ease=revlog.ease + has_other_meaning(revlog))
            start, begin = day_start(
                self.location,
                created,
                settings,
                version=version,
                rollover_hour=self.rollover_hour,
                utc_offset_minutes=self.utc_offset_minutes,
            )
            groups, titles = groups_of(collection, revlog.cid)
        wanted = np.ones(len(revlog), np.bool_)
        for group, option in (("deck", "decks"), ("preset", "presets")):
            if patterns := patterns_of(getattr(self, option)):
                named = matching(self.location, f"data.{option}", patterns, titles[group])
                numbers = groups[group]
                wanted &= numbers is not None and np.isin(numbers, [*named])
        selection = select_reviews(revlog, valid, wanted)
        if not len(selection.rows):
            counts = ", ".join(f"{n} {reason}" for reason, n in selection.left_out.items())
            what = f"none of its {len(revlog)} rows is a review that can be used"
            nothing = Violation(f"{what}: {counts}" if counts else what, "empty")
            hint = "Learn cards in Anki; export with 'Include scheduling information' ticked."
            raise ReviewLogError(self.location, [nothing], hint)
        notes = [
            f"ratings read as those of version {version} of Anki's scheduler ({told_by})",
            f"days begin at {start // 3600:02}:{start // 60 % 60:02} UTC ({begin})",
        ]
        known: dict[str, Any] = {
            name: each[selection.rows] for name, each in groups.items() if each is not None
        }
        known |= {"user": user, "source": self.location}
        reviews = _reviews(revlog, selection, start, notes=notes, **known)
        return CollectionLog(replace(reviews, titles=titles), revlog, selection.rows, start)

    def _valid(self, revlog: Revlog, collection: Collection) -> BoolArray:
        """Rows whose values are possible; raise if there are others and none may be dropped."""
        latest = int((time.time() + _CLOCK_TOLERANCE_S) * 1000)
        rules = {
            "id": (_EARLIEST_MS, latest, "a time from 1980 to now, in ms"),
            "cid": (1, 2**63 - 1, "the number of a card"),
            "ease": (0, 4, "0 to 4"),
            "factor": (1 - 2**31, 2**31 - 1, "a number of at most 32 bits"),
            "type": (0, 5, "0 to 5"),
        }
        valid, violations = np.ones(len(revlog), np.bool_), []
        for column, (low, high, expected) in rules.items():
            values = getattr(revlog, column)
            bad = (values < low) | (values > high)
            valid &= ~bad
            if bad.any():
                violations.append(_violation(collection, column, revlog.id[bad].tolist(), expected))
        if violations and self.invalid_rows == "error":
            hint = "Repair the collection, or leave such rows out with data.invalid_rows=drop."
            raise ReviewLogError(self.location, violations, hint)
        return valid


def _violation(collection: Collection, column: str, ids: list[int], expected: str) -> Violation:
    """Quote the first rows whose value in a column is impossible, as it is stored."""
    query = f"select {column} from revlog not indexed where id = ?"
    cells = [
        collection.connection.execute(query, (row,)).fetchone()[0] for row in ids[:_ROWS_QUOTED]
    ]
    said = [f"row with id {row} has {quoted(cell)}" for row, cell in zip(ids, cells, strict=False)]
    more = f" and {len(ids) - _ROWS_QUOTED:,} more" if len(ids) > _ROWS_QUOTED else ""
    what = f"revlog.{column}: {', '.join(said)}{more}; expected {expected}"
    places = [f"row with id {row}" for row in ids[:_ROWS_QUOTED]]
    return Violation(what, "out_of_range", f"revlog.{column}", places)


def _reviews(
    revlog: Revlog, kept: Selection, start: int, *, notes: list[str], **known: Any
) -> Reviews:
    """Derive days and intervals of the kept rows, of which the rest is known.

    People have answer times below 0 ms. They say nothing of the review, which stays.
    """
    rows = kept.rows
    answered, card, took = revlog.id[rows], revlog.cid[rows], revlog.time[rows]
    day = (answered - start * 1000) // (DAY_SECONDS * 1000)
    previous = previous_review(card)
    milliseconds = since_previous(answered, previous)
    is_known = (took >= 0) & (took <= _CENTURY_MS)
    if not is_known.all():
        unknown = f"{np.sum(~is_known):,} of {len(rows):,} answers"
        notes.append(f"how long {unknown} took is not known: below 0 ms, or above 100 years")
    reviews = reviews_from_columns(
        notes=notes,
        card=card,
        rating=revlog.ease[rows],
        day=day - day[0],
        elapsed_seconds=np.where(previous < 0, -1, milliseconds // 1000),
        duration_ms=np.where(is_known, took, 0) if is_known.any() else None,
        state=kept.state,
        left_out=kept.left_out,
        row_name=lambda row: f"review with id {answered[row]}",
        **known,
    )
    if reviews.duration_ms is None or is_known.all():
        return reviews
    return replace(reviews, duration_ms=np.where(is_known, took, np.nan))
