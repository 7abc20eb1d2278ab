"""Runs in MLflow, by MLflow's own functions."""

from __future__ import annotations

import atexit
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from hydra.core.hydra_config import HydraConfig
from hydra.utils import to_absolute_path

from srs_eval.errors import ConfigError, Pruned
from srs_eval.metrics.headline import HEADLINE, shown_metrics
from srs_eval.places import has_secret, masked
from srs_eval.runs.config import Setup
from srs_eval.runs.folder import FILES, FITS, Run
from srs_eval.runs.mlflow_store import RESULTS, Store, key

PARENT = "SRS_EVAL_PARENT_RUN"  # Environment: the run of a sweep, for its jobs
COMPLETE = "complete"  # The tag of a run that has all it shall have
_DESCRIPTION = "mlflow.note.content"
_RUN_ID = "MLFLOW_RUN_ID"  # Set by `mlflow run`
_MARKS = {"pretrained": "°", "sees_truth": "†", "in_sample": "‡"}
_IN_PARAMS = ("algo", "data", "protocol", "panel")
SHOWN = (*HEADLINE, "brier", "ici")
WITH_BOUNDS = ("log_loss", "smece", "rmse_bins", "auc")
_COUNTS = ("failed", "fallback", "skipped")
_ROWS_SHOWN = 200
_LONGEST_NAME = 250
_LONGEST_VALUE = 500
_LONGEST_NOTE = 8000


