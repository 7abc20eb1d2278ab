"""The logs of studies: real ones, as far as their paths are given, simulated ones, and parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import ConfigError
from srs_eval.nouns import Reviews, Source, User

SIMULATED = "simulated"
_JOSH = Columns(
    card="card_id",
    time=None,
    day="day_offset",
    elapsed_days="elapsed_days",
    elapsed_seconds="elapsed_seconds",
    duration_ms="duration",
)


def given_path(options: SimpleNamespace, name: str) -> Path | None:
    """Return the path that an option names; None where it is null.

    Raises
    ------
    ConfigError
        If nothing is there.
    """
    value = getattr(options, name)
    if value is None:
        return None
    path = Path(str(value)).expanduser()
    if not path.exists():
        raise ConfigError(f"study.{name}={value}: no such file or folder")
    return path


def real_logs(options: SimpleNamespace) -> tuple[dict[str, Source], list[str]]:
    """Return the logs by name, and what is left out for lack of a path.

    ``study.josh`` is the log of py-fsrs' author in the columns of anki-revlogs-10k,
    ``study.anki_mit`` a folder in the layout of that data set.
    """
    paths = {
        name: given_path(options, name) for name in ("josh", "anki_mit") if name in vars(options)
    }
    found: dict[str, Source] = {}
    if path := paths.get("josh"):
        found["josh"] = ReviewTable(path=str(path), columns=_JOSH)
    if path := paths.get("anki_mit"):
        found["anki-mit"] = RevlogsFolder(path)
    return found, [f"study.{name} (no path given)" for name, path in paths.items() if path is None]


def logs(
    options: SimpleNamespace, small: tuple[int, int], full: tuple[int, int], **simulated: float
) -> tuple[dict[str, Source], list[str]]:
    """Return the real logs and simulated ones by name, and what is left out for lack of a path.

    `small` and `full` are how many users are simulated and the most reviews of each, `simulated`
    further options of them; the small version of a study has no real logs.
    """
    found, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = small if options.small else full
    found[SIMULATED] = SyntheticUsers(users=users, max_reviews=reviews, **simulated)
    return found, left_out


@dataclass(frozen=True)
class CardParts:
    """The users of a source, each cut into parts with equally many cards, drawn at random.

    Parts of one user share the person, and say nothing of other people.
    """

    source: Source
    parts: int
    seed: int = 2026

    @property
    def name(self) -> str:
        """Name of the source, with the number of parts."""
        return f"{self.source.name} in {self.parts} parts"

    @property
    def location(self) -> str:
        """Where the whole logs are."""
        return self.source.location

    def users(self) -> tuple[User, ...]:
        """Return the parts of all users."""
        numbers = range(1, self.parts + 1)
        return tuple(f"{user}/{number}" for user in self.source.users() for number in numbers)

    def read(self, user: User) -> Reviews:
        """Read one part of a log."""
        name, _, number = str(user).rpartition("/")
        whole = next(each for each in self.source.users() if str(each) == name)
        log = self.source.read(whole)
        cards = np.random.default_rng(self.seed).permutation(np.unique(log.card))
        own = np.isin(log.card, cards[int(number) - 1 :: self.parts])
        return replace(log.take(own), user=user)


@dataclass(frozen=True)
class FirstReviews:
    """The first reviews of the users who have so many, kept in memory."""

    logs: Mapping[User, Reviews]
    size: int
    name: str = "first reviews"
    location: str = "memory"

    def users(self) -> Sequence[User]:
        """Return the users who have so many reviews."""
        return [user for user, log in self.logs.items() if len(log) >= self.size]

    def read(self, user: User) -> Reviews:
        """Return the beginning of one log."""
        return self.logs[user].take(np.arange(self.size))
