"""A run in MLflow, from its start to its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mlflow import MlflowClient

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking import run_facts
from srs_eval.tracking.address import StoreAddress
from srs_eval.tracking.items import Item
from srs_eval.tracking.mlflow_run import join_run, log_items, start_run
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
from srs_eval.tracking.quiet import IMPATIENCE, quiet_mlflow
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
    facts: dict[str, str]  # Tags that runs of others get while this one is open
    monitor: SystemMetricsMonitor | None = None  # Logs system metrics until the run ends
    # Undoes that the process hears SIGTERM
    deaf: Callable[[], None] = field(default_factory=stopping.hear_sigterm)
    # Process that opened the run; forked children must not end it
    process: int = field(default_factory=os.getpid)
    is_lost: bool = False  # Whether logging has failed, and the error was raised

    def log(self, items: Sequence[Item], digits: int | None) -> None:
        """Log items, with metrics rounded to `digits`, if given."""
        try:
            with quiet_mlflow(), tracking_errors(f"keep the run {self.run_id}", self.address):
                log_items(self.client, self.run_id, items, digits=digits)
        except TrackingError:
            self.is_lost = True
            raise

    def end(self, status: str) -> None:
        """End the run; an error after one of `log` is not raised."""
        run_facts.end(self.facts)
        self.deaf()
        try:
            with (
                quiet_mlflow(IMPATIENCE),
                tracking_errors(f"end the run {self.run_id}", self.address),
            ):
                if self.monitor is not None:
                    self.monitor.finish()  # type: ignore[no-untyped-call]
                self.client.set_terminated(self.run_id, status)
        except TrackingError:
            if not self.is_lost:
                raise


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
    run_id = os.environ.get("MLFLOW_RUN_ID")
    if run_id is None:
        opened = open_experiment(client, address, experiment)
    else:
        with tracking_errors(f"join the run {run_id} of 'mlflow run'", address):
            opened = client.get_experiment(join_run(client, run_id, run))
        # A second run of this process is not the one that was opened for it.
        del os.environ["MLFLOW_RUN_ID"]
    with ExitStack() as undo:
        with tracking_errors("begin a run", address):
            close_dead_runs(client, opened.experiment_id)
            if run_id is None and run.resumes:
                run_id = finished_run(client, opened.experiment_id, output, run.tags)
                if run_id is not None:
                    join_run(client, run_id, run)
            if run_id is None:
                with only_one(address):
                    run_id = start_run(client, opened.experiment_id, run)
            undo.callback(_give_up, client, run_id)
            shared = run_facts.begin(facts)
            undo.callback(run_facts.end, shared)
            client.log_dict(run_id, environment, run_facts.ENVIRONMENT)
            if run.resumes:
                tag_interrupted(client, opened.experiment_id, run_id, output)
        has_view = view and write_view(client, opened)
        monitor = _monitor(address, run_id) if system_metrics else None
        begun = OpenRun(client, address, opened.experiment_id, run_id, has_view, shared, monitor)
        undo.pop_all()
    return begun


def _give_up(client: MlflowClient, run_id: str) -> None:
    """End a run that failed to start."""
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
