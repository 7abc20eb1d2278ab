"""Results as the public srs-benchmark writes them: a line of JSON for each user.

Its own tables, srs-simulator and SSP-MMC-FSRS read such files.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from srs_eval.algorithms.algorithm import ALIASES, UNKNOWN, WHEN
from srs_eval.comparison.entry import DIGEST, SIZE, Entry, index_of
from srs_eval.comparison.words import counted, listed, one_line
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.evaluation.fits import Fit
from srs_eval.exports.upstream import known_when, result_name
from srs_eval.runs.folder import reading
from srs_eval.runs.summary import TRAITS, Summary

# The ending of files of results, by which `compare` knows them.
RESULTS = ".jsonl"
# Names of metrics there, in their order, and here
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
_TRAITS = "traits"  # Entry of a line: keys of `TRAITS`
_PUBLISHED = "published"  # Where runs have the name of their data
_IDENTITY = ("model", "user", "size")
_DIGITS = 6
_ALGORITHMS = "srs_eval.algorithms."
# What has no reviews that it can be computed from is 0 there.
_ZERO = ("precision@90", "recall@90")
_WHOLE = "0"  # Where there is one fit for all cards
_FITS_ALONE = (
    "time_ms is the processor time of the fits alone, where srs-benchmark counts reading, features "
    "and metrics too"
)
_NOT_THEIRS = (
    "intervals end with the question; those of srs-benchmark include the answer time: "
    "protocol.answer_time=true"
)


@dataclass(frozen=True, slots=True)
class ResultRows:
    """The lines of a result, and what its reader should know."""

    name: str  # That of the file, without its ending
    lines: Sequence[str]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The content of the file."""
        return "\n".join(self.lines)


def result_rows(entry: Entry, user: str | None = None) -> ResultRows:
    """Return the lines of a run, or of a published result that was read, sorted by users.

    Scores have 6 decimals, as there, but published ones stay as they are. `user` is the only one
    that is wanted. Raise `ConfigError` if there is no such user, or no user has a score.
    """
    fits = _fits(entry)
    columns = _columns(entry)
    rows = [
        {"metrics": {name: values[place] for name, values in columns.items()}}
        | _about(entry, whose, fits.get(whose, ()))
        for place, whose in enumerate(entry.users)
        if user is None or str(whose) == user
    ]
    if not rows:
        message = "no user" if user is None else f"user={user}: no such user"
        raise ConfigError(f"{message} has a score in {entry.place}")
    if all(isinstance(row["user"], int) for row in rows):
        rows.sort(key=lambda row: row["user"])
    lines = [json.dumps(row, allow_nan=False) for row in rows]
    return ResultRows(_name(entry), lines, tuple(_notes(entry, fits)))


def _fits(entry: Entry) -> dict[User, list[Fit]]:
    """Return the fits of each user; none of published results."""
    found: dict[User, list[Fit]] = {}
    for fit in entry.run.fits() if entry.run else ():
        found.setdefault(fit.user, []).append(fit)
    return found


def _columns(entry: Entry) -> dict[str, list[float | None]]:
    """Return the metrics that are defined for a user or more, under the names there."""
    scores = dict(entry.scores)
    if "rmse" not in scores and "brier" in scores:
        scores["rmse"] = np.sqrt(scores["brier"])
    digits = None if entry.facts.data == _PUBLISHED else _DIGITS
    return {
        name: [_value(name, value, digits) for value in scores[ours].tolist()]
        for name, ours in METRICS.items()
        if ours in scores and (name in _ZERO or not np.isnan(scores[ours]).all())
    }


def _value(name: str, value: float, digits: int | None) -> float | None:
    if not math.isfinite(value):
        return 0.0 if name in _ZERO and digits else None
    return value if digits is None else round(value, digits)


def _about(entry: Entry, user: User, fits: Sequence[Fit]) -> dict[str, Any]:
    """Return what a line has beside the metrics."""
    about: dict[str, Any] = {"user": user, "size": int(entry.scores[SIZE][user])}
    if fits:
        parameters = _parameters(max(fits, key=lambda fit: fit.fold))
        about |= {"parameters": parameters} if parameters else {}
        about["time_ms"] = round(1000 * math.fsum(fit.seconds for fit in fits), 3)
    about |= {"when": entry.facts.when} if entry.facts.when != UNKNOWN else {}
    return about | ({_TRAITS: list(entry.traits)} if entry.traits else {})


def _parameters(fit: Fit) -> dict[str, list[float]]:
    """Return the parameters of a fit by deck or preset, or else those of all cards."""
    groups = [part for part in fit.parts if part.standalone and part.parameters]
    parameters = {part.name.rpartition(" ")[2]: part.parameters for part in groups}
    if len(parameters) < 2:
        whole = next(iter(parameters.values()), fit.parameters)
        parameters = {_WHOLE: whole} if whole else {}
    return {name: [round(number, _DIGITS) for number in parameters[name]] for name in parameters}


