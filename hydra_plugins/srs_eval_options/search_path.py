"""The search path that Hydra finds: options of other packages, for srs_eval alone.

Hydra loads this into every application of the environment, so that nothing happens, and nothing
of srs_eval is imported, unless the options are those of srs_eval.
"""

from __future__ import annotations

from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.plugins.search_path_plugin import SearchPathPlugin

_MAIN = "main"
_BESIDE = Path(__file__).resolve().parents[2]
# Where the options of srs_eval lie in a checkout, and in a wheel.
_OURS = (_BESIDE / "conf", _BESIDE / "srs_eval" / "conf")


class SrsEvalOptions(SearchPathPlugin):
    """Look for options in the folders given by a person, in srs_eval, and in other packages."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folders, unless another application is running."""
        mains = [Path(part.path) for part in search_path.get_path() if part.provider == _MAIN]
        if not mains or mains[0].resolve() not in _OURS:
            return
        from srs_eval.config import option_files

        if mains[0].resolve() != option_files.conf_folder():
            return
        for folder in option_files.own_folders():
            path = f"file://{folder.resolve()}"
            search_path.prepend(option_files.OWN, path, SearchPathQuery(_MAIN, None))
        for package in option_files.packages():
            search_path.append(package.name, f"file://{package.folder}")
