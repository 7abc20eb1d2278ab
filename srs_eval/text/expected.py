"""What pydantic expected of a value, in the words of srs_eval's messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Value = TypeVar("Value")

# Where pydantic says it in more words.
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "string_too_short": "text",
    "string_type": "text",
}


def expected(error: Mapping[str, Any]) -> str:
    """Return what was expected where `pydantic.ValidationError` has an error."""
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    text = _EXPECTED.get(error["type"], error["msg"].removeprefix("Input should be "))
    return re.sub("^(greater|less)", r"a number \1", text).replace("'", "")


def validated(kind: Callable[..., Value], content: Any) -> Value:
    """Build a value of annotated fields; raise a `ValueError` that says what is wrong first."""
    from pydantic import ValidationError  # not for --help

    try:
        built: Value = _adapter(kind).validate_python(content)
    except ValidationError as errors:
        first = errors.errors()[0]
        where = ".".join(map(str, first["loc"]))
        found = short(first["input"])
        raise ValueError(f"{where}: {found}, expected {expected(first)}") from errors
    return built


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
