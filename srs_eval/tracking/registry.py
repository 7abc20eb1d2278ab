"""Move the alias of a registered model, with the reason on both versions."""

from __future__ import annotations

from dataclasses import dataclass

from mlflow.exceptions import MlflowException

from srs_eval.errors import ConfigError
from srs_eval.tracking.mlflow_store import opened

CHAMPION, CHALLENGER = "champion", "challenger"
REASON = "srs_eval.promotion"


@dataclass(frozen=True, slots=True)
class Promotion:
    """A move of the alias ``champion`` of a registered model."""

    model: str
    before: str  # Version that has it
    after: str  # Version that has the alias ``challenger``, and gets it


def promotion(uri: str | None, model: str) -> Promotion:
    """Look which versions of a model have the aliases; raise `ConfigError` if one is missing."""
    versions = []
    with opened(uri, "read the model registry") as (client, _):
        known = {found.name for found in client.search_registered_models()}
        if model not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise ConfigError(f"promote={model}: no such registered model; there are: {listed}")
        for alias in (CHAMPION, CHALLENGER):
            try:
                found = client.get_model_version_by_alias(model, alias)
            except MlflowException as error:
                raise ConfigError(
                    f"promote={model}: no version of it has the alias {alias}; give it one "
                    "with MlflowClient().set_registered_model_alias"
                ) from error
            versions.append(str(found.version))
    return Promotion(model, *versions)


def promote(uri: str | None, move: Promotion, reason: str) -> None:
    """Move the alias; the reason is a tag on both versions."""
    with opened(uri, f"promote {move.model}") as (client, _):
        for version in (move.before, move.after):
            client.set_model_version_tag(move.model, version, REASON, reason)
        client.set_registered_model_alias(move.model, CHAMPION, move.after)
