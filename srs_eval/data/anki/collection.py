"""Review logs of Anki collections."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from srs_eval.cards import previous_review, since_previous
from srs_eval.data.anki.calendar import MINUTES_FROM_UTC, DayStart, day_start
from srs_eval.data.anki.database import DAY_SECONDS, Collection, Revlog, open_collection
from srs_eval.data.anki.rules import (
    Selection,
    matching,
    of_cards,
    patterns_of,
    select_reviews,
)
from srs_eval.data.anki.scheduler import VersionOption, decide_scheduler
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.nouns import BoolArray, IntArray, Reviews, User

_EARLIEST_MS = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp() * 1000)
_CLOCK_TOLERANCE_S = DAY_SECONDS
_LARGEST_FACTOR = 2**31
_CENTURY_MS = 36_525 * DAY_SECONDS * 1000
_ROWS_QUOTED = 3
_CHARACTERS_QUOTED = 60


@dataclass(frozen=True, slots=True)
class CollectionLog:
    """A log, with the table that it comes from."""

    reviews: Reviews
    revlog: Revlog  # The whole table, answers renumbered
    rows: IntArray  # [len(reviews)]: Row of the table that each review is
    start: DayStart  # When days begin

    @property
    def day(self) -> IntArray:
        """Day of each row of the table, counted as in `reviews`."""
        day = (self.revlog.id - self.start.second * 1000) // (DAY_SECONDS * 1000)
        found: IntArray = day - day[self.rows[0]]
        return found


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
        wrong = []
        if self.rollover_hour is not None and not 0 <= self.rollover_hour <= 23:
            wrong.append(f"data.rollover_hour is {self.rollover_hour}; expected 0 to 23 or null")
        most = MINUTES_FROM_UTC
        if self.utc_offset_minutes is not None and not -most <= self.utc_offset_minutes <= most:
            expected = f"minutes from -{most} to {most} or null"
            wrong.append(
                f"data.utc_offset_minutes is {self.utc_offset_minutes}; expected {expected}"
            )
        if self.invalid_rows not in ("error", "drop"):
            wrong.append(f"data.invalid_rows is {self.invalid_rows}; expected error or drop")
        if self.scheduler not in ("auto", 1, 2) or isinstance(self.scheduler, bool | float):
            wrong.append(f"data.scheduler is {self.scheduler}; expected auto, 1 or 2")
        for option in ("decks", "presets"):
            try:
                patterns_of(getattr(self, option))
            except TypeError as error:
                wrong.append(f"data.{option}: {error}")
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
            _require_rows(revlog, collection)
            valid = self._valid(revlog, collection)
            created, settings = collection.settings()
            scheduler = decide_scheduler(collection, revlog, settings, self.scheduler)
            revlog = scheduler.renumber(revlog)
            start = day_start(
                self.location,
                created,
                settings,
                version=scheduler.version,
                rollover_hour=self.rollover_hour,
                utc_offset_minutes=self.utc_offset_minutes,
            )
            selection = select_reviews(revlog, valid)
            groups, damage = collection.groups(revlog.cid[selection.rows])
            titles = collection.titles()
        wanted = self._wanted(len(selection.rows), groups, titles)
        selection = of_cards(selection, wanted)
        if not len(selection.rows):
            counts = ", ".join(f"{n} {reason}" for reason, n in selection.left_out.items())
            rows = sum(selection.left_out.values())
            what = f"none of its {rows} rows is a review that can be used: {counts}"
            hint = "Name a collection whose cards were learnt in Anki."
            raise ReviewLogError(self.location, [what], hint)
        reviews = _reviews(user, self.location, revlog, selection, start)
        notes = tuple(note for note in (str(scheduler), str(start), damage) if note)
        known: dict[str, Any] = {
            name: column[wanted] for name, column in groups.items() if column is not None
        }
        reviews = replace(reviews, titles=titles, notes=notes, **known)
        return CollectionLog(reviews, revlog, selection.rows, start)

    def _wanted(
        self,
        rows: int,
        groups: Mapping[str, IntArray | None],
        titles: Mapping[str, Mapping[int, str]],
    ) -> BoolArray:
        """Mark the rows of cards in the decks and presets of the options, bool [rows]."""
        kept = np.ones(rows, np.bool_)
        for group in ("deck", "preset"):
            patterns, numbers = patterns_of(getattr(self, f"{group}s")), groups[group]
            if patterns:
                option = f"data.{group}s"
                wanted = matching(self.location, option, patterns, titles.get(group, {}))
                kept &= numbers is not None and np.isin(numbers, list(wanted))
        return kept

    def _valid(self, revlog: Revlog, collection: Collection) -> BoolArray:
        """Rows whose values are possible; raise if there are others and none may be dropped."""
        latest = int((time.time() + _CLOCK_TOLERANCE_S) * 1000)
        rules = {
            "id": (
                (revlog.id >= _EARLIEST_MS) & (revlog.id <= latest),
                "a time from 1980 to now, in ms",
            ),
            "cid": (revlog.cid > 0, "the number of a card"),
            "ease": ((revlog.ease >= 0) & (revlog.ease <= 4), "0 to 4"),
            "factor": (
                (revlog.factor > -_LARGEST_FACTOR) & (revlog.factor < _LARGEST_FACTOR),
                "a number of at most 32 bits",
            ),
            "time": ((revlog.time >= 0) & (revlog.time <= _CENTURY_MS), "0 ms to 100 years"),
            "type": ((revlog.type >= 0) & (revlog.type <= 5), "0 to 5"),
        }
        valid = np.ones(len(revlog), np.bool_)
        for good, _ in rules.values():
            valid &= good
        if self.invalid_rows == "error" and not valid.all():
            violations = [
                _violation(collection, column, revlog.id[~good].tolist(), expected)
                for column, (good, expected) in rules.items()
                if not good.all()
            ]
            hint = "Repair the collection, or leave such rows out with data.invalid_rows=drop."
            raise ReviewLogError(self.location, violations, hint)
        return valid


def _violation(collection: Collection, column: str, ids: list[int], expected: str) -> Violation:
    """Quote the first rows whose value in a column is impossible."""
    places = [f"row with id {row_id}" for row_id in ids[:_ROWS_QUOTED]]
    values = [collection.raw_value(column, row_id) for row_id in ids[:_ROWS_QUOTED]]
    quoted = ", ".join(
        f"{place} has {repr(value)[:_CHARACTERS_QUOTED]}"
        for place, value in zip(places, values, strict=True)
    )
    are_numbers = all(isinstance(value, int | float) for value in values)
    kind = "out_of_range" if are_numbers else "wrong_type"
    kind = "missing" if values.count(None) == len(values) else kind
    further = len(ids) - _ROWS_QUOTED
    more = f" and {further} further row{'s' * (further > 1)}" if further > 0 else ""
    what = f"revlog.{column}: {quoted}{more}; expected {expected}"
    return Violation(what, kind, f"revlog.{column}", places)


def _require_rows(revlog: Revlog, collection: Collection) -> None:
    """Raise if the review table is empty, saying what the likely reason is."""
    if len(revlog):
        return
    hint = "Review some cards in Anki first, or name another collection."
    # That box is only there where decks are exported.
    if collection.member is not None and not collection.source.lower().endswith(".colpkg"):
        hint = "Export it again with 'Include scheduling information' ticked."
    if collection.member == "collection.anki2" and collection.count_notes() <= 1:
        hint = "It looks like the placeholder for old Anki versions: export the package again."
    nothing = Violation("there are no reviews in it", "empty")
    raise ReviewLogError(collection.source, [nothing], hint)


def _reviews(user: User, source: str, revlog: Revlog, kept: Selection, start: DayStart) -> Reviews:
    """Derive days and intervals of the kept rows."""
    rows = kept.rows
    answered = revlog.id[rows]
    card = revlog.cid[rows]
    day = (answered - start.second * 1000) // (DAY_SECONDS * 1000)
    previous = previous_review(card)
    milliseconds = since_previous(answered, previous)
    return reviews_from_columns(
        user=user,
        source=source,
        card=card,
        rating=revlog.ease[rows],
        day=day - day[0],
        elapsed_seconds=np.where(previous < 0, -1, milliseconds // 1000),
        duration_ms=revlog.time[rows],
        state=kept.state,
        left_out=kept.left_out,
        row_name=lambda row: f"review with id {answered[row]}",
    )
