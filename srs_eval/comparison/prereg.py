"""Pre-registration: a hypothesis that is written down before the runs.

A pre-registration is a YAML file. Its digest is in every run that was started with it, so that a
later change of the file is seen.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from srs_eval.errors import ConfigError
from srs_eval.results.files import reading
from srs_eval.stats.significance import LEVEL
from srs_eval.text.plain import one_line
from srs_eval.text.suggestion import suggestion
from srs_eval.text.yaml_files import YamlError, parsed

# Tag of a run that has the digest of its pre-registration.
TAG = "prereg"
_LARGEST = 100_000  # bytes
_OPTION = re.compile(r"(data|protocol)\.\w+")
# Options that fix which data there are: of simulated users the seed does, and of others a place or
# the users. Eight digits of a fingerprint fit one data set in four billion.
_SIMULATED, _SEED = "synthetic", {"data.seed"}
_PLACES = {f"data.{name}" for name in ("path", "url", "repo_id", "query", "users")}
_FINGERPRINT = re.compile("[0-9a-f]{8,}")
# Advantages for which the hypothesis is true, in units of the smallest difference.
REGIONS = {
    "better": (1.0, math.inf),
    "not_worse": (-1.0, math.inf),
    "equivalent": (-1.0, 1.0),
}
_CLAIMS = {"better": "at least {}", "not_worse": "at least -{}", "equivalent": "within ±{}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prereg:
    """The content of a pre-registration, as its file has it."""

    hypothesis: str  # free text
    model: str  # label of a run, such as fsrs6(fit=default)
    baseline: str  # label of the run it is compared with
    metric: str  # by which the hypothesis is judged
    smallest_difference: float  # of the means that matters, above 0
    users: int  # with scored reviews, at which the stopping rule ends the study
    data: str  # name of the option
    protocol: str  # name of the option
    stopping_rule: str  # free text
    # better: the advantage is at least the smallest difference d; not_worse: it is at least -d;
    # equivalent: it is within ±d
    direction: str = "better"
    level: float = LEVEL  # of the interval, at least 0.9
    # Options of the runs, such as data.seed: of the data and the protocol, and seed; each a text,
    # a number or None
    options: Mapping[str, Any] = field(default_factory=dict)
    # Beginning of the data_fingerprint of the runs, if known beforehand; 8 digits or more
    fingerprint: str = ""
    date: str = ""  # of the registration, as in 2026-01-31
    authors: tuple[str, ...] = ()
    raw: bytes = field(default=b"", repr=False)  # the file

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def claim(self) -> str:
        """The advantages for which the hypothesis is true, in words."""
        return claim_of(self.direction, self.smallest_difference)

    @property
    def fixes_data(self) -> bool:
        """Whether it says on which data the runs are made, so that none can be chosen later."""
        given = {key for key, value in self.options.items() if value is not None}
        enough = _SEED if self.data == _SIMULATED else {*_SEED, *_PLACES}
        return bool(enough & given) or _FINGERPRINT.fullmatch(self.fingerprint) is not None

    @property
    def in_words(self) -> dict[str, str]:
        """What was registered, for the terminal."""
        return {
            "hypothesis": self.hypothesis,
            "claim": f"advantage of {self.model} over {self.baseline} in {self.metric} "
            f"{self.claim}, by its interval at {100 * self.level:g} %",
            "users": f"{self.users:,} of {self.data}, protocol {self.protocol}",
            "options": ", ".join(f"{key}={value}" for key, value in self.options.items()) or "any",
            "stopping rule": self.stopping_rule,
            "digest": self.digest,
        }

    @property
    def content(self) -> dict[str, Any]:
        """The values that are not empty, for YAML and JSON."""
        found = {key: getattr(self, key) for key in _KEYS}
        found["authors"] = list(self.authors)
        return {key: value for key, value in found.items() if value not in ("", [], {})}

    def other_options(self, content: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
        """Yield options that a configuration has not as registered: name, found, registered."""
        for key, registered in self.options.items():
            group, _, name = key.partition(".")
            found = content.get(group)
            if name:
                found = found.get(name) if isinstance(found, Mapping) else None
            if found != registered:
                yield key, found, registered


def claim_of(direction: str, difference: float) -> str:
    """Return the advantages for which a hypothesis of this direction is true, in words."""
    return _CLAIMS[direction].format(f"{difference:g}")


def read_prereg(file: Path) -> Prereg:
    """Read a pre-registration."""
    with reading(file), file.open("rb") as opened:
        raw = opened.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ConfigError(f"{file}: has more than {_LARGEST:,} bytes; a page of text is enough")
    try:
        content = parsed(raw).content
    except YamlError as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: has no keys; it needs {', '.join(_REQUIRED)}")
    return prereg_of(content, raw, f"{file}: ")


def prereg_of(content: Mapping[str, Any], raw: bytes = b"", where: str = "") -> Prereg:
    """Build a pre-registration from its content; `where` begins each error message."""
    problems = [
        f"{key}: there is no such key{suggestion(str(key), _KEYS)}"
        for key in map(_shown, content)
        if key not in _KEYS
    ]
    problems += [f"{key}: is missing" for key in _REQUIRED if content.get(key) is None]
    found = {}
    for key, value in content.items():
        if key in _KEYS and value is not None:
            try:
                found[key] = _KEYS[key](value)
            except ValueError as error:
                problems.append(f"{key}: expected {error}, not {_shown(value)}")
    if found.get("model") is not None and found.get("model") == found.get("baseline"):
        problems.append(f"baseline: is the model itself, {_shown(found['model'])}")
    if problems:
        raise ConfigError(*(f"{where}{problem}" for problem in problems))
    return Prereg(**found, raw=raw)


def _shown(value: object) -> str:
    """Return a value in a message: short, and nothing of what is nested."""
    if isinstance(value, str | int | float | date):
        return one_line(str(value))[:60] or "an empty text"
    kind = type(value).__name__
    return {"dict": "keys", "list": "a list"}.get(kind, kind)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text")
    return one_line(value.strip())


def _number(value: object, low: float, high: float, expected: str) -> float:
    try:
        found = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # YAML reads 1e-3 as text
        found = math.nan
    if not low <= found < high:
        raise ValueError(expected)
    return found


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number above 0")
    return value


def _direction(value: object) -> str:
    if value not in REGIONS:
        raise ValueError(f"one of {', '.join(REGIONS)}")
    return str(value)


def _day(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        raise ValueError("a day such as 2026-01-31") from error


def _options(value: object) -> dict[str, Any]:
    expected = "names of options with values, such as {data.seed: 2026, seed: 1}"
    if not isinstance(value, Mapping) or not all(
        (key == "seed" or _OPTION.fullmatch(str(key))) and isinstance(of, str | int | float | None)
        for key, of in value.items()
    ):
        raise ValueError(expected)
    return dict(value)


def _names(value: object) -> tuple[str, ...]:
    try:
        return tuple(_text(name) for name in (value if isinstance(value, list) else [value]))
    except ValueError as error:
        raise ValueError("a list of names") from error


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    **{each.name: _text for each in fields(Prereg) if each.name != "raw"},
    "smallest_difference": partial(
        _number, low=sys.float_info.min, high=math.inf, expected="a finite number above 0"
    ),
    "users": _count,
    "direction": _direction,
    "level": partial(_number, low=0.9, high=1, expected="a number from 0.9 to below 1"),
    "options": _options,
    "date": _day,
    "authors": _names,
}
_REQUIRED = [
    each.name
    for each in fields(Prereg)
    if each.default is MISSING and each.default_factory is MISSING
]
