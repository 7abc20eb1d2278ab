"""Runs in MLflow, by MLflow's own functions."""

from __future__ import annotations

import atexit
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError, Pruned
from srs_eval.metrics.panel import HEADLINE, WITH_BOUNDS, shown_metrics
from srs_eval.places import masked
from srs_eval.runs.cli import PARENT
from srs_eval.runs.config import Setup
from srs_eval.runs.folder import FILES, FITS, Run
from srs_eval.runs.mlflow_store import COMPLETE, Store, key
from srs_eval.runs.summary import TRAITS
from srs_eval.runs.words import dotted

if TYPE_CHECKING:
    from srs_eval.comparison.compare import Report

SHOWN = (*HEADLINE, "brier", "ici")
_DESCRIPTION = "mlflow.note.content"
_TAGS = ("when", "config_hash", "code_hash")
_GROUPS = ("algo", "data", "protocol", "panel")
_LONGEST_NOTE = 8000


class Nothing:
    """Keep no runs."""

    @contextmanager
    def run(self, setup: Setup, folder: Path, run_id: str | None) -> Iterator[None]:
        """Run without a trace."""
        yield None

    def has(self, run_id: str | None) -> bool:
        """Whether all of a run is where it is kept: always."""
        return True

    def parent(self, name: str, sweep_id: str, run_id: str | None = None) -> None:
        """Begin no run of a sweep."""


