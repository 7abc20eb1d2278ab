"""Passwords in addresses, which would be saved with the options and sent to MLflow."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError
from srs_eval.places import has_secret
from srs_eval.runs.words import dotted


def refuse_secrets(config: DictConfig) -> None:
    """Raise `ConfigError` if an option holds a password: Hydra and MLflow would save it."""
    content: Any = OmegaConf.to_container(config, resolve=False)
    overrides = content.pop("hydra", {}).get("overrides", {}).values()
    typed = [word.lstrip("+").partition("=")[::2] for words in overrides for word in words]
    keys = sorted({key for key, value in [*dotted(content), *typed] if has_secret(str(value))})
    if keys:
        raise ConfigError(
            f"{', '.join(keys)}: the address has a password, which would be saved; leave it to "
            "the environment (MLFLOW_TRACKING_URI, PGPASSWORD, ~/.pgpass)"
        )
