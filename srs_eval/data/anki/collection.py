"""Review logs of Anki collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le

from srs_eval.data.anki.database import DAY_SECONDS, open_collection
from srs_eval.data.anki.groups import groups_of
from srs_eval.data.anki.rules import (
    MINUTES_FROM_UTC,
    VersionOption,
    day_start,
    has_other_meaning,
    matching,
    scheduler_version,
    select_reviews,
)
from srs_eval.data.cards import previous_review, since_previous
from srs_eval.data.files import existing
from srs_eval.data.options import OddRows, check_options
from srs_eval.data.reviews import IntArray, Reviews, User
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ReviewLogError, Violation

_CENTURY_MS = 36_525 * DAY_SECONDS * 1000


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
    ``anki-revlogs-10k``; each other row is counted in ``Reviews.left_out`` by its reason.
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
    invalid_rows : {"error", "drop"}
        Whether rows with impossible values are an error, or dropped and counted.
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
    utc_offset_minutes: Annotated[int, Ge(-MINUTES_FROM_UTC), Le(MINUTES_FROM_UTC)] | None = None
    invalid_rows: OddRows = "error"
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
        if user not in self.users():
            what = f"there is no user {user!r}"
            raise ReviewLogError(self.location, [what], f"Its one user is {self.users()[0]!r}.")
        with open_collection(Path(self.location)) as collection:
            drop = self.invalid_rows == "drop"
            revlog, invalid = collection.revlog(drop=drop)
            version, told_by = scheduler_version(collection, revlog, self.scheduler)
            if version == 1:  # renumbered as Anki does when the version changes
                revlog.ease += has_other_meaning(revlog)
            start, begin = day_start(
                collection, version, self.rollover_hour, self.utc_offset_minutes
            )
            groups, titles = groups_of(collection, revlog.cid, drop=drop)
        chosen = np.ones(len(revlog), np.bool_)
        for group, names in (("deck", self.decks), ("preset", self.presets)):
            if patterns := [names] if isinstance(names, str | int) else names:
                matched = matching(self.location, f"data.{group}s", patterns, titles[group])
                chosen &= np.isin(groups.get(group, -1), matched)
        rows, state, left_out = select_reviews(revlog, chosen)
        left_out |= {"invalid values": invalid} if invalid else {}
        if not len(rows):
            why = ", ".join(f"{n} {reason}" for reason, n in left_out.items()) or "there are none"
            what = f"none of its {len(revlog) + invalid} rows is a review that can be used: {why}"
            hint = "Learn cards in Anki; export with 'Include scheduling information' ticked."
            raise ReviewLogError(self.location, [Violation(what, "empty")], hint)
        notes = [
            f"ratings read as those of version {version} of Anki's scheduler ({told_by})",
            f"days begin at {start // 3600:02}:{start // 60 % 60:02} UTC ({begin})",
        ]
        answers = revlog[rows]
        # People have answer times below 0 ms. They say nothing of the review, which stays.
        is_known = (answers.time >= 0) & (answers.time <= _CENTURY_MS)
        if not is_known.all():
            unknown = f"{np.sum(~is_known):,} of {len(answers):,} answers"
            notes.append(f"how long {unknown} took is not known: below 0 ms, or above 100 years")
        day = (answers.id - start * 1000) // (DAY_SECONDS * 1000)
        milliseconds = since_previous(answers.id, previous_review(answers.cid))
        of_rows: dict[str, Any] = {name: column[rows] for name, column in groups.items()}
        reviews = reviews_from_columns(
            user=user,
            source=self.location,
            left_out=left_out,
            notes=notes,
            row_name=lambda row: f"review with id {answers.id[row]}",
            card=answers.cid,
            rating=answers.ease,
            day=day - day[0],
            elapsed_seconds=milliseconds // 1000,  # -1 stays -1
            state=state,
            **of_rows,
        )
        took = np.where(is_known, answers.time, np.nan) if is_known.any() else None
        reviews = replace(reviews, titles=titles, duration_ms=took)
        return CollectionLog(reviews, revlog, rows, start)
