"""What is compared: runs, and published scores in the formats of the public srs-benchmark."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from srs_eval.algorithms.algorithm import ALIASES, UNKNOWN, WHEN
from srs_eval.comparison.words import listed, one_line
from srs_eval.data.reviews import FloatArray, User
from srs_eval.errors import ConfigError
from srs_eval.exports.upstream import bare, is_plainly
from srs_eval.runs.folder import SCORES, SUMMARY, Run, reading, runs_below
from srs_eval.runs.summary import TRAITS, Summary

MARK = "§"  # Of fits that are not what the name of a model says
SIZE, DIGEST = "reviews", "rows"  # Columns of scores
# Names of metrics in lines of srs-benchmark, in its order, and here
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
# Entry of a line: what `to=srs_benchmark` says of the model, keys of `TRAITS`
TRAITS_OF_MODEL = "traits"
PUBLISHED = "published"  # Where other runs have the name of their data
_IDENTITY = ("model", "user", "size")
# When the models of the public benchmark predict, by the beginnings of their names: some walk
# through the log, all others know their card alone
_AT_REVIEW = ("moving-avg", "rmse-bins-exploit", "rwkv-p", "rwkv-instant")
_PREVIOUS_REVIEW = (
    *("act-r", "anki", "avg", "dash", "ebisu", "fsrs", "gru", "hlr", "logistic", "lstm", "nn-17"),
    *("rwkv", "sbd", "sm2", "transformer"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The scores of one model."""

    name: str  # Name in tables
    place: Path  # Folder or file it was read from
    # A row for each user without a missing fold: number and digest of the scored reviews ("" if
    # unknown), and each metric, NaN where not defined
    scores: pd.DataFrame
    facts: Summary  # As far as they are known
    incomplete: tuple[User, ...] = ()  # Users with a missing fold; they have no scores
    run: Run | None = None  # None of published scores

    @property
    def users(self) -> list[User]:
        """Users with scores."""
        return self.scores.index.tolist()

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics."""
        return self.scores.columns.drop([SIZE, DIGEST]).tolist()

    @property
    def traits(self) -> tuple[str, ...]:
        """Traits of the model: keys of `TRAITS`."""
        return tuple(trait for trait in TRAITS if getattr(self.facts, trait))

    @property
    def rank(self) -> int:
        """0 if the model may lead, 1 if some of its fits failed, 2 if it saw the answers."""
        saw_answers = self.facts.sees_truth or self.facts.in_sample
        return 2 if saw_answers else int(self.facts.failed > 0)

    @property
    def marks(self) -> str:
        """Marks for traits and for irregular fits, but for skipped ones, behind a blank."""
        facts, marks = self.facts, "".join(TRAITS[trait][0] for trait in self.traits)
        marks += MARK if facts.failed + facts.fallback + facts.not_converged else ""
        return marks and f" {marks}"

    @property
    def has_digests(self) -> bool:
        """Whether it is known which reviews were scored."""
        return bool((self.scores[DIGEST] != "").all())

    @property
    def has_predictions(self) -> bool:
        """Whether predictions were saved."""
        return self.run is not None and self.run.has_predictions

    def values(self, metric: str, users: Sequence[User]) -> FloatArray:
        """Scores of the users, in their order; NaN where the model has none."""
        if metric not in self.scores:
            return np.full(len(users), math.nan)
        column = self.scores[metric]
        column = column if [*users] == self.users else column.reindex(index_of(users))
        return column.to_numpy(np.float64)


def index_of(users: Iterable[User]) -> pd.Index:
    """Return users, numbers and names, as the index of a frame."""
    return pd.Index([*users], dtype=object)


def read_entry(folder: Path) -> Entry:
    """Read the scores of a finished run."""
    run = Run.read(folder)
    scores, index = run.by_user, index_of(run.by_user.users)
    table = pd.DataFrame(scores.values, index, scores.names)
    table[SIZE], table[DIGEST] = scores.reviews, [*scores.rows]
    is_whole = np.array(scores.rows) != ""
    incomplete = tuple(index[~is_whole])
    table = table[is_whole] if incomplete else table
    return Entry(one_line(run.facts.label), folder, table, run.facts, incomplete, run)


def read_runs(paths: Iterable[Path]) -> tuple[list[Entry], list[str]]:
    """Read all runs at some paths, and return a note for each that scored no user.

    A path is the folder of a run, a folder with runs somewhere below, a file of published scores,
    or a folder of such files. Raise `ConfigError` with every path that holds no runs.
    """
    entries: list[Entry] = []
    problems = []
    for path in paths:
        if below := runs_below(path):
            entries += map(read_entry, below)
        elif any(is_published(file) for file in _files(path)):
            entries += read_published(path)
        else:
            what = "expected" if path.exists() else "there is no such file or folder; expected"
            expected = f"a folder with runs ({SUMMARY}, {SCORES}), or published scores"
            problems.append(f"{path}: {what} {expected}")
    if problems:
        raise ConfigError(*problems)
    nothing = [entry for entry in entries if not entry.users]
    notes = [f"{entry.name} scored no user and was left out: {entry.place}" for entry in nothing]
    return [entry for entry in entries if entry.users], notes


def usual_protocol(entries: Iterable[Entry]) -> str:
    """Return the protocol of most; of equally frequent ones, the first."""
    return mode([e.facts.protocol for e in entries if e.facts.protocol] or [""])


def with_own_names(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with names that differ: by an unusual protocol, or else by folder or path."""
    usual, names = usual_protocol(entries), [entry.name for entry in entries]
    for number, protocol in enumerate(entry.facts.protocol for entry in entries):
        names[number] += f" ({protocol})" if protocol not in ("", usual) else ""
    for places in ([e.place.name for e in entries], [str(e.place) for e in entries]):
        several = [len({p for n, p in zip(names, places, strict=True) if n == m}) for m in names]
        names = [
            f"{name} ({place})" if count > 1 else name
            for name, place, count in zip(names, places, several, strict=True)
        ]
    names = [one_line(name) for name in names]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"the same run is given more than once: {', '.join(twice)}")
    return [replace(entry, name=name) for entry, name in zip(entries, names, strict=True)]


