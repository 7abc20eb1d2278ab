"""Passwords in addresses, which would be saved with the options and sent to MLflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError

# scheme://user:password@host, and keys such as password=… or token=… in the query of an address
_SECRET = re.compile(
    r"://[^/@\s:]*:[^/@\s]+@|[?&;](?:password|passwd|pwd|token|secret)=[^&\s]+", re.I
)


def has_secret(text: str) -> bool:
    """Whether a text has an address with a password.

    >>> has_secret("postgresql://me:pass@host/db"), has_secret("postgresql://me@host/db")
    (True, False)
    """
    return _SECRET.search(text) is not None


def masked(text: str) -> str:
    """Return a text without the passwords of its addresses.

    >>> masked("postgresql://me:pass@host/db")
    'postgresql://…@host/db'
    """
    return _SECRET.sub(lambda secret: "://…@" if secret[0].startswith("://") else "", text)


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