def _name(entry: Entry) -> str:
    if entry.run is None:
        return entry.name
    options, facts = entry.run.config()["algo"], entry.facts
    weighted = _weighted(options)
    return result_name(facts.algo, facts.label, options, facts.protocol, weighted=weighted)


def _weighted(options: Mapping[str, Any]) -> bool:
    """Whether recent reviews count more in the fit, by the options or by default."""
    base = options.get("base")
    options = base if isinstance(base, Mapping) else options
    recency, fit = options.get("recency"), options.get("fit")
    module, _, kind = str(options.get("_target_")).rpartition(".")
    if recency is None and "recency" in options and module.startswith(_ALGORITHMS):
        by_default = "own_recency" if fit == "newton" else "published_recency"
        with suppress(ImportError):  # of another release
            recency = getattr(getattr(import_module(module), kind, None), by_default, None)
    return fit != "default" and recency not in (None, "none")


def _notes(entry: Entry, fits: Mapping[User, Sequence[Fit]]) -> Iterator[str]:
    """Say which users have no line and why, and what other programs would not expect."""
    without = [
        next((fit.status for fit in fits.get(user, ()) if not fit.predicts), "incomplete")
        for user in entry.incomplete
    ]
    for status, count in Counter(without).items():
        yield f"{counted(count, 'user')} without a line: {status} (fits.parquet)"
    if not all(isinstance(user, int) for user in entry.users):
        yield "users have names, where srs-benchmark has whole numbers"
    if fits:
        yield _FITS_ALONE
    if entry.facts.protocol in ("srs_benchmark_secs", "srs_benchmark_equalised"):
        yield _NOT_THEIRS


def read_published(path: Path) -> list[Entry]:
    """Read published scores from a file, or from all files of a folder; none if there are none.

    A file is parquet with columns model, user, size and one for each metric, or has lines as above,
    and is named after its model. Of a folder, a model that occurs twice is read once, from parquet
    if possible. A column, or an entry of each line, called ``when`` says when predictions are made;
    without it, that is known of the models of the public benchmark alone.
    """
    entries: dict[str, Entry] = {}
    files = [*path.iterdir()] if path.is_dir() else [path]
    for file in sorted(files, key=lambda file: (file.suffix != ".parquet", file)):
        with reading(file):
            for entry in _entries(file) if is_published(file) else ():
                entries.setdefault(entry.name, entry)
    return [*entries.values()]


def is_published(path: Path) -> bool:
    """Return whether a file holds published scores, judging by its content."""
    if path.suffix == ".parquet" and path.is_file():
        return {*_IDENTITY} <= {*pq.read_schema(path).names}
    if path.suffix == RESULTS and path.is_file():
        with path.open(encoding="utf-8") as lines, suppress(ValueError):
            content = json.loads(next(lines, ""))
            return isinstance(content, dict) and {"metrics", "user", "size"} <= content.keys()
    return False


def _entries(file: Path) -> Iterator[Entry]:
    """Read the models of a file."""
    for model, part in _table(file).groupby("model", sort=False):
        name, users, sizes = one_line(str(model)), part["user"].tolist(), part["size"].tolist()
        if odd := [
            f"user {user!r} has size {size!r}"
            for user, size in zip(users, sizes, strict=True)
            if type(user) not in (int, str) or type(size) is not int or size < 1
        ]:
            expected = "a number or a name, and a whole number of 1 or more"
            raise ConfigError(f"{file}: {name}: {listed(odd)}; expected {expected}")
        if len({*users}) < len(users):
            raise ConfigError(f"{file}: {name} has more than one score of the same user")
        traits = set[str]().union(*part.get(_TRAITS, ()))
        stated = part.get("when", pd.Series()).dropna().map(str)
        times = {ALIASES.get(value, value) for value in stated} or {known_when(name)}
        if len(times) > 1 or not times <= {*WHEN, UNKNOWN}:
            said, expected = ", ".join(sorted(times)), ", ".join((*WHEN, *ALIASES))
            raise ConfigError(f"{file}: {name} predicts {said}; expected one of {expected}")
        about: dict[str, Any] = {"algo": name.lower(), "data": _PUBLISHED, "when": times.pop()}
        about |= {trait: trait in traits for trait in TRAITS}
        others = [*_IDENTITY, "when", _TRAITS]
        scores = part[part.columns.difference(others, sort=False)].astype(np.float64)
        scores = scores.assign(**{SIZE: sizes, DIGEST: ""}).set_axis(index_of(users))
        yield Entry(name, file, scores, Summary(name, **about))


def _table(file: Path) -> pd.DataFrame:
    """Read a row for each model and user, with metrics under the names that they have here."""
    if file.suffix == ".parquet":
        table: pd.DataFrame = pq.read_table(file, page_checksum_verification=True).to_pandas()
        return table
    rows = []
    for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        row = {"model": file.stem, "user": line["user"], "size": line["size"]}
        row |= {"when": line.get("when"), _TRAITS: line.get(_TRAITS, ())}
        metrics = line["metrics"].items()
        rows.append(row | {METRICS[name]: each for name, each in metrics if name in METRICS})
    return pd.DataFrame(rows, dtype=object)