class Standings(Protocol):
    """The comparison of runs: what is logged of it."""

    text: str
    table: Any
    files: Sequence[Path]


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
    artifacts : str, optional
        Folder or URI for the files of a new experiment; None leaves it to MLflow.
    view : bool
        Whether to give the experiment a prepared view in the UI.
    model : bool
        Whether to log the model that was fitted to the first user, to be served.
    system_metrics : bool
        Whether to log the use of processors, memory and disk; needs psutil.
    """

    uri: str | None = None
    experiment: str = "srs_eval"
    artifacts: str | None = None
    view: bool = True
    model: bool = False
    system_metrics: bool = False

    def __post_init__(self) -> None:
        for name, address in (("uri", self.uri), ("artifacts", self.artifacts)):
            if address and has_secret(address):
                raise ConfigError(
                    f"tracking.{name}={masked(address)}: the address has a password, which would "
                    "be saved; set MLFLOW_TRACKING_URI in the environment"
                )
        if self.system_metrics and find_spec("psutil") is None:
            raise ConfigError("tracking.system_metrics=true needs psutil: pip install psutil")

    @contextmanager
    def run(self, setup: Setup, folder: Path, run_id: str | None) -> Iterator[Tracked]:
        """Begin the run of a job, or continue that of an interrupted one."""
        tags = {name: text for name, text in setup.tags.items() if name not in _IN_PARAMS}
        tags["output"] = str(folder.absolute())
        store, run = self._begun(_name(setup), tags, run_id, parent=os.environ.get(PARENT))
        tracked = Tracked(store, run.info.run_id, setup, with_model=self.model)
        try:
            # `mlflow run` has logged those of its entry point, an interrupted run its own
            known = run.data.params
            store.log_params({k: v for k, v in _params(setup).items() if k not in known})
            yield tracked
        except (KeyboardInterrupt, SystemExit, Pruned):
            store.leave("KILLED")
            raise
        except BaseException:
            store.leave("FAILED")
            raise
        store.end(tracked.run_id, "FAILED" if tracked.is_failed else "FINISHED")

    def has(self, run_id: str | None) -> bool:
        """Whether the store has a run, complete."""
        run = self._opened().run(run_id) if run_id else None
        return run is not None and COMPLETE in run.data.tags and run.info.status != "RUNNING"

    def parent(self, name: str, sweep_id: str, run_id: str | None = None) -> str:
        """Begin the run of a sweep, or continue that of an interrupted one; return its id."""
        tags = {"kind": "sweep", "sweep_id": sweep_id}
        store, run = self._begun(name, tags, run_id)
        store.leave("RUNNING")  # It stays open, while the active runs are those of jobs
        atexit.register(store.give_up, run.info.run_id)
        return str(run.info.run_id)

    def log_comparison(
        self,
        standings: Sequence[Standings],
        folder: Path,
        run_id: str | None = None,
        *,
        best: str = "",
        pictures: Sequence[Path] = (),
        against: Mapping[str, Mapping[str, float]] | None = None,
    ) -> list[str]:
        """Log comparisons to the run of their sweep, or to one of its own; return its links.

        `best` and `pictures` are of a search; `against` has, by run, differences to the baseline.
        """
        kind = {} if run_id else {"kind": "comparison"}
        store, run = self._begun(folder.name, kind, run_id)
        try:
            _log_standings(store, run.info.run_id, standings, folder, best)
            store.log_figures(run.info.run_id, pictures)
            for job, percent in (against or {}).items():
                store.log_metrics(_in_percent(percent), run_id=job)
        except BaseException:
            store.leave("FAILED")
            raise
        store.end(run.info.run_id, "FINISHED")
        return store.links()

    def _begun(
        self,
        name: str,
        tags: Mapping[str, str],
        run_id: str | None = None,
        parent: str | None = None,
    ) -> tuple[Store, Any]:
        """Begin a run, or continue that of `mlflow run`, or of an interrupted command."""
        own = os.environ.get(_RUN_ID)
        store = self._opened(own)
        os.environ.pop(_RUN_ID, None)
        if parent and (sweep := store.run(parent)):
            tags = {**tags, "sweep_id": sweep.data.tags["sweep_id"]}
        run = store.start_run(
            own or (run_id if run_id and store.run(run_id) else None),
            experiment_id=store.experiment_id,
            run_name=name[:_LONGEST_NAME],
            tags=tags,
            parent_run_id=parent,
            log_system_metrics=self.system_metrics or None,
        )
        return store, run

    def _opened(self, run_id: str | None = None) -> Store:
        """Open the store and the experiment, or that of a run."""
        store = Store(self.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db")
        place = self.artifacts
        if place and "://" not in place:
            place = Path(to_absolute_path(place)).as_uri()
        store.create()
        store.open(self.experiment, place, run_id, has_view=self.view)
        return store


class Tracked:
    """The run in MLflow of a job."""

    def __init__(self, store: Store, run_id: str, setup: Setup, *, with_model: bool) -> None:
        self.run_id = run_id
        self.links = store.links()
        self.is_failed = False
        self._store, self._setup, self._with_model = store, setup, with_model

    def log(
        self,
        run: Run,
        text: str,
        figures: Iterable[Path],
        against: Mapping[str, float],
    ) -> None:
        """Log the results, whose files are on the disk; `figures` is read last."""
        store, setup, facts = self._store, self._setup, run.facts
        values = _values(setup, run, against)
        defined = {name: v for name, v in values.items() if math.isfinite(v)}
        store.log_metrics(
            {name: float(f"{v:.6g}") if abs(v) < 1e5 else round(v) for name, v in defined.items()}
        )
        self._log_dataset(facts.rows_fingerprint)
        store.log_tables(self.run_id, _tables(run))
        for name in FILES:
            if (run.folder / name).is_file():
                store.log_artifact(str(run.folder / name), RESULTS)
        if self._with_model:
            from srs_eval.runs.mlflow_model import log_model  # Not where no model is logged

            store.set_tag("model", log_model(store, setup, run))
        files = list(figures)
        store.log_figures(self.run_id, files)
        tags = {"rows_fingerprint": facts.rows_fingerprint}
        if undefined := sorted(values.keys() - defined.keys()):
            tags["undefined_metrics"] = ", ".join(undefined)
        has_picture = any(file.stem == "calibration" for file in files)
        tags[_DESCRIPTION] = _description(
            self.run_id, run, text, setup.content["notes"], has_picture=has_picture
        )
        store.set_tags({**tags, COMPLETE: "true"})
        self.is_failed = bool(facts.failed)

    def _log_dataset(self, digest: str) -> None:
        """Log which reviews were scored."""
        from mlflow.data.meta_dataset import MetaDataset  # After `Store` has set MLflow up

        from srs_eval.runs.mlflow_source import ReviewLogSource, whole_paths

        source, options = self._setup.source, whole_paths(self._setup.content["data"])
        reader = ReviewLogSource(masked(options.get("path") or source.location), options)
        data = MetaDataset(reader, source.name, digest)  # type: ignore[abstract]
        self._store.log_input(data, "evaluation")


def _log_standings(
    store: Store, run_id: str, standings: Sequence[Standings], folder: Path, best: str
) -> None:
    tables = {}
    for number, each in enumerate(standings, 1):
        if each.table is not None:
            tables["comparison" + f"_{number}" * (len(standings) > 1)] = each.table
        for file in each.files:
            inside = file.parent.relative_to(folder) if folder in file.parents else Path()
            store.log_artifact(str(file), str(Path("comparison") / inside))
    store.log_tables(run_id, tables)
    if texts := "\n\n".join(filter(None, [best, *(each.text for each in standings)])):
        first = texts.partition("\n")[0]
        store.set_tag(_DESCRIPTION, f"**{first}**\n\n```text\n{texts}\n```"[:_LONGEST_NOTE])


def _name(setup: Setup) -> str:
    marks = "".join(
        mark for trait, mark in _MARKS.items() if getattr(setup.algorithm, trait, False)
    )
    label = f"{setup.label} {marks}".rstrip()
    return setup.content["name"] or f"{label} on {setup.choices['data']}"


def _params(setup: Setup) -> dict[str, str]:
    """Return what describes model, data, protocol and seed: options, and what was typed."""
    words = HydraConfig.get().overrides.task if HydraConfig.initialized() else ()
    typed = {word.lstrip("+~").partition("=")[0].rpartition("@")[2] for word in words}
    typed = typed - {*_IN_PARAMS} | {"algo"}
    flat = {
        name: value
        for name, value in _flat({group: setup.content[group] for group in _IN_PARAMS})
        if value is not None and any(f"{name}.".startswith(f"{word}.") for word in typed)
    }
    chosen = {group: setup.choices[group] for group in _IN_PARAMS}
    named = {**flat, **chosen, "seed": setup.content["seed"]}
    return {key(name): masked(str(value)[:_LONGEST_VALUE]) for name, value in named.items()}


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Go through settings, with the class of what is inside another: ``algo.base``, ``Hlr``."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif name == "_target_":
            yield prefix.rstrip("."), str(value).rpartition(".")[2]
        else:
            yield f"{prefix}{name}", value


def _values(setup: Setup, run: Run, against: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics that are shown: the rest is in a table, and in the files."""
    facts, values = run.facts, {}
    shown = [metric.name for metric in shown_metrics(setup.panel)]
    for name in dict.fromkeys([*shown, *SHOWN]):
        row = facts.metrics.get(name)
        if row is None:
            continue
        values[key(f"test/{name}")] = row.mean_users
        if name in WITH_BOUNDS:
            values |= {f"test/{name}_low": row.lo, f"test/{name}_high": row.hi}
    for name, counts in (("users", facts.coverage.users), ("reviews", facts.coverage.reviews)):
        values |= {f"rests_on/{name}": counts.scored, f"rests_on/{name}_read": counts.read}
    values |= {f"fits/{name}": getattr(facts, name) for name in _COUNTS}
    with pq.ParquetFile(run.folder / FITS) as file:
        seconds = file.read(columns=["seconds"])["seconds"]
    values["fits/seconds"] = float(np.sum(seconds.to_numpy()))
    return values | _in_percent(against)


