"""Download single files of a data set from Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path

from srs_eval.errors import ConfigError, ReviewLogError

_PARALLEL_DOWNLOADS = 8
_DENIED = (401, 403)
_BY_HAND = (
    "Check the connection, HF_ENDPOINT and HF_HUB_OFFLINE, and the space on the disk; or copy the "
    "files revlogs/user_id=N/data.parquet into the folder by hand and leave data.download=false."
)


def download_files(repo_id: str, names: Sequence[str], folder: Path) -> None:
    """Fetch files of a data set of Hugging Face into a folder, keeping their paths in the data set.

    Raise `ConfigError` if the package huggingface_hub is not installed, and `ReviewLogError` if
    access is not granted, a file is not there, or the site cannot be reached.
    """
    # Optional, and needed for nothing else: loaded only when something is downloaded.
    try:
        hub, errors = import_module("huggingface_hub"), import_module("huggingface_hub.errors")
    except ImportError as error:
        message = (
            "data.download=true needs the package huggingface_hub: run "
            "`pip install 'srs-eval[hub]'`"
        )
        raise ConfigError(message) from error
    fetch = partial(hub.hf_hub_download, repo_id, repo_type="dataset", local_dir=folder)
    source = f"Hugging Face data set {repo_id}"
    try:
        with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
            list(pool.map(fetch, names))
    # The order matters: some of these are kinds of the ones below them.
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise ReviewLogError(source, ["Hugging Face cannot be reached"], _BY_HAND) from error
    except errors.EntryNotFoundError as error:
        reason = _last_line(error)
        raise ReviewLogError(source, [f"a file is not in the data set: {reason}"]) from error
    except errors.RepositoryNotFoundError as error:
        raise ReviewLogError(source, ["access is not granted"], _access(repo_id)) from error
    except errors.HfHubHTTPError as error:
        if error.response.status_code in _DENIED:
            raise ReviewLogError(source, ["access is not granted"], _access(repo_id)) from error
        violation = f"the download failed: {_last_line(error)}"
        raise ReviewLogError(source, [violation], _BY_HAND) from error
    except OSError as error:
        raise ReviewLogError(source, [f"the download failed: {error}"], _BY_HAND) from error


def _last_line(error: Exception) -> str:
    """Pick the telling line of a long message."""
    return str(error).strip().splitlines()[-1]


def _access(repo_id: str) -> str:
    """How to be let in."""
    return (
        f"It is open on request: sign in at https://huggingface.co/datasets/{repo_id} and ask for "
        "access there, then run `hf auth login` here or set HF_TOKEN to a token that may read it."
    )
