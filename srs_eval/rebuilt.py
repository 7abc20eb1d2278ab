"""Objects built again from what a run has kept of its options.

What was kept may come from a stranger, so that only classes are called, and only those that
have what is asked for: nothing is unpickled, and no function is called by its name. What a reader
is itself made of is built only where it is one of a few classes of srs_eval.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, MemoryModel, Reviews, Source, User

TARGET = "_target_"
# What readers of srs_eval are made of: classes that hold names, and do nothing.
PARTS = ("srs_eval.data.table_options.Columns",)
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
    options: Mapping[str, Any], parameters: Sequence[float], *, whole_days: bool
) -> MemoryModel:
    """Build a model from its parameters, as its algorithm does where nothing is fitted.

    Parameters
    ----------
    options : mapping
        The algorithm's resolved configuration.
    parameters : sequence of float
        What was learned.
    whole_days : bool
        The clock it was learned on.

    Raises
    ------
    ConfigError
        If the algorithm is not there, or does not take parameters as they are.
    """
    lacking = {"fit", "parameters"} - set(options)
    if lacking:
        told = " and ".join(sorted(lacking))
        raise ConfigError(f"{options.get(TARGET)} has no {told}, to be built from parameters")
    if not parameters:
        raise ConfigError(f"{options.get(TARGET)} keeps no parameters")
    given = {**options, "fit": "default", "parameters": list(parameters)}
    algorithm = cast(Algorithm, _built(given, ("fit", "same_day")))
    return algorithm.fit(_no_reviews(whole_days=whole_days), _NO_ROWS, np.random.default_rng(0))


def same_day(options: Mapping[str, Any]) -> bool:
    """Tell whether the histories of an algorithm keep reviews made on the day before's day."""
    return bool(_class(str(options.get(TARGET)), ("fit", "same_day")).same_day)


def _built(options: Mapping[str, Any], needed: Sequence[str], parts: Sequence[str] = ()) -> Any:
    """Build an object that has what is needed, of plain values and of nothing but `parts`."""
    kind = _class(str(options.get(TARGET)), needed)
    return _called(kind, options, parts)


def _called(kind: Any, options: Mapping[str, Any], parts: Sequence[str]) -> Any:
    arguments = {name: _part(value, parts) for name, value in options.items() if name != TARGET}
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{options[TARGET]}: {error}") from error


def _part(value: Any, parts: Sequence[str]) -> Any:
    """Build what an object is made of; plain values are what they are."""
    if isinstance(value, list | tuple):
        return [_part(item, parts) for item in value]
    if not isinstance(value, Mapping):
        return value
    if TARGET not in value:
        return {name: _part(item, parts) for name, item in value.items()}
    if value[TARGET] not in parts:
        raise ConfigError(f"{value[TARGET]}, which others are made of, is not rebuilt")
    return _called(_class(value[TARGET], ()), value, parts)


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
