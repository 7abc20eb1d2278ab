"""Published scores of each user, in the formats of the public srs-benchmark.

The files do not identify the scored reviews, only their number for each user.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from srs_eval.algorithms.algorithm import (
    ALIASES,
    UNKNOWN,
    WHEN,
    when_named,
)
from srs_eval.comparison.entry import Entry
from srs_eval.comparison.words import listed, one_line
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.exports.upstream import bare, is_plainly
from srs_eval.runs.folder import reading
from srs_eval.runs.summary import TRAITS, Summary

# Names of metrics in the line format, in its order, and here.
METRICS = {
    "RMSE": "rmse",
    "LogLoss": "log_loss",
    "RMSE(bins)": "rmse_bins",
    "smECE": "smece",
    "AUC": "auc",
    "precision@90": "confusion_ppv_at_0_9",
    "recall@90": "confusion_tpr_at_0_9",
    "ICI": "ici",
    "MBE": "mbe",
}
# Entry of a line: what `to=srs_benchmark` says of the model, keys of `TRAITS`.
TRAITS_OF_MODEL = "traits"
PUBLISHED = "published"  # Where other runs have the name of their data
_IDENTITY = ("model", "user", "size")
_WHEN = "when"
# When the models of the public benchmark predict, by the beginnings of their names: some walk
# through the log, all others know their card alone.
_AT_REVIEW = ("moving-avg", "rmse-bins-exploit", "rwkv-p", "rwkv-instant")
_PREVIOUS_REVIEW = (
    *("act-r", "anki", "avg", "dash", "ebisu", "fsrs", "gru", "hlr", "logistic", "lstm", "nn-17"),
    *("rwkv", "sbd", "sm2", "transformer"),
)


def is_published(path: Path) -> bool:
    """Return whether a file holds published scores, judging by its content."""
    with reading(path):
        if path.suffix == ".parquet" and path.is_file():
            return set(_IDENTITY) <= set(pq.read_schema(path).names)
        if path.suffix == ".jsonl" and path.is_file():
            with path.open(encoding="utf-8") as lines:
                first = next(lines, "")
            with suppress(ValueError):
                content = json.loads(first)
                return isinstance(content, dict) and {"metrics", "user", "size"} <= content.keys()
    return False


def read_published(path: Path, models: Sequence[str] = ()) -> list[Entry]:
    """Read published scores from a file, or from all files of a folder.

    A file is parquet with columns model, user, size and one for each metric, or has lines as the
    benchmark writes them, and is named after its model. Of a folder, a model that occurs twice is
    read once, from parquet if possible. A column, or an entry of each line, called ``when`` says
    when predictions are made; without it, that is known of the models of the public benchmark
    alone.

    `models` are names or globs of the models to return, in this order; all by default. Only letters
    and digits count, upper and lower case are the same, and so are ``v3`` and ``3``: ``fsrs6`` is
    FSRS-6, ``fsrs3`` is FSRSv3 and ``act_r`` is ACT-R. Where no result is called so, those of the
    model as it is are: ``fsrs6`` is FSRS-6-short, but not FSRS-6-short-recency.
    """
    if not path.exists():
        raise ConfigError(
            f"{path}: there is no such file or folder of published scores; published.models= names "
            "some of the models that it has"
        )
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    entries: dict[str, Entry] = {}
    for file in sorted(files, key=lambda file: file.suffix != ".parquet"):
        if is_published(file):
            with reading(file):
                read = _of_table if file.suffix == ".parquet" else _of_lines
                for entry in read(file):
                    entries.setdefault(entry.name, entry)
    if not entries:
        raise ConfigError(
            f"{path}: no published scores; expected a parquet file with the columns "
            f"{', '.join(_IDENTITY)}, or lines of JSON with metrics, user and size"
        )
    return _chosen(entries, models, path) if models else list(entries.values())


def _chosen(entries: Mapping[str, Entry], models: Sequence[str], path: Path) -> list[Entry]:
    """Return the entries whose names match one of the patterns, in the order of these."""
    chosen: dict[str, Entry] = {}
    unknown = []
    for model in models:
        names = [name for name in entries if fnmatchcase(bare(name), bare(model))]
        names = names or [name for name in entries if is_plainly(name, model)]
        chosen |= {name: entries[name] for name in names}
        unknown += [] if names else [model]
    if unknown:
        choices = ", ".join(entries)
        raise ConfigError(f"{path}: has no model {', '.join(unknown)}; there are {choices}")
    return list(chosen.values())


def _of_table(file: Path) -> Iterator[Entry]:
    table = pq.read_table(file, page_checksum_verification=True).to_pandas()
    names = [name for name in table if name not in (*_IDENTITY, _WHEN)]
    for model, part in table.groupby("model", sort=False):
        scores = {name: part[name].to_numpy(np.float64) for name in names}
        when = part[_WHEN].dropna().tolist() if _WHEN in part else ()
        yield _entry(str(model), file, part["user"].tolist(), part["size"].tolist(), scores, when)


def _of_lines(file: Path) -> Iterator[Entry]:
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(row, dict) and isinstance(row["metrics"], dict) for row in rows):
        raise ValueError("a line is no object with metrics")
    names = dict.fromkeys(name for row in rows for name in row["metrics"] if name in METRICS)
    values = {
        METRICS[name]: np.array([_number(row["metrics"].get(name)) for row in rows], np.float64)
        for name in names
    }
    users, sizes = [row["user"] for row in rows], [row["size"] for row in rows]
    when = [row.get(_WHEN) for row in rows]
    traits = {trait for row in rows for trait in row.get(TRAITS_OF_MODEL, ())}
    yield _entry(file.stem, file, users, sizes, values, when, traits)


def _entry(
    name: str,
    file: Path,
    users: list[User],
    sizes: list[int],
    scores: dict[str, np.ndarray],
    when: Sequence[str | None],
    traits: Collection[str] = (),
) -> Entry:
    odd = [
        f"user {user!r} has size {size!r}"
        for user, size in zip(users, sizes, strict=True)
        if type(user) not in (int, str) or type(size) is not int or size < 1
    ]
    if odd:
        expected = "a number or a name, and a whole number of 1 or more"
        raise ConfigError(f"{file}: {name}: {listed(odd)}; expected {expected}")
    if len(set(users)) < len(users):
        raise ConfigError(f"{file}: {name} has more than one score of the same user")
    name = one_line(name)
    stated = [value for value in when if value is not None]
    declared: dict[str, Any] = {trait: True for trait in TRAITS if trait in traits}
    predicts = _stated(file, name, stated) if stated else known_when(name)
    return Entry(
        name=name,
        place=file,
        rows=dict.fromkeys(users, ""),
        reviews=dict(zip(users, sizes, strict=True)),
        scores=scores,
        facts=Summary(name, data=PUBLISHED, users=len(users), when=predicts, **declared),
    )


def _stated(file: Path, name: str, when: Sequence[str]) -> str:
    """Return when predictions are made as the file says, which is the same for all users."""
    stated = {when_named(str(value)) for value in when}
    if len(stated) > 1 or not stated <= set(WHEN):
        raise ConfigError(
            f"{file}: {name} predicts {', '.join(sorted(stated))}; expected one of "
            f"{', '.join((*WHEN, *ALIASES))}"
        )
    return stated.pop()


def known_when(name: str) -> str:
    """Return when a model of the public benchmark predicts."""
    if name.lower().startswith(_AT_REVIEW):
        return "at_review"
    return "previous_review" if name.lower().startswith(_PREVIOUS_REVIEW) else UNKNOWN


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
