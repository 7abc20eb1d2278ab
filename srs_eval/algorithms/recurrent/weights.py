"""Weights learned from other users, and the record of whom they were learned from.

Both are in one safetensors file, which holds no code; the record is JSON in its metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from srs_eval.data.reviews import FloatArray, IntArray, Reviews, User
from srs_eval.errors import ConfigError, FitError, FitSkipped

# A user's log, and the rows whose outcomes are learned from.
TrainingLog = tuple[Reviews, IntArray]

# Digests are of the first 1, 2, 4, ... 4096 reviews.
_DIGESTS = 13
# Two people's first reviews may be alike, if they are few: then the name must be the same too.
_CERTAIN = 8
# Digests from that of 16 reviews on.
_BEGINNING = 4
# Key of the record in the metadata.
_RECORD = "srs_eval"


@dataclass(frozen=True, slots=True)
class SeenUser:
    """A user that weights were learned from."""

    name: User  # As the source of the logs calls the user
    reviews: int  # How many there were to learn from
    digests: tuple[str, ...]  # See `digests_of`

    def is_of(self, name: User, digests: Sequence[str]) -> bool:
        """Whether a log, of somebody of a name, is of this user.

        Users are known by how their logs begin: by the largest power of 2 of reviews, up to
        4096, that both this log and the one learned from have. If those are fewer than 256, the
        name must be the same too; and with the same name a beginning of 16 reviews is enough.
        Under another name, a log from which anything was deleted or changed since is not
        recognised, nor is it under any name where that is among the first reviews.
        """
        alike = [*map(str.__eq__, digests, self.digests)]
        if str(self.name) != str(name):
            return len(alike) > _CERTAIN and alike[-1]
        return any(alike[-1:] + alike[_BEGINNING:])


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of a network that were learned from other users."""

    network: str  # Name of the algorithm they belong to
    sizes: tuple[float, ...]  # What its network is built with
    parameters: tuple[float, ...]  # In the order of the network
    scaling: tuple[float, ...]  # Of what the network reads, if it scales that
    # Whom they were learned from: these users must not be scored with them
    seen: tuple[SeenUser, ...]
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # How they were learned
    version: str = field(default_factory=lambda: version("srs-eval"))  # Version of srs_eval

    @classmethod
    def of(
        cls, network: str, sizes: Sequence[tuple[float, ...]], option: str | Path | Self | None
    ) -> Self | None:
        """Return the weights that an option asks for, which are to have one of the `sizes`."""
        weights = cls.read(Path(option).expanduser()) if isinstance(option, str | Path) else option
        if weights is not None and (weights.network != network or weights.sizes not in sizes):
            raise ConfigError(
                f"{network}: these weights are those of {weights.network} with sizes "
                f"{weights.sizes}, not of {network} with {sizes[0]}"
            )
        return weights

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a safetensors file; raise `ConfigError` if it is not one, with the record."""
        try:
            with safe_open(path, "numpy") as file:
                columns = json.loads(file.metadata()[_RECORD])
                for name in ("parameters", "scaling"):
                    columns[name] = file.get_tensor(name).tolist()
            return TypeAdapter(cls).validate_python(columns)
        except (OSError, SafetensorError, ValueError, LookupError, TypeError) as error:
            raise ConfigError(
                f"weights {path}: not a safetensors file with the record of srs_eval, whom they "
                f"were learned from ({type(error).__name__}: {error})"
            ) from error

    def refuse(self, reviews: Reviews) -> None:
        """Raise `FitSkipped` if the weights were learned from the user of a log."""
        digests = digests_of(reviews)
        for user in self.seen:
            if user.is_of(reviews.user, digests):
                raise FitSkipped(
                    f"user {reviews.user} was seen in pretraining (as {user.name}): "
                    f"{self.network} would be scored on what its weights were learned from"
                )

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        columns = asdict(self)
        tensors: dict[str, FloatArray] = {
            "parameters": np.array(columns.pop("parameters"), np.float32),
            "scaling": np.array(columns.pop("scaling"), np.float64),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save(tensors, {_RECORD: json.dumps(columns, ensure_ascii=False)}))


def seen_in(logs: Iterable[TrainingLog]) -> tuple[SeenUser, ...]:
    """Record the users of some logs, which parameters are learned from."""
    return tuple(SeenUser(log.user, len(rows), digests_of(log)) for log, rows in logs)


def finite(parameters: FloatArray, who: str, advice: str, loss: float = 0.0) -> tuple[float, ...]:
    """Return parameters as numbers; raise `FitError` where training led to others."""
    if not np.isfinite([loss, *parameters]).all():
        raise FitError(f"{who} diverged to weights that are not finite: try {advice}")
    return tuple(parameters.tolist())


def digests_of(reviews: Reviews) -> tuple[str, ...]:
    """Digests of the first 1, 2, 4, ... reviews of a log, as many as there are.

    Of each review, they are made of the card (numbered as they appear), the day (since the
    first) and the rating. Reviews on the day of the card's review before do not count: some
    protocols leave them out. So a user is recognised under any protocol, by the log cut off
    anywhere, and whatever users and cards are called.
    """
    later = np.flatnonzero(reviews.elapsed_days != 0)[: 1 << (_DIGESTS - 1)]
    appearance, _ = pd.factorize(reviews.card[later])
    day = reviews.day[later] - reviews.day[later[:1]]
    facts = np.stack([appearance, day, reviews.rating[later]], axis=1).astype("<i8")
    ends = 1 << np.arange(len(later).bit_length())
    return tuple(hashlib.sha256(facts[:end].tobytes()).hexdigest()[:16] for end in ends)


def pooled(logs: Sequence[TrainingLog]) -> TrainingLog:
    """Concatenate the logs of many users, with no card in common."""
    reviews = [log for log, _ in logs]
    if len({log.whole_days for log in reviews}) != 1 or not any(len(rows) for _, rows in logs):
        raise ConfigError(
            "pretraining needs users with reviews to learn from, all in whole days or all in "
            "fractions"
        )
    sizes = [len(log) for log in reviews]
    begins = np.cumsum([0, *sizes[:-1]])
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(log, name) for log in reviews])
        for name in ("card", "day", "rating", "elapsed_days", "elapsed", "row", "duration_ms")
        if all(getattr(log, name) is not None for log in reviews)
    }
    owner_and_card = np.stack([np.repeat(np.arange(len(logs)), sizes), columns["card"]])
    columns["card"] = np.unique(owner_and_card, axis=1, return_inverse=True)[1].ravel()
    rows = np.concatenate([own + begin for (_, own), begin in zip(logs, begins, strict=True)])
    return Reviews(user="pooled", whole_days=reviews[0].whole_days, **columns), rows
