"""Pretrain the initial weights of a network on other users than those it is tested on.

    python -m srs_eval.pretrain algo=gru data=revlogs_10k data.path=DIR data.users=[1-100] \
        weights=gru.safetensors

All arguments except ``weights`` are those of ``python -m srs_eval``: algorithm, logs, the protocol
that defines histories, and the seed. The weights are then an option of the algorithm,
``algo.weights=gru.safetensors``. A JSON file of the same name lists the users they were trained
on, which are skipped in runs with these weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.commands.arguments import carry_out
from srs_eval.config import settings
from srs_eval.config.building import build, resolved
from srs_eval.config.option_files import defaults
from srs_eval.errors import ConfigError, FitSkipped, ReviewLogError
from srs_eval.nouns import Algorithm, EvaluationProtocol, IntArray, Reviews, Source
from srs_eval.text.console import say
from srs_eval.text.local_paths import uri_problem

PROGRAM = "python -m srs_eval.pretrain"
_WEIGHTS = "weights="


def command(words: list[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _pretrain(words),
        words,
        program=PROGRAM,
        help_page=__doc__ or "",
        advice="shows how it is used",
        unwritten="the weights",
    )


def _pretrain(words: list[str]) -> int:
    """Pretrain, write the weights, and print the users they were learned from."""
    paths = [word.removeprefix(_WEIGHTS) for word in words if word.startswith(_WEIGHTS)]
    overrides = [word for word in words if not word.startswith(_WEIGHTS)]
    problems = settings.mistakes(overrides)
    if len(paths) != 1 or not paths[0].endswith(".safetensors"):
        problems.append("the output file is missing: weights=FILE.safetensors")
    problems += [f"weights={path}: {uri_problem(path)}" for path in paths if uri_problem(path)]
    if problems:
        raise ConfigError(*problems)
    path = Path(paths[0]).expanduser()
    weights = pretrained(overrides).weights
    if not hasattr(weights, "save"):
        raise ConfigError(f"nothing to write: the pretrained weights are {weights}")
    weights.save(path)  # before anything else: it took long
    seen = weights.seen
    reviews = sum(user.reviews for user in seen)
    say(f"{path}: {len(weights.parameters):,} parameters")
    say(f"learned from {reviews:,} reviews of {len(seen):,} users, which will not be scored")
    return 0


def pretrained(overrides: list[str]) -> Any:
    """Build the objects of the overrides, and pretrain the algorithm."""
    given = dict(word.split("=", 1) for word in overrides)
    choices = {**defaults(), "tracking": "none", **given}
    cfg = settings.composed([*overrides, "tracking=none"])
    content = resolved(cfg, choices)
    built = build(cfg, choices)
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
