"""Objects rebuilt from the saved options of a run.

Saved options may be untrusted. Nothing is unpickled, `srs_eval.config.targets` checks all targets,
and only srs_eval and its installed plug-ins are imported.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, cast

import numpy as np

from srs_eval.algorithms.history import no_reviews
from srs_eval.config.targets import TARGET, Builder
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, Composite, MemoryModel, Part, Source

_OWN = "srs_eval"
_PLUG_INS = "srs_eval.conf"
_NO_ROWS = np.empty(0, np.int64)


def rebuilt_source(options: Mapping[str, Any]) -> Source:
    """Build a reader of review logs."""
    return cast(Source, _build(options, Source))


def rebuilt_model(
    options: Mapping[str, Any],
    parameters: Sequence[float],
    parts: Sequence[Part] = (),
    *,
    whole_days: bool,
) -> MemoryModel:
    """Build a model from its parameters, without fitting.

    A combined model is assembled from the models of its `parts`. `options` are the algorithm's
    resolved configuration; `whole_days` is whether the model was fitted on whole days.
    """
    kind = _BUILDER.find(str(options.get(TARGET)), Algorithm)
    if hasattr(kind, "assembled"):
        return _assembled(options, parameters, parts, whole_days=whole_days)
    lacking = {"fit", "parameters"} - {*options, *inspect.signature(kind).parameters}
    if lacking:
        told = " and ".join(sorted(lacking))
        raise ConfigError(
            f"{options.get(TARGET)} has no {told}, so it cannot be built from parameters"
        )
    if not parameters:
        raise ConfigError(f"{options.get(TARGET)} keeps no parameters")
    given = {**options, "fit": "default", "parameters": list(parameters)}
    algorithm = _algorithm(given)
    return algorithm.fit(no_reviews(whole_days=whole_days), _NO_ROWS, np.random.default_rng(0))


def same_day(options: Mapping[str, Any]) -> bool:
    """Whether the histories of an algorithm keep same-day reviews."""
    return _algorithm(options).same_day


def _assembled(
    options: Mapping[str, Any],
    parameters: Sequence[float],
    parts: Sequence[Part],
    *,
    whole_days: bool,
) -> MemoryModel:
    """Build the models of the parts, then the combined model."""
    models, left = {}, list(parts)
    while left:
        part = left.pop(0)
        inside = f"{part.name}/"
        inner = [
            replace(
                other,
                name=other.name.removeprefix(inside),
                option=other.option.removeprefix(f"{part.option}."),
            )
            for other in left
            if other.name.startswith(inside)
        ]
        left = [other for other in left if not other.name.startswith(inside)]
        models[part.name] = rebuilt_model(
            _option(options, part.option), part.parameters, inner, whole_days=whole_days
        )
    algorithm = cast(Composite, _algorithm(options))
    try:
        return algorithm.assembled(parameters, models)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{options[TARGET]}: a part is missing or unknown: {error}") from error


def _option(options: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the options of a part."""
    found: Any = options
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise ConfigError(f"{options.get(TARGET)} has no option {path}")
    return found


def _algorithm(options: Mapping[str, Any]) -> Algorithm:
    return cast(Algorithm, _build(options, Algorithm))


def _may_import(module: str) -> bool:
    """Whether a module is in srs_eval or an installed plug-in, or already imported."""
    top = module.partition(".")[0]
    plug_ins = {entry.module.partition(".")[0] for entry in entry_points(group=_PLUG_INS)}
    return module in sys.modules or top in {_OWN, *plug_ins}


_BUILDER = Builder(_may_import)


def _build(options: Mapping[str, Any], kind: type) -> Any:
    if TARGET not in options:
        raise ConfigError(f"there is no {TARGET}, the class to build")
    return _BUILDER.build(options, kind)
