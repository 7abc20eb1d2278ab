"""Secrets in addresses are found wherever they are, and masked in messages."""

from __future__ import annotations

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


PLAIN = [
    "postgresql://me@host:5432/db?sslmode=require",
    "http://tracking:5000/runs@2",
    "abfss://container@account.dfs.core.windows.net/path",
    "sqlite:////home/me/mlflow.db",
    "s3://bucket/key",
    "tokens=3 password",
]


def test_a_secret_is_found_and_masked_in_each_spelling() -> None:
    for address in SECRETS:
        assert has_secret(address)
        assert has_secret(f"see {address} for more")
        plain = address.replace("%40", "@")
        message = masked(f"no answer from {plain} ({address})", address)
        assert "S3CRET" not in message
        assert "***" in message
    for address in PLAIN:
        assert not has_secret(address)
        assert masked(address, address) == address
    # A driver may see the end of the password at the first @.
    assert masked("no S3CRET-a", "http://u:S3CRET-a@b@h") == "no ***"
    text = "http://me:1@host failed: 1 of 11 runs"  # a short one is also a number
    assert masked(text, "http://me:1@host") == "http://me:***@host failed: 1 of 11 runs"


def test_what_the_environment_has_is_masked_and_belongs_there() -> None:
    environment = {"WAREHOUSE": "db://me:S3CRETpw@h", "MLFLOW_TRACKING_TOKEN": "S3CRETtoken"}
    text = without_secrets("Bearer S3CRETtoken, or S3CRETpw?", environment)
    assert text == "Bearer ***, or ***?"
    assert "MLFLOW_TRACKING_URI" in secret_problem("tracking.uri")
    assert "env:" in secret_problem("data.url")
