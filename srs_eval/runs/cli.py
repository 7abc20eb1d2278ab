"""The command ``python -m srs_eval``, and the top level of its configuration."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import MISSING, DictConfig
from omegaconf.errors import OmegaConfBaseException

from srs_eval.errors import Stopped
from srs_eval.runs.options import conf_folder
from srs_eval.runs.words import complain

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


def main() -> None:
    """Run the command and exit: 0 if every fit succeeded or was skipped, else 1."""
    is_full = "HYDRA_FULL_ERROR" in os.environ
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # so that errors come here
    signal.signal(signal.SIGTERM, _stop)
    try:
        job()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (HydraException, OmegaConfBaseException, OSError) as error:
        if is_full:
            raise
        cause = error.__cause__
        inner = f"\n{cause}" if isinstance(cause, OmegaConfBaseException) else ""
        complain(f"{error}{inner}")
        sys.exit(1)


@hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name="config")
def job(cfg: DictConfig) -> float:
    """Run one job; return its log loss, for searches, and NaN if it has none."""
    from srs_eval.runs.compute import end_with_launcher

    end_with_launcher()
    from srs_eval.runs.job import Job  # which takes long

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _stop)
    one = Job(cfg, HydraConfig.get())
    loss = one.run()
    if one.is_single and one.status == "failed":
        sys.exit(1)
    return loss


def _stop(*_: object) -> None:
    raise Stopped(128 + signal.SIGTERM)
