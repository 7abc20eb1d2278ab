"""Learn the weights that a network starts from, from the reviews of other users than the scored.

    python experiments/lstm_start/pretrain.py weights=lstm.safetensors \
        data.users=400 data.size_scale=0.2 data.max_reviews=5000
    python experiments/lstm_start/pretrain.py weights=gru.safetensors algorithm=gru \
        logs=../anki-revlogs-10k data.users=1-100

The weights are then an option of the algorithm, ``algo.weights=gru.safetensors``. The file
lists the users that they were learned from, which are skipped in runs with them.
The start that comes with ``algo=lstm`` was made so in release 0.2.0.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import MISSING, OmegaConf

import srs_eval as se
from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.reviews import IntArray, Reviews, Source
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@dataclass
class Options:
    """Options of the program."""

    weights: Path = MISSING  # the file to write: FILE.safetensors
    algorithm: str = "lstm"  # one with a method `pretrain`
    algo: dict[str, Any] = field(default_factory=dict)  # arguments of the algorithm
    logs: str = "synthetic"  # as the first argument of srs_eval.source
    data: dict[str, Any] = field(default_factory=dict)  # further arguments of it
    seed: int = 0


def lessons(source: Source, algorithm: Algorithm) -> Iterator[tuple[Reviews, IntArray]]:
    """Read the log of each user, and return the rows to learn from: all that can be scored."""
    for user in source.users():
        try:
            task = SrsBenchmark()(source.read(user), same_day=algorithm.same_day)
        except (FitSkipped, ReviewLogError) as reason:
            print(f"user {user} is left out: {reason}")
            continue
        last = task.folds[-1]
        yield task.reviews, np.concatenate([last.train, last.test])


def main(words: list[str]) -> None:
    """Learn weights, write them, and print how many users they were learned from."""
    options = OmegaConf.merge(OmegaConf.structured(Options), OmegaConf.from_cli(words))
    algorithm: Any = se.algorithm(options.algorithm, **options.algo)
    source = se.source(options.logs, **options.data)
    rng = np.random.default_rng(options.seed)
    weights = algorithm.pretrain(lessons(source, algorithm), rng).weights
    weights.save(options.weights)
    reviews = sum(user.reviews for user in weights.seen)
    print(f"{options.weights}: {len(weights.parameters):,} parameters")
    print(f"learned from {reviews:,} reviews of {len(weights.seen):,} users")


if __name__ == "__main__":
    main(sys.argv[1:])
