"""Make the run of a job the active run of MLflow, in the job and in its child processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

RUN, STORE = "MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI"
_EXPERIMENT = "MLFLOW_EXPERIMENT_ID"
# MLflow requires that name and id agree, so the name is removed while the id is set.
_EXPERIMENT_NAME = "MLFLOW_EXPERIMENT_NAME"
_ACTIVE_EXPERIMENT = "_active_experiment_id"


class ActiveRun:
    """The active run of MLflow while a job runs.

    Other runs that the job starts go to the same experiment. The tracking URI and experiment that
    the application chose before are set aside until `restore`, because MLflow refuses to log to a
    run of another experiment. `environment` is `MlflowTracker.environment`.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Opening the run has imported MLflow. An import at the top would slow down --help.
        self._mlflow: Any = sys.modules["mlflow"]
        self._fluent: Any = sys.modules["mlflow.tracking.fluent"]
        self._run_id, self._uri = environment[RUN], environment[STORE]
        names = (*environment, _EXPERIMENT, _EXPERIMENT_NAME)
        self._environment_before = {name: os.environ.get(name) for name in names}
        is_chosen = self._mlflow.is_tracking_uri_set()
        self._uri_before = self._mlflow.get_tracking_uri() if is_chosen else None
        self._experiment_before = getattr(self._fluent, _ACTIVE_EXPERIMENT)
        run = self._mlflow.MlflowClient(self._uri).get_run(self._run_id)
        setattr(self._fluent, _ACTIVE_EXPERIMENT, None)
        self._mlflow.set_tracking_uri(self._uri)
        os.environ.pop(_EXPERIMENT_NAME, None)
        os.environ.update({**environment, _EXPERIMENT: run.info.experiment_id})

    def restore(self) -> None:
        """Close the run if the job left it open, and restore the previous settings."""
        self._mlflow.set_tracking_uri(self._uri)  # the job may have changed it
        active = self._mlflow.active_run()
        if active is not None and active.info.run_id == self._run_id:
            self._mlflow.end_run()
        self._mlflow.set_tracking_uri(self._uri_before)
        setattr(self._fluent, _ACTIVE_EXPERIMENT, self._experiment_before)
        for name, before in self._environment_before.items():
            os.environ.pop(name, None)
            if before is not None:
                os.environ[name] = before
