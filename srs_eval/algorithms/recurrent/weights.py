"""Pretrained weights: their numbers, and a record of the users they were learned from.

Numbers are kept in the safetensors format, which holds no code; the card is a JSON file of the
same name beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from srs_eval.data.reviews import (
    FloatArray,
    IntArray,
    Reviews,
    User,
)
from srs_eval.errors import ConfigError, FitError, FitSkipped

# A user's log, and the rows whose outcomes are learned from.
TrainingLog = tuple[Reviews, IntArray]
_COLUMNS = ("day", "rating", "elapsed_days", "elapsed", "row")

# Digests are kept of the first 1, 2, 4, ... 4096 reviews.
_DIGESTS = 13
# Two people's first reviews may be alike, if they are few: then the name must be the same too.
_CERTAIN = 8
# Bytes of a file of weights, and of its card, at most.
_LARGEST = 1 << 26
# Digests from that of 16 reviews on.
_BEGINNING = 4


@dataclass(frozen=True, slots=True)
class SeenUser:
    """A user that weights were learned from."""

    name: User  # As the source of the logs calls the user
    reviews: int  # How many there were to learn from
    digests: tuple[str, ...]  # See `digests_of`


@dataclass(frozen=True, slots=True)
class Weights:
    """What was learned from other users."""

    network: str  # Name of the algorithm they belong to
    sizes: tuple[float, ...]  # What its network is built with
    parameters: tuple[float, ...]  # In the order of `Network.vector`
    scaling: tuple[float, ...]  # As in `Network.set_scaling`
    # Whom they were learned from: these users must not be scored with them
    seen: tuple[SeenUser, ...]
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # How they were learned
    version: str = field(default_factory=lambda: version("srs-eval"))  # Version of srs_eval

    @classmethod
    def learned(
        cls,
        network: str,
        sizes: tuple[float, ...],
        parameters: FloatArray,
        logs: Sequence[TrainingLog],
        scaling: tuple[float, ...] = (),
        **settings: Any,
    ) -> Self:
        """Return what was learned from the logs of some users, if it is made of numbers."""
        if not np.isfinite(parameters).all():
            raise FitError(f"{network}: pretraining led to weights that are not finite")
        seen = tuple(SeenUser(log.user, len(rows), digests_of(log)) for log, rows in logs)
        return cls(network, sizes, tuple(parameters.tolist()), scaling, seen, settings)

    def seen_in(self, reviews: Reviews) -> SeenUser | None:
        """Find the user of a log among those seen, None if they are not there.

        Users are known by how their logs begin: by the largest power of 2 of reviews, up to
        4096, that both this log and the one learned from have. If those are fewer than 256, the
        name must be the same too; and with the same name a beginning of 16 reviews is enough.
        Under another name, a log from which anything was deleted or changed since is not
        recognised, nor is it under any name where that is among the first reviews.
        """
        digests = digests_of(reviews)
        for user in self.seen:
            shared = min(len(digests), len(user.digests))
            alike = shared > 0 and digests[shared - 1] == user.digests[shared - 1]
            begins_alike = any(map(str.__eq__, digests[_BEGINNING:], user.digests[_BEGINNING:]))
            is_namesake = str(user.name) == str(reviews.user)
            if (alike and shared > _CERTAIN) or (is_namesake and (alike or begins_alike)):
                return user
        return None

    def refuse(self, algorithm: str, reviews: Reviews) -> None:
        """Raise `FitSkipped` if the weights were learned from this user."""
        if (seen := self.seen_in(reviews)) is not None:
            raise FitSkipped(
                f"user {reviews.user} was seen in pretraining (as {seen.name}): "
                f"{algorithm} would be scored on what its weights were learned from"
            )

    def save(self, path: Path) -> None:
        """Write the numbers to `path` (which ends in .safetensors), and the card beside it."""
        content = save(
            {
                "parameters": np.array(self.parameters, np.float32),
                "scaling": np.array(self.scaling, np.float64),
            }
        )
        card = {
            "network": self.network,
            "sizes": self.sizes,
            "n_parameters": len(self.parameters),
            "sha256": hashlib.sha256(content).hexdigest(),
            "settings": dict(self.settings),
            "version": self.version,
            "seen": [asdict(user) for user in self.seen],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        text = json.dumps(card, ensure_ascii=False).replace('{"name": ', '\n {"name": ')
        card_of(path).write_text(text + "\n", encoding="utf-8")


def weights_for(
    algorithm: str, sizes: Sequence[tuple[float, ...]], weights: str | Path | Weights | None
) -> Weights | None:
    """Return the weights an option asks for, None if it asks for none.

    Raise `ConfigError` if they are not those of the algorithm with one of the `sizes`.
    """
    if weights is None:
        return None
    if not isinstance(weights, Weights):
        weights = read_weights(Path(weights).expanduser())
    if weights.network != algorithm or weights.sizes not in sizes:
        raise ConfigError(
            f"{algorithm}: these weights are those of {weights.network} with sizes "
            f"{weights.sizes}, not of {algorithm} with {sizes[0]}"
        )
    return weights


def card_of(path: Path) -> Path:
    """Path of the card that belongs to weights."""
    return path.with_suffix(".json")


def read_weights(path: Path) -> Weights:
    """Read weights and their card, which must belong together."""
    try:
        files = {file: file.stat() for file in (path, card_of(path))}
    except OSError as error:
        raise ConfigError(f"weights {path}: {error.strerror}: {error.filename}") from error
    for file, found in files.items():
        if found.st_size > _LARGEST:
            raise ConfigError(
                f"weights {file}: {found.st_size:,} bytes are more than weights may have, "
                f"{_LARGEST:,}"
            )
    changed = [found.st_mtime_ns for found in files.values()]
    return _read_once(path, (changed[0], changed[1]))


@lru_cache(maxsize=4)
def _read_once(path: Path, _changed: tuple[int, int]) -> Weights:
    content = path.read_bytes()
    try:
        card = json.loads(card_of(path).read_text(encoding="utf-8"))
        numbers = load(content)
        parameters, scaling = numbers["parameters"], numbers["scaling"]
        seen = tuple(
            SeenUser(user["name"], user["reviews"], tuple(user["digests"])) for user in card["seen"]
        )
        weights = Weights(
            network=card["network"],
            sizes=tuple(card["sizes"]),
            parameters=tuple(parameters.tolist()),
            scaling=tuple(scaling.tolist()),
            seen=seen,
            settings=card["settings"],
            version=card["version"],
        )
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"weights {path}: these are not weights with their card ({type(error).__name__}: "
            f"{error})"
        ) from error
    if card.get("sha256") != hashlib.sha256(content).hexdigest():
        raise ConfigError(
            f"weights {path}: the card {card_of(path).name} is that of other weights, so it "
            "cannot be told whom these have seen"
        )
    return weights


def digests_of(reviews: Reviews) -> tuple[str, ...]:
    """Digests of the first 1, 2, 4, ... reviews of a log, as many as there are.

    Of each review, they are made of the card (numbered as they appear), the day (since the
    first) and the rating. Reviews on the day of the card's review before do not count: some
    protocols leave them out. So a user is recognised under any protocol, by the log cut off
    anywhere, and whatever users and cards are called.
    """
    later = np.flatnonzero(reviews.elapsed_days != 0)[: 1 << (_DIGESTS - 1)]
    if not len(later):
        return ()
    _, first, which = np.unique(reviews.card[later], return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))[which]
    day = reviews.day[later] - reviews.day[later[0]]
    facts = np.stack([appearance, day, reviews.rating[later]], axis=1).astype("<i8")
    digest, digests, done = hashlib.sha256(), [], 0
    for power in range(len(later).bit_length()):
        digest.update(facts[done : 1 << power].tobytes())
        done = 1 << power
        digests.append(digest.hexdigest()[:16])
    return tuple(digests)


def pooled(logs: Sequence[TrainingLog]) -> TrainingLog:
    """Concatenate the logs of many users, with no card in common.

    Raise `ConfigError` if there are none, or some count whole days and others do not.
    """
    if len({reviews.whole_days for reviews, _ in logs}) != 1:
        raise ConfigError("pretraining needs users, all with whole days or all with fractions")
    cards, rows, n_cards, n_reviews = [], [], 0, 0
    for reviews, trained in logs:
        _, card = np.unique(reviews.card, return_inverse=True)
        cards.append(card + n_cards)
        rows.append(trained + n_reviews)
        n_cards += int(card.max(initial=-1)) + 1
        n_reviews += len(reviews)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(reviews, name) for reviews, _ in logs]) for name in _COLUMNS
    }
    durations = [reviews.duration_ms for reviews, _ in logs]
    known = [duration for duration in durations if duration is not None]
    together = Reviews(
        user="pooled",
        card=np.concatenate(cards),
        whole_days=logs[0][0].whole_days,
        duration_ms=np.concatenate(known) if len(known) == len(durations) else None,
        **columns,
    )
    return together, np.concatenate(rows)
