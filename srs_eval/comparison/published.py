"""Published scores of each user, in the formats of the public srs-benchmark.

The files do not identify the scored reviews, only their number for each user.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from srs_eval.algorithms.algorithm import ALIASES, UNKNOWN, WHEN
from srs_eval.comparison.entry import Entry
from srs_eval.comparison.words import listed, one_line
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
            with path.open(encoding="utf-8") as lines, suppress(ValueError):
                content = json.loads(next(lines, ""))
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
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    entries: dict[str, Entry] = {}
    for file in sorted(files, key=lambda file: file.suffix != ".parquet"):
        if is_published(file):
            with reading(file):
                for entry in _entries(file):
                    entries.setdefault(entry.name, entry)
    if not entries:
        raise ConfigError(
            f"{path}: no published scores; expected a parquet file with the columns "
            f"{', '.join(_IDENTITY)}, or lines of JSON with metrics, user and size"
        )
    chosen: dict[str, Entry] = {} if models else entries
    for model in models:
        names = [name for name in entries if fnmatchcase(bare(name), bare(model))]
        names = names or [name for name in entries if is_plainly(name, model)]
        if not names:
            raise ConfigError(f"{path}: has no model {model}; there are {', '.join(entries)}")
        chosen |= {name: entries[name] for name in names}
    return list(chosen.values())


def _entries(file: Path) -> Iterator[Entry]:
    """Read the models of a file."""
    for model, part in _table(file).groupby("model", sort=False):
        name, users, sizes = one_line(str(model)), part["user"].tolist(), part["size"].tolist()
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
        traits = set[str]().union(*part.get(TRAITS_OF_MODEL, ()))
        declared: dict[str, Any] = {trait: True for trait in TRAITS if trait in traits}
        stated = part.get(_WHEN, pd.Series()).dropna().map(str)
        times = {ALIASES.get(value, value) for value in stated}
        times = times or {known_when(name)}
        if len(times) > 1 or not times <= {*WHEN, UNKNOWN}:
            raise ConfigError(
                f"{file}: {name} predicts {', '.join(sorted(times))}; expected one of "
                f"{', '.join((*WHEN, *ALIASES))}"
            )
        metrics = part.columns.difference([*_IDENTITY, _WHEN, TRAITS_OF_MODEL], sort=False)
        facts = Summary(name, data=PUBLISHED, users=len(users), when=times.pop(), **declared)
        yield Entry(
            name=name,
            place=file,
            rows=dict.fromkeys(users, ""),
            reviews=dict(zip(users, sizes, strict=True)),
            scores={metric: part[metric].to_numpy(np.float64) for metric in metrics},
            facts=facts,
        )


def _table(file: Path) -> pd.DataFrame:
    """Read a row for each model and user, with metrics under the names that they have here."""
    if file.suffix == ".parquet":
        table: pd.DataFrame = pq.read_table(file, page_checksum_verification=True).to_pandas()
        return table
    about = []
    for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        metrics = {METRICS[name]: each for name, each in row["metrics"].items() if name in METRICS}
        known = {"model": file.stem, "user": row["user"], "size": row["size"]}
        known |= {_WHEN: row.get(_WHEN), TRAITS_OF_MODEL: row.get(TRAITS_OF_MODEL, ())}
        about.append(known | metrics)
    return pd.DataFrame(about, dtype=object)


def known_when(name: str) -> str:
    """Return when a model of the public benchmark predicts."""
    if name.lower().startswith(_AT_REVIEW):
        return "at_review"
    return "previous_review" if name.lower().startswith(_PREVIOUS_REVIEW) else UNKNOWN
