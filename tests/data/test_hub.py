import sys

import pytest

from srs_eval.data.hub import download_files
from srs_eval.errors import ConfigError, ReviewLogError

huggingface_hub = pytest.importorskip("huggingface_hub")
errors = pytest.importorskip("huggingface_hub.errors")

NAME = "revlogs/user_id=8/data.parquet"


def refused_with(status):
    """An answer of the site, in whichever of its two forms the installed version has."""
    return type("Response", (), {"status_code": status, "headers": {}, "request": None})()


def failure(kind, status=None):
    error = kind.__new__(kind)
    Exception.__init__(error, "something happened\nthe telling line")
    error.response = refused_with(status)
    return error


def test_each_file_is_fetched_into_the_folder(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        huggingface_hub, "hf_hub_download", lambda *args, **options: calls.append((args, options))
    )
    download_files("some/set", [NAME], tmp_path)
    assert calls == [(("some/set", NAME), {"repo_type": "dataset", "local_dir": tmp_path})]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure(errors.GatedRepoError, 403), "hf auth login"),
        (failure(errors.RepositoryNotFoundError, 401), "huggingface.co/datasets/some/set"),
        (failure(errors.HfHubHTTPError, 403), "HF_TOKEN"),
        (failure(errors.HfHubHTTPError, 500), "the download failed: the telling line"),
        (failure(errors.EntryNotFoundError), "not in the data set: the telling line"),
        (failure(errors.LocalEntryNotFoundError), "cannot be reached"),
        (failure(errors.OfflineModeIsEnabled), "HF_HUB_OFFLINE"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_goes_wrong_is_explained(tmp_path, monkeypatch, error, expected):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    with pytest.raises(ReviewLogError) as caught:
        download_files("some/set", [NAME], tmp_path)
    assert expected in str(caught.value)


def test_a_missing_package_is_explained(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r"pip install 'srs-eval\[hub\]'"):
        download_files("some/set", [NAME], tmp_path)
