"""Entry point ``mlflow.dataset_source``: the reader of a run's review logs.

MLflow loads it while it is itself being imported, so that all else is imported later.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mlflow.data.dataset_source import DatasetSource


class ReviewLogSource(DatasetSource):
    """Location of review logs, and the options of their reader.

    ``mlflow.data.get_source(run.inputs.dataset_inputs[0]).load()`` builds the reader again.
    """

    def __init__(self, uri: str, options: dict[str, Any]) -> None:
        self.uri = uri  # Path of the logs, or what was simulated
        self.options = options  # The resolved option of the reader; its path is written in full

    @staticmethod
    def _get_source_type() -> str:
        return "srs_eval"

    @staticmethod
    def _can_resolve(raw_source: object) -> bool:
        return False  # Other people's paths are other people's sources

    @classmethod
    def _resolve(cls, raw_source: object) -> ReviewLogSource:
        return cls(str(raw_source), {})

    def load(self) -> Any:
        """Build the reader, a `srs_eval.nouns.Source`, of srs_eval or a package with options."""
        from srs_eval.errors import ConfigError
        from srs_eval.runs.config import option, targets
        from srs_eval.runs.options import PLUG_INS

        modules = ["srs_eval", *(entry.module for entry in entry_points(group=PLUG_INS))]
        packages = {module.partition(".")[0] for module in modules}
        for target in targets(self.options):
            if target.partition(".")[0] not in packages:
                raise ConfigError(f"{target} is of none of {', '.join(sorted(packages))}")
        return option("data", self.options)

    def to_dict(self) -> dict[str, Any]:
        """Return the argument of `from_dict`."""
        return {"uri": self.uri, "options": self.options}

    @classmethod
    def from_dict(cls, source_dict: dict[Any, Any]) -> ReviewLogSource:
        """Build it from the dictionary that MLflow stored."""
        return cls(source_dict.get("uri", ""), source_dict.get("options") or {})


def whole_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a source so that it can be built again from another folder."""
    from srs_eval.places import is_uri

    path = options.get("path")
    if not isinstance(path, str) or is_uri(path):
        return dict(options)
    return {**options, "path": str(Path(path).expanduser().absolute())}
