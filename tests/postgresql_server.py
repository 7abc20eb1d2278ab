"""A PostgreSQL server for tests."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _program(name):
    """Find a program of PostgreSQL, which Debian keeps off the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(installed[-1]) if installed else None)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: there is no {name}")
    return found


def _as_anybody(folder):
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    shutil.chown(folder, "postgres")
    return ["runuser", "-u", "postgres", "--"]


@contextmanager
def postgresql_server(scheme="postgresql"):
    """A cluster of its own in a temporary folder, on a free port; gives its URI."""
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    try:
        make_url(f"{scheme}://").get_dialect().import_dbapi()
    except ImportError as error:
        pytest.skip(f"the driver of PostgreSQL is not installed: {error}")
    port = free_port()
    # not in pytest's folder, where only its own user may look
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        user = _as_anybody(folder)

        def run(*words):
            subprocess.run(
                [*user, *words], cwd="/", check=True, stdout=subprocess.DEVNULL, timeout=120
            )

        data = ["-D", str(folder / "data")]
        run(initdb, *data, "-U", "mlflow", "--auth", "trust", "--no-sync")
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        run(pg_ctl, *data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"{scheme}://mlflow@127.0.0.1:{port}/postgres"
        finally:
            run(pg_ctl, *data, "-m", "immediate", "stop")
