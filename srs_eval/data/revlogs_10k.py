"""Review logs in the layout of the public data set anki-revlogs-10k."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.cards import Clock, previous_review, since_previous, stable_order
from srs_eval.data.by_user import Rows, UserRows, tables_by_user
from srs_eval.data.columns import whole_numbers
from srs_eval.data.files import check_columns, column_names, existing, read_table
from srs_eval.data.names import identities
from srs_eval.data.schema import Draft
from srs_eval.data.selection import Choice, KnownUsers, Selection
from srs_eval.data.source import Logs, TableSource
from srs_eval.data.table_options import Columns, Reading
from srs_eval.data.table_rows import identify_cards
from srs_eval.errors import ConfigError, ReviewLogError, Violation
from srs_eval.nouns import BoolArray, Reviews, User
from srs_eval.place import Place

REPO_ID = "open-spaced-repetition/anki-revlogs-10k"

_CARD, _USER, _DECK, _PRESET, _NOTE = "card_id", "user_id", "deck_id", "preset_id", "note_id"
_NOT_KNOWN = -1
_NEEDED = {"card": _CARD, "rating": "rating", "day": "day_offset"}
_OPTIONAL = {
    "elapsed_days": "elapsed_days",
    "elapsed_seconds": "elapsed_seconds",
    "duration_ms": "duration",
    "state": "state",
    "deck": _DECK,
    "preset": _PRESET,
    "note": _NOTE,
}
_COLUMNS = Columns(_CARD, "rating", time=None, day="day_offset")
_USER_FILE = re.compile(r"[/\\]user_id=([0-9]+)[/\\]data\.parquet$")
_UNKNOWN_RATING = "rating outside 1 to 4"
_PARALLEL_DOWNLOADS = 8
_DENIED = (401, 403)
_BY_HAND = (
    "Check the connection, HF_ENDPOINT and HF_HUB_OFFLINE, and the space on the disk; or copy the "
    "files revlogs/user_id=N/data.parquet into the folder by hand and leave data.download=false."
)


@dataclass(frozen=True, slots=True, init=False)
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

    path: str
    choice: Choice
    download: bool
    repo_id: str

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
        if download and users is None:
            raise ConfigError(
                "data.download=true needs data.users, such as data.users=[1-100]: "
                "the whole data set has 10,000 users"
            )
        if download and place.is_remote:
            raise ConfigError(
                f"data.path={path}: data.download=true needs a folder, not an address"
            )
        choice = Choice(users, sample, first)
        self._set(path=place.address, choice=choice, download=download, repo_id=repo_id)

    @property
    def name(self) -> str:
        """Name of the folder or file."""
        return _UserFolders(self.path).root.name

    def users(self) -> Sequence[User]:
        """Return the users, by number; fetch the files of those to be downloaded.

        Raise `ReviewLogError` if the path does not exist, holds no users, or not the ones asked
        for, and `PlaceError` if an object store cannot be used.
        """
        if self.download:
            folders = _UserFolders(self.path)
            missing = [user for user in self.choice.wanted or () if not folders.file(user).exists()]
            if missing:
                names = [f"revlogs/user_id={user}/data.parquet" for user in missing]
                download_files(self.repo_id, names, folders.root.local)
        return TableSource.users(self)

    def find(self) -> Logs:
        """Find the users of the folder or file."""
        rows: Any = _UserFolders(self.path)  # which lists its users when it is asked for them
        if existing(self.path).kind() == "file":
            user_column = _USER if _USER in column_names(self.path) else None
            rows = tables_by_user(Place(self.path), user_column=user_column, text=(_CARD,))
        return Logs(rows, _COLUMNS, Reading())

    def read_rows(self, user: User, logs: Logs) -> Reviews:
        """Build one user's log, without the rows that are no answers."""
        found, source = logs.rows, ""
        if isinstance(found, UserRows):
            user = found.known.find(user)
            source = f", user {user}" * (len(found.known.users) > 1)
        rows = found.of(user)
        return _reviews(user, f"{rows.source}{source}", rows)


