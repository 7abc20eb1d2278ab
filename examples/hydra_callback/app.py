"""A Hydra application; its configuration names the callback in mlflow_runs.py.

    python examples/hydra_callback/app.py -m rate=0.1,1,3

keeps one run per job in mlflow.db in the working directory.
"""

from __future__ import annotations

from pathlib import Path

import hydra
import mlflow
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def descend(cfg: DictConfig) -> float:
    """Find the minimum of (x - 2)²."""
    if cfg.rate <= 0:
        raise ValueError(f"rate={cfg.rate}: expected more than 0")
    x = cfg.start
    for step in range(cfg.steps):
        x -= cfg.rate * 2 * (x - 2)
        mlflow.log_metric("x", x, step=step)
    Path(HydraConfig.get().runtime.output_dir, "x.txt").write_text(f"{x}\n", encoding="utf-8")
    return float((x - 2) ** 2)


if __name__ == "__main__":
    descend()
