"""Text from files made safe to print: no control characters, and none that reorder other text.

Labels and names of users come from untrusted files. The reader of runs cleans them, and so does
every output format, because not all text passes through the reader. The markup of each format is
escaped by `srs_eval.text.escapes`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_BREAKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# C0 and C1 controls, line and paragraph separators, overrides and isolates of the direction of
# text, and halves of surrogate pairs and non-characters, which no encoding or XML can hold.
_UNSAFE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"
)
_CONTROLS = re.compile(f"[{_UNSAFE}]")
_LONG_WORDS = re.compile(r"(\S{500})\S{500,}")


def printable(text: str) -> str:
    r"""Replace control characters by escape sequences; keep line feeds and tabs.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    unix = text.replace("\r\n", "\n")
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), unix)


def shortened(text: str) -> str:
    """Cut words of 1,000 characters and more, which are no names.

    >>> len(shortened("a " + "b" * 5000)), shortened("a b")
    (503, 'a b')
    """
    return _LONG_WORDS.sub(r"\1…", text)


def one_line(text: str) -> str:
    r"""Join lines, and replace control characters by escape sequences.

    >>> one_line("a\r\nb\u202ec")
    'a b\\u202ec'
    """
    return printable(_BREAKS.sub(" ", text))


def cleaned(content: Any) -> Any:
    """Apply `one_line` to every string in the content of a JSON file, keys included."""
    if isinstance(content, str):
        return one_line(content)
    if isinstance(content, Mapping):
        return {one_line(str(name)): cleaned(value) for name, value in content.items()}
    if isinstance(content, list):
        return [cleaned(value) for value in content]
    return content


def json_values(value: Any) -> Any:
    """Return what JSON can hold of a value: NaN and infinities are null, paths are text.

    >>> json_values({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): json_values(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(content) for content in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, PurePath) else value
