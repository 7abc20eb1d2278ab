from __future__ import annotations

from pathlib import Path

from srs_eval.tracking.address import StoreAddress, store_address, ui_command


def test_the_option_overrides_the_environment_which_overrides_the_working_directory(
    tmp_path: Path,
) -> None:
    environment = {"MLFLOW_TRACKING_URI": "http://tracking:5000"}
    for option, variables, below in (
        (None, {}, "mlflow.db"),
        ("sqlite:///x/y.db", environment, "x/y.db"),
    ):
        database = tmp_path / below
        files = (database.parent / "mlartifacts").as_uri()
        address = store_address(option, folder=tmp_path, environment=variables)
        assert address == StoreAddress(f"sqlite:///{database}", files, database)
    address = store_address(None, folder=tmp_path, environment=environment)
    assert address == StoreAddress("http://tracking:5000")
    address = store_address("postgresql:///runs", folder=tmp_path, environment={})
    assert address == StoreAddress("postgresql:///runs")


def test_artifacts_may_be_kept_elsewhere(tmp_path: Path) -> None:
    address = store_address(None, "files", folder=tmp_path, environment={})
    assert address.artifacts == (tmp_path / "files").as_uri()
    bucket = store_address(None, "s3://bucket/runs", folder=tmp_path, environment={})
    assert bucket.artifacts == "s3://bucket/runs"


def test_the_ui_command_starts_few_processes_and_quotes_the_path(tmp_path: Path) -> None:
    command = ui_command(store_address("sqlite:///my runs.db", folder=tmp_path, environment={}))
    first, _, last = str(command).partition(" ui --workers 1 ")
    assert first.startswith("MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false ")
    assert last == f"--backend-store-uri 'sqlite:///{tmp_path}/my runs.db' --port 5000"


def test_a_server_shows_its_own_pages_and_no_password_is_shown() -> None:
    address = store_address("https://me:secret@tracking/mlflow/", environment={})
    assert (ui_command(address), address.pages) == (None, "https://tracking/mlflow")
    address = store_address("postgresql://me:secret@host/runs", environment={})
    assert address.shown == "postgresql://me:***@host/runs"
    assert "secret" not in str(ui_command(address))
