"""The sweeper that Hydra finds: searches by Optuna, for ``hydra/sweeper=optuna``.

Hydra loads this module in every application of the environment, so it imports nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.errors import CompactHydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


class OptunaSweeper(Sweeper):
    """Choose each trial by the results of the earlier ones.

    ``params`` has spaces by key, as in a sweep on the command line, which overrides them.
    """

    def __init__(self, *, params: dict[str, Any], **_: Any) -> None:
        self.params = params

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Store the composed configuration."""
        self.config, self.loader = config, hydra_context.config_loader
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Search."""
        assert self.config is not None
        assert self.launcher is not None
        folder = Path(self.config.hydra.sweep.dir)
        OmegaConf.save(self.config, folder / "multirun.yaml")  # as Hydra's own sweeper does
        words = [*(f"{key}={value}" for key, value in self.params.items()), *arguments]
        from srs_eval.errors import SrsEvalError

        try:
            from srs_eval.runs.search import Search

            Search(self.config, self.loader, words).run(self.launcher.launch)
        except (SrsEvalError, ImportError, OSError) as error:  # Hydra prints this in a line
            raise CompactHydraException(f"srs_eval: {error}") from error
