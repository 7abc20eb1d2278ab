"""While a job runs, MLflow's own functions, in it and in what it starts, log to its run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

RUN, STORE = "MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI"
_EXPERIMENT = "MLFLOW_EXPERIMENT_ID"
# A name would have to agree with the number that is lent.
_AWAY = "MLFLOW_EXPERIMENT_NAME"
_ACTIVE = "_active_experiment_id"


class LentRun:
    """A run that is lent to a job; runs that the job begins besides go to the same experiment.

    A store and an experiment that the application has chosen for MLflow before are put aside:
    MLflow refuses a run of another experiment.

    Parameters
    ----------
    environment : mapping
        See `srs_eval.tracking.mlflow_tracker.MlflowTracker.environment`.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # whoever opened the run has imported MLflow; importing it here would slow down --help
        self._mlflow: Any = sys.modules["mlflow"]
        self._run_id, self._uri = environment[RUN], environment[STORE]
        names = (*environment, _EXPERIMENT, _AWAY)
        self._before = {name: os.environ.get(name) for name in names}
        is_chosen = self._mlflow.is_tracking_uri_set()
        self._uri_before = self._mlflow.get_tracking_uri() if is_chosen else None
        fluent = sys.modules["mlflow.tracking.fluent"]
        self._active_before = getattr(fluent, _ACTIVE)
        run = self._mlflow.MlflowClient(self._uri).get_run(self._run_id)
        setattr(fluent, _ACTIVE, None)
        self._mlflow.set_tracking_uri(self._uri)
        os.environ.pop(_AWAY, None)
        os.environ.update({**environment, _EXPERIMENT: run.info.experiment_id})

    def take_back(self) -> None:
        """Close the run where the job has left it open, and put back what was before."""
        self._mlflow.set_tracking_uri(self._uri)  # the job may have chosen another since
        active = self._mlflow.active_run()
        if active is not None and active.info.run_id == self._run_id:
            self._mlflow.end_run()
        self._mlflow.set_tracking_uri(self._uri_before)
        setattr(sys.modules["mlflow.tracking.fluent"], _ACTIVE, self._active_before)
        for name, before in self._before.items():
            os.environ.pop(name, None)
            if before is not None:
                os.environ[name] = before
