"""What a review log needs from an Anki collection: its answers, settings and decks."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from srs_eval.data.anki.groups import (
    preset_of_deck,
    template_names,
    template_number,
    template_numbers,
    templates_in_text,
)
from srs_eval.data.anki.package import collection_copy
from srs_eval.data.untrusted_database import damaged, open_database
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import GROUPS, IntArray

DAY_SECONDS = 86_400

# Far above the largest real collections.
_ROWS_AT_MOST = {"revlog": 20_000_000, "cards": 5_000_000, "notes": 5_000_000, "decks": 100_000}
_FETCHED_AT_ONCE = 100_000
_NOT_KNOWN = -1
_SETTINGS = ("schedVer", "sched2021", "rollover", "localOffset", "creationOffset", "fsrs")
_TABLES_READ = (
    *("revlog", "col", "config", "cards", "decks", "deck_config"),
    *("notes", "notetypes", "templates"),
)
_NAMED = (
    ("deck", "decks", "decks"),
    ("preset", "deck_config", "dconf"),
    ("note_type", "notetypes", "models"),
)
_NO_NOTE_TYPES = (
    "note types and card templates are not known: the table of notes is damaged; Anki repairs it "
    "(Tools > Check Database)"
)
# Codes of SQLite have further bits for what exactly went wrong.
_PRIMARY_CODE = 0xFF
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_COLUMNS = ("id", "cid", "ease", "ivl", "factor", "time", "type")
# What stands for values of another type, which no rule accepts; `raw_value` shows them as they are.
_NOT_A_NUMBER = -(2**63)
_SELECT = f"""
select
  id,
  case typeof(cid) when 'integer' then cid else {_NOT_A_NUMBER} end,
  case typeof(ease) when 'integer' then ease else {_NOT_A_NUMBER} end,
  case typeof(ivl) when 'integer' then ivl else 0 end,
  case when typeof(factor) in ('integer', 'real') then cast(factor as integer)
    else {_NOT_A_NUMBER} end,
  case when typeof(time) in ('integer', 'real') then cast(time as integer)
    else {_NOT_A_NUMBER} end,
  case typeof(type) when 'integer' then type else {_NOT_A_NUMBER} end
from revlog order by id
"""


@dataclass(frozen=True, slots=True)
class Revlog:
    """All rows of Anki's review table, in time order."""

    id: IntArray  # [n]: Time of the answer, in milliseconds since 1970 (UTC); unique
    cid: IntArray  # [n]: Card
    ease: IntArray  # [n]: Button pressed, 1 to 4; 0 if the row is no answer
    ivl: IntArray  # [n]: Interval given by the answer: days, or seconds where negative
    factor: IntArray  # [n]: Ease factor in per mille, or difficulty; 0 marks resets and cramming
    time: IntArray  # [n]: Milliseconds spent answering
    type: IntArray  # [n]: 0 learning, 1 review, 2 relearning, 3 filtered, 4 manual, 5 rescheduled

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.id)


