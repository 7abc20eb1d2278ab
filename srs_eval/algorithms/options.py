"""Options of algorithms that come from people: checks, and names of earlier releases."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from srs_eval.errors import ConfigError


def require_choice(owner: str, option: str, value: object, choices: Sequence[str]) -> None:
    """Refuse an option that is not one of its choices."""
    if value not in choices:
        raise ConfigError(f"{owner}: {option}={value} is not one of: {', '.join(choices)}")


def require_above_zero(owner: str, option: str, value: object, *, or_zero: bool = False) -> None:
    """Refuse an option that is not a finite number above 0 (or, if allowed, 0)."""
    usable = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (value > 0 or (or_zero and value == 0))
    )
    if not usable:
        least = "0 or more" if or_zero else "above 0"
        raise ConfigError(f"{owner}: {option}={value} is not a number {least}")


def require_bool(owner: str, option: str, value: object) -> None:
    """Refuse an option that is not true or false."""
    if not isinstance(value, bool):
        raise ConfigError(f"{owner}: {option}={value} is not one of: true, false")


def require_whole(
    owner: str, option: str, value: object, *, least: int, most: int | None = None
) -> None:
    """Refuse an option that is not a whole number in a range."""
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < least
        or (most is not None and value > most)
    ):
        expected = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{owner}: {option}={value} is not a whole number {expected}")


def current(target: str) -> str:
    """Return the present name of a class whose module was another in an earlier release.

    >>> current("srs_eval.algorithms.fsrs6.Fsrs6"), current("srs_eval.algorithms.oracle.Oracle")
    ('srs_eval.algorithms.fsrs.fsrs6.Fsrs6', 'srs_eval.algorithms.baselines.Oracle')
    >>> current("srs_eval.protocol.refit.SrsBenchmarkRefit")
    'srs_eval.protocol.srs_benchmark.SrsBenchmarkRefit'
    """
    package, words = Path(__file__).parents[1], target.removeprefix("srs_eval.").split(".")
    is_ours = target.startswith("srs_eval.") and all(map(str.isidentifier, words))
    module = package.joinpath(*words[:-1])
    if not is_ours or module.is_dir() or module.with_suffix(".py").is_file():
        return target
    for file in sorted(package.joinpath(words[0]).rglob("*.py")):
        if re.search(rf"^class {words[-1]}\b", file.read_text(encoding="utf-8"), re.M):
            place = file.relative_to(package).with_suffix("")
            return ".".join(("srs_eval", *place.parts, words[-1]))
    return target
