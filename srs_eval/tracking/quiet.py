"""Settings for calls of MLflow: short timeouts, and silent.

They hold during a call only, and never replace settings of the user.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

LOGGERS = ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool")

# Modules by the beginnings of their names; the last are scripts that create MLflow's tables.
_LIBRARIES = (r"mlflow\.", "alembic", "sqlalchemy", "pydantic", "google", r"[0-9a-f]{12}_")

# MLflow's own defaults retry for about four minutes before they give up.
PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
# A server that is not there should be found out at once.
IMPATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
SILENCE = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}


@contextmanager
def quiet_mlflow(patience: Mapping[str, str] = PATIENCE) -> Iterator[None]:
    """Call MLflow with `patience` and without its output; restore all settings afterwards."""
    added = {name: text for name, text in {**SILENCE, **patience}.items() if name not in os.environ}
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    os.environ.update(added)
    try:
        for logger in loggers:
            # not even errors: MLflow logs, with a traceback, what it raises as well
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            # What MLflow's own modules warn about is for its authors.
            for library in _LIBRARIES:
                warnings.filterwarnings("ignore", module=library)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for name in added:
            os.environ.pop(name, None)
