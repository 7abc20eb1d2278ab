"""The command's options: what is allowed, and what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, QuotedString, Sweep
from hydra.errors import HydraException, MissingConfigException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from srs_eval.config.option_files import conf_folder, defaults, options
from srs_eval.config.suggestions import meant, there_are, unknown_argument, unknown_options

BUILT_GROUPS = ("algo", "data", "protocol", "panel", "tracking", "compute")
OVERLAYS = ("experiment", "sweep")
_LONG_WORD = 500
GROUPS = (*BUILT_GROUPS, *OVERLAYS)
TEXTS = (
    "data.path",
    "name",
    "notes",
    "baseline",
    "tracking.uri",
    "tracking.artifacts",
    "tracking.experiment",
)
_EXPECTED = {"int": "a whole number", "bool": "true or false", "str": "text"}


@dataclass
class Settings:
    """Top level of the configuration; a key that is not here is refused."""

    algo: Any = MISSING
    data: Any = MISSING
    protocol: Any = MISSING
    panel: Any = MISSING
    tracking: Any = MISSING
    compute: Any = MISSING
    name: str | None = None
    seed: int = 2026
    curves_per_user: int = 200
    figures: bool = True
    resume: bool = False
    baseline: str | None = None
    notes: str = ""
    tags: dict[str, str] = field(default_factory=dict)


def register_schema() -> None:
    """Make the schema known to Hydra, under a name no group shows."""
    ConfigStore.instance().store(name="settings_schema", node=Settings)


def composed(overrides: Sequence[str]) -> DictConfig:
    """Compose the configuration as the command would, for tests and notebooks."""
    register_schema()
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def mistakes(overrides: Sequence[str], folders: Sequence[Path] = ()) -> list[str]:
    """Say what is wrong with a command line, all at once, and what was probably meant.

    Parameters
    ----------
    overrides : sequence of str
        The words of the command line, such as ``algo=lsmt``.
    folders : sequence of Path
        Further folders of options.
    """
    if any(word.lstrip("+").startswith("hydra.searchpath") for word in overrides):
        return []  # there may be options that only Hydra finds
    found: list[str] = []
    parsed: dict[str, Override] = {}
    for word in overrides:
        try:
            parsed[word] = _parsed(word)
        except HydraException as error:
            found.append(_unreadable(word, error, folders))
    chosen = _chosen(parsed.values())
    for word, override in parsed.items():
        found += _problems(word, override, chosen, folders)
    return found


def literally(word: str, *, is_sweep: bool) -> str:
    """Quote what is plainly text, such as a path with brackets, so that Hydra takes it as it is.

    Parameters
    ----------
    is_sweep : bool
        Whether commas may separate several values.
    """
    key, _, value = word.partition("=")
    if key not in TEXTS and not key.startswith("data.columns."):
        return word
    path = Path(value).expanduser()
    try:
        override = _parsed(word)
    except HydraException:
        is_text = not value.startswith(("'", '"'))
    else:
        is_text = override.is_sweep_override() and (not is_sweep or path.exists())
    text = str(path) if value.startswith("~") else value
    escaped = text.replace("'", "\\'")
    return f"{key}='{escaped}'" if is_text else word


def explain(error: Exception, overrides: Sequence[str], folders: Sequence[Path] = ()) -> str:
    """Say what Hydra refused, in the words of `mistakes` where they fit, else in its own."""
    found = mistakes(overrides, folders)
    if found:
        return "\n".join(found)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return f"{error.missing_cfg_file}: no such option{there_are(error.options or [])}"
    if str(error).startswith("Ambiguous value for argument"):
        several = [word for word in overrides if "," in word and "[" not in word]
        return "\n".join(f"{word}: several values need the flag -m" for word in several)
    lines = [line for line in str(error).strip().splitlines() if "hydra.cc/docs" not in line]
    if isinstance(error.__cause__, OmegaConfBaseException):
        lines.append(str(error.__cause__).partition("\n")[0])
    return "\n".join(lines)


def _parsed(word: str) -> Override:
    try:
        return OverridesParser.create().parse_override(word)
    except (ValueError, RecursionError) as error:  # thousands of digits or of brackets
        raise HydraException(str(error)) from error


def _unreadable(word: str, error: HydraException, folders: Sequence[Path]) -> str:
    if word in GROUPS:
        return f"{word}: write {word}=OPTION{there_are(options(word, folders))}"
    if "=" not in word:
        return f"{word}: write KEY=VALUE, such as algo=lstm"
    key, _, value = word.partition("=")
    if len(word) > _LONG_WORD:
        return f"{word[:_LONG_WORD]}…: cannot be read; it has {len(word):,} characters"
    return (
        f"{word}: cannot be read ({str(error).splitlines()[0]}); "
        f"close every bracket, or quote text twice: '{key}=\"{value}\"'"
    )


def _chosen(overrides: Iterable[Override]) -> dict[str, list[str]]:
    """Options chosen in each group, by the command line or by default."""
    given = {override.key_or_group: _named(override) for override in overrides}
    overlaid = any(given.get(overlay, ["null"]) != ["null"] for overlay in OVERLAYS)
    # an overlay may choose others
    default = {} if overlaid else {group: [name] for group, name in defaults().items()}
    return default | {group: names for group, names in given.items() if group in GROUPS}


def _problems(
    word: str, override: Override, chosen: Mapping[str, Sequence[str]], folders: Sequence[Path]
) -> list[str]:
    key = override.key_or_group
    top = key.split(".")[0]
    known = (*GROUPS, *Settings.__dataclass_fields__)
    if key.startswith("hydra"):
        return []
    if top not in known:
        return [f"{word}: there is no {top!r}{meant(top, known)}"]
    if key in GROUPS:
        return _unknown_options(word, override, folders)
    if override.is_add():
        return []
    if key == top:
        return _wrong_type(word, override)
    if top == "tags":
        return [] if override.is_delete() else [f"{word}: write +{word}"]
    return unknown_argument(word, key, chosen.get(top, []), folders) if top in GROUPS else []


def _unknown_options(word: str, override: Override, folders: Sequence[Path]) -> list[str]:
    group, known = override.key_or_group, options(override.key_or_group, folders)
    names = ["null"] if override.is_delete() else _named(override)
    if group in BUILT_GROUPS and "null" in names:
        return [f"{word}: {group} cannot be left out{there_are(known)}"]
    return unknown_options(group, [name for name in names if name != "null"], folders)


def _named(override: Override) -> list[str]:
    """Values an override gives, as text; none where only Hydra can say."""
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
