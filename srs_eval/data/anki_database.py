"""What a review log needs from an Anki collection: its review table and its calendar."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.data.anki_decks import preset_of_deck
from srs_eval.data.anki_package import collection_copy
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import IntArray

DAY_SECONDS = 86_400

_FETCHED_AT_ONCE = 100_000
_SETTINGS = ("schedVer", "rollover", "localOffset", "creationOffset")
_DEFAULT_ROLLOVER_HOUR = 4
# Versions of the scheduler.
_FOUR_BUTTONS_SINCE = _ROLLOVER_SINCE = 2
_LEARNING_TYPES = (0, 2)
_COLUMNS = ("id", "cid", "ease", "factor", "time", "type")
# Values of another type become -1, which no rule accepts; `raw_value` shows them as they are.
_SELECT = """
select
  id,
  case typeof(cid) when 'integer' then cid else -1 end,
  case typeof(ease) when 'integer' then ease else -1 end,
  coalesce(cast(factor as integer), 0),
  case when typeof(time) in ('integer', 'real') then cast(time as integer) else -1 end,
  case typeof(type) when 'integer' then type else -1 end
from revlog order by id
"""


@dataclass(frozen=True, slots=True)
class Revlog:
    """All rows of Anki's review table, in time order.

    Attributes
    ----------
    id : int64 [n]
        Time of the answer, in milliseconds since 1970 (UTC); unique.
    cid : int64 [n]
        Card.
    ease : int64 [n]
        Button pressed, 1 to 4; 0 if the row is no answer.
    factor : int64 [n]
        Ease factor in per mille, or difficulty; 0 marks resets and cramming.
    time : int64 [n]
        Milliseconds spent answering.
    type : int64 [n]
        0 learning, 1 review, 2 relearning, 3 filtered, 4 manual, 5 rescheduled.
    """

    id: IntArray
    cid: IntArray
    ease: IntArray
    factor: IntArray
    time: IntArray
    type: IntArray

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.id)


@dataclass(frozen=True, slots=True)
class Collection:
    """An open copy of a collection."""

    source: str
    member: str | None
    connection: sqlite3.Connection

    def revlog(self) -> Revlog:
        """Read the whole review table, after checking that it is undamaged.

        Version 1 of the scheduler had three buttons for cards in learning: 1 Again, 2 Good,
        3 Easy. They are renumbered the way Anki does it when it upgrades such a collection.
        """
        faults = [str(row[0]) for row in self.connection.execute("pragma quick_check(revlog)")]
        if faults != ["ok"]:
            raise _damaged(self.source, "; ".join(faults[:3]))
        without_id = "select count(*) from revlog where typeof(id) != 'integer'"
        if count := self.connection.execute(without_id).fetchone()[0]:
            raise _damaged(self.source, f"{count} rows of revlog have no whole number as id")
        cursor = self.connection.execute(_SELECT)
        blocks = [np.empty((0, len(_COLUMNS)), np.int64)]
        while rows := cursor.fetchmany(_FETCHED_AT_ONCE):
            blocks.append(np.array(rows, np.int64))
        columns = np.ascontiguousarray(np.concatenate(blocks).T)
        revlog = Revlog(**dict(zip(_COLUMNS, columns, strict=True)))
        if self._settings()[1].get("schedVer", 1) >= _FOUR_BUTTONS_SINCE:
            return revlog
        three_buttons = np.isin(revlog.type, _LEARNING_TYPES) & np.isin(revlog.ease, (2, 3))
        return replace(revlog, ease=revlog.ease + three_buttons)

    def raw_value(self, column: str, row_id: int) -> Any:
        """Read one value of the review table as it is stored."""
        query = f"select {column} from revlog where id = ?"
        return self.connection.execute(query, (row_id,)).fetchone()[0]

    def count_notes(self) -> int:
        """Count the notes."""
        return int(self.connection.execute("select count(*) from notes").fetchone()[0])

    def decks(self) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Tell the deck of each card and the preset of each deck, as far as it is recorded.

        A card that is in a filtered deck belongs to the deck it came from.
        """
        if not {"id", "did", "odid"} <= self._columns_of("cards"):
            return {}, {}
        cards = "select id, case odid when 0 then did else odid end from cards"
        of_card = {int(card): int(deck) for card, deck in self.connection.execute(cards)}
        if {"id", "kind"} <= self._columns_of("decks"):
            rows = self.connection.execute("select id, kind from decks")
            found = {int(deck): preset_of_deck(kind) for deck, kind in rows}
            return of_card, {deck: preset for deck, preset in found.items() if preset is not None}
        return of_card, self._presets_in_text()

    def titles(self) -> Mapping[str, Mapping[int, str]]:
        """Return what decks and presets are called, by ``deck`` and ``preset``."""
        found = {}
        for group, table, text in (("deck", "decks", "decks"), ("preset", "deck_config", "dconf")):
            if {"id", "name"} <= self._columns_of(table):
                rows = self.connection.execute(f"select id, name from {table}").fetchall()
            else:
                rows = []
                with suppress(ReviewLogError):  # only names: nothing depends on them
                    known = self._json_in_col(text)
                    rows = [(number, facts.get("name")) for number, facts in known.items()]
            found[group] = {
                int(number): name.replace("\x1f", "::")
                for number, name in rows
                if isinstance(number, int) and isinstance(name, str)
            }
        return found

    def _columns_of(self, table: str) -> set[str]:
        """Names of the columns of a table; none if it is not there."""
        return {str(row[1]) for row in self.connection.execute(f"pragma table_info({table})")}

    def _presets_in_text(self) -> Mapping[int, int]:
        """Tell the preset of each deck in collections that keep decks as text."""
        try:
            decks = self._json_in_col("decks")
            return {deck: int(facts["conf"]) for deck, facts in decks.items() if "conf" in facts}
        except (ValueError, TypeError) as error:
            raise _damaged(self.source, f"its decks cannot be read: {error}") from error

    def _json_in_col(self, column: str) -> Mapping[int, Mapping[str, Any]]:
        """Read facts by number that older collections keep as text."""
        if column not in self._columns_of("col"):
            return {}
        (text,) = self.connection.execute(f"select {column} from col").fetchone()
        try:
            facts = {int(number): dict(found) for number, found in json.loads(text or "{}").items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise _damaged(self.source, f"its {column} cannot be read: {error}") from error
        return facts

    def day_start(self, *, rollover_hour: int | None, utc_offset_minutes: int | None) -> int:
        """Second of the UTC day at which this collection's days begin.

        Version 1 of the scheduler counts days from the creation stamp. Later versions begin
        them at the rollover hour, in the time zone the collection records: the one it was
        last used in where it says so, or else the one it was created in. Arguments that are
        not None take the place of what is recorded.

        Returns
        -------
        int, from 0 to 86,399

        Raises
        ------
        ReviewLogError
            If an hour is given but no time zone is known, or a setting is no whole number.
        """
        created, settings = self._settings()
        west = settings.get("localOffset", settings.get("creationOffset"))
        if utc_offset_minutes is not None:
            west = -utc_offset_minutes
        if rollover_hour is None and settings.get("schedVer", 1) >= _ROLLOVER_SINCE:
            rollover_hour = settings.get("rollover", _DEFAULT_ROLLOVER_HOUR)
            # Before it recorded time zones, Anki set the creation stamp to the rollover hour.
            rollover_hour = None if west is None else rollover_hour
        if rollover_hour is None:
            return created % DAY_SECONDS
        if west is None:
            what = f"its time zone is not recorded, so {rollover_hour}:00 may be any time"
            raise ReviewLogError(self.source, [what], "Give data.utc_offset_minutes as well.")
        return (rollover_hour * 3600 + west * 60) % DAY_SECONDS

    def _settings(self) -> tuple[int, Mapping[str, int]]:
        """Creation stamp in seconds, and those settings about days that are present."""
        rows = self.connection.execute("select crt, conf from col").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise _damaged(self.source, "its table col does not say when it was created")
        created, packed = rows[0]
        # Since version 15 of the schema settings have a table, and `conf` is empty.
        has_table = "select 1 from sqlite_master where type = 'table' and name = 'config'"
        if self.connection.execute(has_table).fetchone():
            rows = self.connection.execute("select key, val from config").fetchall()
            texts = {key: value for key, value in rows if key in _SETTINGS}
        else:
            texts = {}
        try:
            stored = {**json.loads(packed or "{}")} | {k: json.loads(v) for k, v in texts.items()}
        except (ValueError, TypeError) as error:
            raise _damaged(self.source, f"its settings cannot be read: {error}") from error
        known = {key: stored[key] for key in _SETTINGS if stored.get(key) is not None}
        wrong = [
            f"{k} is {v!r}; expected a whole number" for k, v in known.items() if type(v) is not int
        ]
        if wrong:
            hint = "Set in Anki's preferences when the next day starts, and export it again."
            raise ReviewLogError(self.source, [f"setting {line}" for line in wrong], hint)
        return created, known


@contextmanager
def open_collection(path: Path) -> Iterator[Collection]:
    """Open a copy of a collection, leaving the file itself untouched.

    Raises
    ------
    ReviewLogError
        If the file holds no collection, or a damaged one; also for reads within the block.
    """
    with collection_copy(path) as copy:
        # Writable, because SQLite may first have to merge or undo what lies in its logs.
        uri = f"{copy.database.as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.execute("pragma query_only = on")
                _require_anki(str(path), connection)
                yield Collection(str(path), copy.member, connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLite quotes a damaged table definition in messages that may be no text.
            raise _damaged(str(path), str(error)) from error


def _require_anki(source: str, connection: sqlite3.Connection) -> None:
    """Check that the tables and columns to be read are there."""
    missing = []
    for table, columns in {"revlog": _COLUMNS, "col": ("crt", "conf")}.items():
        present = {row[1] for row in connection.execute(f"pragma table_info({table})")}
        if not present:
            missing.append(f"table {table}")
        else:
            missing += [f"column {table}.{name}" for name in columns if name not in present]
    if missing:
        what = f"is a database but no Anki collection: it has no {', '.join(missing)}"
        raise ReviewLogError(source, [what], "Name a collection or an exported package of Anki.")


def _damaged(source: str, reason: str) -> ReviewLogError:
    """Say that a collection is damaged, and how Anki repairs it."""
    what = f"its database is damaged ({reason})"
    hint = "Repair it in Anki (Tools > Check Database) and export it again, or use a backup."
    return ReviewLogError(source, [what], hint)
