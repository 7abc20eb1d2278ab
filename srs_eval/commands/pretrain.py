r"""Pretrain the initial weights of a network on other users than those it is tested on.

  python -m srs_eval.pretrain algo=gru data=revlogs_10k data.path=DIR data.users=[1-100] \
      weights=gru.safetensors

All other options are those of python -m srs_eval: algorithm, logs, the protocol that defines
histories, and the seed. The weights are then an option of the algorithm,
algo.weights=gru.safetensors. A JSON file of the same name lists the users they were trained on,
which are skipped in runs with these weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.commands.cli import Command, Local
from srs_eval.commands.overrides import Configured
from srs_eval.config.building import build, resolved
from srs_eval.errors import ConfigError, FitSkipped, ReviewLogError
from srs_eval.nouns import Algorithm, EvaluationProtocol, IntArray, Reviews, Source
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
    path, weights = options.weights, pretrained(options).weights
    if not hasattr(weights, "save"):
        raise ConfigError(f"nothing to write: the pretrained weights are {weights}")
    weights.save(path)  # before anything else: it took long
    seen = weights.seen
    reviews = sum(user.reviews for user in seen)
    say(f"{path}: {len(weights.parameters):,} parameters")
    say(f"learned from {reviews:,} reviews of {len(seen):,} users, which will not be scored")
    return 0


def pretrained(options: Configured) -> Any:
    """Build the objects of the overrides, and pretrain the algorithm."""
    cfg, choices = options.composed()
    content = resolved(cfg, choices)
    built = build(content, choices)
    algorithm = built["algo"]
    if not hasattr(algorithm, "pretrain"):
        raise ConfigError(f"algo={choices['algo']} cannot be pretrained")
    if not hasattr(algorithm, "weights"):
        raise ConfigError(
            f"algo={choices['algo']} has pretrain, but no weights for the result "
            "(see srs_eval.nouns.Pretrainable)"
        )
    users = lessons(algorithm, built["data"], built["protocol"])
    return algorithm.pretrain(users, np.random.default_rng(content["seed"]))


def lessons(
    algorithm: Algorithm, source: Source, protocol: EvaluationProtocol
) -> Iterator[tuple[Reviews, IntArray]]:
    """Read the log of each user, and return the rows to learn from: all candidates."""
    for user in source.users():
        try:
            task = protocol(source.read(user), same_day=algorithm.same_day)
        except (FitSkipped, ReviewLogError) as reason:
            say(f"user {user} is left out: {reason}")
            continue
        last = task.folds[-1]
        yield task.reviews, np.concatenate([last.train, last.test])


command = Command("python -m srs_eval.pretrain", __doc__, Pretrain, pretrain)
