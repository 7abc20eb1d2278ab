"""The objects of one job, built from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from srs_eval.compute.interface import Compute
from srs_eval.config.targets import TARGET, Builder
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Algorithm, EvaluationProtocol, Source
from srs_eval.tracking.tracker import Tracker

# Protocol of each group.
KINDS: Mapping[str, type] = {
    "algo": Algorithm,
    "data": Source,
    "protocol": EvaluationProtocol,
    "panel": Panel,
    "tracking": Tracker,
    "compute": Compute,
}


def build(cfg: DictConfig, choices: Mapping[str, str]) -> dict[str, Any]:
    """Build the object of each group.

    Raises
    ------
    ConfigError
        With every object that cannot be built.
    """
    built, problems = {}, []
    for group, kind in KINDS.items():
        option = f"{group}={choices[group]}"
        content: Any = OmegaConf.to_container(cfg[group], resolve=True) if cfg[group] else {}
        if TARGET not in content:
            problems.append(f"{option}: its file has no {TARGET}, the class to build")
            continue
        try:
            built[group] = Builder().build(content, kind, group)
        except SrsEvalError as error:
            problems.append(f"{option}: {error}")
    if problems:
        raise ConfigError(*problems)
    return built
