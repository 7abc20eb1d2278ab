"""Comparisons in MLflow: fetch runs from a store, and log the comparison as a run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.utils import get_results_from_paginated_fn

from srs_eval.errors import ConfigError
from srs_eval.tracking.items import ArtifactFile, Description, Item, Param, Tag, Value
from srs_eval.tracking.mlflow_store import opened
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo, RunLinks, tracked

RESULTS = "results"
KIND = "comparison"
NEEDED = {"summary.json", "scores.parquet"}
_PAGE = 1000
_ENDED = ("FINISHED", "FAILED")
# Runs that are no evaluation of a model.
_OTHER_KINDS = (KIND, "sweep")


@dataclass(frozen=True, slots=True)
class Parent:
    """A run that was compared."""

    name: str  # Its name in the comparison
    tags: Mapping[str, str]  # Tags to find it by in a store where its id is unknown
    sweep_id: str = ""  # The sweep it was part of; "" if none
    run_id: str = ""  # Its id in the store; "" if unknown


def fetch_runs(
    uri: str | None,
    folder: Path,
    *,
    experiment: str | None = None,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Path], list[str]]:
    """Download the results of runs from a store, each to a folder named after its id.

    Only runs of `experiment`, if given, and with all `tags`. Returns a folder for each run with
    results, also if some of its fits have failed, and a note for each run without results.
    """
    with opened(uri, "read runs") as (client, address):
        known = {e.name: e.experiment_id for e in client.search_experiments()}
        if experiment is not None and experiment not in known:
            raise ConfigError(
                f"experiment={experiment}: not at {address.shown}; "
                f"there are {', '.join(sorted(known))}"
            )
        chosen = list(known.values()) if experiment is None else [known[experiment]]
        held = [(run, _kept(client, run)) for run in _search(client, chosen, tags)]
        if not any(kept >= NEEDED for _, kept in held):
            asked = {"experiment": experiment, **tags}
            words = " ".join(f"{key}={value}" for key, value in asked.items() if value)
            raise ConfigError(f"{words}: no finished run at {address.shown} kept its results")
        notes = [
            f"{run.info.run_name} kept no results and was left out: run {run.info.run_id}, "
            f"{run.info.status.lower()}"
            for run, kept in held
            if not kept >= NEEDED
        ]
        return [_fetched(client, *each, folder) for each in held if each[1] >= NEEDED], notes


def log_comparison(
    parents: Sequence[Parent],
    files: Sequence[Path],
    *,
    values: Mapping[str, float],
    tags: Mapping[str, str],
    note: str,
    uri: str | None,
    experiment: str,
    artifacts: str | None = None,
) -> RunLinks:
    """Log a comparison as a run of its own, with tags of the runs compared.

    The tag ``parents`` lists the ids of the runs in the same store, ``parent.NAME`` is the id of
    one run, and ``sweep_ids`` lists the sweeps they were part of.
    """
    tracker = MlflowTracker(uri=uri, experiment=experiment, artifacts=artifacts, view=False)
    names = " and ".join(parent.name for parent in parents)
    title = names if len(names) < 60 else f"{len(parents)} runs compared"
    with tracked(tracker, RunInfo(title, tags={"kind": KIND, **tags})) as run:
        ids = _found(uri, parents)
        sweeps = dict.fromkeys(parent.sweep_id for parent in parents if parent.sweep_id)
        items: list[Item] = [
            Param("runs", ", ".join(parent.name for parent in parents)),
            Tag("parents", ",".join(dict.fromkeys(ids.values()))),
            Tag("sweep_ids", ",".join(sweeps)),
            *(Tag(f"parent.{name}", run_id) for name, run_id in ids.items()),
            *(Value(name, value) for name, value in values.items()),
            *(ArtifactFile(path, "comparison") for path in files),
            Description(note),
        ]
        tracker.log(items)
    return run.links


def _found(uri: str | None, parents: Sequence[Parent]) -> dict[str, str]:
    """Return the ids of the runs that are in the store."""
    with opened(uri, "look for the runs compared") as (client, _):
        everywhere = [e.experiment_id for e in client.search_experiments()]
        found = {parent.name: _id_of(client, everywhere, parent) for parent in parents}
    return {name: run_id for name, run_id in found.items() if run_id is not None}


def _id_of(client: MlflowClient, experiments: list[str], parent: Parent) -> str | None:
    """Find a run by its id or, failing that, the newest run with its tags."""
    if parent.run_id:
        with suppress(MlflowException):  # it is in another store, or was deleted
            return str(client.get_run(parent.run_id).info.run_id)
    if not all(parent.tags.values()):
        return None
    sweep = {"sweep_id": parent.sweep_id} if parent.sweep_id else {}
    runs = _search(client, experiments, {**parent.tags, **sweep})
    return runs[-1].info.run_id if runs else None


def _search(client: MlflowClient, experiments: list[str], tags: Mapping[str, str]) -> list[Run]:
    """Find the evaluations with these tags that ended, oldest first."""
    quoted = [f"tags.`{name}` = '{_quoted(value)}'" for name, value in tags.items()]
    found = get_results_from_paginated_fn(  # type: ignore[no-untyped-call]
        lambda size, page: client.search_runs(
            experiments,
            filter_string=" and ".join(quoted),
            max_results=size,
            order_by=["attributes.start_time ASC"],
            page_token=page,
        ),
        _PAGE,
    )
    return [
        run
        for run in found
        if run.info.status in _ENDED and run.data.tags.get("kind") not in _OTHER_KINDS
    ]


def _kept(client: MlflowClient, run: Run) -> set[str]:
    """Return the names of a run's results."""
    return {Path(file.path).name for file in client.list_artifacts(run.info.run_id, RESULTS)}


def _fetched(client: MlflowClient, run: Run, kept: set[str], folder: Path) -> Path:
    """Download the results of a run that are read here: not its curves, which are large."""
    place: Path = folder / run.info.run_id
    place.mkdir(parents=True, exist_ok=True)
    for name in ("summary.json", "scores.parquet", "predictions.parquet"):
        if name in kept:
            file = client.download_artifacts(run.info.run_id, f"{RESULTS}/{name}", str(place))
            # Kinds of stores differ in whether they keep the folder; none loses its file.
            if Path(file) != place / name:
                shutil.copyfile(file, place / name)
    return place


def _quoted(value: str) -> str:
    return value.replace("'", "''")
