"""Options of ``python -m srs_eval`` in other commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig

from srs_eval.commands.cli import Options
from srs_eval.config import settings
from srs_eval.config.option_files import defaults
from srs_eval.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured(Options):
    """Options of a command that are those of ``python -m srs_eval``, but for its own."""

    overrides: tuple[str, ...] = ()

    def problems(self) -> Iterable[str]:
        """Return what ``python -m srs_eval`` would refuse."""
        return settings.mistakes(self.overrides)

    def composed(self) -> tuple[DictConfig, dict[str, str]]:
        """Compose the configuration; return it and the option of each group."""
        words = [*self.overrides, "tracking=none"]
        return settings.composed(words), defaults() | dict(w.split("=", 1) for w in words)


def values_of(group: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a group such as ``data``, their values read as Hydra does.

    Examples
    --------
    >>> values_of("data", {"decks": "[a*, 'b c']"})
    {'decks': ['a*', 'b c']}
    """
    found = {}
    for name, value in options.items():
        word = f"{group}.{name}={value}"
        try:
            read = OverridesParser.create().parse_override(word)
        except (HydraException, ValueError) as error:
            reason = str(error).partition("\n")[0]
            hint = f"quote text twice, as in '{group}.{name}=\"{value}\"'"
            raise ConfigError(f"{word}: cannot be read ({reason}); {hint}") from error
        if read.is_sweep_override():
            raise ConfigError(f"{word}: write several values in brackets, as in [a,b]")
        found[name] = _unquoted(read.value())
    return found


def _unquoted(value: Any) -> Any:
    """Return a value of Hydra's parser as a plain value."""
    if isinstance(value, list):
        return [_unquoted(each) for each in value]
    return getattr(value, "text", value)
