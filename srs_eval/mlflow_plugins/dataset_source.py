"""Entry point ``mlflow.dataset_source``: the reader that a run's review logs came from."""

from __future__ import annotations

from typing import Any

from mlflow.data.dataset_source import DatasetSource

KIND = "srs_eval"


class ReviewLogSource(DatasetSource):
    """Where review logs are, and how srs_eval reads them.

    ``mlflow.data.get_source(run.inputs.dataset_inputs[0]).load()`` gives the reader again. What
    it is made of besides plain values is built only if it is of srs_eval: see
    `srs_eval.config.rebuild`.

    Parameters
    ----------
    uri : str
        Path of the logs, or what was simulated.
    options : dict
        The resolved configuration of the reader; its ``path`` is written in full.
    """

    def __init__(self, uri: str, options: dict[str, Any]) -> None:
        self.uri = uri
        self.options = options

    @staticmethod
    def _get_source_type() -> str:
        return KIND

    @staticmethod
    def _can_resolve(raw_source: object) -> bool:
        return False  # other people's paths are other people's sources

    @classmethod
    def _resolve(cls, raw_source: object) -> ReviewLogSource:
        return cls(str(raw_source), {})

    def load(self) -> Any:
        """Build the reader: a `srs_eval.nouns.Source`."""
        from srs_eval.config.rebuild import rebuilt_source  # see the package

        return rebuilt_source(self.options)

    def to_dict(self) -> dict[str, Any]:
        """Give what `from_dict` takes."""
        return {"uri": self.uri, "options": self.options}

    @classmethod
    def from_dict(cls, source_dict: dict[Any, Any]) -> ReviewLogSource:
        """Make it of what MLflow kept."""
        return cls(source_dict.get("uri", ""), source_dict.get("options") or {})
