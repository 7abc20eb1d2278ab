"""The options of a search, validated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from srs_eval.tuning.space import SweepError

Direction = Literal["minimize", "maximize"]
Sampler = Literal["tpe", "random"]
Pruner = Literal["none", "median", "hyperband"]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search."""

    n_trials: int = 30  # Trials in all, those of an interrupted search included
    metric: str = "objective"  # Name of the value that jobs return, or of one of several values
    direction: Direction = "minimize"  # ``minimize`` or ``maximize``
    seed: int = 2026  # Together with the earlier trials, it determines the next trial
    sampler: Sampler = "tpe"  # ``tpe`` (tree-structured Parzen estimators) or ``random``
    startup_trials: int = 10  # Random trials before the estimators are used
    # ``none``; ``median`` ends trials that are worse than half of those before them at the same
    # step, from the sixth trial on; ``hyperband`` divides steps among trials
    pruner: Pruner = "none"
    prune_from: int = 0  # First step after which a trial may be pruned
    # Whether the first trial is the configuration as it is, where the space holds it
    start_from_config: bool = True
    max_failures: int = 3  # This many consecutive failed trials end the search
    # Trials per batch. A batch is proposed from the results of earlier batches, and the launcher
    # runs its trials together
    workers: int = 1
    may_change: Sequence[str] = ()  # First parts of keys that may differ when a search is resumed

    def __post_init__(self) -> None:
        """Check all options."""
        problems = [
            f"hydra.sweeper.{name}={getattr(self, name)}: there are {', '.join(get_args(known))}"
            for name, known in (("direction", Direction), ("sampler", Sampler), ("pruner", Pruner))
            if getattr(self, name) not in get_args(known)
        ]
        for name, least in (
            ("n_trials", 1),
            ("max_failures", 1),
            ("workers", 1),
            ("startup_trials", 0),
            ("prune_from", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                problems.append(
                    f"hydra.sweeper.{name}={value}: expected a whole number, {least} or more"
                )
        if problems:
            raise SweepError("\n".join(problems))
