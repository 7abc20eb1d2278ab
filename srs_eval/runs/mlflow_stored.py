"""Fetch the results of runs that MLflow has, to compare them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from srs_eval.errors import ConfigError
from srs_eval.places import masked
from srs_eval.runs.folder import PREDICTIONS, SCORES, SUMMARY
from srs_eval.runs.mlflow_store import Store

_RESULTS = "results"


def fetch_runs(
    store: Store, folder: Path, experiment: str, tags: Mapping[str, str]
) -> tuple[list[Path], list[str]]:
    """Download the runs of an experiment, or of all ("") with tags, each into a folder of its id.

    Return the folders, also of runs with failed fits, and a note for each run without results.
    Raise `ConfigError` if there are none.
    """
    if experiment and store.get_experiment_by_name(experiment) is None:
        raise ConfigError(
            f"experiment={experiment}: MLflow has none of this name at {masked(store.uri)}"
        )
    quoted = [f"tags.`{name}` = '{text}'" for name, text in tags.items()]
    runs = store.search_runs(
        experiment_names=[experiment] if experiment else None,
        search_all_experiments=not experiment,
        filter_string=" and ".join(quoted),
        order_by=["attributes.start_time ASC"],
        output_format="list",
    )
    folders, notes = [], []
    from mlflow.artifacts import download_artifacts  # After `Store` has set MLflow up

    download = store.waiting(download_artifacts)
    for run in runs:
        if "kind" in run.data.tags:  # A sweep, or a comparison
            continue
        run_id, name = run.info.run_id, run.info.run_name
        files = {Path(file).name for file in store.files(run_id, _RESULTS)}
        if not {SUMMARY, SCORES} <= files:
            notes.append(f"{name} has no results and was left out: run {run_id}")
            continue
        for file in files & {SUMMARY, SCORES, PREDICTIONS}:
            place = folder / run_id
            path = download(run_id=run_id, artifact_path=f"{_RESULTS}/{file}", dst_path=place)
        folders.append(Path(path).parent)  # Not every kind of store keeps the name of the folder
    if not folders:
        raise ConfigError("MLflow has no finished run with these tags at " + masked(store.uri))
    return folders, notes
