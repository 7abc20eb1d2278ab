"""Runs in PostgreSQL, and in whatever else they may be kept: several processes at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import SMALL, summary_of
from mlflow import MlflowClient
from mlflow_server import free_port, serving
from sqlalchemy import make_url

from srs_eval.tracking.quiet import quiet_mlflow

pytestmark = pytest.mark.slow
PROCESSES = 3


def program(name: str) -> str:
    """Find a program of PostgreSQL, which Debian keeps off the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(installed[-1]) if installed else None)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: there is no {name}")
    return found


def as_anybody(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    shutil.chown(folder, "postgres")
    return ["runuser", "-u", "postgres", "--"]


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """A cluster of its own in a temporary folder, on a free port; gives its URI."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    try:
        make_url("postgresql://").get_dialect().import_dbapi()
    except ImportError as error:
        pytest.skip(f"the driver of PostgreSQL is not installed: {error}")
    port = free_port()
    # not in pytest's folder, where only its own user may look
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        user = as_anybody(folder)

        def run(*words: str) -> None:
            subprocess.run(
                [*user, *words], cwd="/", check=True, stdout=subprocess.DEVNULL, timeout=120
            )

        data = ["-D", str(folder / "data")]
        run(initdb, *data, "-U", "mlflow", "--auth", "trust", "--no-sync")
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        run(pg_ctl, *data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://mlflow@127.0.0.1:{port}/postgres"
        finally:
            run(pg_ctl, *data, "-m", "immediate", "stop")


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'fresh.db'}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with serving(f"sqlite:///{tmp_path / 'served.db'}", tmp_path) as (_, address):
        yield address


@pytest.mark.parametrize("kind", ["sqlite", "server", "postgresql"])
def test_processes_log_at_once_and_every_run_is_whole(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri: str = request.getfixturevalue(kind)
    jobs = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "srs_eval", "algo=hlr", "panel=quick", *SMALL),
                *(
                    f"seed={seed}",
                    f"tracking.uri={uri}",
                    f"hydra.run.dir={seed}",
                    f"name=run {seed}",
                ),
                *([] if kind == "server" else [f"tracking.artifacts={tmp_path / 'files'}"]),
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    told = [job.communicate(timeout=300)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0] * PROCESSES, "\n".join(told)
    with quiet_mlflow():
        client = MlflowClient(tracking_uri=uri)
        (experiment,) = client.search_experiments(filter_string="name = 'srs_eval'")
        runs = client.search_runs([experiment.experiment_id])
        assert Counter(run.info.run_name for run in runs) == {
            f"run {seed}": 1 for seed in range(PROCESSES)
        }
        assert {run.info.status for run in runs} == {"FINISHED"}
        for run in runs:
            summary = summary_of(tmp_path / run.data.params["seed"])
            log_loss = summary["metrics"]["log_loss"]["mean_users"]
            assert run.data.metrics["test/log_loss"] == round(log_loss, 4)
            kept = {file.path for file in client.list_artifacts(run.info.run_id)}
            assert {"calibration.svg", "results", "tables", "images"} <= kept
            assert len(client.list_artifacts(run.info.run_id, "tables")) == 3
        assert len({len(run.data.metrics) for run in runs}) == 1
        assert len({len(run.data.params) for run in runs}) == 1
