"""One open run in MLflow, from its start to its end."""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mlflow import MlflowClient

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking import run_facts
from srs_eval.tracking.address import StoreAddress, ui_command
from srs_eval.tracking.items import Item, Tag
from srs_eval.tracking.mlflow_run import join_run, log_items, start_run
from srs_eval.tracking.mlflow_store import (
    MLFLOW_ERRORS,
    close_dead_runs,
    only_one,
    open_experiment,
    open_store,
    tag_interrupted,
    tracking_errors,
    write_view,
)
from srs_eval.tracking.process import StopSignal
from srs_eval.tracking.quiet import IMPATIENCE, quiet_mlflow
from srs_eval.tracking.tracker import RunEnd, RunInfo, RunLinks
from srs_eval.tracking.view import view_link

if TYPE_CHECKING:
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

# Without it the UI may open the page with its menus for chat bots.
ML_MENUS = "?workflowType=machine_learning"
STATUS: dict[RunEnd, str] = {"finished": "FINISHED", "failed": "FAILED", "killed": "KILLED"}


class MlflowSession:
    """One open run.

    Parameters
    ----------
    has_view : bool
        Whether the experiment has the ready-made view, to which links may point.
    monitor : SystemMetricsMonitor, optional
        Logs system metrics until the run ends.
    """

    def __init__(
        self,
        client: MlflowClient,
        address: StoreAddress,
        *,
        experiment_id: str,
        run_id: str,
        has_view: bool,
        monitor: SystemMetricsMonitor | None = None,
    ) -> None:
        self.client = client
        self.address = address
        self.experiment_id = experiment_id
        self.run_id = run_id
        self.has_view = has_view
        self._monitor = monitor
        self._lost = False
        self._process = os.getpid()
        self._stop = StopSignal()
        self._stop.install()
        atexit.register(self._leave)

    def log(self, items: Iterable[Item]) -> None:
        """Write items to the run.

        Raises
        ------
        TrackingError
            If they cannot be kept; what was kept before stays.
        """
        items = tuple(items)
        try:
            with quiet_mlflow(), tracking_errors(f"keep the run {self.run_id}", self.address):
                log_items(self.client, self.run_id, items)
        except TrackingError:
            self._lost = True
            raise
        run_facts.add({item.name: item.value for item in items if isinstance(item, Tag)})

    def finish(self, status: RunEnd) -> RunLinks:
        """End the run, as killed if the process was asked to stop, and say where it is.

        Raises
        ------
        TrackingError
            If the end cannot be kept, unless `log` has already failed and said so.
        """
        self._stop.restore()
        atexit.unregister(self._leave)
        run_facts.end()
        end = STATUS["killed" if self._stop.received else status]
        try:
            with (
                quiet_mlflow(IMPATIENCE),
                tracking_errors(f"end the run {self.run_id}", self.address),
            ):
                if self._monitor is not None:
                    self._monitor.finish()  # type: ignore[no-untyped-call]
                self.client.set_terminated(self.run_id, end)
        except TrackingError:
            if not self._lost:
                raise
        return self._links()

    def _leave(self) -> None:
        # The process exits without `finish`. A forked child exits too, but the run is its
        # parent's. Errors at exit are not reported.
        if os.getpid() == self._process:
            with suppress(TrackingError):
                self.finish("failed")

    def _links(self) -> RunLinks:
        pages = self.address.pages
        view = f"{pages}/{view_link(self.experiment_id)}" if self.has_view else None
        return RunLinks(
            run_id=self.run_id,
            run_url=f"{pages}/#/experiments/{self.experiment_id}/runs/{self.run_id}{ML_MENUS}",
            view_url=view,
            ui_command=ui_command(self.address),
        )


def begin_session(
    address: StoreAddress, run: RunInfo, *, experiment: str, view: bool, system_metrics: bool
) -> MlflowSession:
    """Open the store and begin a run, or join the one that ``mlflow run`` began.

    Raises
    ------
    ConfigError
        If the use of the machine cannot be measured.
    TrackingError
        If the store cannot be opened or the run cannot be begun.
    """
    if system_metrics and find_spec("psutil") is None:
        raise ConfigError("tracking.system_metrics=true needs psutil: pip install psutil")
    host = socket.gethostname()
    output = {} if run.folder is None else {"output": str(run.folder.absolute())}
    run = replace(run, tags={**run_facts.process_facts(), **output, **run.tags})
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
    run_facts.begin(run.tags)
    with ExitStack() as undo:
        with tracking_errors("begin a run", address):
            close_dead_runs(client, opened.experiment_id, host)
            if joined is None:
                with only_one(address):
                    joined = start_run(client, opened.experiment_id, run)
            undo.callback(_give_up, client, joined)
            if run.resumes:
                tag_interrupted(client, opened.experiment_id, joined, output)
        has_view = view and write_view(client, opened)
        session = MlflowSession(
            client,
            address,
            experiment_id=opened.experiment_id,
            run_id=joined,
            has_view=has_view,
            monitor=_monitor(address, joined) if system_metrics else None,
        )
        undo.pop_all()
    return session


def _give_up(client: MlflowClient, run_id: str) -> None:
    """End a run that failed to start."""
    run_facts.end()
    with suppress(*MLFLOW_ERRORS):
        client.set_terminated(run_id, STATUS["killed"])


def _monitor(address: StoreAddress, run_id: str) -> SystemMetricsMonitor:
    """Start to log system metrics."""
    # Imported here, because it cannot be without psutil.
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(  # type: ignore[no-untyped-call]
        run_id, tracking_uri=address.uri
    )
    monitor.start()  # type: ignore[no-untyped-call]
    return monitor
