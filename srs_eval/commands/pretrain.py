r"""Pretrain the initial weights of a network on other users than those it is tested on.

  python -m srs_eval.pretrain algo=gru data=revlogs_10k data.path=DIR data.users=[1-100] \
      weights=gru.safetensors

All other options are those of python -m srs_eval: algorithm, logs, the protocol that defines
histories, and the seed. The weights are then an option of the algorithm,
algo.weights=gru.safetensors. A JSON file of the same name lists the users they were trained on,
which are skipped in runs with these weights.

With protocol.user_folds=2 there are two files, gru.fold1.safetensors and gru.fold2.safetensors,
each learned from one half of the users for the other. A run with the same option does this by
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.algorithms.combined.cross_fitted import cross_fitted
from srs_eval.commands.cli import Command, Local
from srs_eval.commands.overrides import Configured
from srs_eval.config.building import build
from srs_eval.errors import ConfigError
from srs_eval.nouns import IntArray, Reviews, User
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.run.experiment import lessons
from srs_eval.text.console import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrain(Configured):
    """Options of the command."""

    weights: Local[Path]
    """the file to write, as in weights=FILE.safetensors"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        yield from Configured.problems(self)
        if self.weights and not str(self.weights).endswith(".safetensors"):
            yield f"weights={self.weights}: write weights=FILE.safetensors"


def pretrain(options: Pretrain) -> int:
    """Pretrain, write the weights, and print the users they were learned from."""
    path, found = options.weights, pretrained(options)
    for number, algorithm in enumerate(found, start=1):
        weights = algorithm.weights
        if not hasattr(weights, "save"):
            raise ConfigError(f"nothing to write: the pretrained weights are {weights}")
        own = path.with_stem(f"{path.stem}.fold{number}") if len(found) > 1 else path
        weights.save(own)  # before anything else: it took long
        seen = weights.seen
        reviews = sum(user.reviews for user in seen)
        say(f"{own}: {len(weights.parameters):,} parameters")
        say(f"learned from {reviews:,} reviews of {len(seen):,} users, which will not be scored")
    return 0


def pretrained(options: Configured) -> Sequence[Any]:
    """Build the objects of the overrides, and pretrain the algorithm, once or for each fold."""
    inputs = build(*options.composed())
    algorithm, name = inputs["algo"], inputs.groups["algo"].name
    if not hasattr(algorithm, "pretrain"):
        raise ConfigError(f"algo={name} cannot be pretrained")
    if not hasattr(algorithm, "weights"):
        raise ConfigError(
            f"algo={name} has pretrain, but no weights for the result "
            "(see srs_eval.nouns.Pretrainable)"
        )
    source, protocol, seed = inputs["data"], inputs["protocol"], inputs.settings["seed"]

    def read(users: Sequence[User]) -> Iterator[tuple[Reviews, IntArray]]:
        return lessons(algorithm, source, protocol, users, left_out=say)

    if isinstance(protocol, UserFolds):
        return cross_fitted(algorithm, protocol.fold_of(source.users()), read, seed).algorithms
    return [algorithm.pretrain(read(source.users()), np.random.default_rng(seed))]


command = Command("python -m srs_eval.pretrain", __doc__, Pretrain, pretrain)
