import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from srs_eval.data.hub import download_files
from srs_eval.errors import ConfigError, ReviewLogError

huggingface_hub = pytest.importorskip("huggingface_hub")
errors = pytest.importorskip("huggingface_hub.errors")

NAME = "revlogs/user_id=8/data.parquet"


def failure(kind, status=None):
    """Return an error, its answer in whichever of two forms the installed version has."""
    error = kind.__new__(kind)
    Exception.__init__(error, "something happened\nthe telling line")
    error.response = SimpleNamespace(status_code=status, headers={}, request=None)
    return error


ERRORS = [
    failure(errors.GatedRepoError, 403),
    failure(errors.RepositoryNotFoundError, 401),
    failure(errors.HfHubHTTPError, 403),
    failure(errors.HfHubHTTPError, 500),
    failure(errors.EntryNotFoundError),
    failure(errors.LocalEntryNotFoundError),
    failure(errors.OfflineModeIsEnabled),
    OSError(28, "No space left on device"),
]


def test_each_file_is_fetched_into_the_folder_and_what_goes_wrong_is_explained(
    tmp_path, monkeypatch, golden_text
):
    fetch = Mock(side_effect=[None, *ERRORS])
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    download_files("some/set", [NAME], tmp_path)
    fetch.assert_called_once_with("some/set", NAME, repo_type="dataset", local_dir=tmp_path)
    said = []
    for error in ERRORS:
        with pytest.raises(ReviewLogError) as caught:
            download_files("some/set", [NAME], tmp_path)
        said.append(f"# {type(error).__name__}\n{caught.value}\n")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError) as missing:
        download_files("some/set", [NAME], tmp_path)
    golden_text("hub_errors", "\n".join([*said, f"# no package\n{missing.value}\n"]))
