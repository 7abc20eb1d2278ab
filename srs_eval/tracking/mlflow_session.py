"""Start a run in MLflow."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mlflow import MlflowClient

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError
from srs_eval.tracking import run_facts
from srs_eval.tracking.address import StoreAddress
from srs_eval.tracking.mlflow_run import join_run, start_run
from srs_eval.tracking.mlflow_store import (
    MLFLOW_ERRORS,
    close_dead_runs,
    finished_run,
    only_one,
    open_experiment,
    open_store,
    tag_interrupted,
    tracking_errors,
    write_view,
)
from srs_eval.tracking.tracker import RunInfo

if TYPE_CHECKING:
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor


@dataclass(slots=True)
class OpenRun:
    """An open run."""

    client: MlflowClient
    address: StoreAddress
    experiment_id: str
    run_id: str
    has_view: bool  # Whether the experiment has the default view, which links may point to
    monitor: SystemMetricsMonitor | None = None  # Logs system metrics until the run ends
    # Undoes that the process hears SIGTERM
    deaf: Callable[[], None] = field(default_factory=stopping.hear_sigterm)
    # Process that opened the run; forked children must not end it
    process: int = field(default_factory=os.getpid)
    is_lost: bool = False  # Whether logging has failed, and the error was raised


def begin_run(
    address: StoreAddress, run: RunInfo, *, experiment: str, view: bool, system_metrics: bool
) -> OpenRun:
    """Open the store and begin a run, or join the one that ``mlflow run`` began."""
    if system_metrics and find_spec("psutil") is None:
        raise ConfigError("tracking.system_metrics=true needs psutil: pip install psutil")
    output = {} if run.folder is None else {"output": str(run.folder.absolute())}
    facts = {**run_facts.process_facts(), **output, **run.tags}
    tags, environment = run_facts.split_environment(facts)
    run = replace(run, tags=tags)
    client = open_store(address)
    joined = os.environ.get("MLFLOW_RUN_ID")
    if joined is not None:
        with tracking_errors(f"join the run {joined} of 'mlflow run'", address):
            experiment_id = join_run(client, joined, run)
            # A second run of this process is not the one that was opened for it.
            del os.environ["MLFLOW_RUN_ID"]
            opened = client.get_experiment(experiment_id)
    else:
        opened = open_experiment(client, address, run.experiment or experiment)
    with ExitStack() as undo:
        with tracking_errors("begin a run", address):
            close_dead_runs(client, opened.experiment_id)
            if joined is None and run.resumes:
                joined = finished_run(client, opened.experiment_id, output, run.tags)
                if joined is not None:
                    join_run(client, joined, run)
            if joined is None:
                with only_one(address):
                    joined = start_run(client, opened.experiment_id, run)
            undo.callback(_give_up, client, joined)
            run_facts.begin(facts)
            client.log_dict(joined, environment, run_facts.ENVIRONMENT)
            if run.resumes:
                tag_interrupted(client, opened.experiment_id, joined, output)
        has_view = view and write_view(client, opened)
        opened_run = OpenRun(
            client,
            address,
            experiment_id=opened.experiment_id,
            run_id=joined,
            has_view=has_view,
            monitor=_monitor(address, joined) if system_metrics else None,
        )
        undo.pop_all()
    return opened_run


def _give_up(client: MlflowClient, run_id: str) -> None:
    """End a run that failed to start."""
    run_facts.end()
    with suppress(*MLFLOW_ERRORS):
        client.set_terminated(run_id, "KILLED")


def _monitor(address: StoreAddress, run_id: str) -> SystemMetricsMonitor:
    """Start to log system metrics."""
    # Imported here, because it cannot be without psutil.
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(  # type: ignore[no-untyped-call]
        run_id, tracking_uri=address.uri
    )
    monitor.start()  # type: ignore[no-untyped-call]
    return monitor
