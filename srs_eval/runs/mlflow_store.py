"""MLflow's functions at one address, and what a store needs before the first run."""

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from hydra.utils import to_absolute_path

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.places import has_secret, masked
from srs_eval.runs.folder import PREDICTIONS, SCORES, SUMMARY

_VIEW = "srs_eval_6"  # Changes with the content of the view
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
# What passes, and the seconds to wait for it: locks of sqlite, and rows that two runs add at once
_PASSING = {"database is locked": 300.0, "unique constraint": 10.0}
_LOCK_SECONDS = 600.0
RESULTS = "results"  # The folder of a run's files


class Store:
    """MLflow's functions at one address: they wait for what passes, and say what helps."""

    experiment_id = ""
    _has_view = False

    def __init__(self, uri: str) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        for library in ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool"):
            logging.getLogger(library).setLevel(logging.CRITICAL)  # Errors are raised as well
        kind, _, rest = uri.partition(":///")
        place, _, query = rest.partition("?")
        self.file = Path(to_absolute_path(place)) if kind.startswith("sqlite") and place else None
        if self.file is not None:
            uri = f"{kind}:///{self.file.as_posix()}" + (f"?{query}" if query else "")
        os.environ["MLFLOW_TRACKING_URI"] = uri
        import mlflow

        self.uri, self._mlflow = uri, mlflow
        if mlflow.get_tracking_uri() != uri:  # To set it again would load what traces need
            mlflow.set_tracking_uri(uri)

    def __getattr__(self, name: str) -> Any:
        return self.waiting(getattr(self._mlflow, name))

    def waiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of MLflow that waits, and raises `TrackingError`."""
        from sqlalchemy import Engine, event
        from sqlalchemy.exc import SQLAlchemyError

        if not event.contains(Engine, "before_cursor_execute", _impatient):
            event.listen(Engine, "before_cursor_execute", _impatient, retval=True)
        kinds = (self._mlflow.MlflowException, SQLAlchemyError, OSError, ImportError)

        def call(*arguments: Any, **options: Any) -> Any:
            began = time.monotonic()
            while True:
                try:
                    return function(*arguments, **options)
                except kinds as error:
                    told = str(error).lower()
                    patience = [wait for what, wait in _PASSING.items() if what in told]
                    if time.monotonic() - began > max(patience, default=-1.0):
                        # Not with the error of a library, which may have a password
                        raise TrackingError(self._reason(error)) from None
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

    def create(self) -> None:
        """Let MLflow make its tables beside a new file, so that a kill leaves no half of them."""
        if self.file is not None and not self.file.exists():
            self.waiting(self._create)(self.file)

    def _create(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        folder = file.with_name(f".{file.name}.partial")
        with FileLock(f"{file}.lock", timeout=_LOCK_SECONDS):
            if file.exists():
                return
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fresh = folder / file.name
            self.MlflowClient(f"sqlite:///{fresh.as_posix()}").search_experiments(max_results=1)
            fresh.replace(file)
            shutil.rmtree(folder, ignore_errors=True)

    def open(self, name: str, place: str | None, run_id: str | None, *, has_view: bool) -> None:
        """Open the experiment of a run, or that of a name, which is made if it is new."""
        if run_id:
            experiment = self.get_experiment(self.get_run(run_id).info.experiment_id)
        else:
            experiment = self.waiting(self._experiment)(name, place)
        self.experiment_id, self._has_view = experiment.experiment_id, has_view
        if has_view and _VIEW_TAG not in experiment.tags:
            set_tag = self.waiting(self.MlflowClient().set_experiment_tag)
            for tag, value in _view_tags().items():
                set_tag(self.experiment_id, tag, value)

    def _experiment(self, name: str, place: str | None) -> Any:
        # Where another program was first, this is called again
        known = self._mlflow.get_experiment_by_name(name)
        if known is not None:
            return known
        made = self._mlflow.create_experiment(name, artifact_location=place)
        return self._mlflow.get_experiment(made)

    def run(self, run_id: str) -> Any:
        """Return a run; None if it is not there, or deleted."""
        runs = self.search_runs(
            search_all_experiments=True,
            filter_string=f"attributes.run_id = '{run_id}'",
            output_format="list",
        )
        return next(iter(runs), None)

    def end(self, run_id: str, status: str) -> None:
        """End a run."""
        # To try `end_run` again would do nothing
        self.waiting(self.MlflowClient().set_terminated)(run_id, status)
        self.leave(status)

    def leave(self, status: str) -> None:
        """End the active run without complaint, such as one that could not be logged."""
        with suppress(Exception):
            self._mlflow.end_run(status)

    def give_up(self, run_id: str) -> None:
        """End a run that is still open at the end of the command, without complaint."""
        with suppress(Exception):
            client = self._mlflow.MlflowClient(self.uri)
            if client.get_run(run_id).info.status == "RUNNING":
                client.set_terminated(run_id, "KILLED")

    def log_tables(self, run_id: str, tables: Mapping[str, Any]) -> None:
        """Log frames; MLflow adds rows to one that is there, which is therefore emptied."""
        earlier = self.files(run_id, "tables")
        for name, table in tables.items():
            file = f"tables/{name}.json"
            if file in earlier:
                self.log_dict({"columns": list(table), "data": []}, file)
            if len(table):
                self.log_table(table, file)

    def log_figures(self, run_id: str, files: Sequence[Path]) -> None:
        """Log figures, the pictures also to be seen beside the metrics."""
        earlier = " ".join(self.files(run_id, "images"))
        for file in files:
            self.log_artifact(str(file), "figures")
            if file.suffix == ".png" and f"/{file.stem}+" not in earlier:
                self.log_image(self._mlflow.Image(str(file)), key=file.stem, step=0)

    def files(self, run_id: str, folder: str) -> list[str]:
        """List the files in a folder of a run."""
        listed = self.waiting(self._mlflow.artifacts.list_artifacts)
        return [file.path for file in listed(run_id=run_id, artifact_path=folder)]

    def fetch(
        self, folder: Path, experiment: str, tags: Mapping[str, str]
    ) -> tuple[list[Path], list[str]]:
        """Download the runs of an experiment, or of all ("") with tags, each into its own folder.

        Return the folders, also of runs with failed fits, and a note for each run without results.
        Raise `ConfigError` if there are none.
        """
        if experiment and self.get_experiment_by_name(experiment) is None:
            raise ConfigError(
                f"experiment={experiment}: MLflow has none of this name at {masked(self.uri)}"
            )
        runs = self.search_runs(
            experiment_names=[experiment] if experiment else None,
            search_all_experiments=not experiment,
            filter_string=" and ".join(f"tags.`{name}` = '{tags[name]}'" for name in tags),
            order_by=["attributes.start_time ASC"],
            output_format="list",
        )
        folders, notes = [], []
        download = self.waiting(self._mlflow.artifacts.download_artifacts)
        for run in runs:
            if "kind" in run.data.tags:  # A sweep, or a comparison
                continue
            run_id = run.info.run_id
            files = {Path(file).name for file in self.files(run_id, RESULTS)}
            if not {SUMMARY, SCORES} <= files:
                notes.append(f"{run.info.run_name} has no results and was left out: run {run_id}")
                continue
            for file in files & {SUMMARY, SCORES, PREDICTIONS}:
                place = folder / run_id
                path = download(run_id=run_id, artifact_path=f"{RESULTS}/{file}", dst_path=place)
            folders.append(Path(path).parent)  # Not every kind of store keeps the name
        if not folders:
            raise ConfigError(f"MLflow has no finished run with these tags at {masked(self.uri)}")
        return folders, notes

    def links(self) -> list[str]:
        """Return lines to print: how to see the runs."""
        page = view_link(self.experiment_id, has_view=self._has_view)
        if self.uri.startswith("http"):
            return [f"MLflow   {masked(self.uri).replace('…@', '').rstrip('/')}/{page}"]
        shown = shlex.quote(self.uri)
        if self.file is not None and self.file.parent == Path(to_absolute_path(".")):
            shown = f"sqlite:///{shlex.quote(self.file.name)}"
        elif has_secret(self.uri):
            shown = '"$MLFLOW_TRACKING_URI"'
        ui = f"mlflow ui --backend-store-uri {shown}"
        return [f"MLflow   {ui}", f"         http://127.0.0.1:5000/{page}"]


def _impatient(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
    """Let sqlite wait for 0.3 s, not for 20 as MLflow asks it to: signals come only afterwards."""
    return statement.replace("busy_timeout = 20000", "busy_timeout = 300"), parameters


def view_link(experiment_id: str, *, mode: str = "CHART", has_view: bool = True) -> str:
    """Return the page of an experiment's runs, without the menus for chat bots.

    `mode` is ``CHART``, ``TABLE`` or ``ARTIFACT``, figures and tables.
    """
    page = f"#/experiments/{experiment_id}/runs?workflowType=machine_learning"
    return page + (f"&compareRunsMode={mode}&viewStateShareKey={_VIEW}" if has_view else "")


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
