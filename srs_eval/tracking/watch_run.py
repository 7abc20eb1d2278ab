"""A watch in MLflow: a run for each night under one parent, and the champion it promotes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException

from srs_eval.errors import ConfigError
from srs_eval.tracking.items import Item, Tag
from srs_eval.tracking.mlflow_run import log_batches, log_items
from srs_eval.tracking.mlflow_store import opened
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo, RunLinks, tracked

CHAMPION, CHALLENGER = "champion", "challenger"
REASON = "srs_eval.promotion"
_PARENT = "mlflow.parentRunId"
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Night:
    """What one night of a watch logs."""

    watch: str  # Name of the watch
    date: str  # The last day that is over
    items: Sequence[Item]  # Of the night
    of_watch: Sequence[Item]  # Of the parent: they replace those of the night before
    # Curves of the parent, one value for each day since 1970, in order
    curves: Mapping[str, Sequence[tuple[int, float]]]


def log_night(
    night: Night, parent: str, *, uri: str | None, experiment: str, artifacts: str | None
) -> tuple[RunLinks, str]:
    """Log a night; return its links and the id of the parent, made if it is not in the store."""
    tracker = MlflowTracker(uri=uri, experiment=experiment, artifacts=artifacts, view=False)
    with opened(uri, "look for the watch") as (client, _):
        is_there = _is_there(client, parent)
    if not is_there:
        with tracked(tracker, RunInfo(night.watch, tags={"kind": "watch"})) as begun:
            pass
        parent = begun.links.run_id
    with opened(uri, "keep the watch") as (client, _):
        # Curves grow by the days that are new.
        log_batches(client, parent, "metrics", [*_new_values(client, parent, night.curves)])
        log_items(client, parent, [*night.of_watch, Tag("last_night", night.date)], digits=4)
    tags = {"kind": "night", _PARENT: parent, "watch": night.watch}
    with tracked(tracker, RunInfo(f"night of {night.date}", tags=tags)) as run:
        tracker.log(night.items)
    return run.links, parent


def _is_there(client: MlflowClient, run_id: str) -> bool:
    """Whether a run is in the store, and not deleted."""
    with suppress(MlflowException):
        return bool(run_id and client.get_run(run_id).info.lifecycle_stage == "active")
    return False


def _new_values(
    client: MlflowClient, parent: str, curves: Mapping[str, Sequence[tuple[int, float]]]
) -> Iterator[Metric]:
    """Return the values of days that are not logged yet; steps count from the first day."""
    begins = min((points[0][0] for points in curves.values() if points), default=0)
    for name, points in curves.items():
        known = client.get_metric_history(parent, name)
        last = max((metric.step for metric in known), default=-1)
        for day, value in points:
            if day - begins > last:
                yield Metric(name, value, day * _DAY_MS, day - begins)


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
