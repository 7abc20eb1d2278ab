"""Passwords in addresses are known in each spelling, and not seen where there is none."""

import pytest

from srs_eval.places import has_secret, masked

WITH = """
    http://bob:S3CRETpw@127.0.0.1:1 http://S3CRETtoken@host http://bob:S3CRETa/S3CRETb@h
    postgresql://h/x?user=bob&password=S3CRETpw http://u:S3CRETa@S3CRETb@h
    http://u:S3CRETa%40S3CRETb@h mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3DS3CRETpw%3BUID%3Dx
    s3://key:S3CRETkey@bucket/x https://a.blob.core.windows.net/c?sv=2024&sig=S3CRETsig
    https://h/x?AccountKey=S3CRETkey
"""
WITHOUT = """
    postgresql://me@host:5432/db?sslmode=require http://tracking:5000/runs@2 s3://bucket/key
    abfss://container@account.dfs.core.windows.net/path sqlite:////home/me/mlflow.db
    tokens=3_password
"""


@pytest.mark.parametrize("address", WITH.split())
def test_a_secret_is_found_and_masked_in_each_spelling(address):
    assert has_secret(address)
    assert has_secret(f"see {address} for more")
    if "%3D" not in address:
        assert "S3CRET" not in masked(f"no answer from {address}")


@pytest.mark.parametrize("address", WITHOUT.split())
def test_an_address_without_one_is_as_it_was(address):
    assert not has_secret(address)
    assert masked(address) == address
