"""Objects built again from what a run has kept of its options.

What was kept may come from a stranger, so that only classes are called, and only those that
have what is asked for: nothing is unpickled, and no function is called by its name. What a reader
is itself made of is built only where it is one of a few classes of srs_eval.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, Composite, MemoryModel, Part, Reviews, Source, User

TARGET = "_target_"
# What readers of srs_eval are made of: classes that hold names, and do nothing.
PARTS = ("srs_eval.data.table_options.Columns",)
_ALGORITHM = ("fit", "same_day")
_NO_ROWS = np.empty(0, np.int64)


def rebuilt_source(options: Mapping[str, Any]) -> Source:
    """Build a reader of review logs.

    Raises
    ------
    ConfigError
        If `options` do not name one that can be imported.
    """
    return cast(Source, _built(options, ("users", "read"), PARTS))


def rebuilt_model(
    options: Mapping[str, Any],
    parameters: Sequence[float],
    parts: Sequence[Part] = (),
    *,
    whole_days: bool,
) -> MemoryModel:
    """Build a model from its parameters, as its algorithm does where nothing is fitted.

    A model that is made of several is assembled from theirs.

    Parameters
    ----------
    options : mapping
        The algorithm's resolved configuration.
    parameters : sequence of float
        What was learned.
    parts : sequence of Part
        What was learned by the parts of a model that is made of several.
    whole_days : bool
        The clock it was learned on.

    Raises
    ------
    ConfigError
        If the algorithm is not there, or does not take parameters as they are.
    """
    kind = _class(str(options.get(TARGET)), _ALGORITHM)
    if hasattr(kind, "assembled"):
        return _assembled(options, parameters, parts, whole_days=whole_days)
    lacking = {"fit", "parameters"} - {*options, *inspect.signature(kind).parameters}
    if lacking:
        told = " and ".join(sorted(lacking))
        raise ConfigError(f"{options.get(TARGET)} has no {told}, to be built from parameters")
    if not parameters:
        raise ConfigError(f"{options.get(TARGET)} keeps no parameters")
    given = {**options, "fit": "default", "parameters": list(parameters)}
    algorithm = _algorithm(given)
    return algorithm.fit(_no_reviews(whole_days=whole_days), _NO_ROWS, np.random.default_rng(0))


def same_day(options: Mapping[str, Any]) -> bool:
    """Tell whether the histories of an algorithm keep reviews made on the day before's day."""
    return _algorithm(options).same_day


def _assembled(
    options: Mapping[str, Any],
    parameters: Sequence[float],
    parts: Sequence[Part],
    *,
    whole_days: bool,
) -> MemoryModel:
    """Build the models of the parts, then the model that is made of them."""
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
    """Find the options of a part."""
    found: Any = options
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise ConfigError(f"{options.get(TARGET)} has no option {path}")
    return found


def _algorithm(options: Mapping[str, Any]) -> Algorithm:
    """Build an algorithm, of plain values and of other algorithms."""
    return cast(Algorithm, _built(options, _ALGORITHM, nested=_ALGORITHM))


def _built(
    options: Mapping[str, Any],
    needed: Sequence[str],
    parts: Sequence[str] = (),
    nested: Sequence[str] = (),
) -> Any:
    """Build an object that has what is needed.

    It is made of plain values, of the classes `parts`, and of classes that have what is
    `nested`, if that is given.
    """
    kind = _class(str(options.get(TARGET)), needed)
    return _called(kind, options, parts, nested)


def _called(
    kind: Any, options: Mapping[str, Any], parts: Sequence[str], nested: Sequence[str]
) -> Any:
    arguments = {
        name: _part(value, parts, nested) for name, value in options.items() if name != TARGET
    }
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{options[TARGET]}: {error}") from error


def _part(value: Any, parts: Sequence[str], nested: Sequence[str]) -> Any:
    """Build what an object is made of; plain values are what they are."""
    if isinstance(value, list | tuple):
        return [_part(item, parts, nested) for item in value]
    if not isinstance(value, Mapping):
        return value
    if TARGET not in value:
        return {name: _part(item, parts, nested) for name, item in value.items()}
    if value[TARGET] not in parts and not nested:
        raise ConfigError(f"{value[TARGET]}, which others are made of, is not rebuilt")
    needed = () if value[TARGET] in parts else nested
    return _called(_class(value[TARGET], needed), value, parts, nested)


def _class(target: str, needed: Sequence[str]) -> Any:
    module, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{target} cannot be imported: {error}") from error
    if not isinstance(found, type) or not all(hasattr(found, word) for word in needed):
        raise ConfigError(f"{target} is not a class with {', '.join(needed)}")
    return found


def _no_reviews(*, whole_days: bool) -> Reviews:
    nothing = np.empty(0, np.int64)
    user: User = ""
    return Reviews(
        user=user,
        card=nothing,
        day=nothing,
        rating=nothing,
        elapsed_days=nothing,
        elapsed=np.empty(0),
        row=nothing,
        whole_days=whole_days,
    )
