"""MLflow's client at one address, for one experiment."""

from __future__ import annotations

import base64
import json
import logging
import os
import random
import re
import shlex
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from hydra.utils import to_absolute_path

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.places import has_secret, masked

_VIEW = "srs_eval_8"  # Changes with the content of the view
_VIEW_FILE = Path(__file__).with_name("view.json")
_VIEW_TAG = f"mlflow.sharedViewState.{_VIEW}"
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
    # By default a server that is down is tried for minutes
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
# What passes, in at most so many seconds: locks of sqlite, and rows that two runs add at once
_PASSING = ("database is locked", "unique constraint")
_PATIENCE = 300.0
_AT_ONCE = 1000  # Most values in a request
COMPLETE = "rows_fingerprint"  # The tag of a run that has all it shall have


class Store:
    """An experiment, made if it is new, or that of a run, and MLflow's client at its address.

    The client waits for what passes, and says what helps.
    """

    def __init__(self, uri: str | None, experiment: str, run_id: str | None = None) -> None:
        uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        for library in ("alembic", "sqlalchemy", "urllib3.connectionpool"):
            logging.getLogger(library).setLevel(logging.CRITICAL)  # Errors are raised as well
        kind, _, rest = uri.partition(":///")
        place, _, query = rest.partition("?")
        self.file = Path(to_absolute_path(place)) if kind.startswith("sqlite") and place else None
        if self.file is not None:
            uri = f"{kind}:///{self.file.as_posix()}" + (f"?{query}" if query else "")
        os.environ["MLFLOW_TRACKING_URI"] = self.uri = uri
        if self.file is not None and not self.file.exists():
            self.waiting(_create)(self.file)
        self.client = self.waiting(_client)(uri)
        own = self.get_run(run_id).info.experiment_id if run_id else None
        known = self.get_experiment(own) if own else self.waiting(self._experiment)(experiment)
        self.experiment_id = known.experiment_id
        if _VIEW_TAG not in known.tags:
            for tag, value in _view_tags().items():
                self.set_experiment_tag(self.experiment_id, tag, value)

    def __getattr__(self, name: str) -> Any:
        return self.waiting(getattr(self.client, name))

    def waiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of MLflow that waits, and raises `TrackingError`.

        Raise `ConfigError` for an address that MLflow does not take.
        """
        from mlflow.exceptions import MlflowException  # After the settings were made
        from sqlalchemy.exc import SQLAlchemyError

        def call(*arguments: Any, **options: Any) -> Any:
            began = time.monotonic()
            while True:
                try:
                    return function(*arguments, **options)
                except (MlflowException, SQLAlchemyError, OSError, ImportError) as error:
                    text = str(error).lower()
                    passes = any(what in text for what in _PASSING)
                    if not passes or time.monotonic() - began > _PATIENCE:
                        # No fit is worth waiting for where no run can ever be kept
                        is_wrong = function is _client and isinstance(error, MlflowException)
                        refusal = ConfigError if is_wrong and not passes else TrackingError
                        # Not with the error of a library, which may have a password
                        raise refusal(self._reason(error)) from None
                    time.sleep(random.uniform(0.1, 0.5))

        return call

    def _reason(self, error: BaseException) -> str:
        line = masked(str(error).strip()).partition("\n")[0]
        helps = "correct tracking.uri (or MLFLOW_TRACKING_URI), or go on with tracking=none"
        if "Max retries exceeded" in line:
            line, helps = "the server does not answer", f"start it, {helps}"
        elif "database is locked" in line:
            line = "another process has locked the database"
            helps = "end that process, or go on with tracking=none"
        return f"MLflow at {masked(self.uri)}: {line}\n  {helps}"

    def _experiment(self, name: str) -> Any:
        # Where another program was first, this is called again
        known = self.client.get_experiment_by_name(name)
        return known or self.client.get_experiment(self.client.create_experiment(name))

    def run(self, run_id: str) -> Any:
        """Return a run of the experiment; None if it is not there, or deleted."""
        same = f"attributes.run_id = '{run_id}'"
        return next(iter(self.search_runs([self.experiment_id], same, max_results=1)), None)

    def log(
        self,
        run_id: str,
        metrics: Iterable[tuple[str, float, int]] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log metrics, each with its step, parameters and tags."""
        from mlflow.entities import Metric, Param, RunTag

        now = time.time_ns() // 1_000_000
        values = [Metric(name, value, now, step) for name, value, step in metrics]
        named = [Param(*each) for each in (params or {}).items()]
        marks = [RunTag(*each) for each in (tags or {}).items()]
        for begin in range(0, max(len(values), 1), _AT_ONCE):
            self.log_batch(run_id, values[begin : begin + _AT_ONCE], named, marks)

    def end(self, run_id: str, status: str, *, only_running: bool = False) -> None:
        """End a run without complaint, where something has failed or is at its end."""
        with suppress(Exception):
            if not only_running or self.client.get_run(run_id).info.status == "RUNNING":
                self.client.set_terminated(run_id, status)

    def log_tables(self, run_id: str, tables: Mapping[str, Any]) -> None:
        """Log frames as MLflow's `log_table` does, which would add rows to those that are there."""
        for name, table in tables.items():
            text = table.to_json(orient="split", index=False)
            self.log_text(run_id, text, f"tables/{name}.json")
        listed = [{"path": f"tables/{name}.json", "type": "table"} for name in tables]
        self.set_tag(run_id, "mlflow.loggedArtifacts", json.dumps(listed))

    def log_figures(self, run_id: str, files: Sequence[Path]) -> None:
        """Log figures, the pictures also to be seen beside the metrics."""
        from mlflow import Image

        earlier = " ".join(image.path for image in self.list_artifacts(run_id, "images"))
        for file in files:
            self.log_artifact(run_id, str(file), "figures")
            if file.suffix == ".png" and f"/{file.stem}+" not in earlier:
                self.log_image(run_id, Image(str(file)), key=file.stem, step=0)

    def link(self) -> str:
        """Return the line to print: how to see the runs, with their address as a comment."""
        page = view_link(self.experiment_id)
        if self.uri.startswith("http"):
            return f"MLflow   {masked(self.uri).replace('…@', '').rstrip('/')}/{page}"
        address = shlex.quote(self.uri)
        if self.file is not None and self.file.parent == Path(to_absolute_path(".")):
            address = f"sqlite:///{shlex.quote(self.file.name)}"
        elif has_secret(self.uri):
            address = '"$MLFLOW_TRACKING_URI"'
        return f"MLflow   mlflow ui --backend-store-uri {address}  # http://127.0.0.1:5000/{page}"


