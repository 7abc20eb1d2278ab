"""The options of the command: schema, validation, and suggestions for misspelt names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, QuotedString, Sweep
from hydra.errors import HydraException, MissingConfigException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from srs_eval.config.option_files import conf_folder, defaults, options
from srs_eval.config.suggestions import (
    there_are,
    unfit_overlay,
    unknown_argument,
    unknown_key,
    unknown_options,
)
from srs_eval.text.addresses import has_secret, secret_problem

BUILT_GROUPS = ("algo", "data", "protocol", "panel", "tracking", "compute")
OVERLAYS = ("experiment", "sweep")
_LONG_WORD = 500
GROUPS = (*BUILT_GROUPS, *OVERLAYS)
TEXTS = (
    "data.path",
    "data.query",
    "data.url",
    "data.ratings",
    "hydra.run.dir",
    "hydra.sweep.dir",
    "name",
    "notes",
    "baseline",
    "parts",
    "tracking.uri",
    "tracking.artifacts",
    "tracking.experiment",
)
# Texts of which a sweep does not vary those with commas.
_ONE = ("data.query", "hydra.run.dir", "hydra.sweep.dir")
_EXPECTED = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}


@dataclass
class Settings:
    """Top level of the configuration; other keys are refused."""

    algo: Any = MISSING
    data: Any = MISSING
    protocol: Any = MISSING
    panel: Any = MISSING
    tracking: Any = MISSING
    compute: Any = MISSING
    name: str | None = None
    seed: int = 2026
    curves_per_user: int = 200
    parts: str | None = None
    parts_above: int = 1000
    figures: bool = True
    report: bool = False
    resume: bool = False
    fail_fast: bool = True
    check_lookahead: bool = True
    fit_timeout: float | None = None
    shard: str | None = None
    baseline: str | None = None
    notes: str = ""
    tags: dict[str, str] = field(default_factory=dict)


def register_schema() -> None:
    """Register the schema with Hydra, under a name that no group lists."""
    ConfigStore.instance().store(name="settings_schema", node=Settings)


def composed(overrides: Sequence[str]) -> DictConfig:
    """Compose the configuration as the command does, for other commands and tests."""
    register_schema()
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def mistakes(overrides: Sequence[str]) -> list[str]:
    """Return all errors in a command line, with suggestions."""
    # before Hydra saves the words of the command
    keys = [word.partition("=") for word in overrides]
    secret = [key.lstrip("+") for key, _, value in keys if has_secret(value.strip("'\""))]
    if secret:
        return [secret_problem(key) for key in secret]
    if any(word.lstrip("+").startswith("hydra.searchpath") for word in overrides):
        return []  # there may be options that only Hydra finds
    parsed = {word: _parsed(word) for word in overrides}
    readable = {word: found for word, found in parsed.items() if isinstance(found, Override)}
    chosen = _chosen(readable.values())
    problems = [_unreadable(word, str(parsed[word])) for word in parsed if word not in readable]
    for word, found in readable.items():
        problems += _problems(word, found, chosen)
    # what a sweep varies may be changed
    if not any(word.lstrip("+~").startswith("hydra.sweeper.params") for word in overrides):
        for name in chosen.get("sweep", ()):
            problems += unfit_overlay("sweep", name, _with_defaults(chosen))
    return problems


def literally(word: str, *, is_sweep: bool) -> str:
    """Quote text, such as a path with brackets, so that Hydra does not parse it.

    In a sweep, commas separate several values. Keys of a mapping cannot be quoted: one of ratings
    that Hydra cannot read becomes a list of pairs.
    """
    key, _, value = word.partition("=")
    if key not in TEXTS and not key.startswith("data.columns."):
        return word
    path, override = Path(value).expanduser(), _parsed(word)
    if isinstance(override, Override):
        is_one = not is_sweep or key in _ONE or path.exists()
        is_text = override.is_sweep_override() and is_one
    else:
        is_text = not value.startswith(("'", '"'))
    if is_text and key == "data.ratings":
        ratings = _mapping(value).items()
        pairs = ",".join("[" + _quoted(name, '"') + f",{rating}]" for name, rating in ratings)
        return f"{key}=[{pairs}]" if pairs else word
    return f"{key}={_quoted(str(path) if value.startswith('~') else value)}" if is_text else word


def _quoted(text: str, mark: str = "'") -> str:
    """Quote text for Hydra, where a backslash counts only before a quotation mark."""
    doubled = re.sub(rf"(\\+)({mark}|$)", r"\1\1\2", text)
    return mark + doubled.replace(mark, f"\\{mark}") + mark


def _mapping(text: str) -> dict[str, str]:
    """Read a flat mapping in braces, whose keys are text; an empty one for other text."""
    try:
        found = yaml.load(text, yaml.BaseLoader)  # text alone
    except (yaml.YAMLError, RecursionError):
        return {}
    is_flat = isinstance(found, dict) and all(isinstance(each, str) for each in found.values())
    return found if is_flat else {}


def explain(error: Exception, overrides: Sequence[str]) -> str:
    """Return the message of an error of Hydra in a command line without `mistakes`."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return f"{error.missing_cfg_file}: no such option{there_are(error.options or [])}"
    if str(error).startswith("Ambiguous value for argument"):
        several = [word for word in overrides if "," in word and "[" not in word]
        return "\n".join(f"{word}: several values need the flag -m" for word in several)
    lines = [line for line in str(error).strip().splitlines() if "hydra.cc/docs" not in line]
    if isinstance(error.__cause__, OmegaConfBaseException):
        lines.append(str(error.__cause__).partition("\n")[0])
    return "\n".join(lines)