@dataclass(frozen=True)
class _UserFolders:
    """Folders of files by user, one of them with the logs."""

    path: str

    @cached_property
    def root(self) -> Place:
        """The folder that holds ``revlogs``, or the file."""
        place = Place(self.path)
        place = place if place.is_remote else Place.of(place.local.resolve())
        return place.parent if place.name == "revlogs" else place

    @cached_property
    def folder(self) -> Place:
        """The folder of the users' folders."""
        below = Place(self.path) / "revlogs"
        is_inside = Place(self.path).name == "revlogs"
        return Place(self.path) if is_inside and below.kind() != "folder" else below

    def file(self, user: User, folder: Place | None = None) -> Place:
        """Return where a file about a user lies, by default the log."""
        return (folder or self.folder) / f"user_id={user}" / "data.parquet"

    @cached_property
    def known(self) -> KnownUsers:
        """The users that have a file."""
        names = (
            _USER_FILE.search(each.place.address) for each in self.folder.files(recursive=True)
        )
        available = sorted(int(name[1]) for name in names if name)
        if not available:
            hint = "Expected revlogs/user_id=N/data.parquet in it, N being a number."
            raise ReviewLogError(self.path, ["there are no users in this folder"], hint)
        return KnownUsers(self.path, tuple(available))

    def of(self, user: User) -> Rows:
        """Read a user's rows, with deck and note of each card and the deck's preset, where known.

        Users are not listed before: with ten thousand, that takes long.
        """
        file = self.file(user)
        if not file.exists():
            file = self.file(self.known.find(user))
        table = read_table(file)
        for folder, key, values in (("cards", _CARD, [_DECK, _NOTE]), ("decks", _DECK, [_PRESET])):
            place = self.file(user, self.root / folder)
            lacking = [value for value in values if value not in table]
            if key not in table or not lacking or not place.exists():
                continue
            known = read_table(place)
            needed = [(value, f"what is said of {folder}") for value in lacking if value != _NOTE]
            check_columns(str(place), list(known.columns), [(key, f"the {folder}"), *needed])
            known = known.drop_duplicates(key).set_index(key)
            for value in known.columns.intersection(lacking):
                table = table.assign(**{value: table[key].map(known[value]).fillna(_NOT_KNOWN)})
        return Rows(str(file), table, np.arange(len(table)))


def _reviews(user: User, source: str, rows: Rows) -> Reviews:
    """Check one user's rows as they stand in the file, then leave out what is no answer."""
    present = list(rows.table.columns)
    named = _NEEDED | {noun: name for noun, name in _OPTIONAL.items() if name in present}
    check_columns(source, present, [(name, f"the {noun}") for noun, name in named.items()])
    table = rows.table.reset_index(drop=True)
    log = Draft(source, {noun: table[name] for noun, name in named.items()}, rows.numbers, named)
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
    if not unknown.any():
        return everything
    if unknown.all():
        nothing = Violation("no row has a rating from 1 to 4", "empty", named["rating"])
        raise ReviewLogError(source, [nothing])
    return _without(everything, unknown)


def _without(reviews: Reviews, unknown: BoolArray) -> Reviews:
    """Leave rows out, joining the intervals before and after each."""
    kept = reviews.take(~unknown)
    previous, order = previous_review(kept.card), stable_order(reviews.card)

    def joined(intervals: Clock) -> Clock:
        """Intervals between the kept reviews of each card."""
        clock = np.empty_like(intervals)
        # Only differences within a card are used, so one running sum over all cards will do.
        clock[order] = np.cumsum(np.maximum(intervals[order], 0))
        return since_previous(clock[~unknown], previous)

    seconds = reviews.elapsed_seconds
    elapsed_days = joined(reviews.elapsed_days)
    return replace(
        kept,
        elapsed_days=elapsed_days,
        elapsed=np.maximum(elapsed_days, 0).astype(np.float64),
        elapsed_seconds=None if seconds is None else joined(seconds),
        row=np.arange(len(kept), dtype=np.int64),
        left_out={_UNKNOWN_RATING: int(unknown.sum())},
    )


def download_files(repo_id: str, names: Sequence[str], folder: Path) -> None:
    """Fetch files of a data set of Hugging Face into a folder, keeping their paths in the data set.

    Raise `ConfigError` if the package huggingface_hub is not installed, and `ReviewLogError` if
    access is not granted, a file is not there, or the site cannot be reached.
    """
    # Optional, and needed for nothing else: loaded only when something is downloaded.
    try:
        hub, errors = import_module("huggingface_hub"), import_module("huggingface_hub.errors")
    except ImportError as error:
        message = (
            "data.download=true needs the package huggingface_hub: run "
            "`pip install 'srs-eval[hub]'`"
        )
        raise ConfigError(message) from error
    fetch = partial(hub.hf_hub_download, repo_id, repo_type="dataset", local_dir=folder)
    source = f"Hugging Face data set {repo_id}"
    try:
        with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
            list(pool.map(fetch, names))
    # The order matters: some of these are kinds of the ones below them.
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise ReviewLogError(source, ["Hugging Face cannot be reached"], _BY_HAND) from error
    except errors.EntryNotFoundError as error:
        raise ReviewLogError(source, [f"a file is not in the data set: {_told(error)}"]) from error
    except errors.HfHubHTTPError as error:
        is_denied = isinstance(error, errors.RepositoryNotFoundError)
        if is_denied or error.response.status_code in _DENIED:
            hint = (
                f"It is open on request: sign in at https://huggingface.co/datasets/{repo_id} and "
                "ask for access there, then run `hf auth login` here or set HF_TOKEN to a token "
                "that may read it."
            )
            raise ReviewLogError(source, ["access is not granted"], hint) from error
        violation = f"the download failed: {_told(error)}"
        raise ReviewLogError(source, [violation], _BY_HAND) from error
    except OSError as error:
        raise ReviewLogError(source, [f"the download failed: {error}"], _BY_HAND) from error


def _told(error: Exception) -> str:
    """Pick the telling line of a long message."""
    return str(error).strip().splitlines()[-1]
