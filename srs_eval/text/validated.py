"""Values of others, checked against the types of the fields that they are for."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from reprlib import repr as short
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from srs_eval.text.expected import expected

Value = TypeVar("Value")
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def validated(kind: Callable[..., Value], content: Any, *, is_json: bool = False) -> Value:
    """Build a value of annotated fields; raise a `ValueError` that says what is wrong first.

    The content of a JSON file has to be of the very types; other content may be a number as text.
    """
    adapter, built = _adapter(kind), None
    try:
        if is_json:
            built = adapter.validate_json(json.dumps(content), strict=True)
        else:
            built = adapter.validate_python(content)
    except ValidationError as errors:
        first = errors.errors()[0]
        where, found = ".".join(map(str, first["loc"])), short(first["input"])
        if first["type"] == "missing":
            raise ValueError(f"{where} is missing") from errors
        raise ValueError(f"{where}: {found}, expected {expected(first)}") from errors
    return cast(Value, built)