@dataclass(frozen=True, slots=True)
class Collection:
    """An open copy of a collection."""

    source: str  # Path of the file
    member: str | None  # Name inside the package; None if the file is no package
    has_meta: bool  # Whether the package says its version, as packages do since Anki 2.1.50
    connection: sqlite3.Connection

    def revlog(self) -> Revlog:
        """Read the whole review table as it is stored, after checking that it is undamaged."""
        faults = [str(row[0]) for row in self.connection.execute("pragma quick_check(revlog)")]
        if faults != ["ok"]:
            lines = [line for fault in faults for line in fault.splitlines()]
            raise damaged(self.source, "; ".join(lines[:3]))
        self._require_numbers("revlog", ("id",))
        revlog = Revlog(**self._columns(_SELECT, _COLUMNS))
        repeated = np.flatnonzero(revlog.id[1:] == revlog.id[:-1])
        if len(repeated):
            first = revlog.id[repeated[0]]
            what = f"{len(repeated)} rows of revlog have the id of another row, the first {first}"
            raise damaged(self.source, what)
        return revlog

    def raw_value(self, column: str, row_id: int) -> Any:
        """Read one value of the review table as it is stored."""
        query = f"select {column} from revlog not indexed where id = ?"
        return self.connection.execute(query, (row_id,)).fetchone()[0]

    def count_notes(self) -> int:
        """Count the notes; 0 if there is no such table."""
        if not self._columns_of("notes"):
            return 0
        return self._count("notes", "true")

    def count_cards(self, condition: str) -> int:
        """Count the cards that fulfil a condition on their type and queue.

        Returns 0 where the table or one of the columns is missing.
        """
        if not {"type", "queue"} <= self._columns_of("cards"):
            return 0
        return self._count("cards", condition)

    def groups(self, cards: IntArray) -> tuple[dict[str, IntArray | None], str]:
        """Return the groups of each card, [n], by the names of their columns in a log.

        They are -1 where nothing is known of a card, and None where nothing is known of any. A card
        that is in a filtered deck belongs to the deck it came from. Few evaluations need note types
        and templates: where a page of their tables is damaged, there are none, and the second value
        is a remark on that, which is "" otherwise.
        """
        found: dict[str, IntArray | None] = dict.fromkeys(GROUPS)
        table, remark = self._whole_numbers("cards", ("did", "odid", "nid", "ord")), ""
        if {"did", "odid"} <= table.keys():
            home = np.where(table["odid"] == 0, table["did"], table["odid"])
            found["deck"] = _looked_up(table["id"], home, cards)
            presets = self._presets()
            if found["deck"] is not None:
                decks = np.array(sorted(presets), np.int64)
                preset = np.array([presets[deck] for deck in sorted(presets)], np.int64)
                found["preset"] = _looked_up(decks, preset, found["deck"])
        if "nid" in table:
            found["note"] = _looked_up(table["id"], table["nid"], cards)
        if {"nid", "ord"} <= table.keys():
            try:
                found |= self._note_types(table, cards)
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_CORRUPT:
                    raise
                remark = f"{_NO_NOTE_TYPES} ({error})"
        return found, remark

    def _note_types(
        self, table: Mapping[str, IntArray], cards: IntArray
    ) -> dict[str, IntArray | None]:
        """Return the note type and the template of each card, as far as they are recorded.

        Cloze cards have the number of their deletion in the place of a template's number: all of
        them belong to the only template of their note type.
        """
        notes = self._whole_numbers("notes", ("mid",))
        if "mid" not in notes:
            return {}
        has_note = np.isin(table["nid"], notes["id"])
        card, nid, place = (table[name][has_note] for name in ("id", "nid", "ord"))
        note_type = notes["mid"][np.searchsorted(notes["id"], nid)]
        named = np.array([*self._templates()], np.int64)
        template = np.full(len(card), _NOT_KNOWN)
        for there in (np.zeros_like(place), place):  # its own place counts before the first
            number = template_numbers(note_type, there)
            template = np.where(np.isin(number, named), number, template)
        has_template = template != _NOT_KNOWN
        return {
            "note_type": _looked_up(card, note_type, cards),
            "template": _looked_up(card[has_template], template[has_template], cards),
        }

    def _presets(self) -> Mapping[int, int]:
        """Read the preset of each deck, as far as it is recorded."""
        if not {"id", "kind"} <= self._columns_of("decks"):
            return self._presets_in_text()
        self._whole_numbers("decks", ())  # which checks the ids
        self._require_type("decks", "kind", "blob", "bytes")
        rows = self.connection.execute("select id, kind from decks")
        found = {deck: preset_of_deck(kind) for deck, kind in rows}
        return {deck: preset for deck, preset in found.items() if preset is not None}

    def titles(self) -> Mapping[str, Mapping[int, str]]:
        """Return the names of groups by number, under the names of their columns in a log.

        Names that cannot be read are left out: only tables show them.
        """
        found: dict[str, Mapping[int, str]] = {}
        for group, table, text in _NAMED:
            kept = self.kept(table, "name", text)
            names = ((n, each.get("name") if isinstance(each, dict) else each) for n, each in kept)
            found[group] = {n: name.replace("\x1f", "::") for n, name in names if _is_text(name)}
        return found | {"template": template_names(self._templates(), found["note_type"])}

    def _templates(self) -> Mapping[int, str]:
        """Return the names of all card templates by number; what cannot be read is left out."""
        rows: Iterable[tuple[Any, Any, Any]] = templates_in_text(self.kept_as_text("models"))
        if {"ntid", "ord", "name"} <= self._columns_of("templates"):
            rows = self.connection.execute("select ntid, ord, name from templates not indexed")
        return {
            number: name
            for note_type, place, name in rows
            if (number := template_number(note_type, place)) is not None and _is_text(name)
        }

    def kept(
        self, table: str, column: str, text: str, *, is_needed: bool = False
    ) -> Sequence[tuple[int, Any]]:
        """Return a column of decks, presets or note types, each with its number.

        Older versions of Anki keep them as text: then it is the whole object of each. With
        `is_needed`, a table without the column is damage.
        """
        columns = self._columns_of(table)
        if not {"id", column} <= columns:
            if columns and is_needed:
                raise damaged(self.source, f"its table {table} has no id or no {column}")
            return [*self.kept_as_text(text)]
        rows = self.connection.execute(f"select id, {column} from {table} not indexed")
        return [(number, value) for number, value in rows if isinstance(number, int)]

    def kept_as_text(self, column: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Go through decks, presets or note types kept as text; nothing if it cannot be read."""
        if column not in self._columns_of("col"):
            return
        with suppress(ReviewLogError):
            (stored,) = self.connection.execute(f"select {column} from col").fetchone()
            for key, each in self._object_in_json(column, stored).items():
                if _NUMBER.fullmatch(key) and isinstance(each, dict):
                    number = int(key)
                    if -(2**63) <= number < 2**63:
                        yield number, each

    def settings(self) -> tuple[int, Mapping[str, Any]]:
        """Read the creation stamp in seconds, and the settings on days, as Anki stored them."""
        rows = self.connection.execute("select crt, conf from col limit 2").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise damaged(self.source, "its table col does not say when it was created")
        created, packed = rows[0]
        texts = {}
        # Since version 15 of the schema settings have a table, and `conf` is empty.
        if {"key", "val"} <= self._columns_of("config"):
            marks = ", ".join("?" * len(_SETTINGS))
            # The collation of the key is Anki's own.
            query = f"select key, val from config where key collate binary in ({marks})"
            texts = dict(self.connection.execute(query, _SETTINGS).fetchmany(len(_SETTINGS)))
        stored = self._object_in_json("settings", packed)
        for key, text in texts.items():
            stored[key] = self._json("settings", text)
        return created, {key: stored[key] for key in _SETTINGS if stored.get(key) is not None}

    def _presets_in_text(self) -> Mapping[int, int]:
        """Read the preset of each deck in collections that keep decks as text."""
        if "decks" not in self._columns_of("col"):
            return {}
        (text,) = self.connection.execute("select decks from col").fetchone()
        decks = self._object_in_json("decks", text)
        try:
            found = {
                int(deck): _whole(facts["conf"]) for deck, facts in decks.items() if "conf" in facts
            }
        except (ValueError, TypeError) as error:
            raise damaged(self.source, f"its decks cannot be read: {error}") from error
        if any(not -(2**63) <= deck < 2**63 for deck in found):
            raise damaged(self.source, "its decks cannot be read: a number has more than 64 bits")
        return found

    def _object_in_json(self, what: str, text: Any) -> dict[str, Any]:
        """Parse an object in JSON; an empty text is an empty object."""
        parsed = self._json(what, text or "{}")
        if not isinstance(parsed, dict):
            raise damaged(self.source, f"its {what} cannot be read: they are no JSON object")
        return parsed

    def _json(self, what: str, text: Any) -> Any:
        """Parse JSON."""
        try:
            return json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self.source, f"its {what} cannot be read: {error}") from error

    def _require_numbers(self, table: str, columns: Sequence[str]) -> None:
        """Raise unless the table has a bearable number of rows, and numbers in these columns."""
        count = self._count(table, "true")
        if count > _ROWS_AT_MOST[table]:
            what = f"its table {table} has {count:,} rows, more than {_ROWS_AT_MOST[table]:,}"
            raise ReviewLogError(self.source, [what], "No real collection has so many.")
        for column in columns:
            self._require_type(table, column, "integer", "whole number")

    def _require_type(self, table: str, column: str, kind: str, name: str) -> None:
        """Raise if a column has values that SQLite stores as another type."""
        count = self._count(table, f"typeof({column}) != '{kind}'")
        if count:
            rows = "1 row" if count == 1 else f"{count:,} rows"
            has = "has" if count == 1 else "have"
            raise damaged(self.source, f"{rows} of {table} {has} no {name} as {column}")

    def _count(self, table: str, condition: str) -> int:
        """Count rows without the help of indexes, which may have an order only Anki knows."""
        query = f"select count(*) from {table} not indexed where {condition}"
        return int(self.connection.execute(query).fetchone()[0])

    def _whole_numbers(self, table: str, wanted: Sequence[str]) -> dict[str, IntArray]:
        """Read the ids of a table, ascending, and those of the wanted columns that are there."""
        there = self._columns_of(table)
        names = [name for name in ("id", *wanted) if name in there]
        if "id" not in there:
            return {}
        self._require_numbers(table, names)
        columns = self._columns(f"select {', '.join(names)} from {table} not indexed", names)
        ids, first = np.unique(columns["id"], return_index=True)
        if len(ids) < len(columns["id"]):
            repeated = columns["id"][np.setdiff1d(np.arange(len(columns["id"])), first)[0]]
            raise damaged(self.source, f"the id {repeated} occurs twice in its table {table}")
        return {name: column[first] for name, column in columns.items()}

    def _columns(self, query: str, names: Sequence[str]) -> dict[str, IntArray]:
        """Run a query for whole numbers, and return its columns."""
        cursor = self.connection.execute(query)
        blocks = [np.empty((0, len(names)), np.int64)]
        while rows := cursor.fetchmany(_FETCHED_AT_ONCE):
            blocks.append(np.array(rows, np.int64))
        return dict(zip(names, np.ascontiguousarray(np.concatenate(blocks).T), strict=True))

    def _columns_of(self, table: str) -> set[str]:
        """Names of the columns of a table, in lower case; none if it is not there."""
        return {
            str(row[1]).lower() for row in self.connection.execute(f"pragma table_info({table})")
        }


@contextmanager
def open_collection(path: Path) -> Iterator[Collection]:
    """Open a copy of a collection, leaving the file itself untouched."""
    source = str(path)
    with (
        collection_copy(path) as copy,
        open_database(copy.database, source, tables=_TABLES_READ) as connection,
    ):
        _require_anki(source, connection)
        yield Collection(source, copy.member, copy.has_meta, connection)


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


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str)


def _whole(value: Any) -> int:
    """Return a whole number of at most 64 bits."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(f"{str(value)[:40]!r} is no whole number of at most 64 bits")
    return value


def _looked_up(known: IntArray, values: IntArray, keys: IntArray) -> IntArray | None:
    """Look up each key, -1 where nothing is known of it; None if nothing is known of any."""
    if not len(known):
        return None
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, values[place], _NOT_KNOWN)
