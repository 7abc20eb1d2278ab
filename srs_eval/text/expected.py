"""What pydantic expected of a value, in the words of srs_eval's messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Where pydantic says it in more words.
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dataclass_type": "keys with values",
    "dict_type": "keys with values",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "keys with values",
    "string_too_short": "text",
    "string_type": "text",
    "tuple_type": "a list",
}


def expected(error: Mapping[str, Any]) -> str:
    """Return what was expected where `pydantic.ValidationError` has an error."""
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    text = _EXPECTED.get(error["type"], error["msg"].removeprefix("Input should be "))
    return re.sub("^(greater|less)", r"a number \1", text).replace("'", "")
