"""Runs of few users in this process, what they leave, and deaths in the middle of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from invented import Logs, invented_log

from srs_eval.compute.serial import Serial
from srs_eval.compute.shard import Shard
from srs_eval.experiment.description import RunDescription
from srs_eval.experiment.experiment import Experiment
from srs_eval.experiment.plan import Plan, RunOptions
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Algorithm
from srs_eval.place import Place
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.files import FITS
from srs_eval.tracking.nothing import NoTracker

_LOGS = {user: invented_log(user=user) for user in ("ann", "ben", "cat")}


def small_plan(
    folder: Path,
    algorithm: Algorithm,
    *,
    users: Sequence[str] = ("ann", "ben"),
    stays: bool = False,
    shard: Shard | None = None,
    **options: Any,
) -> Plan:
    """Plan a run with a part for each user."""
    logs = Logs({user: _LOGS[user] for user in users})
    experiment = Experiment(algorithm, logs, SrsBenchmark(), Panel([LogLoss()]))
    name = type(algorithm).__name__
    about = RunDescription(name, "logs", name, tags={"config_hash": name, "code_hash": "code"})
    return Plan(
        experiment,
        about,
        RunOptions(
            folder / "shards" / shard.folder if shard else folder,
            Serial(chunk=1),
            NoTracker(),
            figures=False,
            check_lookahead=False,
            parts_above=0 if stays else 1000,
            shard=shard,
            **options,
        ),
    )


def contents(folder: Path) -> dict[str, object]:
    """Return the files in a folder, without how long fits took and where the folder is."""
    found: dict[str, object] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if name.endswith(FITS) or "fits/" in name:
            found[name] = repr(pq.read_table(file).drop_columns(["seconds"]).to_pylist())
        elif file.is_file() and file.name != ".lock":
            found[name] = file.read_bytes().replace(str(folder).encode(), b"")
    return found


def before_changes(patch: pytest.MonkeyPatch, folder: Path, watch: Callable[[], object]) -> None:
    """Call a function before each rename and removal of a file or folder in a folder."""

    def watched(change: Any) -> Any:
        def changing(path: Any, *others: Any, **options: Any) -> Any:
            is_inside = Path(path).is_relative_to(folder) and os.path.lexists(path)
            if is_inside or "dir_fd" in options:
                watch()
            return change(path, *others, **options)

        return changing

    for name in ("replace", "unlink", "rmdir"):
        patch.setattr(os, name, watched(getattr(os, name)))
    patch.setattr(Place, "remove", removed_by_file)


def removed_by_file(place: Place) -> None:
    """Remove a folder file by file, as the system does."""
    if place.local.is_dir():
        shutil.rmtree(place.local)
    else:
        place.local.unlink(missing_ok=True)
