"""Review logs in the layout of the public data set anki-revlogs-10k."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.cards import Clock, previous_review, since_previous, stable_order
from srs_eval.data.cells import identities, whole_numbers
from srs_eval.data.files import check_columns, column_names, existing, read_table
from srs_eval.data.log import identify_cards
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.schema import Draft
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, Rows, TableSource, by_user
from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.nouns import BoolArray, Reviews, User
from srs_eval.places import Place

REPO_ID = "open-spaced-repetition/anki-revlogs-10k"

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
_NOT_KNOWN = -1
_USER_FILE = re.compile(r"[/\\]user_id=([0-9]+)[/\\]data\.parquet$")


class RevlogsFolder(TableSource):
    """Users of a folder ``revlogs/user_id=N/data.parquet``, read one at a time.

    A single CSV or parquet file with the same columns will do too: with a column `user_id`
    it holds several users, without it one, named after the file. The columns are `card_id`,
    `day_offset` and `rating`, and where there `elapsed_days`, `elapsed_seconds`, `duration`,
    `state`, `deck_id`, `preset_id` and `note_id`. In a folder, decks and notes of cards come from
    ``cards/user_id=N/data.parquet`` and presets of decks from ``decks/user_id=N/data.parquet``,
    where these files are; downloads leave them out. Rows whose rating is not 1 to 4 are no
    answers: they are left out and counted, and the intervals around them joined.

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
    download : bool
        Whether to fetch the files of `users` that are not in the folder yet. The data set is
        open on request.
    repo_id : str
        Where to fetch them from on Hugging Face.

    Raises
    ------
    ConfigError
        If `users` makes no sense, or there are no users to download.

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
        download: bool = False,
        repo_id: str = REPO_ID,
    ) -> None:
        place = Place.of(path)
        if download and (users is None or place.is_remote):
            raise ConfigError(
                "data.download=true needs a folder, not an address, and data.users, such as "
                "data.users=[1-100]: the whole data set has 10,000 users"
            )
        self.options, self.choice = TableOptions(), Choice(users, sample, first)
        self.download, self.repo_id = download, repo_id
        self.location = place.address
        self.name = self._root.name

    @property
    def _root(self) -> Place:
        """The folder that holds ``revlogs``, or the file."""
        place = Place(self.location)
        place = place if place.is_remote else Place.of(place.local.resolve())
        # Of a ``revlogs`` in another one, the outer is only called so.
        is_inside = place.name == "revlogs" and (place / "revlogs").kind() != "folder"
        return place.parent if is_inside else place

    def _file(self, user: User, folder: str = "revlogs") -> Place:
        return self._root / folder / f"user_id={user}" / "data.parquet"

    def users(self) -> Sequence[User]:
        """Return the users, by number; fetch the files of those to be downloaded.

        Raise `ReviewLogError` if the path does not exist, holds no users, or not the ones asked
        for.
        """
        names = self.choice.names or () if self.download else ()
        missing = [user for user in names if not self._file(user).kind()]
        if missing:
            files = [f"revlogs/user_id={user}/data.parquet" for user in missing]
            download_files(self.repo_id, files, self._root.local)
        return super().users()

    def find(self) -> Logs:
        """Find the users of the folder or file."""
        place = existing(self.location)
        if place.kind() == "file":
            user = "user_id" if "user_id" in column_names(place) else None
            columns = replace(_NEEDED, user=user)
            table = read_table(place, text=columns.identifiers)
            return replace(by_user(table, str(place), columns, only_user=place.stem), table=None)
        files = (self._root / "revlogs").files(recursive=True)
        numbers = (_USER_FILE.search(file.address) for file in files)
        users = sorted(int(number[1]) for number in numbers if number)
        if not users:
            hint = "Expected revlogs/user_id=N/data.parquet in it, N being a number."
            raise ReviewLogError(self.location, ["there are no users in this folder"], hint)
        return Logs(KnownUsers(self.location, tuple(users)), _NEEDED, self._rows)

    def _rows(self, user: User) -> Rows:
        """Read a user's rows, with deck and note of cards and the preset of decks, where known."""
        file = self._file(user)
        table = read_table(file)
        for folder, key, values in _JOINED:
            place = self._file(user, folder)
            lacking = [value for value in values if value not in table]
            if key in table and lacking and place.kind():
                about = read_table(place)
                missing = [name for name in (key, values[0]) if name not in about]
                if missing:
                    raise ReviewLogError(str(place), [f"there is no column {missing[0]!r}"])
                about = about.drop_duplicates(key).set_index(key)
                for value in about.columns.intersection(lacking):
                    table[value] = table[key].map(about[value]).fillna(_NOT_KNOWN)
        return str(file), table

    def read(self, user: User) -> Reviews:
        """Read one user's log, without the rows that are no answers.

        Raise `ReviewLogError` if there is no such user, or the log cannot be used.
        """
        if self._file(user).kind():  # listing ten thousand users takes long
            (source, rows), columns = self._rows(user), _NEEDED
        else:
            logs = self._logs()
            (user,), columns = logs.known.select(user), logs.columns
            source, rows = logs.rows(user)
            source += f", user {user}" if columns.user else ""
        columns = replace(columns, **{noun: name for noun, name in _OPTIONAL.items() if name in rows})
        check_columns(source, [*rows.columns], columns, of_user=False)
        return _reviews(user, source, rows, columns)


