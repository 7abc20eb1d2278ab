"""Values of others, checked against the types of the fields that they are for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from reprlib import repr as short
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from srs_eval.text.expected import expected

Value = TypeVar("Value")
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def validated(kind: Callable[..., Value], content: Any) -> Value:
    """Build a value of annotated fields; raise a `ValueError` that says what is wrong first."""
    try:
        built: Value = _adapter(kind).validate_python(content)
    except ValidationError as errors:
        first = errors.errors()[0]
        where, found = ".".join(map(str, first["loc"])), short(first["input"])
        raise ValueError(f"{where}: {found}, expected {expected(first)}") from errors
    return built
