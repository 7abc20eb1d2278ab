"""Passwords in addresses, which would be saved with the options and sent to MLflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError
from srs_eval.places import has_secret


def refuse_secrets(config: DictConfig) -> None:
    """Raise `ConfigError` if an option holds a password: Hydra and MLflow would save it."""
    content: Any = OmegaConf.to_container(config, resolve=False)
    words = content.pop("hydra", {}).get("overrides", {})
    told = [*_texts(content), *(each.partition("=")[::2] for _, each in _texts(words))]
    keys = sorted({key.lstrip("+") for key, text in told if has_secret(text)})
    if keys:
        raise ConfigError(
            f"{', '.join(keys)}: the address has a password, which would be saved; leave it to "
            "the environment (MLFLOW_TRACKING_URI, PGPASSWORD, ~/.pgpass)"
        )


def _texts(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Go through all texts of a configuration, by key."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _texts(value, f"{key}.{name}" if key else str(name))
    elif isinstance(content, list):
        for value in content:
            yield from _texts(value, key)
    elif isinstance(content, str):
        yield key, content
