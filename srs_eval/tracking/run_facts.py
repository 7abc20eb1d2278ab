"""Facts about this process, and about the run it has open, for MLflow to tag runs with."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("srs-eval", "mlflow", "hydra-core", "numpy", "scipy", "numba", "torch")
_GIT_SECONDS = 10
# What runs that others begin meanwhile are told of the run that is open.
_SHARED = ("protocol", "protocol_version", "data", "data_fingerprint", "rows_fingerprint")
_open: dict[str, str] = {}


def current() -> Mapping[str, str]:
    """Tags of the run that is open; none if there is none."""
    return _open


def begin(tags: Mapping[str, str]) -> None:
    """Say that a run is open, and what is known of it."""
    _open.clear()
    _open.update(process_facts())
    add(tags)


def add(tags: Mapping[str, str]) -> None:
    """Say what more is known of the run that is open."""
    if _open:
        _open.update({name: text for name, text in tags.items() if name in _SHARED})


def end() -> None:
    """Say that no run is open."""
    _open.clear()


def process_facts() -> dict[str, str]:
    """Host, process, versions, and whether the code is as it was committed."""
    facts = {
        "host": socket.gethostname(),
        "pid": str(os.getpid()),
        "python": platform.python_version(),
        **{f"version.{name}": found for name in LIBRARIES if (found := _version(name))},
    }
    dirty = is_dirty(_program())
    return facts if dirty is None else {**facts, "git_dirty": str(dirty).lower()}


@cache
def is_dirty(folder: Path) -> bool | None:
    """Tell whether files under version control differ from the commit that MLflow names.

    Returns
    -------
    bool or None
        None where there is no git, or no repository.
    """
    git = shutil.which("git")
    if git is None:
        return None
    words = [git, "-C", str(folder), "status", "--porcelain", "--untracked-files=no"]
    # it must not wait for, nor take, the lock of somebody's own git
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            words, env=env, capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return bool(done.stdout.strip()) if done.returncode == 0 else None


def _program() -> Path:
    """Folder of the program, which is where MLflow looks for a commit too."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(main).resolve().parent if main else Path.cwd()


@cache
def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
