"""Secrets in addresses are found wherever they are, and masked in messages."""

from __future__ import annotations

import pytest

from srs_eval.text.addresses import has_secret, masked, secret_problem, without_secrets

SECRETS = [
    "http://bob:S3CRETpw@127.0.0.1:1",
    "http://S3CRETtoken@host",
    "postgresql://h/x?user=bob&password=S3CRETpw",
    "http://bob:S3CRETa/S3CRETb@h",
    "http://u:S3CRETa@S3CRETb@h",
    "http://u:S3CRETa%40S3CRETb@h",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3DS3CRETpw%3BUID%3Dx",
    "mssql+pyodbc:///?odbc_connect=PWD%3D%7BS3CRETa%3BS3CRETb%7D",
    "s3://key:S3CRETkey@bucket/x",
    "https://a.blob.core.windows.net/c?sv=2024&sig=S3CRETsig",
    "https://h/x?AccountKey=S3CRETkey",
]


@pytest.mark.parametrize("address", SECRETS)
def test_a_secret_is_found_and_masked_in_each_spelling(address: str) -> None:
    assert has_secret(address)
    assert has_secret(f"see {address} for more")
    plain = address.replace("%40", "@")
    message = masked(f"no answer from {plain} ({address})", address)
    assert "S3CRET" not in message
    assert "***" in message


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@host:5432/db?sslmode=require",
        "http://tracking:5000/runs@2",
        "abfss://container@account.dfs.core.windows.net/path",
        "sqlite:////home/me/mlflow.db",
        "s3://bucket/key",
        "tokens=3 password",
    ],
)
def test_an_address_without_a_secret_stays(address: str) -> None:
    assert not has_secret(address)
    assert masked(address, address) == address


def test_a_short_secret_does_not_change_words_and_numbers() -> None:
    text = "http://me:1@host failed: 1 of 11 runs"
    assert masked(text, "http://me:1@host") == "http://me:***@host failed: 1 of 11 runs"


def test_what_the_environment_has_is_masked() -> None:
    environment = {"WAREHOUSE": "db://me:S3CRETpw@h", "MLFLOW_TRACKING_TOKEN": "S3CRETtoken"}
    text = without_secrets("Bearer S3CRETtoken, or S3CRETpw?", environment)
    assert text == "Bearer ***, or ***?"


def test_a_refused_option_names_where_the_secret_belongs() -> None:
    assert "MLFLOW_TRACKING_URI" in secret_problem("tracking.uri")
    assert "env:" in secret_problem("data.url")
