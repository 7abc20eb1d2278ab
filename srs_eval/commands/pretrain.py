"""Learn the weights a network starts from, from other users than those it is tested on.

    python -m srs_eval.pretrain algo=gru data=revlogs_10k data.path=DIR data.users=[1-100] \
        weights=gru.safetensors

Everything but ``weights`` is as for ``python -m srs_eval``: algorithm, logs, the protocol that
makes histories of them, and the seed. The weights are then an option of the algorithm,
``algo.weights=gru.safetensors``; a card beside them, of the same name and a JSON file, says which
users they have seen. These are skipped in runs with the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.commands.arguments import NotUnderstood, carry_out, exit_with
from srs_eval.config import settings
from srs_eval.config.building import build, resolved
from srs_eval.config.option_files import defaults
from srs_eval.errors import ConfigError, FitSkipped, ReviewLogError
from srs_eval.nouns import Algorithm, EvaluationProtocol, IntArray, Reviews, Source
from srs_eval.text.console import say
from srs_eval.text.local_paths import uri_problem

PROGRAM = "python -m srs_eval.pretrain"
_WEIGHTS = "weights="


def main() -> None:
    """Run the command and exit: 0 all well, 1 pretraining failed, 2 not understood."""
    exit_with(command)


def command(words: list[str]) -> int:
    """Pretrain as the words say, write the weights, and return the exit status."""
    return carry_out(
        lambda: _pretrain(words),
        words,
        program=PROGRAM,
        help_page=__doc__ or "",
        advice="says how it is used",
        unwritten="the weights",
    )


def _pretrain(words: list[str]) -> int:
    """Write the weights and say what they were learned from."""
    paths = [word.removeprefix(_WEIGHTS) for word in words if word.startswith(_WEIGHTS)]
    overrides = [word for word in words if not word.startswith(_WEIGHTS)]
    problems = settings.mistakes(overrides)
    if len(paths) != 1 or not paths[0].endswith(".safetensors"):
        problems.append("write weights=FILE.safetensors, where the weights are to go")
    problems += [f"weights={path}: {uri_problem(path)}" for path in paths if uri_problem(path)]
    if problems:
        raise NotUnderstood(problems)
    path = Path(paths[0]).expanduser()
    weights = pretrained(overrides).weights
    if not hasattr(weights, "save"):
        raise ConfigError(f"nothing can be written: the weights of what was learned are {weights}")
    weights.save(path)  # before anything else: it took long
    seen = weights.seen
    reviews = sum(user.reviews for user in seen)
    say(f"{path}: {len(weights.parameters):,} parameters")
    say(f"learned from {reviews:,} reviews of {len(seen):,} users, which will not be scored")
    return 0


def pretrained(overrides: list[str]) -> Any:
    """Build what the words name, and pretrain the algorithm.

    Raises
    ------
    ConfigError
        If something cannot be built, or the algorithm cannot be pretrained.
    """
    given = dict(word.split("=", 1) for word in overrides)
    choices = {**defaults(), "tracking": "none", **given}
    cfg = settings.composed([*overrides, "tracking=none"])
    content = resolved(cfg, choices)
    built = build(cfg, choices)
    algorithm = built["algo"]
    if not hasattr(algorithm, "pretrain"):
        raise ConfigError(f"algo={choices['algo']} learns nothing from other users")
    if not hasattr(algorithm, "weights"):
        raise ConfigError(
            f"algo={choices['algo']} has pretrain, but no weights, which is where this command "
            "finds what was learned (see srs_eval.nouns.Pretrainable)"
        )
    users = lessons(algorithm, built["data"], built["protocol"])
    return algorithm.pretrain(users, np.random.default_rng(content["seed"]))


def lessons(
    algorithm: Algorithm, source: Source, protocol: EvaluationProtocol
) -> Iterator[tuple[Reviews, IntArray]]:
    """Read the log of each user, and find the rows to learn from: all that could be scored."""
    for user in source.users():
        try:
            task = protocol(source.read(user), same_day=algorithm.same_day)
        except (FitSkipped, ReviewLogError) as reason:
            say(f"user {user} is left out: {reason}")
            continue
        last = task.folds[-1]
        yield task.reviews, np.concatenate([last.train, last.test])


if __name__ == "__main__":
    main()
