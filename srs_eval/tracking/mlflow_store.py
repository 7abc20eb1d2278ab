"""Create or open an MLflow store, and mark runs of dead processes as KILLED."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import requests
from filelock import FileLock, Timeout
from mlflow import MlflowClient
from mlflow.entities import Experiment
from mlflow.exceptions import MlflowException
from mlflow.store.db.utils import create_sqlalchemy_engine
from mlflow.tracking._tracking_service.utils import _get_store
from sqlalchemy.exc import SQLAlchemyError

from srs_eval.errors import TrackingError
from srs_eval.tracking.address import StoreAddress, store_address
from srs_eval.tracking.quiet import IMPATIENCE, quiet_mlflow
from srs_eval.tracking.sqlite_file import is_lock, prepare, wait_when_locked
from srs_eval.tracking.view import VIEW_TAG, encode_view, experiment_note, view_state

NOTE_TAG = "mlflow.note.content"
# As much as the table of data sets has room for.
DIGEST_LENGTH = 36
# Or the UI opens the experiment with its menus for chat bots.
KIND_TAG = ("mlflow.experimentKind", "custom_model_development")
# Tags of what can change a number.
SETTINGS = ("config_hash", "code_hash")
# Errors of the libraries below MLflow, and its own.
MLFLOW_ERRORS = (
    MlflowException,
    requests.RequestException,
    SQLAlchemyError,
    sqlite3.Error,
    OSError,
    ImportError,  # the driver of a database
)


@contextmanager
def tracking_errors(doing: str, address: StoreAddress) -> Iterator[None]:
    """Turn whatever MLflow, the network or the disk raises into one readable error."""
    try:
        yield
    except MLFLOW_ERRORS as error:
        message = f"MLflow could not {doing} at {address.shown}{_reason(error, address)}"
        # Not shown with the error of a library, which may have a password.
        raise TrackingError(address.without_secrets(message)) from None


def open_store(address: StoreAddress) -> MlflowClient:
    """Connect to a store, and create it if it is not there yet.

    Several processes that find an empty database would each create MLflow's tables in it and
    fail; here the first does it while the others wait at a file lock.
    """
    with tracking_errors("open its store", address):
        if address.database is not None:
            prepare(address.database, file_lock(address), address.timeout)
        elif address.is_database:
            _connect_once(address)
        with only_one(address):
            client = MlflowClient(tracking_uri=address.uri)
            client.get_experiment_by_name("Default")
            if address.database is not None:
                # shared by all clients of this process
                store = _get_store(address.uri)  # type: ignore[no-untyped-call]
                wait_when_locked(store.engine, address.timeout)
    return client


@contextmanager
def opened(uri: str | None, doing: str) -> Iterator[tuple[MlflowClient, StoreAddress]]:
    """Use a store outside of a run; errors say what it was for."""
    address = store_address(uri, None)
    with quiet_mlflow(IMPATIENCE):
        client = open_store(address)
        with tracking_errors(doing, address):
            yield client, address


def _connect_once(address: StoreAddress) -> None:
    """Fail at once where MLflow would try ten times, for minutes and silently."""
    engine = create_sqlalchemy_engine(address.uri)  # type: ignore[no-untyped-call]
    try:
        engine.connect().close()
    finally:
        engine.dispose()


def open_experiment(client: MlflowClient, address: StoreAddress, name: str) -> Experiment:
    """Find an experiment, or create it with its note and its artefact folder."""
    with tracking_errors(f"open the experiment {name!r}", address):
        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            with only_one(address):
                found = client.get_experiment_by_name(name)
                experiment = found or _create_experiment(client, address, name)
        if experiment.lifecycle_stage != "active":
            raise TrackingError(
                f"The experiment {name!r} at {address.shown} is deleted. Restore it with "
                f"'mlflow experiments restore -x {experiment.experiment_id}' or choose "
                "another tracking.experiment."
            )
    return experiment


def write_view(client: MlflowClient, experiment: Experiment) -> bool:
    """Add the default view to the experiment if it has none; return whether it has one.

    A view that was changed in the UI is left as it is.
    """
    if VIEW_TAG in experiment.tags:
        return True
    try:
        view = encode_view(view_state(), time.time_ns() // 1_000_000)
        client.set_experiment_tag(experiment.experiment_id, VIEW_TAG, view)
    except MLFLOW_ERRORS:
        return False
    return True


def close_dead_runs(client: MlflowClient, experiment_id: str) -> None:
    """Mark as KILLED the runs that processes of this host left behind."""
    on_this_host = f"attributes.status = 'RUNNING' and tags.host = '{socket.gethostname()}'"
    for run in client.search_runs([experiment_id], on_this_host):
        pid = run.data.tags.get("pid", "")
        if pid.isdecimal() and process_is_gone(int(pid)):
            client.set_terminated(run.info.run_id, "KILLED")


def tag_interrupted(
    client: MlflowClient, experiment_id: str, run_id: str, output: Mapping[str, str]
) -> None:
    """Link a run and the latest interrupted run that it resumes by tags.

    The interrupted run itself is not changed. `output` is the tag both have: their folder.
    """
    ended = client.search_runs([experiment_id], "attributes.status != 'FINISHED'")
    for earlier in [each.info.run_id for each in ended if output.items() <= each.data.tags.items()]:
        if output and earlier != run_id:
            client.set_tag(run_id, "resumes", earlier)
            client.set_tag(earlier, "resumed_by", run_id)
            return


def finished_run(
    client: MlflowClient, experiment_id: str, output: Mapping[str, str], tags: Mapping[str, str]
) -> str | None:
    """Return the id of the finished run of a folder, if it had the same settings and code.

    A command that is resumed after it had told everything, and not yet removed what it kept, has
    the same to tell.
    """
    if not output or "config_hash" not in tags:
        return None
    same = {**output, **{name: tags[name] for name in SETTINGS if name in tags}}
    finished = f"attributes.status = 'FINISHED' and tags.config_hash = '{tags['config_hash']}'"
    ended = client.search_runs([experiment_id], finished)
    alike = (run.info.run_id for run in ended if same.items() <= run.data.tags.items())
    return next(alike, None)


def _create_experiment(client: MlflowClient, address: StoreAddress, name: str) -> Experiment:
    location = f"{address.artifacts}/{_folder(name)}" if address.artifacts else None
    try:
        experiment_id = client.create_experiment(name, artifact_location=location)
    except MlflowException:
        # On a server another process may have created it a moment ago.
        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            raise
        return experiment
    client.set_experiment_tag(experiment_id, NOTE_TAG, experiment_note(experiment_id))
    client.set_experiment_tag(experiment_id, *KIND_TAG)
    return client.get_experiment(experiment_id)


def only_one(address: StoreAddress) -> FileLock | nullcontext[None]:
    """Return a lock, so that one process at a time changes what all runs of a database share.

    Of a sqlite store all processes, of another database those of this host and user; a server
    sees to itself.
    """
    return nullcontext() if address.is_server else file_lock(address)


def file_lock(address: StoreAddress) -> FileLock:
    """Lock of a database: beside a sqlite file, of another one in the temporary folder."""
    if address.database is not None:
        address.database.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{address.database}.lock", timeout=address.timeout)
    digest = hashlib.sha256(f"{getpass.getuser()} {address.uri}".encode()).hexdigest()[:16]
    return FileLock(Path(tempfile.gettempdir(), f"srs_eval-{digest}.lock"), timeout=address.timeout)


def process_is_gone(pid: int) -> bool:
    """Return whether no process with this id exists on this machine.

    False wherever it cannot be known: a run is given up only on evidence.
    """
    if os.name != "posix" or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _folder(name: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return safe.strip(".") or "experiment"


def _reason(error: BaseException, address: StoreAddress) -> str:
    """Return what went wrong and what helps; of a sqlite file in a line."""
    for cause in _causes(error):
        if isinstance(cause, Timeout) or (isinstance(cause, sqlite3.Error) and is_lock(cause)):
            what = cause.lock_file if isinstance(cause, Timeout) else "the database"
            return (
                f":\n  {what} was locked by another process for {address.timeout:g} s; end that "
                "process, raise tracking.timeout, or go on with tracking=none"
            )
        if isinstance(cause, sqlite3.Error):
            return f":\n  {cause}. {_advice(address)}"
    first_line = str(error).strip().partition("\n")[0]
    return f".\n  {type(error).__name__}: {first_line}\n  {_advice(address)}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _advice(address: StoreAddress) -> str:
    if address.is_server:
        return "Start that server or correct tracking.uri (or MLFLOW_TRACKING_URI)"
    if address.database is not None and not os.access(address.database.parent, os.W_OK):
        return f"The folder {address.database.parent} cannot be written to; set tracking.uri"
    return "Check tracking.uri (or MLFLOW_TRACKING_URI), or go on with tracking=none"