def is_published(path: Path) -> bool:
    """Return whether a file holds published scores, judging by its content."""
    with reading(path):
        if path.suffix == ".parquet" and path.is_file():
            return {*_IDENTITY} <= {*pq.read_schema(path).names}
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
    entries: dict[str, Entry] = {}
    for file in sorted(_files(path), key=lambda file: file.suffix != ".parquet"):
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
    return [*chosen.values()]


def known_when(name: str) -> str:
    """Return when a model of the public benchmark predicts."""
    if name.lower().startswith(_AT_REVIEW):
        return "at_review"
    return "previous_review" if name.lower().startswith(_PREVIOUS_REVIEW) else UNKNOWN


def _files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


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
        traits = set[str]().union(*part.get(TRAITS_OF_MODEL, ()))
        stated = part.get("when", pd.Series()).dropna().map(str)
        times = {ALIASES.get(value, value) for value in stated} or {known_when(name)}
        if len(times) > 1 or not times <= {*WHEN, UNKNOWN}:
            raise ConfigError(
                f"{file}: {name} predicts {', '.join(sorted(times))}; expected one of "
                f"{', '.join((*WHEN, *ALIASES))}"
            )
        about: dict[str, Any] = {"algo": name.lower(), "data": PUBLISHED, "when": times.pop()}
        about |= {trait: trait in traits for trait in TRAITS}
        others = [*_IDENTITY, "when", TRAITS_OF_MODEL]
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
        row |= {"when": line.get("when"), TRAITS_OF_MODEL: line.get(TRAITS_OF_MODEL, ())}
        metrics = line["metrics"].items()
        rows.append(row | {METRICS[name]: each for name, each in metrics if name in METRICS})
    return pd.DataFrame(rows, dtype=object)
