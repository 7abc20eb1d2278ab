"""The tracker that logs runs to MLflow."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking import run_facts
from srs_eval.tracking.address import LOCK_SECONDS, store_address, ui_command
from srs_eval.tracking.items import Item, Tag
from srs_eval.tracking.quiet import IMPATIENCE, quiet_mlflow
from srs_eval.tracking.tracker import RunEnd, RunInfo, RunLinks
from srs_eval.tracking.view import view_link

if TYPE_CHECKING:
    from srs_eval.tracking.mlflow_session import OpenRun

# Without it the UI may open the page with its menus for generative AI.
ML_MENUS = "?workflowType=machine_learning"
STATUS: dict[RunEnd, str] = {"finished": "FINISHED", "failed": "FAILED", "killed": "KILLED"}


@dataclass(eq=False, kw_only=True)
class MlflowTracker:
    """Log runs to MLflow: to a local sqlite file, or to any server or database it supports.

    Nothing is opened, and MLflow is not even imported, before `start`. A run whose
    process is asked to stop (SIGTERM) ends as KILLED, one whose process leaves without
    `finish` as FAILED, and one whose process died is marked KILLED by the next run of
    the same experiment on the same host.

    Parameters
    ----------
    uri : str, optional
        An MLflow tracking URI. None takes ``MLFLOW_TRACKING_URI``, or else ``mlflow.db``
        in the working directory, with the artefacts beside it in ``mlartifacts``.
    experiment : str
        Group of runs to compare, for runs that do not name their own; created with a
        note and a view if it is new.
    artifacts : str, optional
        Folder or URI for the files of a new experiment.
    view : bool
        Whether to give the experiment a ready-made view in the UI.
    model : bool or "scores"
        Whether to log the model fitted to the first user (the last fold) so that it can be
        registered and served. Where that cannot be, the tag ``model`` says why. With ``scores``,
        a model without files has the run's scores on its data, for `search_logged_models`.
    system_metrics : bool
        Whether to log the use of processors, memory and disk; needs psutil.
    digits : int, optional
        Significant digits of metrics, which the UI shows in full. None keeps all of them, as the
        results of a run do.
    timeout : float
        Seconds to wait for a database that another process has locked.
    """

    uri: str | None = None
    experiment: str = "srs_eval"
    artifacts: str | None = None
    view: bool = True
    model: bool | Literal["scores"] = False
    system_metrics: bool = False
    digits: int | None = 4
    timeout: float = LOCK_SECONDS
    _run: OpenRun | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.digits is not None and self.digits < 1:
            raise ConfigError(
                f"tracking.digits={self.digits}: expected a whole number above 0, or null"
            )
        if self.model not in (False, True, "scores"):
            raise ConfigError(f"tracking.model={self.model}: expected true, false or scores")

    def start(self, run: RunInfo) -> None:
        """Open the store and begin a run, or join the one that ``mlflow run`` began."""
        address = store_address(self.uri, self.artifacts, timeout=self.timeout)
        with quiet_mlflow(IMPATIENCE):
            # Imported here, because MLflow takes a second that checking options need not
            # wait for, and reads its settings for silence while it is imported.
            from srs_eval.tracking.mlflow_session import begin_run

            self._run = begin_run(
                address,
                run,
                experiment=self.experiment,
                view=self.view,
                system_metrics=self.system_metrics,
            )
        atexit.register(self._leave)

    def environment(self) -> dict[str, str]:
        """Return the variables that make MLflow's functions log to the open run."""
        run = self._open_run()
        return {"MLFLOW_RUN_ID": run.run_id, "MLFLOW_TRACKING_URI": run.address.uri}

    def log(self, items: Iterable[Item]) -> None:
        run, items = self._open_run(), tuple(items)
        run.log(items, self.digits)
        run_facts.add(run.facts, {item.name: item.value for item in items if isinstance(item, Tag)})

    def finish(self, status: RunEnd) -> RunLinks:
        """End the run and return its links.

        The run ends as killed if the process was asked to stop, whatever `status` is.
        """
        run, self._run = self._open_run(), None
        end = STATUS["killed" if stopping.is_requested() else status]
        atexit.unregister(self._leave)
        run.end(end)
        return _links(run)

    def _leave(self) -> None:
        """End the run as failed when the process exits without `finish`.

        A forked child exits too, but the run is its parent's. Errors at exit are not reported.
        """
        if self._run is not None and os.getpid() == self._run.process:
            with suppress(TrackingError):
                self.finish("failed")

    def _open_run(self) -> OpenRun:
        if self._run is None:
            raise RuntimeError("start() a run before log() and finish()")
        return self._run


def _links(run: OpenRun) -> RunLinks:
    pages = run.address.pages
    return RunLinks(
        run_id=run.run_id,
        run_url=f"{pages}/#/experiments/{run.experiment_id}/runs/{run.run_id}{ML_MENUS}",
        view_url=f"{pages}/{view_link(run.experiment_id)}" if run.has_view else None,
        ui_command=ui_command(run.address),
    )
