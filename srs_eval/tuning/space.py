"""What is searched, from overrides such as ``algo.epochs=range(1,20)``, and how."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    RangeSweep,
)
from hydra.errors import HydraException
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass as validated

from srs_eval.text.expected import expected

Direction = Literal["minimize", "maximize"]
Sampler = Literal["tpe", "random"]
Pruner = Literal["none", "median", "hyperband"]
Count = Annotated[int, Field(ge=0, strict=True)]
AtLeastOne = Annotated[int, Field(ge=1, strict=True)]
_KINDS = "choice(8,16), range(1,20), interval(0.1,10), int(interval(1,20)) or tag(log, …) of these"


class SweepError(HydraException):
    """A search is invalid."""


@validated(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Space:
    """A search space."""

    # Distribution of each searched setting; choices are overrides' values as text
    searched: Mapping[str, BaseDistribution]
    fixed: Mapping[str, str]  # Overrides of every job, by key
    # How the key of each searched setting is written, including ``+`` and ``@``
    keys: Mapping[str, str]

    def words(self, params: Mapping[str, object]) -> list[str]:
        """Return the overrides of a point of the space."""
        return [*self.fixed.values(), *self.searched_words(params).values()]

    def searched_words(self, params: Mapping[str, object]) -> dict[str, str]:
        """Return the overrides of the searched settings, by key."""
        return {name: f"{self.keys[name]}={params[name]}" for name in self.searched}

    def described(self) -> dict[str, str]:
        """Return the space as JSON by key, for comparisons."""
        return {name: distribution_to_json(kind) for name, kind in self.searched.items()}


def read_space(words: Iterable[str], loader: ConfigLoader | None = None) -> Space:
    """Read a search space; the last override of a key is used."""
    parser = OverridesParser.create(config_loader=loader)
    given: dict[str, Override] = {}
    for override in parser.parse_overrides(list(words)):
        name = override.key_or_group + (f"@{override.package}" if override.package else "")
        given.pop(name, None)
        given[name] = override
    searched, problems = {}, []
    for name, override in given.items():
        if override.is_sweep_override():
            try:
                searched[name] = _distribution(override)
            except SweepError as error:
                problems.append(f"{override.input_line}: {error}")
    if not searched and not problems:
        problems.append(f"there is nothing to search over: give a setting a space, as {_KINDS}")
    if problems:
        raise SweepError("\n".join(problems))
    return Space(
        searched=searched,
        fixed={n: str(o.input_line) for n, o in given.items() if n not in searched},
        keys={name: given[name].get_key_element() for name in searched},
    )


def _distribution(override: Override) -> BaseDistribution:
    sweep = override.value()
    unknown = set(getattr(sweep, "tags", ())) - {"log"}
    if unknown:
        raise SweepError(f"unknown tag {', '.join(sorted(unknown))}; there is log")
    if getattr(sweep, "shuffle", False):
        raise SweepError("a search chooses the order of trials; leave shuffle out")
    log = "log" in getattr(sweep, "tags", ())
    if isinstance(sweep, IntervalSweep):
        return _interval(sweep, log=log)
    if isinstance(sweep, RangeSweep):
        return _range(override, sweep, log=log)
    if log:
        raise SweepError("choices have no scale; leave tag(log, …) out, or give a range")
    texts = list(dict.fromkeys(override.sweep_string_iterator()))
    if not texts or (isinstance(sweep, ChoiceSweep) and len(texts) < 2):
        raise SweepError("there is only one choice; write it as a plain value")
    return CategoricalDistribution(texts)


def _interval(sweep: IntervalSweep, *, log: bool) -> BaseDistribution:
    """Read an interval: of real numbers, or of whole numbers with ``int(…)``."""
    # Hydra declares the ends as float or None, and converts them to int for int(…).
    low: Any = sweep.start
    high: Any = sweep.end
    _require_order(low, high, log=log)
    if isinstance(low, int) and isinstance(high, int):
        return IntDistribution(low, high, log=log)
    return FloatDistribution(low, high, log=log)


def _range(override: Override, sweep: RangeSweep, *, log: bool) -> BaseDistribution:
    """Read a range; as everywhere in Hydra, whole numbers end before its stop."""
    if log and sweep.step != 1:
        raise SweepError("on a logarithmic scale there are no steps; leave the step out")
    ends = (sweep.start, sweep.stop, sweep.step)
    if all(isinstance(number, int) for number in ends):
        start, stop, step = map(int, ends)  # type: ignore[arg-type]
        values = sorted(range(start, stop, step)[:: max(len(range(start, stop, step)) - 1, 1)])
        low, high = (values[0], values[-1]) if values else (0, 0)
        _require_order(low, high, log=log)
        return IntDistribution(low, high, log=log, step=abs(step))
    # In decimal numbers, as written: sums of binary numbers miss the last step.
    steps = max(sum(1 for _ in override.sweep_string_iterator()) - 1, 0)
    last = Decimal(str(sweep.start)) + steps * Decimal(str(sweep.step))
    lowest, highest = sorted((float(str(sweep.start)), float(last)))
    _require_order(lowest, highest, log=log)
    if log:
        return FloatDistribution(lowest, highest, log=True)
    return FloatDistribution(lowest, highest, step=abs(sweep.step))


def _require_order(low: float, high: float, *, log: bool) -> None:
    if not low < high:
        raise SweepError("there is nothing, or one value only, between its ends")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SweepError("its ends must be finite")
    if log and low <= 0:
        raise SweepError("a logarithmic scale begins above 0")