def _in_percent(against: Mapping[str, float]) -> dict[str, float]:
    return {key(f"vs_baseline/{name}_percent"): value for name, value in against.items()}


def _tables(run: Run) -> dict[str, pd.DataFrame]:
    """Return all metrics, the counts at each threshold, and an even sample of users."""
    facts, scores = run.facts, run.by_user
    users = pd.DataFrame({"user": [str(user) for user in scores.users], "reviews": scores.reviews})
    for number, name in enumerate(scores.names):
        if name in HEADLINE:
            users[name] = scores.values[:, number]
    sample = np.linspace(0, len(users) - 1, min(len(users), _ROWS_SHOWN)).round().astype(np.int64)
    return {
        "metrics": pd.DataFrame(
            [{"metric": name, **asdict(facts.metrics[name])} for name in facts.metrics]
        ),
        "thresholds": pd.DataFrame(facts.thresholds),
        "users": users.iloc[sample],
    }


def _description(run_id: str, run: Run, text: str, notes: str, *, has_picture: bool) -> str:
    """Return the result in one bold line, the calibration figure, and all that is printed."""
    loss = run.facts.metrics.get("log_loss")
    score = "" if loss is None else f"log loss {loss.mean_users:.4f} [{loss.lo:.4f}, {loss.hi:.4f}]"
    where = f"get-artifact?path=figures/calibration.png&run_uuid={run_id}"
    picture = f"![calibration]({where})\n\n" if has_picture else ""
    note = f"**{score or 'no log loss'}**\n\n{picture}```text\n{text}\n```\n\n{notes}"
    return note[:_LONGEST_NOTE]
