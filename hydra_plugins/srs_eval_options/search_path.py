"""The search path plug-in that Hydra finds: options of other packages, for srs_eval only.

Hydra loads this module in every application of the environment. It does nothing, and imports
nothing of srs_eval, unless the application is srs_eval.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

_BESIDE = Path(__file__).resolve().parents[2]
# Folders of the options of srs_eval, in a checkout and in a wheel.
_OURS = (_BESIDE / "conf", _BESIDE / "srs_eval" / "conf")


class SrsEvalOptions(SearchPathPlugin):
    """Search for options in other packages, after those of srs_eval."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add their folders, unless another application is running."""
        mains = [part.path for part in search_path.get_path() if part.provider == "main"]
        if not mains or Path(str(mains[0]).removeprefix("file://")).resolve() not in _OURS:
            return
        for name, folder in _packages():
            search_path.append(name, f"file://{folder}")


def _packages() -> Iterator[tuple[str, Path]]:
    """Go through the folders of options of installed packages, by name, importing none."""
    for entry in sorted(entry_points(group="srs_eval.conf"), key=_name):
        top, *inner = entry.module.split(".")
        spec = find_spec(top)
        for place in (spec and spec.submodule_search_locations) or []:
            folder = Path(place, *inner, "conf")
            if folder.is_dir():
                yield _name(entry), folder.resolve()


def _name(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.name