@dataclass(frozen=True)
class Mlflow:
    """Log runs to MLflow, which is not imported before the first one.

    Parameters
    ----------
    uri : str, optional
        An MLflow tracking URI. None takes ``MLFLOW_TRACKING_URI``, or else ``mlflow.db`` in the
        working directory.
    experiment : str
        Group of runs to compare.
    model : bool
        Whether to log the model that was fitted to the first user, to be served.
    system_metrics : bool
        Whether to log the use of processors, memory and disk; needs psutil.
    """

    uri: str | None = None
    experiment: str = "srs_eval"
    model: bool = False
    system_metrics: bool = False

    def __post_init__(self) -> None:
        if self.system_metrics and find_spec("psutil") is None:
            raise ConfigError("tracking.system_metrics=true needs psutil: pip install psutil")

    @contextmanager
    def run(self, setup: Setup, folder: Path, run_id: str | None) -> Iterator[Tracked]:
        """Begin the run of a job, or continue that of an interrupted one."""
        tags = {name: setup.tags[name] for name in _TAGS} | setup.content["tags"]
        tags["output"] = str(folder.absolute())
        model = setup.algorithm
        marks = "".join(mark for trait, (mark, _) in TRAITS.items() if getattr(model, trait, False))
        label = f"{setup.label} {marks}".rstrip()
        name = setup.content["name"] or f"{label} on {setup.choices['data']}"
        store, run = self._begun(name, tags, run_id, os.environ.get(PARENT))
        tracked = Tracked(store, run.info.run_id, setup, self.model)
        # `mlflow run` has logged those of its entry point, an interrupted run its own
        params = run.data.params
        new = {name: value for name, value in _params(setup).items() if name not in params}
        try:
            store.log(tracked.run_id, params=new)
            with ExitStack() as last:
                if self.system_metrics:
                    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

                    monitor = SystemMetricsMonitor(tracked.run_id)
                    monitor.start()
                    last.callback(monitor.finish)
                yield tracked
            store.set_terminated(tracked.run_id, "FAILED" if tracked.is_failed else "FINISHED")
        except BaseException as error:
            is_stopped = isinstance(error, KeyboardInterrupt | SystemExit | Pruned)
            store.end(tracked.run_id, "KILLED" if is_stopped else "FAILED")
            raise

    def has(self, run_id: str | None) -> bool:
        """Whether the store has a run, complete."""
        run = Store(self.uri, self.experiment).run(run_id) if run_id else None
        return run is not None and COMPLETE in run.data.tags and run.info.status != "RUNNING"

    def parent(self, name: str, sweep_id: str, run_id: str | None = None) -> str:
        """Begin the run of a sweep, or continue that of an interrupted one; return its id."""
        store, run = self._begun(name, {"kind": "sweep", "sweep_id": sweep_id}, run_id)
        atexit.register(store.end, run.info.run_id, "KILLED", only_running=True)
        return str(run.info.run_id)

    def log_comparison(
        self,
        reports: Sequence[Report],
        folder: Path,
        run_id: str | None = None,
        *,
        best: str = "",
        pictures: Sequence[Path] = (),
        jobs: Mapping[Path, str] = MappingProxyType({}),
    ) -> str:
        """Log comparisons to the run of their sweep, or to one of its own; return its link.

        `best` and `pictures` are of a search; `jobs` are runs by their folders: each gets its
        difference to the baseline.
        """
        store, begun = self._begun(folder.name, {} if run_id else {"kind": "comparison"}, run_id)
        run_id = str(begun.info.run_id)
        several = [each.standings for each in reports if each.standings]
        store.log_tables(run_id, {f"comparison_{n}": s.frame for n, s in enumerate(several, 1)})
        for file in (file for each in reports for file in each.files):
            inside = file.parent.relative_to(folder) if folder in file.parents else ""
            store.log_artifact(run_id, str(file), str(Path("comparison", inside)))
        store.log_figures(run_id, pictures)
        text = "\n\n".join(filter(None, [best, *map(repr, several)]))
        first, _, rest = text.partition("\n")
        note = f"**{first}**\n\n```text\n{rest.strip(chr(10))}\n```" if text else ""
        store.set_tag(run_id, _DESCRIPTION, note[:_LONGEST_NOTE])
        for standings in several:
            name = f"vs_baseline/{standings.metric}_percent"
            for run, percent in standings.rows.to_baseline_percent.dropna().items():
                if job := jobs.get(standings.runs[str(run)].place):
                    store.log(job, [(name, percent, 0)])
        store.set_terminated(run_id)
        return store.link()

    def _begun(
        self, name: str, tags: Mapping[str, str], run_id: str | None, parent: str | None = None
    ) -> tuple[Store, Any]:
        """Begin a run, or continue that of `mlflow run`, or of an interrupted command."""
        own = os.environ.pop("MLFLOW_RUN_ID", None)  # of `mlflow run`
        store = Store(self.uri, self.experiment, own)
        if parent and (sweep := store.run(parent)):
            sweep_id = sweep.data.tags["sweep_id"]
            tags = {**tags, "mlflow.parentRunId": parent, "sweep_id": sweep_id}
        name, before = name[:250], own or run_id
        if before and (run := store.run(before)):
            store.update_run(before, "RUNNING", name)
            store.log(before, tags=tags)
            return store, run
        from mlflow.tracking.context.registry import resolve_tags

        tags = resolve_tags(dict(tags))
        return store, store.create_run(store.experiment_id, tags=tags, run_name=name)


