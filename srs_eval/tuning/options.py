"""The options of a search, validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from srs_eval.text.expected import expected
from srs_eval.tuning.space import SweepError

Direction = Literal["minimize", "maximize"]
Sampler = Literal["tpe", "random"]
Pruner = Literal["none", "median", "hyperband"]
Count = Annotated[int, Field(ge=0, strict=True)]
AtLeastOne = Annotated[int, Field(ge=1, strict=True)]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search."""

    n_trials: AtLeastOne = 30  # Trials in all, those of an interrupted search included
    metric: str = "objective"  # Name of the value that jobs return, or of one of several values
    direction: Direction = "minimize"  # ``minimize`` or ``maximize``
    seed: Count = 2026  # Together with the earlier trials, it determines the next trial
    sampler: Sampler = "tpe"  # ``tpe`` (tree-structured Parzen estimators) or ``random``
    startup_trials: Count = 10  # Random trials before the estimators are used
    # ``none``; ``median`` ends trials that are worse than half of those before them at the same
    # step, from the sixth trial on; ``hyperband`` divides steps among trials
    pruner: Pruner = "none"
    prune_from: Count = 0  # First step after which a trial may be pruned
    # Whether the first trial is the configuration as it is, where the space holds it
    start_from_config: bool = True
    max_failures: AtLeastOne = 3  # This many consecutive failed trials end the search
    # Trials per batch. A batch is proposed from the results of earlier batches, and the launcher
    # runs its trials together
    workers: AtLeastOne = 1
    may_change: Sequence[str] = ()  # First parts of keys that may differ when a search is resumed


def read_options(given: Mapping[str, Any]) -> SearchOptions:
    """Check the options of a search; a `SweepError` says what is wrong with all of them."""
    try:
        return SearchOptions(**given)
    except ValidationError as errors:
        problems = [
            f"hydra.sweeper.{error['loc'][0]}={error['input']}: expected {expected(error)}"
            for error in errors.errors()
        ]
        raise SweepError("\n".join(problems)) from None
