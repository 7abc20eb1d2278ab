"""A Hydra callback that makes each job of an application a run in MLflow.

Copy it beside the application, and name it in the configuration::

    hydra:
      callbacks:
        mlflow: {_target_: mlflow_runs.MlflowRuns, experiment: my_app}
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import mlflow
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf


class MlflowRuns(Callback):
    """Log each job: its configuration, the numbers that it returns, its files, how it ended.

    Runs go to ``MLFLOW_TRACKING_URI``, or to ``mlflow.db`` where the application was started.
    `files` are patterns: which files of the output folder are kept. While a job runs, MLflow's own
    functions log to its run.
    """

    def __init__(self, experiment: str, files: tuple[str, ...] = ("*", ".hydra/*")) -> None:
        self._experiment, self._files = experiment, tuple(files)

    def on_job_start(self, config: DictConfig, **_: Any) -> None:
        """Begin a run."""
        job = HydraConfig.get()
        database = f"sqlite:///{Path(job.runtime.cwd, 'mlflow.db').as_posix()}"
        mlflow.set_tracking_uri(os.environ.get("MLFLOW_TRACKING_URI") or database)
        mlflow.set_experiment(self._experiment)
        words = " ".join(job.overrides.task)
        tags = {"overrides": words, "job": str(job.job.get("num", 0))}
        mlflow.start_run(run_name=f"{job.job.name} {words}".strip(), tags=tags)
        own = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
        settings: Any = OmegaConf.to_container(own, resolve=True)
        mlflow.log_params(dict(_flat(settings)))

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **_: Any) -> None:
        """End the run as the job has ended."""
        is_done = job_return.status == JobStatus.COMPLETED
        folder = Path(HydraConfig.get().runtime.output_dir)
        try:
            if is_done:
                mlflow.log_metrics(dict(_numbers(job_return.return_value)))
            for path in sorted({path for name in self._files for path in folder.glob(name)}):
                if path.is_file():
                    inside = path.relative_to(folder).parent
                    mlflow.log_artifact(str(path), inside.as_posix() if inside.name else None)
        finally:
            mlflow.end_run("FINISHED" if is_done else "FAILED")


def _numbers(returned: object) -> Iterator[tuple[str, float]]:
    named = returned if isinstance(returned, Mapping) else {"objective": returned}
    for name, value in named.items():
        if isinstance(value, Real) and not isinstance(value, bool):
            yield str(name), float(value)


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
