"""MLflow's functions at one address, and what a store needs before the first run."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import random
import re
import shlex
import shutil
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from hydra.utils import to_absolute_path

from srs_eval.errors import TrackingError
from srs_eval.nouns import Source
from srs_eval.places import has_secret, masked

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


class Store:
    """MLflow's functions at one address: they wait for what passes, and say what helps."""

    experiment_id = ""
    _has_view = False

    def __init__(self, uri: str) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        for library in ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool"):
            logging.getLogger(library).setLevel(logging.CRITICAL)  # Errors are raised as well
            warnings.filterwarnings("ignore", module=rf"{library}\\b")
        import mlflow

        kind, _, rest = uri.partition(":///")
        place, _, query = rest.partition("?")
        self.file = Path(to_absolute_path(place)) if kind.startswith("sqlite") and place else None
        if self.file is not None:
            uri = f"{kind}:///{self.file.as_posix()}" + (f"?{query}" if query else "")
        self.uri, self._mlflow = uri, mlflow
        mlflow.set_tracking_uri(uri)

    def __getattr__(self, name: str) -> Any:
        return self.waiting(getattr(self._mlflow, name))

    def waiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of MLflow that waits, and raises `TrackingError`."""
        from sqlalchemy.exc import SQLAlchemyError

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

    def alone(self) -> FileLock | nullcontext[None]:
        """Return a lock for what all runs share; a server sees to itself."""
        if self.uri.startswith("http"):
            return nullcontext()
        digest = hashlib.sha256(self.uri.encode()).hexdigest()[:16]
        place = self.file or Path(tempfile.gettempdir(), f"srs_eval-{digest}")
        place.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{place}.lock", timeout=_LOCK_SECONDS)

    def create(self) -> None:
        """Let MLflow make its tables beside a new file, so that a kill leaves no half of them."""
        if self.file is not None and not self.file.exists():
            self.waiting(self._create)(self.file)

    def _create(self, file: Path) -> None:
        with self.alone():
            if not file.exists():
                self._make(file)

    def _make(self, file: Path) -> None:
        folder = file.with_name(f".{file.name}.partial")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        fresh = folder / file.name
        self.set_tracking_uri(f"sqlite:///{fresh.as_posix()}")
        self.search_experiments(max_results=1)
        fresh.replace(file)
        self.set_tracking_uri(self.uri)
        shutil.rmtree(folder, ignore_errors=True)

    def experiment(self, name: str, place: str | None) -> Any:
        """Return an experiment, which is made with its files at a place if it is new."""
        if self.get_experiment_by_name(name) is None:
            try:
                self.create_experiment(name, artifact_location=place)
            except TrackingError:  # Another program may have been first
                if self.get_experiment_by_name(name) is None:
                    raise
        return self.get_experiment_by_name(name)

    def open(self, experiment: Any, *, with_view: bool) -> None:
        """Put runs into an experiment, which gets its prepared view if it has none."""
        self.experiment_id, self._has_view = experiment.experiment_id, with_view
        if with_view and _VIEW_TAG not in experiment.tags:
            client = self._mlflow.MlflowClient()
            for name, value in _view_tags().items():
                self.waiting(client.set_experiment_tag)(self.experiment_id, name, value)

    def run(self, run_id: str) -> Any:
        """Return a run; None if it is not there, or deleted."""
        try:
            run = self._mlflow.get_run(run_id)
        except self._mlflow.MlflowException as error:
            if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                return None
            raise TrackingError(self._reason(error)) from None
        return run if run.info.lifecycle_stage == "active" else None

    def end(self, run_id: str, status: str) -> None:
        """End a run."""
        # To try `end_run` again would do nothing
        self.waiting(self._mlflow.MlflowClient().set_terminated)(run_id, status)
        self.leave(status)

    def leave(self, status: str) -> None:
        """End the active run without complaint, such as one that could not be logged."""
        with suppress(Exception):
            self._mlflow.end_run(status)

    def log_dataset(self, source: Source, options: Any, digest: str) -> None:
        """Log which reviews were scored."""
        from mlflow.data.meta_dataset import MetaDataset

        from srs_eval.runs.mlflow_source import ReviewLogSource

        reader = ReviewLogSource(masked(_from_anywhere(source.location)), whole_paths(options))
        name = text_of(source.name, 450)
        self.log_input(
            MetaDataset(reader, name, digest[:36]),  # type: ignore[abstract]
            "evaluation",
        )

    def log_tables(self, run_id: str, tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Log tables; MLflow adds rows to one that is there, which is therefore emptied."""
        earlier = self.files(run_id, "tables")
        for name, table in tables.items():
            file = f"tables/{name}.json"
            if file in earlier:
                self.log_dict({"columns": list(table), "data": []}, file)
            self.log_table(dict(table), file)

    def log_figure(self, run_id: str, file: Path) -> None:
        """Log a figure, to be seen beside the metrics."""
        import PIL.Image

        if not any(f"/{file.stem}+" in each for each in self.files(run_id, "images")):
            with PIL.Image.open(file) as image:
                self.log_image(image, key=file.stem, step=0)

    def log_pyfunc(self, **options: Any) -> Any:
        """Log a model."""
        import mlflow.pyfunc

        return self.waiting(mlflow.pyfunc.log_model)(**options)

    def files(self, run_id: str, folder: str) -> list[str]:
        """List the files in a folder of a run."""
        listed = self.waiting(self._mlflow.artifacts.list_artifacts)
        return [file.path for file in listed(run_id=run_id, artifact_path=folder)]

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


def whole_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a source so that it can be built again from another folder."""
    path = options.get("path")
    return {**options, "path": _from_anywhere(path)} if isinstance(path, str) else dict(options)


def _from_anywhere(place: str) -> str:
    """Write a path, or a pattern of paths, that is there in full; leave any other text alone."""
    with suppress(OSError, ValueError, RuntimeError):  # What is no path at all
        path = Path(place).expanduser()
        if place and (path.exists() or (not path.anchor and any(Path().glob(place)))):
            return str(path.absolute())
    return place


def key(name: str) -> str:
    """Return a name that MLflow takes for parameters and metrics."""
    return re.sub(r"[^\w\-. /]", "_", name)[:250]


def text_of(value: object, length: int) -> str:
    """Return a text that databases take: no NUL, no half of a surrogate pair."""
    text = str(value).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return text if len(text) <= length else f"{text[: length - 1]}…"
