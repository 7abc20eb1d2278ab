"""Items as parameters, metrics, tags and artefacts of an MLflow run."""

from __future__ import annotations

import json
import math
import posixpath
import re
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import PIL.Image
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, RunTag
from mlflow.entities import Param as MlflowParam
from mlflow.exceptions import MlflowException
from mlflow.tracking.context.registry import resolve_tags
from mlflow.utils.mlflow_tags import MLFLOW_LOGGED_ARTIFACTS
from pandas import DataFrame

from srs_eval.text.plain import one_line, printable
from srs_eval.tracking.items import (
    ArtifactFile,
    DatasetInfo,
    Description,
    FigureFiles,
    Item,
    Param,
    ScoredModel,
    TableRows,
    Tag,
    Value,
)
from srs_eval.tracking.mlflow_store import DIGEST_LENGTH, NOTE_TAG
from srs_eval.tracking.tracker import RunInfo
from srs_eval.tracking.view import IMAGES_SECTION

# Limits of MLflow's tables and requests.
PARAM_LENGTH = 6000
TAG_LENGTH = 8000
AT_ONCE = {"metrics": 1000, "params": 100, "tags": 50}
DATASET_ATTEMPTS = 6

# As the entry point of srs_eval for sources of data sets calls itself.
SOURCE_TYPE = "srs_eval"
RUNS_WITH_COLOURS = 50
UNDEFINED_TAG = "undefined_metrics"
TABLES_FOLDER = "tables"

COLOUR_TAG = "mlflow.runColor"

# Distinguishable with the common colour blindnesses as long as eight are enough
# (Okabe and Ito, 2008, with a darker yellow for white paper), then merely different.
PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#b8a800",
    "#555555",
    "#7b4fb0",
    "#8c5a2b",
    "#2f9e9e",
    "#b3202c",
    "#6b8e23",
    "#e377c2",
    "#1f3a93",
    "#9a9a9a",
)

_NUMBERED = re.compile(r" \((\d{1,6})\)$")  # of the second run of a name, and of later ones

_Entry = TypeVar("_Entry")


def start_run(client: MlflowClient, experiment_id: str, run: RunInfo) -> str:
    """Create a run with MLflow's own tags (git commit, user, source) and `run.tags`.

    A name that one of the latest runs has gets a number; both have one colour.
    """
    latest = client.search_runs([experiment_id], max_results=RUNS_WITH_COLOURS)
    name = one_line(run.name)
    taken = {
        _unnumbered(other.info.run_name): other.data.tags[COLOUR_TAG]
        for other in latest
        if COLOUR_TAG in other.data.tags
    }
    own = {COLOUR_TAG: pick_colour(name, taken), **run.tags}
    tags = resolve_tags({name: _shortened(text, TAG_LENGTH) for name, text in own.items()})
    name = numbered(name, [other.info.run_name for other in latest])
    return str(client.create_run(experiment_id, tags=tags, run_name=name).info.run_id)


def numbered(name: str, others: Sequence[str]) -> str:
    """Add the next number to a name that others have.

    >>> numbered("avg", ["hlr"]), numbered("avg", ["avg"]), numbered("avg", ["avg (7)", "avg"])
    ('avg', 'avg (2)', 'avg (8)')
    """
    alike = [other for other in others if name in (other, _unnumbered(other))]
    counts = [int(found[1]) for other in alike if (found := _NUMBERED.search(other))]
    return f"{name} ({max([1, *counts]) + 1})" if alike else name


def pick_colour(name: str, taken: Mapping[str, str]) -> str:
    """Choose the colour of a run; runs of one name have one colour.

    >>> pick_colour("lstm", {"avg": "#0072b2"})
    '#d55e00'
    >>> pick_colour("avg", {"avg": "#0072b2"})
    '#0072b2'
    """
    if name in taken:
        return taken[name]
    free = [colour for colour in PALETTE if colour not in taken.values()]
    return free[0] if free else PALETTE[zlib.crc32(name.encode()) % len(PALETTE)]


