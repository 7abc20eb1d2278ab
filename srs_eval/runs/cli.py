"""The command: ``python -m srs_eval``."""

from __future__ import annotations

import os
import signal
import sys
import threading

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import CompactHydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from srs_eval.errors import Stopped
from srs_eval.runs import settings as settings  # What Hydra composes
from srs_eval.runs.console import complain
from srs_eval.runs.options import conf_folder


def main() -> None:
    """Run the command and exit: 0 if every fit succeeded or was skipped, else 1."""
    is_full = "HYDRA_FULL_ERROR" in os.environ
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # so that errors come here
    try:
        job()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (CompactHydraException, OmegaConfBaseException, OSError) as error:
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
    from srs_eval.runs.job import Job  # not for --help

    end_with_launcher()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _stop)
    one = Job(cfg, HydraConfig.get())
    loss = one.run()
    if one.is_single and one.status == "failed":
        sys.exit(1)
    return loss


def _stop(*_: object) -> None:
    raise Stopped(128 + signal.SIGTERM)