@cache
def _parsed(word: str) -> Override | str:
    """Parse an override; return the error message if it is invalid."""
    try:
        return OverridesParser.create().parse_override(word)
    except (HydraException, ValueError, RecursionError) as error:  # thousands of brackets
        return str(error).partition("\n")[0]


def _unreadable(word: str, error: str) -> str:
    if word in GROUPS:
        return f"{word}: write {word}=OPTION{there_are(options(word))}"
    if "=" not in word:
        return f"{word}: write KEY=VALUE, such as algo=lstm"
    key, _, value = word.partition("=")
    if len(word) > _LONG_WORD:
        return f"{word[:_LONG_WORD]}…: cannot be read; it has {len(word):,} characters"
    return (
        f"{word}: cannot be read ({error}); "
        f"close every bracket, or quote text twice: '{key}=\"{value}\"'"
    )


def _chosen(overrides: Iterable[Override]) -> dict[str, list[str]]:
    """Return the options chosen in each group, on the command line or by default."""
    given = {override.key_or_group: _named(override) for override in overrides}
    chosen = {group: names for group, names in given.items() if group in GROUPS}
    # an overlay may choose others
    return chosen if _overlaid(chosen, OVERLAYS) else _with_defaults(chosen)


def _overlaid(chosen: Mapping[str, list[str]], overlays: Iterable[str]) -> bool:
    return any(chosen.get(overlay, ["null"]) != ["null"] for overlay in overlays)


def _with_defaults(chosen: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Add the default options of groups, unless an experiment may choose others."""
    if _overlaid(chosen, ["experiment"]):
        return dict(chosen)
    return {group: [name] for group, name in defaults().items()} | dict(chosen)


def _problems(word: str, override: Override, chosen: Mapping[str, Sequence[str]]) -> list[str]:
    key = override.key_or_group
    top = key.split(".")[0]
    known = (*GROUPS, *Settings.__dataclass_fields__)
    if key.startswith("hydra"):
        return []
    if top not in known:
        in_groups = {group: chosen.get(group, []) for group in BUILT_GROUPS}
        return unknown_key(word, key, known, in_groups)
    if key in GROUPS:
        return _unknown_options(word, override)
    if override.is_add():
        return []
    if key == top:
        return _wrong_type(word, override)
    if top == "tags":
        return [] if override.is_delete() else [f"{word}: write +{word}"]
    return unknown_argument(word, key, chosen.get(top, [])) if top in GROUPS else []


def _unknown_options(word: str, override: Override) -> list[str]:
    group, known = override.key_or_group, options(override.key_or_group)
    names = ["null"] if override.is_delete() else _named(override)
    if group in BUILT_GROUPS and "null" in names:
        return [f"{word}: {group} cannot be left out{there_are(known)}"]
    return unknown_options(group, [name for name in names if name != "null"])


def _named(override: Override) -> list[str]:
    """Return the values of an override as text; empty where only Hydra can compute them."""
    value = override.value()
    if isinstance(value, Glob | Sweep) and not isinstance(value, ChoiceSweep):
        return []
    values = value.list if isinstance(value, ChoiceSweep) else value
    listed = values if isinstance(values, list) else [values]
    return [
        "null" if item is None else item.text if isinstance(item, QuotedString) else str(item)
        for item in listed
    ]


def _wrong_type(word: str, override: Override) -> list[str]:
    key, value = override.key_or_group, override.value()
    if override.is_sweep_override():
        return []
    field_type = Settings.__dataclass_fields__[key].type
    if field_type == "bool" and isinstance(value, int | float) and value not in (0, 1):
        return [f"{word}: expected {_EXPECTED['bool']}"]
    try:
        OmegaConf.merge(OmegaConf.structured(Settings), {key: value})
    except OmegaConfBaseException:
        kind = str(field_type).partition(" | ")[0]
        return [f"{word}: expected {_EXPECTED.get(kind, kind)}"]
    return []
