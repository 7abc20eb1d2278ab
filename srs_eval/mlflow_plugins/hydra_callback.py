"""A Hydra callback that makes each job of any Hydra application a run in MLflow.

In the application's configuration::

    hydra:
      callbacks:
        mlflow:
          _target_: srs_eval.mlflow_plugins.hydra_callback.MlflowRuns
          experiment: my_app

Nothing else of the application changes, and nothing else of srs_eval is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from srs_eval.errors import ConfigError, Pruned
from srs_eval.mlflow_plugins.active_run import ActiveRun
from srs_eval.text.addresses import has_secret, secret_problem
from srs_eval.tracking.address import store_address
from srs_eval.tracking.items import ArtifactFile, Item, Param, Tag, Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunEnd, RunInfo, sweep_id

OBJECTIVE = "objective"
# What Optuna's own sweepers raise, by name: an application need not have Optuna.
_TRIAL_PRUNED = "optuna.exceptions.TrialPruned"


class MlflowRuns(Callback):
    """Log each job: its resolved configuration, its number, its files, and how it ended.

    The configuration is logged flat as parameters, choices of groups as tags; a number that
    the job returns is the metric ``objective``, of several each is. The jobs of a sweep share
    the tag ``sweep_id``, and each has its number as the tag ``trial``. A job that raises is a run
    that failed, with the tag ``error``; one that a search has pruned is a run that was killed,
    with the tag ``outcome``. Hydra does not report
    a job that calls ``sys.exit``, so the status of its run is meaningless: return instead.

    While a job runs, MLflow's own functions (``mlflow.log_metric``) log to its run. A first
    ``mlflow.start_run()`` opens that run again, further ones begin others in the same experiment.
    The earlier choices of an application by ``mlflow.set_experiment`` and
    ``mlflow.set_tracking_uri`` do not apply during a job. In a job, MLflow refuses
    to continue the run after another experiment or store is chosen: remove ``MLFLOW_RUN_ID``
    from ``os.environ`` first.

    `uri`, `experiment` and `artifacts` are those of
    `srs_eval.tracking.mlflow_tracker.MlflowTracker`. Relative paths start from the folder the
    application was started in, also where Hydra changes it for each job. `files` are patterns:
    which files of the output folder are kept. `name` is that of the runs; by default each has the
    job's own, with what was overridden.
    """

    def __init__(
        self,
        *,
        uri: str | None = None,
        experiment: str = "hydra",
        artifacts: str | None = None,
        files: Sequence[str] = ("*", ".hydra/*"),
        name: str | None = None,
    ) -> None:
        secret = [
            key for key, text in (("uri", uri), ("artifacts", artifacts)) if has_secret(text or "")
        ]
        if secret:
            raise ConfigError(*(secret_problem(f"tracking.{key}") for key in secret))
        self._uri = uri
        self._experiment = experiment
        self._artifacts = artifacts
        self._files = tuple(files)
        self._name = name
        self._tracker: MlflowTracker | None = None
        self._active: ActiveRun | None = None
        self._folder = Path()

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        began_in = Path(HydraConfig.get().runtime.cwd)
        address = store_address(self._uri, self._artifacts, folder=began_in)
        tracker = MlflowTracker(
            uri=address.uri,
            experiment=self._experiment,
            artifacts=address.artifacts,
            view=False,
            digits=None,
        )
        settings = _without_hydra(config)
        self._folder = Path(HydraConfig.get().runtime.output_dir)
        tracker.start(self._run())
        self._tracker = tracker
        tracker.log(Param(name, value) for name, value in flat(settings).items())
        self._active = ActiveRun(tracker.environment())

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """End the run as the job has ended."""
        tracker, self._tracker = self._tracker, None
        active, self._active = self._active, None
        if tracker is None:
            return
        end: RunEnd = "failed"
        try:
            if active is not None:
                active.restore()
            tracker.log([*_result(job_return), *self._kept_files()])
            end = _end(job_return)
        finally:
            tracker.finish(end)

    def _run(self) -> RunInfo:
        job = HydraConfig.get()
        typed: Any = OmegaConf.to_container(job.overrides.task, resolve=False)
        words = " ".join(typed)
        choices = {
            group: str(name)
            for group, name in job.runtime.choices.items()
            if not group.startswith("hydra/")
        }
        tags = {**choices, "overrides": words}
        if job.mode == RunMode.MULTIRUN:
            sweep = Path(job.runtime.cwd, job.sweep.dir).resolve()
            tags |= {"sweep_id": sweep_id(sweep), "trial": str(job.job.num)}
        name = self._name or f"{job.job.name} {words}".strip()
        return RunInfo(name, tags=tags, folder=Path(job.runtime.output_dir))

    def _kept_files(self) -> Iterator[Item]:
        folder = self._folder
        for path in sorted({path for name in self._files for path in folder.glob(name)}):
            if path.is_file():
                inside = path.relative_to(folder).parent.as_posix()
                yield ArtifactFile(path, "" if inside == "." else inside)


def objectives(returned: object) -> Iterator[Value]:
    """Yield the numbers a job returned.

    >>> [(value.name, value.value) for value in objectives((0.5, 2))]
    [('objective_0', 0.5), ('objective_1', 2.0)]
    """
    if isinstance(returned, Mapping):
        named = {str(name): value for name, value in returned.items()}
    elif isinstance(returned, (list, tuple)):
        named = {f"{OBJECTIVE}_{number}": value for number, value in enumerate(returned)}
    else:
        named = {OBJECTIVE: returned}
    for name, value in named.items():
        if type(value) is not bool and isinstance(value, Real):
            yield Value(name, float(value))


def flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a configuration to dotted names; lists and empty mappings become JSON.

    >>> flat({"model": {"units": [8, 4], "bias": True}, "extra": {}})
    {'model.units': '[8, 4]', 'model.bias': True, 'extra': '{}'}
    """
    pairs: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            pairs |= flat(value, f"{name}.")
        elif isinstance(value, (Mapping, list)):
            pairs[name] = json.dumps(value, default=str)
        else:
            pairs[name] = value
    return pairs


def _result(job_return: JobReturn) -> Iterator[Item]:
    # the property would raise what a failed job has raised
    returned = job_return._return_value
    if job_return.status == JobStatus.COMPLETED:
        yield from objectives(returned)
    elif _is_pruned(returned):
        yield Tag("outcome", "pruned")
    else:
        yield Tag("error", f"{type(returned).__name__}: {returned}")


def _is_pruned(raised: object) -> bool:
    kinds = type(raised).__mro__
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    return isinstance(raised, Pruned) or _TRIAL_PRUNED in names


def _end(job_return: JobReturn) -> RunEnd:
    if job_return.status == JobStatus.COMPLETED:
        return "finished"
    return "killed" if _is_pruned(job_return._return_value) else "failed"


def _without_hydra(config: DictConfig) -> dict[str, Any]:
    """Resolve the application's part of the configuration; missing values stay ``???``."""
    own = config.copy()
    with open_dict(own):
        own.pop("hydra", None)
    content: Any = OmegaConf.to_container(own, resolve=True)
    return {str(name): value for name, value in content.items()}
