"""Checks of algorithm options that come from people."""

from __future__ import annotations

from collections.abc import Sequence

from srs_eval.errors import ConfigError


def require_choice(owner: str, option: str, value: object, choices: Sequence[str]) -> None:
    """Refuse an option that is not one of its choices.

    Raises
    ------
    ConfigError
        Naming the option, the value and the choices.
    """
    if value not in choices:
        raise ConfigError(f"{owner}: {option}={value} is not one of: {', '.join(choices)}")