def _reviews(user: User, source: str, rows: pd.DataFrame, columns: Columns) -> Reviews:
    """Check one user's rows as they stand in the file, then leave out what is no answer."""
    names, table = columns.used, rows.reset_index(drop=True)
    part = {noun: table[name] for noun, name in names.items()}
    log = Draft(source, part, rows.index.to_numpy(np.int64), names)
    identify_cards(log)
    if log.violations:
        raise log.error(log.violations)
    log.columns["card"] = identities(log.columns["card"])
    rating, unreadable = whole_numbers(log.columns["rating"])
    unknown = ((rating < 1) | (rating > 4)) & ~unreadable
    # The other columns are checked with all rows in place; there, any rating will do, and
    # the states of rows that are no answers are none of ours.
    for noun, any_known in (("rating", 1), ("state", 0)):
        if unknown.any() and noun in log.columns:
            log.columns[noun] = log.columns[noun].mask(unknown, any_known)
    everything = log.finished(user)
    if unknown.all():
        nothing = Violation("no row has a rating from 1 to 4", "empty", names["rating"])
        raise ReviewLogError(source, [nothing])
    return _without(everything, unknown) if unknown.any() else everything


def _without(reviews: Reviews, unknown: BoolArray) -> Reviews:
    """Leave rows out, joining the intervals before and after each."""
    answers = reviews.take(~unknown)
    previous, order = previous_review(answers.card), stable_order(reviews.card)

    def joined(intervals: Clock) -> Clock:
        """Intervals between the answers of each card."""
        clock = np.empty_like(intervals)
        # Only differences within a card are used, so one running sum over all cards will do.
        clock[order] = np.cumsum(np.maximum(intervals[order], 0))
        return since_previous(clock[~unknown], previous)

    seconds = reviews.elapsed_seconds
    elapsed_days = joined(reviews.elapsed_days)
    return replace(
        answers,
        elapsed_days=elapsed_days,
        elapsed=np.maximum(elapsed_days, 0).astype(np.float64),
        elapsed_seconds=None if seconds is None else joined(seconds),
        row=np.arange(len(answers), dtype=np.int64),
        left_out={"rating outside 1 to 4": int(unknown.sum())},
    )


def download_files(repo_id: str, names: Sequence[str], folder: Path) -> None:
    """Fetch files of a data set of Hugging Face into a folder, keeping their paths in the data set.

    Raise `ConfigError` if the package huggingface_hub is not installed, and `ReviewLogError` if
    access is not granted, a file is not there, or the site cannot be reached.
    """
    try:
        hub: Any = import_module("huggingface_hub")
        not_there = import_module("huggingface_hub.errors").EntryNotFoundError
    except ImportError as error:
        needed = "data.download=true needs the package huggingface_hub"
        raise ConfigError(f"{needed}: run `pip install 'srs-eval[hub]'`") from error
    fetch = partial(hub.hf_hub_download, repo_id, repo_type="dataset", local_dir=folder)
    try:
        for name in names:
            fetch(name)
    except (OSError, not_there) as error:
        reason = str(error).strip().splitlines()[-1]
        hint = (
            f"It is open on request: ask at https://huggingface.co/datasets/{repo_id}, then run "
            "`hf auth login` here or set HF_TOKEN; or copy revlogs/user_id=N/data.parquet into the "
            "folder by hand and leave data.download=false."
        )
        source = f"Hugging Face data set {repo_id}"
        raise ReviewLogError(source, [f"the download failed: {reason}"], hint) from error
