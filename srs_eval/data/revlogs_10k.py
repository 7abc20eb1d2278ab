"""Review logs in the layout of the public data set anki-revlogs-10k."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from srs_eval.data.cards import FIRST
from srs_eval.data.cells import identities, numbers, whole_numbers
from srs_eval.data.files import existing, read_table
from srs_eval.data.options import Columns, Selection, TableOptions
from srs_eval.data.reviews import Reviews, User
from srs_eval.data.schema import Draft, identify_cards
from srs_eval.data.table import Logs, Rows, TableSource, by_noun, by_user
from srs_eval.errors import ReviewLogError
from srs_eval.places import Place

_NEEDED = Columns(card="card_id", rating="rating", time=None, day="day_offset")
_OPTIONAL = {
    "elapsed_days": "elapsed_days",
    "elapsed_seconds": "elapsed_seconds",
    "duration_ms": "duration",
    "state": "state",
    "deck": "deck_id",
    "preset": "preset_id",
    "note": "note_id",
}
# Folder of a table about the cards or decks of a user, its key, and what it says of each
_JOINED = (("cards", "card_id", ("deck_id", "note_id")), ("decks", "deck_id", ("preset_id",)))
_USER_FILE = re.compile(r"[/\\]user_id=([0-9]+)[/\\]data\.parquet$")


class RevlogsFolder(TableSource):
    """Users of a folder ``revlogs/user_id=N/data.parquet``, read one at a time.

    A single CSV or parquet file with the same columns will do too: with a column `user_id`
    it holds several users, without it one, named after the file. The columns are `card_id`,
    `day_offset` and `rating`, and where there `elapsed_days`, `elapsed_seconds`, `duration`,
    `state`, `deck_id`, `preset_id` and `note_id`. In a folder, decks and notes of cards come from
    ``cards/user_id=N/data.parquet`` and presets of decks from ``decks/user_id=N/data.parquet``,
    where these files are. Rows whose rating is not 1 to 4 are no answers: they are left out and
    counted, and the intervals around them joined.

    Parameters
    ----------
    path : str or Path
        The folder that holds ``revlogs``, that folder itself, or a file; a path, or an address:
        ``s3://``, ``gs://``, ``abfss://`` or ``hf://``.
    users : int, str or sequence of either, optional
        Whom to read, such as ``[8, 36]`` or ``"1-100,250"``; everyone if None.
    sample : int, optional
        How many of these users at most, chosen by a digest of their names.
    first : int, optional
        How many of these users at most, in their order.

    Raises
    ------
    ConfigError
        If `users` makes no sense.

    References
    ----------
    https://huggingface.co/datasets/open-spaced-repetition/anki-revlogs-10k
    """

    def __init__(
        self,
        path: str | Path,
        users: Selection = None,
        *,
        sample: int | None = None,
        first: int | None = None,
    ) -> None:
        self.options = TableOptions(users, sample, first)
        self.location = Place.of(path).address
        self.name = self._root.name

    @property
    def _root(self) -> Place:
        """The folder that holds ``revlogs``, or the file."""
        place = Place(self.location)
        place = place if place.is_remote else Place.of(place.local.resolve())
        return place.parent if place.name == "revlogs" else place

    def find(self) -> Logs:
        """Find the users of the folder or file."""
        place = existing(self.location)
        if place.kind() == "file":
            table = read_table(place)
            user = "user_id" if "user_id" in table else None
            columns = replace(_NEEDED, user=user, **_present(table))
            rows = by_noun(str(place), table, columns)
            return replace(by_user(rows, str(place), columns, only_user=place.stem), table=None)
        files = (self._root / "revlogs").files(recursive=True)
        numbers = (_USER_FILE.search(file.address) for file in files)
        users = sorted(int(number[1]) for number in numbers if number)
        if not users:
            hint = "Expected revlogs/user_id=N/data.parquet in it, N being a number."
            raise ReviewLogError(self.location, ["there are no users in this folder"], hint)
        return Logs(self.location, [*users], _NEEDED, self._rows)

    def _rows(self, user: User) -> Rows:
        """Read a user's rows, with deck and note of cards and the preset of decks, where known."""
        part = f"user_id={user}"
        file = self._root / "revlogs" / part / "data.parquet"
        table = read_table(file)
        for folder, key, values in _JOINED:
            place = self._root / folder / part / "data.parquet"
            lacking = [value for value in values if value not in table]
            if key in table and lacking and place.kind():
                about = read_table(place)
                for name in (key, values[0]):
                    if name not in about:
                        raise ReviewLogError(str(place), [f"there is no column {name!r}"])
                about = about.drop_duplicates(key).set_index(key)
                for value in about.columns.intersection(lacking):
                    table[value] = table[key].map(about[value]).fillna(-1)
        columns = replace(_NEEDED, **_present(table))
        return str(file), by_noun(str(file), table, columns, of_user=False)

    def log(self, user: User, source: str, rows: pd.DataFrame, columns: Columns) -> Reviews:
        """Make one user's log of the rows that are answers."""
        log = Draft(source, rows.copy(deep=False), columns.used | _OPTIONAL)
        identify_cards(log)
        log.check()
        card = log.rows["card"] = identities(log.rows["card"])
        rating, unreadable = whole_numbers(log.rows["rating"])
        answers = ((rating >= 1) & (rating <= 4)) | unreadable
        if not answers.all():
            log.rows = log.rows.drop(columns="elapsed_days", errors="ignore")  # derived from days
            if "elapsed_seconds" in log.rows:
                seconds = pd.Series(numbers(log.rows["elapsed_seconds"]), card.index)
                clock = seconds.groupby(card).cumsum()[answers]
                log.rows["elapsed_seconds"] = clock.groupby(card[answers]).diff().fillna(FIRST)
            log.leave_out("rating outside 1 to 4", ~answers)
        return log.finished(user)


def _present(table: pd.DataFrame) -> dict[str, str]:
    """Return the optional columns that a table has, by their nouns."""
    return {noun: name for noun, name in _OPTIONAL.items() if name in table}
