"""The address of an MLflow store: from options to the URIs that MLflow takes."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

from srs_eval.errors import ConfigError
from srs_eval.text.addresses import masked, without_secrets
from srs_eval.text.local_paths import uri_problem

DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
# Further stores that MLflow knows by itself, and the entry point of those that are installed.
_OTHERS = ("http", "https", "databricks", "databricks-uc", "uc")
_STORES = "mlflow.tracking_store"
_SQLITE = (".db", ".sqlite", ".sqlite3")
UI_PORT = 5000
# Long enough for thirty first uses of a store at once on a busy machine.
LOCK_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """An MLflow store, with nothing left that depends on the working directory."""

    uri: str  # Tracking URI for MLflow
    # Where new experiments keep their files; None leaves it to the server
    artifacts: str | None = None
    database: Path | None = None  # The file of a sqlite store
    timeout: float = LOCK_SECONDS  # Seconds to wait for a database that another process has locked

    @property
    def is_server(self) -> bool:
        """Whether a server answers there and shows the pages itself."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def is_database(self) -> bool:
        """Whether MLflow keeps its tables there."""
        return _scheme(self.uri) in DATABASES

    @property
    def shown(self) -> str:
        """The address as it may be printed: without a password."""
        return masked(self.uri, self.uri)

    def without_secrets(self, text: str) -> str:
        """Return a text without what is secret in the addresses, or in this process's variables."""
        return without_secrets(masked(text, self.uri, self.artifacts))

    @property
    def pages(self) -> str:
        """Address of the web pages: the server's, or where `ui_command` will put them."""
        if not self.is_server:
            return f"http://127.0.0.1:{UI_PORT}"
        parts = urlsplit(self.uri)
        host = parts.netloc.rpartition("@")[2]
        return masked(f"{parts.scheme}://{host}{parts.path}".rstrip("/"), self.uri)


def store_address(
    uri: str | None,
    artifacts: str | None = None,
    *,
    timeout: float = LOCK_SECONDS,
    folder: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> StoreAddress:
    """Settle where runs are kept.

    `uri` is an MLflow tracking URI; None takes ``MLFLOW_TRACKING_URI``, or else ``mlflow.db`` in
    `folder`, which a plain ``mlflow ui`` typed there opens. `artifacts` is the folder or URI for
    the files of new experiments: by default ``mlartifacts`` beside a sqlite file, and the server's
    own choice everywhere else. `timeout` is the seconds to wait for a database that another process
    has locked. Relative paths start from `folder`, by default the working directory.
    """
    if not timeout >= 0:
        raise ConfigError(f"tracking.timeout={timeout}: seconds, 0 or more")
    folder = Path.cwd() if folder is None else folder.absolute()
    uri = uri or environment.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
    shown = masked(uri, uri, f"x://{uri}")
    rest = uri.partition(":///")[2]
    if problem := _problem(uri) or uri_problem(rest):
        raise ConfigError(f"tracking.uri={shown}: {problem}")
    if _scheme(uri) != "sqlite" or not rest:
        return StoreAddress(uri, _absolute(artifacts, folder), timeout=timeout)
    database = (folder / rest.partition("?")[0]).absolute()
    if database.suffix not in _SQLITE and not database.exists():
        # Shells and other programs run files of some names, whatever else is in them.
        raise ConfigError(
            f"tracking.uri={shown}: a new database has a name that ends in {', '.join(_SQLITE)}"
        )
    beside = artifacts or str(database.parent / "mlartifacts")
    uri = f"sqlite:///{database.as_posix()}"
    return StoreAddress(uri, _absolute(beside, folder), database, timeout)


def ui_command(address: StoreAddress) -> str | None:
    """Write the command that opens the MLflow UI with 2 processes instead of 15.

    None where a server already shows the pages.
    """
    if not address.is_database:
        return None
    # A password belongs neither on a screen nor in a shell history.
    hidden = address.shown != address.uri
    uri = '"$MLFLOW_TRACKING_URI"' if hidden else shlex.quote(address.uri)
    program = "mlflow" if shutil.which("mlflow") else f"{shlex.quote(sys.executable)} -m mlflow"
    return (
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false "
        f"{program} ui --workers 1 --backend-store-uri {uri} --port {UI_PORT}"
    )


def _problem(uri: str) -> str | None:
    """Return why MLflow keeps no runs at an address, and what to write instead."""
    examples = "sqlite:///PATH/mlflow.db, http://HOST:PORT or postgresql://USER@HOST/NAME"
    if "://" not in uri and uri != "databricks":
        return f"not an MLflow tracking URI. Write {examples}."
    if uri.startswith("file:"):
        return (
            "MLflow no longer keeps runs in plain folders. Write sqlite:///PATH/mlflow.db instead."
        )
    if _scheme(uri) in {*DATABASES, *_OTHERS, *(e.name for e in entry_points(group=_STORES))}:
        return None
    return (
        f"MLflow keeps no runs there. Write {examples}; "
        "files alone can go elsewhere, with tracking.artifacts=URI."
    )


def _scheme(uri: str) -> str:
    """Kind of a store, such as ``postgresql`` in ``postgresql+psycopg2://HOST/NAME``."""
    return uri.partition(":")[0].partition("+")[0]


def _absolute(artifacts: str | None, folder: Path) -> str | None:
    if artifacts is None or "://" in artifacts:
        return artifacts
    return (folder / artifacts).absolute().as_uri()
