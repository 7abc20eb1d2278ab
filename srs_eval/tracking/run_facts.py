"""Facts about this process, and about the run it has open, for MLflow to tag runs with."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distributions,
    entry_points,
    version,
)
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

LIBRARIES = ("srs-eval", "mlflow", "hydra-core", "numpy", "scipy", "numba", "torch")
# Packages with options for srs_eval have an entry point in this group.
_PLUG_INS = "srs_eval.conf"
_GIT_SECONDS = 10
# Tags of the open run that other runs started meanwhile get too.
_SHARED = ("protocol", "protocol_version", "data", "data_fingerprint", "rows_fingerprint")
# Facts that are kept in a file instead of tags, because runs are not searched by them.
_ENVIRONMENT = ("python", "cpu", "git_dirty", "protocol_version")
ENVIRONMENT = "environment.json"
# Of each open run, in the order in which they were begun.
_open: list[dict[str, str]] = []


def current() -> Mapping[str, str]:
    """Tags of the open run that was begun last; none if there is none."""
    return _open[-1] if _open else {}


def begin(tags: Mapping[str, str]) -> dict[str, str]:
    """Record that a run is open, and return its tags as others get them."""
    facts = process_facts()
    add(facts, tags)
    _open.append(facts)
    return facts


def add(facts: dict[str, str], tags: Mapping[str, str]) -> None:
    """Add to the tags of an open run."""
    facts.update({name: text for name, text in tags.items() if name in _SHARED})


def end(facts: Mapping[str, str]) -> None:
    """Record that a run is not open any more."""
    _open[:] = [each for each in _open if each is not facts]


def process_facts() -> dict[str, str]:
    """Host, process, versions, and whether the code is as it was committed."""
    facts = {
        "host": socket.gethostname(),
        "pid": str(os.getpid()),
        "python": platform.python_version(),
        **versions(LIBRARIES),
    }
    dirty = is_dirty(_program())
    return facts if dirty is None else {**facts, "git_dirty": str(dirty).lower()}


@cache
def is_dirty(folder: Path) -> bool | None:
    """Return whether files under version control differ from the commit that MLflow logs.

    None where there is no git, or no repository.
    """
    changed = git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if changed is None else bool(changed)


def git(folder: Path, *words: str) -> str | None:
    """Return what a command of git prints; None if it fails, takes too long or is not there."""
    program = shutil.which("git")
    if program is None:
        return None
    # do not wait for, or take, the lock of another git process
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    command = [program, "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def split_environment(tags: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Separate the tags of a run from the facts about software and machine."""
    environment = {
        name: text
        for name, text in tags.items()
        if name in _ENVIRONMENT or name.startswith("version.")
    }
    return {name: text for name, text in tags.items() if name not in environment}, environment


def plug_in_versions(targets: Iterable[str]) -> dict[str, str]:
    """Return the versions of other packages that define some classes, as ``version.<package>``.

    Files outside of packages have no version.
    """
    tops = sorted({target.partition(".")[0] for target in targets} - {"srs_eval", "__main__"})
    owners = [owner for top in tops if (owner := _owner(top)) is not None]
    return {f"version.{owner.name}": owner.version for owner in owners}


@cache
def _owner(top: str) -> Distribution | None:
    """Find the package that has brought a module, looking only where the module is."""
    spec = find_spec(top)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).resolve()
    plug_ins = (e for e in entry_points(group=_PLUG_INS) if e.module.partition(".")[0] == top)
    for plug_in in (entry.dist for entry in plug_ins if entry.dist is not None):
        # a folder of the same name in the working directory shadows the installed package
        if any(file.is_relative_to(folder) for folder in _folders(plug_in)):
            return plug_in
    beside = file.parent.parent if spec.submodule_search_locations else file.parent
    return next((d for d in distributions(path=[str(beside)]) if _brings(d, top)), None)


def _folders(owner: Distribution) -> Iterator[Path]:
    """Yield the folder a package is installed in, and its source folder if it is editable."""
    yield Path(str(owner.locate_file(""))).resolve()
    origin = json.loads(owner.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        yield Path(url2pathname(urlsplit(origin["url"]).path)).resolve()


def _brings(owner: Distribution, top: str) -> bool:
    return any(file.parts[0] in (top, f"{top}.py") for file in owner.files or ())


def _program() -> Path:
    """Folder of the program, which is where MLflow looks for a commit too."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(main).resolve().parent if main else Path.cwd()


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of those libraries that are installed, as ``version.<library>``."""
    found = {f"version.{library}": _version(library) for library in libraries}
    return {name: text for name, text in found.items() if text}


@cache
def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