@dataclass
class Tracked:
    """The run in MLflow of a job."""

    store: Store
    run_id: str
    setup: Setup
    with_model: bool
    is_failed: bool = False

    def log(self, run: Run, text: str, figures: Sequence[Path]) -> None:
        """Log the results, whose files are on the disk."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        store, setup, facts, run_id = self.store, self.setup, run.facts, self.run_id
        read = {"location": masked(setup.source.location), **setup.content["data"]}
        source = json.dumps({"tags": read}, default=str)
        scored = Dataset(setup.source.name, facts.rows_fingerprint, "code", source)
        mark = InputTag("mlflow.data.context", "eval")
        store.log_inputs(run_id, [DatasetInput(scored, [mark])])
        rows = [{"metric": name, **asdict(row)} for name, row in facts.metrics.items()]
        tables = {"metrics": pd.DataFrame(rows), "thresholds": pd.DataFrame(facts.thresholds)}
        store.log_tables(run_id, tables)
        for name in FILES:
            if (run.folder / name).is_file():
                store.log_artifact(run_id, str(run.folder / name), "results")
        tags = {}
        if self.with_model:
            from srs_eval.runs.mlflow_model import log_model  # Not where no model is logged

            tags["model"] = log_model(store, run_id, setup, run)
        store.log_figures(run_id, figures)
        tags[_DESCRIPTION] = _description(run_id, run, text, figures, setup.content["notes"])
        values = [*_values(setup, run), *_learning(run)]
        store.log(run_id, values, tags={**tags, COMPLETE: facts.rows_fingerprint})
        self.is_failed = bool(facts.failed)


def _params(setup: Setup) -> dict[str, str]:
    """Return what describes model, data, protocol and seed: options, and what was typed."""
    typed = (word.lstrip("+").partition("=") for word in setup.words)
    named = {name.rpartition("@")[2]: value for name, _, value in typed}
    named = {name: value for name, value in named.items() if name.partition(".")[0] in _GROUPS}
    for name, value in dotted(setup.content["algo"], "algo."):
        if name.endswith("._target_"):  # what is inside another, by its class
            named[name.removesuffix("._target_")] = value.rpartition(".")[2]
        elif value is not None:
            named[name] = value
    named |= {group: setup.choices[group] for group in _GROUPS} | {"seed": setup.content["seed"]}
    return {key(name): masked(str(value)[:500]) for name, value in named.items()}


def _values(setup: Setup, run: Run) -> Iterator[tuple[str, float, int]]:
    """Go through the metrics that are shown: the rest is in a table, and in the files."""
    facts, values = run.facts, {}
    names = [metric.name for metric in shown_metrics(setup.panel)]
    for name in dict.fromkeys([*names, *SHOWN]):
        if row := facts.metrics.get(name):
            values[f"test/{name}"] = row.mean_users
        if row and name in WITH_BOUNDS:
            values |= {f"test/{name}_low": row.lo, f"test/{name}_high": row.hi}
    for name, counts in (("users", facts.coverage.users), ("reviews", facts.coverage.reviews)):
        values |= {f"rests_on/{name}": counts.scored, f"rests_on/{name}_read": counts.read}
    values |= {f"fits/{name}": getattr(facts, name) for name in ("failed", "fallback", "skipped")}
    values["fits/seconds"] = np.sum(_of_fits(run, "seconds"))
    for name, value in values.items():
        if math.isfinite(value):
            yield key(name), float(f"{value:.6g}") if abs(value) < 1e5 else round(value), 0


def _learning(run: Run) -> Iterator[tuple[str, float, int]]:
    """Go through the loss after each step, mean over fits; one that ends stays at its last."""
    for name in ("training_loss", "test_log_loss"):
        fits = [losses for losses in _of_fits(run, name) if losses]
        most = max(map(len, fits), default=0)
        padded = [losses + losses[-1:] * (most - len(losses)) for losses in fits]
        for step, losses in enumerate(zip(*padded, strict=True), 1):
            yield f"learning/{name}", float(np.mean(losses)), step


def _of_fits(run: Run, name: str) -> list[Any]:
    with pq.ParquetFile(run.folder / FITS) as file:
        return list(file.read(columns=[name])[name].to_pylist())


def _description(run_id: str, run: Run, text: str, files: Sequence[Path], notes: str) -> str:
    """Return the result in one bold line, the calibration figure, and all that is printed."""
    loss = run.facts.metrics.get("log_loss")
    score = "" if loss is None else f"log loss {loss.mean_users:.4f} [{loss.lo:.4f}, {loss.hi:.4f}]"
    picture = ""
    if any(file.stem == "calibration" for file in files):  # As the UI finds it
        picture = f"![calibration](get-artifact?path=figures/calibration.png&run_uuid={run_id})\n\n"
    note = f"**{score or 'no log loss'}**\n\n{picture}```text\n{text}\n```\n\n{notes}"
    return note[:_LONGEST_NOTE]
