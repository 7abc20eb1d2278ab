"""Weights learned from other users, and the record of whom they were learned from.

Both are in one safetensors file, which holds no code; the record is JSON in its metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
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


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of a network that were learned from other users."""

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
        *,
        settings: Mapping[str, Any],
    ) -> Self:
        """Record the users of some logs; raise `FitError` unless all parameters are finite."""
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
        """Write a safetensors file."""
        columns = asdict(self)
        tensors: dict[str, FloatArray] = {
            "parameters": np.array(columns.pop("parameters"), np.float32),
            "scaling": np.array(columns.pop("scaling"), np.float64),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save(tensors, {_RECORD: json.dumps(columns, ensure_ascii=False)}))


def weights_for(
    algorithm: str, sizes: Sequence[tuple[float, ...]], weights: str | Path | Weights | None
) -> Weights | None:
    """Return the weights an option asks for, None if it asks for none.

    Raise `ConfigError` if they are not those of the algorithm with one of the `sizes`.
    """
    if weights is None:
        return None
    if not isinstance(weights, Weights):
        path = Path(weights).expanduser()
        try:
            with safe_open(path, "numpy") as file:
                columns = json.loads(file.metadata()[_RECORD])
                for name in ("parameters", "scaling"):
                    columns[name] = file.get_tensor(name).tolist()
            weights = TypeAdapter(Weights).validate_python(columns)
        except (OSError, SafetensorError, ValueError, LookupError, TypeError) as error:
            raise ConfigError(
                f"weights {path}: not a safetensors file with the record of srs_eval, whom they "
                f"were learned from ({type(error).__name__}: {error})"
            ) from error
    if weights.network != algorithm or weights.sizes not in sizes:
        raise ConfigError(
            f"{algorithm}: these weights are those of {weights.network} with sizes "
            f"{weights.sizes}, not of {algorithm} with {sizes[0]}"
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
    ends = 1 << np.arange(len(later).bit_length())
    return tuple(hashlib.sha256(facts[:end].tobytes()).hexdigest()[:16] for end in ends)


def pooled(logs: Sequence[TrainingLog]) -> TrainingLog:
    """Concatenate the logs of many users, with no card in common.

    Raise `ConfigError` if there are none, or some count whole days and others do not.
    """
    reviews = [log for log, _ in logs]
    if len({log.whole_days for log in reviews}) != 1:
        raise ConfigError("pretraining needs users, all with whole days or all with fractions")
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
