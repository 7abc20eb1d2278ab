"""Numbers and names as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

# C0 and C1 controls, line and paragraph separators, overrides and isolates of the direction of
# text, and halves of surrogate pairs and non-characters, which no encoding or XML can hold.
_UNSAFE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"
_BREAKS = re.compile(r"[\t-\r\x85\u2028\u2029]+")


def one_line(text: str) -> str:
    r"""Join lines, and write control characters, of which names from files are not free, as code.

    >>> one_line("a\r\nb\u202ec")
    'a b\\u202ec'
    """
    line = _BREAKS.sub(" ", text)
    return re.sub(f"[{_UNSAFE}]", lambda sign: sign[0].encode("unicode_escape").decode(), line)


def number(value: float, sign: str = "") -> str:
    """Format a score, or with the sign ``+`` a difference; nothing if it is undefined."""
    return "" if math.isnan(value) else f"{value:{sign}z.4f}"


def percent(value: float) -> str:
    """Format a share in percent; a dash if it is undefined.

    >>> percent(0.8954), percent(float("nan"))
    ('89.5 %', '-')
    """
    return "-" if math.isnan(value) else f"{100 * value:z.1f} %"


def interval(low: float, high: float, sign: str = "") -> str:
    """Format an interval, with enough digits to show the signs of its bounds; nothing for none.

    >>> interval(-0.00001, 0.2), interval(0.1, 0.2, "+")
    ('[-0.00001, 0.20000]', '[+0.1000, +0.2000]')
    """
    if math.isnan(low):
        return ""
    nearest, digits = min((abs(bound) for bound in (low, high) if bound), default=1.0), 4
    while nearest < 0.5 * 10.0**-digits and digits < 9:
        digits += 1
    return f"[{low:{sign}z.{digits}f}, {high:{sign}z.{digits}f}]"


def intervals(rows: pd.DataFrame, of: str = "", sign: str = "") -> list[str]:
    """Format the intervals of rows, whose bounds are in the columns ``OF_lo`` and ``OF_hi``."""
    bounds = rows[[f"{of}_lo", f"{of}_hi"] if of else ["lo", "hi"]]
    return [interval(low, high, sign) for low, high in bounds.itertuples(index=False)]


def counted(count: float, noun: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "review"), counted(1200, "review")
    ('1 review', '1,200 reviews')
    """
    return f"{round(count):,} {noun}{'s' * (round(count) != 1)}"


def listed(names: Sequence[object], most: int = 5) -> str:
    """List the first names and count the others.

    >>> listed("abcd", 2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def shortened(name: str, most: int) -> str:
    """Return a name of at most so many letters."""
    half = most // 2  # Names may differ at their end only
    return name if len(name) <= most else f"{name[: most - half - 1]}…{name[-half:]}"
