"""A Hydra app that knows nothing of srs_eval, searched by its sweeper."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from srs_eval.tuning.progress import report_progress


@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def train(cfg: DictConfig) -> float:
    """Minimise a bowl in small steps; the sweeper takes what is returned."""
    x = 5.0
    for step in range(cfg.steps):
        x -= cfg.rate * 2 * x + (cfg.optimizer.noise if step % 2 else 0)
        report_progress(step, 1 + x * x)  # only needed for pruning
    return 1 + x * x


if __name__ == "__main__":
    train()
