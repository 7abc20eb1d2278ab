"""Options of ``python -m srs_eval`` in other commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from srs_eval.commands.cli import Options
from srs_eval.config import settings
from srs_eval.config.building import resolved
from srs_eval.config.option_files import defaults
from srs_eval.errors import ConfigError
from srs_eval.text.console import shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured(Options):
    """Options of a command that are those of ``python -m srs_eval``, but for its own."""

    overrides: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take text as it was typed."""
        words = tuple(settings.literally(word, is_sweep=False) for word in self.overrides)
        object.__setattr__(self, "overrides", words)

    def problems(self) -> Iterable[str]:
        """Return what ``python -m srs_eval`` would refuse."""
        return settings.mistakes(self.overrides)

    def composed(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Compose and resolve the configuration; return it and the option of each group."""
        words = [*self.overrides, "tracking=none"]
        choices = defaults() | dict(word.split("=", 1) for word in words)
        return resolved(settings.composed(words), choices), choices


def values_of(group: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a group such as ``data``, their values read as Hydra does.

    Text that Hydra cannot read, such as that of other alphabets, is itself if it has no quotation
    marks, brackets or braces, but for those of a list.

    Examples
    --------
    >>> values_of("data", {"decks": "[a*, 'b c']", "presets": "日本語*"})
    {'decks': ['a*', 'b c'], 'presets': '日本語*'}
    """
    found = {}
    for name, value in options.items():
        word, key = f"{group}.{name}={value}", f"{group}.{name}"
        try:
            typed = settings.literally(word, is_sweep=False)
            read = OverridesParser.create().parse_override(typed)
        except (HydraException, ValueError) as error:
            found[name] = _plain(value)
            if found[name] is None:
                reason = str(error).partition("\n")[0]
                hint = f"quote text twice, as in {shell([override(key, value)])}"
                raise ConfigError(f"{word}: cannot be read ({reason}); {hint}") from error
            continue
        if read.is_sweep_override():
            raise ConfigError(f"{word}: write several values in brackets, as in [a,b]")
        found[name] = _unquoted(read.value())
    return found


def override(key: str, value: Any) -> str:
    r"""Return a word of a command line that Hydra reads as a key with a value.

    >>> print(override("data.path", "my file"), override("data.decks", ["語", 'a"b']))
    data.path="my file" data.decks=["語","a\"b"]
    """
    return f"{key}={_quoted(value)}"


def _quoted(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_quoted, value))}]"
    if not isinstance(value, str):
        return {None: "null", True: "true", False: "false"}.get(value, str(value))
    if re.fullmatch(r"[A-Za-z_./][\w./*-]*", value, re.ASCII):
        return value
    # A backslash counts only before a quotation mark, and at the end.
    text = re.sub(
        r'(\\*)("|$)', lambda found: 2 * found[1] + "\\" * bool(found[2]) + found[2], value
    )
    return f'"{text}"'


def _plain(value: str) -> str | list[str] | None:
    """Return text without marks of Hydra's grammar, or a list of such; None for other text."""
    inside = value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value
    if set(inside) & set("[]{}\"'"):
        return None
    return value if inside is value else [part.strip() for part in inside.split(",")]


def _unquoted(value: Any) -> Any:
    """Return a value of Hydra's parser as a plain value."""
    if isinstance(value, list):
        return [_unquoted(each) for each in value]
    return getattr(value, "text", value)
