"""Pre-registration: a hypothesis that is written down before the runs.

A pre-registration is a YAML file. Its digest is in every run that was started with it, so that a
later change of the file is seen.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, field, fields
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from srs_eval.errors import ConfigError
from srs_eval.results.files import reading
from srs_eval.stats.significance import LEVEL
from srs_eval.text.expected import expected
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


def _day(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        raise ValueError("a day such as 2026-01-31") from error


def _options(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(
        (key == "seed" or _OPTION.fullmatch(str(key))) and isinstance(of, str | int | float | None)
        for key, of in value.items()
    ):
        raise ValueError("names of options with values, such as {data.seed: 2026, seed: 1}")
    return dict(value)


def _names(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number")  # noqa: TRY004 - as pydantic asks for
    return value


Text = Annotated[str, Field(min_length=1), AfterValidator(one_line)]


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(str_strip_whitespace=True))
class Prereg:
    """The content of a pre-registration, as its file has it."""

    hypothesis: Text  # free text
    model: Text  # label of a run, such as fsrs6(fit=default)
    baseline: Text  # label of the run it is compared with
    metric: Text  # by which the hypothesis is judged
    # of the means that matters
    smallest_difference: Annotated[
        float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)
    ]
    # with scored reviews, at which the stopping rule ends the study
    users: Annotated[int, Field(ge=1, strict=True)]
    data: Text  # name of the option
    protocol: Text  # name of the option
    stopping_rule: Text  # free text
    # better: the advantage is at least the smallest difference d; not_worse: it is at least -d;
    # equivalent: it is within ±d
    direction: Literal["better", "not_worse", "equivalent"] = "better"
    # of the interval
    level: Annotated[float, BeforeValidator(_number), Field(ge=0.9, lt=1)] = LEVEL
    # Options of the runs, such as data.seed: of the data and the protocol, and seed; each a text,
    # a number or None
    options: Annotated[Mapping[str, Any], PlainValidator(_options)] = field(default_factory=dict)
    # Beginning of the data_fingerprint of the runs, if known beforehand; 8 digits or more
    fingerprint: str = ""
    date: Annotated[str, PlainValidator(_day)] = ""  # of the registration, as in 2026-01-31
    authors: Annotated[tuple[Text, ...], BeforeValidator(_names)] = ()
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
    given = {key: value for key, value in content.items() if key in _KEYS and value is not None}
    problems = [
        f"{key}: there is no such key{suggestion(str(key), _KEYS)}"
        for key in map(_shown, content)
        if key not in _KEYS
    ]
    try:
        found = Prereg(**given, raw=raw)
    except ValidationError as errors:
        for error in errors.errors():
            key = str(error["loc"][0])
            wrong = f"expected {expected(error)}, not {_shown(error['input'])}"
            problems.append(f"{key}: {'is missing' if error['type'] == 'missing' else wrong}")
    if given.get("model") == given.get("baseline", ...):
        problems.append(f"baseline: is the model itself, {_shown(given['model'])}")
    if problems:
        raise ConfigError(*(f"{where}{problem}" for problem in dict.fromkeys(problems)))
    return found


def _shown(value: object) -> str:
    """Return a value in a message: short, and nothing of what is nested."""
    if isinstance(value, str | int | float):
        return one_line(str(value))[:60] or "an empty text"
    kind = type(value).__name__
    return {"dict": "keys", "list": "a list"}.get(kind, kind)


_KEYS = [each.name for each in fields(Prereg) if each.name != "raw"]
_REQUIRED = [
    each.name
    for each in fields(Prereg)
    if each.default is MISSING and each.default_factory is MISSING
]
