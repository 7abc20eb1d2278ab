"""The sweeper that Hydra finds, without heavy imports before it is used.

It registers two options of the group ``hydra/sweeper``: ``resumable_optuna`` for any app, and
``srs_eval_optuna`` with the settings of srs_eval.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.errors import CompactHydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf


class OptunaSweeper(Sweeper):
    """Run trials in batches, each chosen by the results of the earlier ones.

    Parameters
    ----------
    params : dict of str to str
        Spaces by key, as in a sweep on the command line, which overrides them.
    command : str, optional
        Beginning of the command that uses the best configuration; None for this program.
    meaning : str
        Description of the value of a trial; ``{metric}`` stands for its name.
    search_only : sequence of str
        First parts of keys that the search uses and that command does not.
    at_end : str, optional
        Dotted name of a function to call with the `srs_eval.tuning.ending.Ending`.
    trial : dict, optional
        Set by the search for each of its jobs: see
        `srs_eval.tuning.progress.RunningTrial`. None in the sweep itself.
    options
        The other options: see `srs_eval.tuning.space.SearchOptions`.
    """

    def __init__(
        self,
        *,
        params: dict[str, str],
        command: str | None,
        meaning: str,
        search_only: Sequence[str],
        at_end: str | None,
        trial: dict[str, Any] | None,
        **options: Any,
    ) -> None:
        self.params = params
        self.command = command or _as_typed()
        self.meaning = meaning
        self.search_only = list(search_only)
        self.at_end = at_end
        self.trial = trial
        self.options = options

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Store the composed configuration."""
        self.sweep_config = config
        self.loader = hydra_context.config_loader
        self.job_launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Search; return the parameters and the value of the best trial."""
        try:
            import optuna  # noqa: F401 - only here: plain runs do not need it
        except ImportError as error:
            raise CompactHydraException(
                "this sweep needs Optuna: pip install 'srs-eval[sweep]'\n"
                "(grids do not need it: -m algo.epochs=5,10)"
            ) from error
        from srs_eval.tuning.search import run_search
        from srs_eval.tuning.space import SweepError

        try:
            ending = run_search(self, arguments)
        except SweepError as error:
            # Hydra shows this exception on one line, and all others with a traceback
            raise CompactHydraException(str(error)) from error
        if ending is not None and self.at_end is not None and ending.search.ran:
            get_method(self.at_end)(ending)
        if ending is None or ending.search.complaint:
            sys.exit(1)  # the reason was printed
        return {**ending.best.params, "value": ending.best.value}

    @property
    def shares_process(self) -> bool:
        """Whether jobs run in this process, where they can call back."""
        return isinstance(self.job_launcher, BasicLauncher)

    @property
    def folder(self) -> Path:
        """Folder of the sweep."""
        return Path(str(self.sweep_config.hydra.sweep.dir)).resolve()

    def composed(self, words: Sequence[str]) -> DictConfig:
        """Compose the configuration of a job, as the launcher does."""
        return self.loader.load_sweep_config(self.sweep_config, list(words))

    def launch(self, words: Sequence[Sequence[str]], number: int) -> Any:
        """Run jobs, which are counted from a number."""
        return self.job_launcher.launch(words, initial_job_idx=number)

    def save_config(self) -> None:
        """Save the configuration of the sweep in its folder, as Hydra's own sweeper does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.sweep_config, self.folder / "multirun.yaml")


def _as_typed() -> str:
    """Return the command that started this program, as typed in the same folder."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or spec.name == "__main__":
        return f"python {shlex.quote(sys.argv[0])}"
    return f"python -m {spec.name.removesuffix('.__main__')}"


_ANY_APP: dict[str, Any] = {
    "_target_": f"{__name__}.{OptunaSweeper.__name__}",
    "params": {},
    "n_trials": 30,
    "metric": "objective",
    "direction": "minimize",
    "seed": 2026,
    "sampler": "tpe",
    "startup_trials": 10,
    "pruner": "none",
    "prune_from": 0,
    "start_from_config": True,
    "max_failures": 3,
    "workers": 1,
    "may_change": [],
    "command": None,
    "meaning": "{metric}",
    "search_only": [],
    "at_end": None,
    "trial": None,
}
_SRS_EVAL = {
    **_ANY_APP,
    "metric": "log_loss",
    "may_change": [
        *("resume", "tracking", "compute", "figures", "name", "notes", "tags", "baseline")
    ],
    "command": "python -m srs_eval",
    "meaning": "validation {metric}, on rows before every test row",
    "search_only": ["sweep", "experiment", "protocol"],
    "at_end": "srs_eval.tuning.ending.keep_in_tracker",
}

_store = ConfigStore.instance()
_store.store(group="hydra/sweeper", name="resumable_optuna", node=_ANY_APP, provider="srs_eval")
_store.store(group="hydra/sweeper", name="srs_eval_optuna", node=_SRS_EVAL, provider="srs_eval")
