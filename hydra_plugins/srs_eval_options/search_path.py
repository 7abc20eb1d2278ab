"""The search path plug-in that Hydra finds: options of other packages, for srs_eval only.

Hydra loads this module in every application of the environment. It does nothing, and imports
nothing of srs_eval, unless the application is srs_eval.
"""

from __future__ import annotations

from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.plugins.search_path_plugin import SearchPathPlugin

_MAIN = "main"
_BESIDE = Path(__file__).resolve().parents[2]
# Folders of the options of srs_eval, in a checkout and in a wheel.
_OURS = (_BESIDE / "conf", _BESIDE / "srs_eval" / "conf")


class SrsEvalOptions(SearchPathPlugin):
    """Search for options in the user's folders, in srs_eval, and in other packages."""

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
