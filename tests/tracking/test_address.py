from __future__ import annotations

from pathlib import Path

import pytest

from srs_eval.errors import ConfigError
from srs_eval.tracking.address import StoreAddress, store_address, ui_command


def test_runs_go_to_the_working_directory_unless_told_otherwise(tmp_path: Path) -> None:
    address = store_address(None, folder=tmp_path, environment={})
    assert address.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert address.database == tmp_path / "mlflow.db"
    assert address.artifacts == (tmp_path / "mlartifacts").as_uri()


def test_the_environment_names_the_store_and_the_option_overrides_it(tmp_path: Path) -> None:
    environment = {"MLFLOW_TRACKING_URI": "http://tracking:5000"}
    address = store_address(None, folder=tmp_path, environment=environment)
    assert address == StoreAddress("http://tracking:5000")
    address = store_address("sqlite:///x/y.db", folder=tmp_path, environment=environment)
    assert address.database == tmp_path / "x" / "y.db"
    assert address.artifacts == (tmp_path / "x" / "mlartifacts").as_uri()


def test_artifacts_may_be_kept_elsewhere(tmp_path: Path) -> None:
    address = store_address(None, "files", folder=tmp_path, environment={})
    assert address.artifacts == (tmp_path / "files").as_uri()
    bucket = store_address(None, "s3://bucket/runs", folder=tmp_path, environment={})
    assert bucket.artifacts == "s3://bucket/runs"


@pytest.mark.parametrize("uri", ["mlruns", "file:///tmp/mlruns", "localhost:5000"])
def test_a_uri_that_keeps_no_runs_is_refused_with_the_way_out(uri: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///"):
        store_address(uri, environment={})


def test_the_ui_command_starts_few_processes_and_quotes_the_path(tmp_path: Path) -> None:
    address = store_address("sqlite:///my runs.db", folder=tmp_path, environment={})
    command = ui_command(address)
    assert command is not None
    assert command.startswith("MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false ")
    assert f"--workers 1 --backend-store-uri 'sqlite:///{tmp_path}/my runs.db' --port 5000" in (
        command
    )


def test_a_server_shows_its_own_pages() -> None:
    address = store_address("https://me:secret@tracking/mlflow/", environment={})
    assert ui_command(address) is None
    assert address.pages == "https://tracking/mlflow"


def test_a_password_is_never_shown() -> None:
    address = store_address("postgresql://me:secret@host/runs", environment={})
    assert address.shown == "postgresql://me:***@host/runs"
    assert "secret" not in (ui_command(address) or "")


def test_a_new_database_has_no_name_that_other_programs_run(tmp_path: Path) -> None:
    for uri in ("sqlite:///.zshenv", "sqlite+pysqlite:///x.pth"):
        with pytest.raises(ConfigError, match="new database"):
            store_address(uri, folder=tmp_path, environment={})
    (tmp_path / "runs").write_bytes(b"")
    assert store_address("sqlite:///runs", folder=tmp_path).database == tmp_path / "runs"
