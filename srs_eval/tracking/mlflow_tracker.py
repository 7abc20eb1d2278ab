"""The tracker that logs runs to MLflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from srs_eval.tracking.address import LOCK_SECONDS, store_address
from srs_eval.tracking.items import Item
from srs_eval.tracking.quiet import IMPATIENCE, quiet_mlflow
from srs_eval.tracking.tracker import RunEnd, RunInfo, RunLinks

if TYPE_CHECKING:
    from srs_eval.tracking.mlflow_session import MlflowSession


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
    model : bool
        Whether to log the model fitted to the first user (the last fold) so that it can be
        registered and served. Where that cannot be, the tag ``model`` says why.
    system_metrics : bool
        Whether to log the use of processors, memory and disk; needs psutil.
    timeout : float
        Seconds to wait for a database that another process has locked.
    """

    def __init__(
        self,
        *,
        uri: str | None = None,
        experiment: str = "srs_eval",
        artifacts: str | None = None,
        view: bool = True,
        model: bool = False,
        system_metrics: bool = False,
        timeout: float = LOCK_SECONDS,
    ) -> None:
        self.uri = uri
        self.experiment = experiment
        self.artifacts = artifacts
        self.view = view
        self.model = model
        self.system_metrics = system_metrics
        self.timeout = timeout
        self._session: MlflowSession | None = None

    def start(self, run: RunInfo) -> None:
        """Open the store and begin a run, or join the one that ``mlflow run`` began.

        Raises
        ------
        ConfigError
            If the URI is none that MLflow can keep runs in.
        TrackingError
            If the store cannot be opened or the run cannot be begun.
        """
        address = store_address(self.uri, self.artifacts, timeout=self.timeout)
        with quiet_mlflow(IMPATIENCE):
            # Imported here, because MLflow takes a second that checking options need not
            # wait for, and reads its settings for silence while it is imported.
            from srs_eval.tracking.mlflow_session import begin_session

            self._session = begin_session(
                address,
                run,
                experiment=self.experiment,
                view=self.view,
                system_metrics=self.system_metrics,
            )

    def environment(self) -> dict[str, str]:
        """Return the variables that make MLflow's functions log to the open run."""
        session = self._open_session()
        return {"MLFLOW_RUN_ID": session.run_id, "MLFLOW_TRACKING_URI": session.address.uri}

    def log(self, items: Iterable[Item]) -> None:
        """Write items to the run.

        Raises
        ------
        TrackingError
            If they cannot be kept; what was kept before stays.
        """
        self._open_session().log(items)

    def finish(self, status: RunEnd) -> RunLinks:
        """End the run and return its links.

        A run that was asked to stop ends as killed, whatever `status` says.

        Raises
        ------
        TrackingError
            If the end cannot be kept, unless `log` has already failed and said so.
        """
        session = self._open_session()
        self._session = None
        return session.finish(status)

    def _open_session(self) -> MlflowSession:
        if self._session is None:
            raise RuntimeError("start() a run before log() and finish()")
        return self._session
