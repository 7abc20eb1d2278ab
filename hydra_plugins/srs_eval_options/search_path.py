"""The search path plug-in that Hydra finds: options of other packages, for srs_eval only."""

from __future__ import annotations

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin


class SrsEvalOptions(SearchPathPlugin):
    """Search for options in other packages, after those of srs_eval."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add their folders, unless another application is running."""
        from srs_eval.runs.options import conf_folder, package_folders

        parts = [part.path for part in search_path.get_path() if part.provider == "main"]
        if [str(path).removeprefix("file://") for path in parts] == [str(conf_folder())]:
            for package, folder in package_folders():
                search_path.append(package, f"file://{folder}")