def _unnumbered(name: str) -> str:
    return _NUMBERED.sub("", name)


def join_run(client: MlflowClient, run_id: str, run: RunInfo) -> str:
    """Join the run that ``mlflow run`` created; return the id of its experiment."""
    client.update_run(run_id, status="RUNNING", name=one_line(run.name))
    log_tags(client, run_id, run.tags)
    return str(client.get_run(run_id).info.experiment_id)


def log_items(
    client: MlflowClient, run_id: str, items: Iterable[Item], *, digits: int | None = None
) -> None:
    """Write items to a run, all metrics in one call and rounded to `digits`, if given.

    Metrics that are NaN or infinite are named in the tag ``undefined_metrics`` instead:
    a chart would show them as numbers or break.
    """
    items = tuple(items)
    _log_params(client, run_id, _of(Param, items))
    _log_values(client, run_id, _of(Value, items), digits)
    tags = {tag.name: tag.value for tag in _of(Tag, items)}
    for description in _of(Description, items):
        tags[NOTE_TAG] = description.markdown
    log_tags(client, run_id, tags)
    _log_datasets(client, run_id, _of(DatasetInfo, items))
    _log_tables(client, run_id, _of(TableRows, items))
    for figure in _of(FigureFiles, items):
        _log_figure(client, run_id, figure)
    for artifact in _of(ArtifactFile, items):
        client.log_artifact(run_id, str(artifact.path), artifact.folder or None)
    for model in items:
        if isinstance(model, ScoredModel):
            from srs_eval.tracking.mlflow_model import log_model  # takes seconds to import

            log_model(client, run_id, model)


def safe_names(names: Sequence[str]) -> list[str]:
    """Turn names into different ones that MLflow takes for params, metrics and tags.

    >>> safe_names(["test/log_loss", "a(b)", "a[b]", "../x"])
    ['test/log_loss', 'a_b_', 'a_b__', 'x']
    """
    taken: dict[str, str] = {}
    for name in dict.fromkeys(names):
        safe = posixpath.normpath(re.sub(r"[^\w\-. /]", "_", name)).lstrip("./")[:240] or "unnamed"
        while safe in taken.values():
            safe += "_"
        taken[name] = safe
    return [taken[name] for name in names]


def _of(kind: type[_Entry], items: Iterable[Item]) -> list[_Entry]:
    return [item for item in items if isinstance(item, kind)]


def log_batches(client: MlflowClient, run_id: str, kind: str, entries: Sequence[Any]) -> None:
    """Log ``metrics``, ``params`` or ``tags``, as many at once as MLflow takes."""
    size = AT_ONCE[kind]
    for first in range(0, len(entries), size):
        client.log_batch(run_id, **{kind: entries[first : first + size]}, synchronous=True)


def _log_params(client: MlflowClient, run_id: str, params: Sequence[Param]) -> None:
    if not params:
        return
    # MLflow refuses a second value; `mlflow run -P` may have written another spelling.
    before: Mapping[str, str] = client.get_run(run_id).data.params
    texts = dict(zip(safe_names([param.name for param in params]), params, strict=True))
    entries = []
    for name, param in texts.items():
        text = _shortened(str(param.value), PARAM_LENGTH)
        clash = before.get(name, text) != text
        entries.append(MlflowParam(f"srs_eval.{name}" if clash else name, text))
    log_batches(client, run_id, "params", entries)


def rounded(number: float, digits: int | None) -> float:
    """Round a number to `digits` decimals, or as many as show that many digits.

    >>> [rounded(number, 4) for number in (0.278032851, 10910, 0.000123456)]
    [0.278, 10910.0, 0.0001235]
    """
    number = float(number)
    if digits is None or not math.isfinite(number) or number == 0:
        return number
    return round(number, max(digits, digits - 1 - math.floor(math.log10(abs(number)))))


