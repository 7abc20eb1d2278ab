"""The share of the users that one of several commands evaluates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from srs_eval.errors import ConfigError
from srs_eval.place import Place

Item = TypeVar("Item")

# In place of a shard: take what all shards have evaluated, and evaluate nothing.
ALL = "all"
# Folder of the folders of shards, in that of their run.
SHARDS = "shards"
# Folder and files in which Hydra records the command of a shard.
COMMAND = ".hydra"
COMMAND_FILES = ("hydra.yaml", "overrides.yaml")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several commands that share the users of a run."""

    # The first is 1 of `of`
    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard such as ``3/64``."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        number, of = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= of:
            raise ConfigError(f"shard={text}: expected K/N, such as 3/64, with K from 1 to N")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """Name of the folder of the shard."""
        return f"{self.number}_of_{self.of}"

    def take(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the share of the shard: every `of`-th item."""
        return items[self.number - 1 :: self.of]


def recorded_shards(place: Place) -> list[Place]:
    """Return the folders with the commands of the shards of a run, or of parts at an address."""
    found = (place / SHARDS).files(recursive=True, hidden=True)
    commands = {entry.place.parent for entry in found if entry.place.name == COMMAND_FILES[-1]}
    return sorted(commands, key=str)
