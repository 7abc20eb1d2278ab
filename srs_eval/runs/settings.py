"""The top level of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

# Settings that can change a number
NUMBERS = ("algo", "data", "protocol", "panel", "seed", "curves_per_user")
PARENT = "SRS_EVAL_PARENT_RUN"  # Environment: the run in MLflow that the jobs are nested in


@dataclass
class Settings:
    """Top level of the configuration; Hydra refuses other keys and wrong types."""

    algo: Any = MISSING
    data: Any = MISSING
    protocol: Any = MISSING
    panel: Any = MISSING
    tracking: Any = MISSING
    compute: Any = MISSING
    name: str | None = None
    notes: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    seed: int = 2026
    curves_per_user: int = 200
    figures: bool = True
    fail_fast: bool = True
    check_lookahead: bool = True
    fit_timeout: float | None = None
    shard: str | None = None
    resume: bool = True


ConfigStore.instance().store(name="settings_schema", node=Settings)
