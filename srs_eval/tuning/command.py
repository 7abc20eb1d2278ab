"""A search, from its overrides to the files in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from srs_eval.text.console import complain, say
from srs_eval.tuning import figures
from srs_eval.tuning.ending import Ending, counts, told, write_best
from srs_eval.tuning.options import read_options
from srs_eval.tuning.search import search
from srs_eval.tuning.space import Space, SweepError, read_space

if TYPE_CHECKING:
    from hydra_plugins.srs_eval_optuna.optuna_sweeper import OptunaSweeper


def run_search(asking: OptunaSweeper, arguments: Sequence[str]) -> Ending | None:
    """Search, and write the best configuration and figures into the folder of the sweep."""
    words = [*(f"{key}={value}" for key, value in asking.params.items()), *arguments]
    space = read_space(words, asking.loader)
    options = read_options({**asking.options, "may_change": tuple(asking.options["may_change"])})
    if options.pruner != "none" and not asking.shares_process:
        raise SweepError(
            f"hydra.sweeper.pruner={options.pruner}: jobs of this launcher run in other processes "
            "and cannot report to the search; use hydra/launcher=basic or hydra.sweeper.pruner=none"
        )
    # Unknown keys and options are reported now rather than in every trial.
    any_point = {
        name: kind.choices[0] if hasattr(kind, "choices") else getattr(kind, "low", None)
        for name, kind in space.searched.items()
    }
    asking.composed(space.words(any_point))
    first = _as_configured(space, asking) if options.start_from_config else None
    asking.save_config()
    found = search(asking.folder, space, options, asking.launch, first)
    if found.complaint:
        complain(found.complaint)
    if found.best is None:
        complain(f"no trial has a value; trials {counts(found)}")
        return None
    meaning = asking.meaning.format(metric=options.metric.replace("_", " "))
    config = asking.composed(space.words(found.best.params))
    command = write_best(asking, found, found.best, config, meaning)
    drawn = figures.draw(found, meaning.partition(",")[0])
    ending = Ending(found, meaning, found.best, config, command, drawn)
    say(told(ending))
    say()
    return ending


def _as_configured(space: Space, asking: OptunaSweeper) -> dict[str, Any] | None:
    """Return the configuration without the search as a point, if the space contains it."""
    config = asking.composed(list(space.fixed.values()))
    point: dict[str, Any] = {}
    for name, kind in space.searched.items():
        value = OmegaConf.select(config, name)
        if name in config.hydra.runtime.choices:
            value = config.hydra.runtime.choices[name]
        if hasattr(kind, "choices"):
            texts = [text for text in kind.choices if text == str(value)]
            value = texts[0] if texts else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or not (hasattr(kind, "choices") or is_number):
            return None
        if not kind._contains(kind.to_internal_repr(value)):
            return None
        point[name] = value
    return point