def _log_values(
    client: MlflowClient, run_id: str, values: Sequence[Value], digits: int | None
) -> None:
    if not values:
        return
    now_ms = time.time_ns() // 1_000_000
    named = zip(safe_names([value.name for value in values]), values, strict=True)
    numbers = {name: rounded(value.value, digits) for name, value in named}
    defined = [
        Metric(name, number, now_ms, 0) for name, number in numbers.items() if math.isfinite(number)
    ]
    log_batches(client, run_id, "metrics", defined)
    undefined = {name for name, number in numbers.items() if not math.isfinite(number)}
    if undefined:
        known = client.get_run(run_id).data.tags.get(UNDEFINED_TAG, "")
        undefined |= set(known.split(", ")) - {""}
        log_tags(client, run_id, {UNDEFINED_TAG: ", ".join(sorted(undefined))})


def log_tags(client: MlflowClient, run_id: str, tags: Mapping[str, str]) -> None:
    """Tag a run; texts are cut where MLflow has no more room."""
    entries = [
        RunTag(name, _shortened(text, TAG_LENGTH))
        for name, text in zip(safe_names(list(tags)), tags.values(), strict=True)
    ]
    log_batches(client, run_id, "tags", entries)


def _log_datasets(client: MlflowClient, run_id: str, datasets: Sequence[DatasetInfo]) -> None:
    inputs = [
        DatasetInput(
            Dataset(
                name=one_line(dataset.name)[:500],
                digest=dataset.digest[:DIGEST_LENGTH],
                source_type=SOURCE_TYPE,
                source=json.dumps({"uri": dataset.location, "options": dataset.options}),
                profile=json.dumps({"num_rows": dataset.reviews, "num_users": dataset.users}),
            ),
            tags=[InputTag("mlflow.data.context", "evaluation")],
        )
        for dataset in datasets
    ]
    for attempt in range(DATASET_ATTEMPTS if inputs else 0):
        try:
            client.log_inputs(run_id, datasets=inputs)
        except MlflowException as error:
            # MLflow looks whether it knows a data set and then adds it: of runs that do so at
            # once the database lets one, and the others find it there.
            if attempt + 1 == DATASET_ATTEMPTS or "unique" not in str(error).lower():
                raise
            time.sleep(0.1 * 2**attempt)
        else:
            return


def _log_tables(client: MlflowClient, run_id: str, tables: Sequence[TableRows]) -> None:
    """Write tables as MLflow's `log_table` does, which reads all of the run again for each."""
    if not tables:
        return
    tags = client.get_run(run_id).data.tags
    logged = json.loads(tags.get(MLFLOW_LOGGED_ARTIFACTS, "[]"))
    with TemporaryDirectory() as folder:
        for table in tables:
            # numpy's own numbers would become objects that neither pandas nor JSON round-trips
            columns = {name: np.asarray(column).tolist() for name, column in table.columns.items()}
            entry = {"path": f"{TABLES_FOLDER}/{table.name}.json", "type": "table"}
            if entry in logged:
                client.log_table(run_id, columns, entry["path"])  # which adds the rows
                continue
            file = Path(folder, f"{table.name}.json")
            DataFrame(columns).to_json(file, orient="split", index=False, date_format="iso")
            logged.append(entry)
        client.log_artifacts(run_id, folder, TABLES_FOLDER)
    log_tags(client, run_id, {MLFLOW_LOGGED_ARTIFACTS: json.dumps(logged)})


def _log_figure(client: MlflowClient, run_id: str, figure: FigureFiles) -> None:
    # At the root, because the compare page pairs figures only there; the PNG is among the images.
    client.log_artifact(run_id, str(figure.svg or figure.png))
    with PIL.Image.open(figure.png) as image:
        image.load()
        # The file is there: to compress its dots again would take as long as to draw them.
        image.save = partial(copyfile, figure.png)  # type: ignore[method-assign]
        (name,) = safe_names([figure.name])
        client.log_image(run_id, image, key=f"{IMAGES_SECTION}/{name}", step=0)


def _shortened(text: str, length: int) -> str:
    """Cut text to the room there is; databases refuse NUL and halves of surrogate pairs."""
    text = printable(text)
    return text if len(text) <= length else text[: length - 1] + "…"
