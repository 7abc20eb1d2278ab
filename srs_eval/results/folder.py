"""A result in a folder: the one place that writes it, and the one that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from srs_eval.errors import ConfigError
from srs_eval.place import put_on_disk
from srs_eval.results import files, tables
from srs_eval.results.files import CONFIG, CURVES, FITS, PREDICTIONS, SCORES, SUMMARY, reading
from srs_eval.results.kept import forget_parts, kept_for_good
from srs_eval.results.predicted import SavedFits, SavedPredictions
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary
from srs_eval.text.plain import cleaned
from srs_eval.text.yaml_files import read_yaml

# Row groups of predictions: many users of few reviews share one.
_ROWS_IN_GROUP = 100_000
# Row groups of scores: the writer holds one in memory.
_USERS_IN_GROUP = 20_000


def save(result: Result, folder: Path) -> Result:
    """Write a result into a folder, and return it with its folder.

    The summary comes last and marks the run as finished. Parts of predictions and fits that stay in
    the folder are not written again. Raise `OSError` if the folder cannot be written to.
    """
    in_parts = result.predicted.stay_in(folder)
    schemas = {} if in_parts else _schemas(result)
    fits = None if in_parts else tables.fits_table(result.fitted)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUMMARY).unlink(missing_ok=True)
    if not in_parts:
        forget_parts(folder)
    for name in (PREDICTIONS, CURVES):
        if name in schemas:
            rows = (part.cast(schemas[name]) for part in result.predicted.tables(name))
            files.write_reviews(folder / name, schemas[name], _grouped(rows))
        else:
            (folder / name).unlink(missing_ok=True)
    if fits is None:
        (folder / FITS).unlink(missing_ok=True)
    else:
        files.write_table(folder / FITS, fits)
    files.write_table(folder / SCORES, tables.scores_table(result.by_user), _USERS_IN_GROUP)
    files.write_json(folder / SUMMARY, result.facts.as_json())
    put_on_disk(folder)
    return replace(result, folder=folder)


def load(folder: Path) -> Result:
    """Read a result from the folder of a finished run; fits and predictions when asked for.

    Raise `ConfigError` if one of its files cannot be read.
    """
    with reading(folder / SUMMARY):
        facts = Summary.from_json(cleaned(files.read_json(folder / SUMMARY)))
    with reading(folder / SCORES):
        scores = tables.read_scores(files.read_table(folder / SCORES))
    as_text = isinstance(next(iter(scores.users), None), str)  # the column has one type
    predicted = kept_for_good(folder, as_text=as_text) or SavedPredictions(folder)
    return Result(facts, scores, SavedFits(predicted.fits), predicted, folder)


def is_run(folder: Path) -> bool:
    """Whether a folder holds the result of a finished run."""
    return (folder / SUMMARY).is_file() and (folder / SCORES).is_file()


def read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration of a finished run."""
    file = folder / CONFIG
    if not file.is_file():
        raise ConfigError(
            f"{folder}: there is no {CONFIG}, which has the options; was the run made with "
            "hydra.output_subdir=null?"
        )
    with reading(file):
        return dict(read_yaml(file))


def _schemas(result: Result) -> dict[str, pa.Schema]:
    """Return the schema of each file of predictions that there is something for.

    Users go by text in all files if one has a name, as they do in those of scores.
    """
    every = {name: list(result.predicted.schemas(name)) for name in (PREDICTIONS, CURVES)}
    found = {name: tables.common_schema(schemas) for name, schemas in every.items() if schemas}
    kinds = {schema.field("user").type for schema in found.values()}
    kinds.add(tables.user_column(result.by_user.users).type)
    if pa.string() not in kinds:
        return found
    named = pa.field("user", pa.string())
    return {name: schema.set(0, named) for name, schema in found.items()}


def _grouped(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Concatenate small tables into row groups."""
    group: list[pa.Table] = []
    for part in parts:
        group.append(part)
        if sum(map(len, group)) >= _ROWS_IN_GROUP:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)