def _create(file: Path) -> None:
    """Let MLflow make its tables beside a new file, so that a kill leaves no half of them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    folder = file.with_name(f".{file.name}.partial")
    with FileLock(f"{file}.lock", timeout=600):
        if file.exists():
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        fresh = folder / file.name
        _client(f"sqlite:///{fresh.as_posix()}").search_experiments(max_results=1)
        fresh.replace(file)
        shutil.rmtree(folder, ignore_errors=True)


def _client(uri: str) -> Any:
    from mlflow import MlflowClient
    from sqlalchemy import Engine, event

    if not event.contains(Engine, "before_cursor_execute", _impatient):
        event.listen(Engine, "before_cursor_execute", _impatient, retval=True)
    return MlflowClient(uri)


def _impatient(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
    """Let sqlite wait for 0.3 s, not for 20 as MLflow asks it to: signals come only afterwards."""
    return statement.replace("busy_timeout = 20000", "busy_timeout = 300"), parameters


def view_link(experiment_id: str, mode: str = "CHART") -> str:
    """Return the page of an experiment's runs, without the menus for chat bots.

    `mode` is ``CHART``, ``TABLE`` or ``ARTIFACT``, figures and tables.
    """
    view = f"compareRunsMode={mode}&viewStateShareKey={_VIEW}"
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning&{view}"


def _view_tags() -> dict[str, str]:
    """Return the tags that give an experiment its prepared charts, packed as the UI keeps them."""
    now = time.time_ns() // 1_000_000
    packed = base64.b64encode(zlib.compress(_VIEW_FILE.read_bytes())).decode()
    view = {"name": "Leaderboard", "createdAt": now, "updatedAt": now}
    return {
        _VIEW_TAG: json.dumps({**view, "state": f"deflate;{packed}"}),
        # Or the UI opens the experiment with its menus for chat bots
        "mlflow.experimentKind": "custom_model_development",
    }


def key(name: str) -> str:
    """Return a name that MLflow takes for parameters and metrics."""
    return re.sub(r"[^\w\-. /]", "_", name)[:250]
